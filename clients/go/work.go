package dq

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Work runs a worker in one call: it runs one handler on the jobs of a queue until SIGINT or SIGTERM, then stops as
// [Worker.Run] does. A second signal ends the process at once. The URL is as for [Open].
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
	ctx, ignore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer ignore()
	context.AfterFunc(ctx, ignore)
	return worker.Run(ctx)
}
