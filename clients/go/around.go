package dq

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// around calls the handler of a batch through all layers.
func (w *Worker) around(ctx context.Context, batch []*delivery) error {
	if len(w.layers) == 0 {
		return call(ctx, batch)
	}
	jobs := jobsOf(batch)
	run := func(ctx context.Context) error { return call(ctx, batch) }
	for at := len(w.layers) - 1; at >= 0; at-- {
		layer, next := w.layers[at], run
		run = func(ctx context.Context) error { return layer(ctx, jobs, next) }
	}
	return run(ctx)
}

func call(ctx context.Context, batch []*delivery) error {
	if h := batch[0].handler; h.DoBatch != nil {
		return h.DoBatch(ctx, jobsOf(batch))
	}
	return batch[0].handler.Do(ctx, batch[0].job)
}

func jobsOf(batch []*delivery) []*Job {
	jobs := make([]*Job, len(batch))
	for at, d := range batch {
		jobs[at] = d.job
	}
	return jobs
}

// --- The time that a handler has

// limited is a context with the deadline of the handler's Timeout. The worker ends it, not a timer of the context.
type limited struct {
	context.Context
	at time.Time
}

func (l limited) Deadline() (time.Time, bool) {
	if earlier, has := l.Context.Deadline(); has && earlier.Before(l.at) {
		return earlier, true
	}
	return l.at, true
}

// limit fails a batch when its Timeout is over, unless the returned function has been called.
func (w *Worker) limit(batch []*delivery) (end func()) {
	limit := batch[0].handler.Timeout
	if limit == 0 {
		return func() {}
	}
	var mu sync.Mutex
	hasEnded := false
	timer := time.AfterFunc(limit, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range batch {
			if !hasEnded {
				w.overdue(d, overdue(limit))
			}
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		hasEnded = true
	}
}

// overdue fails a job whose handler still runs after its Timeout.
func (w *Worker) overdue(d *delivery, v verdict) {
	if d.waits() != nil {
		v = verdict{way: suspended, wait: unsaid}
	}
	failed := settled(d, v)
	if !d.link.fail(d, failed) {
		return
	}
	d.end(ErrTimeout)
	d.link.wake()
	w.aside(func() {
		if v.way != suspended {
			guard.Log(w.logger, slog.LevelWarn, "dq: a job failed", "job", d.id, "queue", d.queue, "attempt", d.attempt, "error", v.reason)
		}
		w.tellHooks(d, v, ErrTimeout)
	})
}

// contextOf makes the context of a batch's handler: it ends when the handler was told of all its jobs.
func contextOf(parent context.Context, batch []*delivery) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	tell := (func(error))(cancel)
	if len(batch) > 1 {
		tell = theLast(len(batch), cancel)
	}
	for _, d := range batch {
		d.mu.Lock()
		d.tell = tell
		told := d.told
		d.mu.Unlock()
		if told != nil { // told before tell was set
			tell(told)
		}
	}
	return ctx, cancel
}

// theLast makes a function that calls tell with its last call.
func theLast(left int, tell func(error)) func(error) {
	var mu sync.Mutex
	return func(why error) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			tell(why)
		}
	}
}
