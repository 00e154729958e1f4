package dq

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const touchPause = time.Second // between two updates of the file

// Health returns nil if the worker is healthy, else what is wrong. It is healthy if the last fetch or heartbeat on each
// of its connections was answered in time. It is not before the first answer, and after the worker has stopped.
func (w *Worker) Health() error {
	switch {
	case !w.hasRun.Load():
		return errors.New("dq: the worker does not run")
	case w.hasEnded.Load():
		return errors.New("dq: the worker has stopped")
	}
	for _, l := range w.links {
		if !l.isReached.Load() {
			said, _ := w.said.Load().(string)
			return errors.New("dq: the server does not answer: " + cmp.Or(said, "no answer yet"))
		}
	}
	return nil
}

// IsHealthy says whether [Worker.Health] finds nothing wrong.
func (w *Worker) IsHealthy() bool { return w.Health() == nil }

// HealthHandler returns a handler that replies 200 and "ok" while the worker is healthy, else 503 and the reason.
func (w *Worker) HealthHandler() http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		said, code := "ok", http.StatusOK
		if err := w.Health(); err != nil {
			said, code = err.Error(), http.StatusServiceUnavailable
		}
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out.WriteHeader(code)
		_, _ = io.WriteString(out, said+"\n")
	})
}

// showHealth publishes the worker's health until the returned function is called.
func (w *Worker) showHealth() (end func(), err error) {
	if w.health == "" {
		return func() {}, nil
	}
	if _, _, err := net.SplitHostPort(w.health); err != nil || strings.ContainsRune(w.health, os.PathSeparator) {
		return w.touchHealth(), nil
	}
	listener, err := net.Listen("tcp", w.health)
	if err != nil {
		return nil, &ConfigurationError{"the worker cannot show its health at " + w.health, err}
	}
	server := &http.Server{Handler: w.HealthHandler(), ReadTimeout: slack, WriteTimeout: slack}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// touchHealth sets the time of a file each second while the worker is healthy.
func (w *Worker) touchHealth() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ticks := time.NewTicker(touchPause)
		defer ticks.Stop()
		for {
			if w.IsHealthy() {
				if err := touch(w.health, time.Now()); err != nil {
					w.warn("dq: the file of the worker's health cannot be written", "file", w.health, "error", err.Error())
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	}()
	return cancel
}

func touch(path string, now time.Time) error {
	err := os.Chtimes(path, now, now)
	if errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(path, nil, 0o644)
	}
	return err
}
