package dq

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Work runs a worker in one call: it runs one handler on the jobs of a queue until SIGINT or SIGTERM, then stops as
// [Worker.Run] does. A second signal ends the wait for handlers at once. The URL is as for [Open].
//
//	err := dq.Work("redis://localhost", "orders", func(ctx context.Context, job *dq.Job, order Order) error {
//		return closeOrder(ctx, order)
//	})
//
// Settings for its jobs may follow: dq.Handler{Attempts: 5, Lease: 30 * time.Second}. For all else use [NewWorker].
func Work[T any](
	url, queue string, do func(ctx context.Context, job *Job, data T) error, settings ...Handler,
) error {
	var handler Handler
	if len(settings) > 0 {
		handler = settings[0]
	}
	if len(settings) > 1 || handler.Do != nil || handler.DoBatch != nil {
		return &ConfigurationError{What: "Work has one handler, its function: use NewWorker for more"}
	}
	handler.Do = Typed(do)
	opened, err := Open(url, queue)
	if err != nil {
		return err
	}
	defer opened.Close()
	worker, err := NewWorker(WorkerConfig{Queues: []*Queue{opened}, Handlers: []Handler{handler}})
	if err != nil {
		return err
	}
	return worker.RunUntilSignal(context.Background())
}

// RunUntilSignal is [Worker.Run] that also ends at SIGINT or SIGTERM. A second signal ends the drain: what is in hand is
// given back at once.
func (w *Worker) RunUntilSignal(ctx context.Context) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer close(ended)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		for end := stop; ; end = w.Stop {
			select {
			case <-signals:
				end()
			case <-ended:
				return
			}
		}
	}()
	defer stop()
	return w.Run(ctx)
}
