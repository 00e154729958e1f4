// Package dq has workers and producers for dq, the delay queue of Redis and Valkey, on go-redis.
//
//	queue, err := dq.Open("redis://localhost", "orders")
//	id, err := queue.Add(ctx, Order{17}, &dq.JobOptions{ID: "close:17", Delay: 30 * time.Minute})
//
//	worker, err := dq.NewWorker(dq.WorkerConfig{
//		Queues:   []*dq.Queue{queue},
//		Handlers: []dq.Handler{{Do: dq.Typed(closeOrder), Attempts: 5, Lease: 30 * time.Second}},
//	})
//	err = worker.Run(ctx)
//
// Delivery is at least once: handlers must be idempotent.
package dq

// Version of this package.
const Version = "0.1.0"
