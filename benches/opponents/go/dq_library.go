package main

import (
	"context"
	"log/slog"
	"os"

	library "github.com/redis-dq/redis-dq/clients/go"
)

// The Go library of dq: a worker with as many handlers as asynq's.
type dqLibrary struct {
	*dq
	queue *library.Queue
}

func newDqLibrary(address string) *dqLibrary {
	opened, err := library.Open("redis://"+address, queue)
	must(err)
	return &dqLibrary{newDq(address), opened}
}

func (d *dqLibrary) work(handle func(string) bool, isReady func()) {
	worker, err := library.NewWorker(library.WorkerConfig{
		Queues: []*library.Queue{d.queue}, Concurrency: concurrency,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Handlers: []library.Handler{{Do: func(_ context.Context, job *library.Job) error {
			handle(string(job.Payload))
			return nil
		}}},
	})
	must(err)
	go func() { must(worker.Run(context.Background())) }()
	isReady()
}
