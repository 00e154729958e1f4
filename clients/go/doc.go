// Package dq has workers and producers for dq, the delay queue of Redis and Valkey, on go-redis.
//
//	queue, err := dq.Open("redis://localhost", "orders")
//	id, err := queue.Add(ctx, Order{17}, &dq.JobOptions{ID: "close:17", Delay: 30 * time.Minute})
//
//	err = dq.Work("redis://localhost", "orders", func(ctx context.Context, job *dq.Job, order Order) error {
//		return closeOrder(ctx, order)
//	})
//
// [NewWorker] makes one with settings, and for many kinds of jobs.
//
// Delivery is at least once: handlers must be idempotent.
package dq

// Version of this package.
const Version = "0.1.0"
