package dq

import "context"

// Hooks are functions that are called around jobs, for logging, metrics and tracing. Each may be nil. They must not
// block. A panic of a hook is logged, and changes nothing.
type Hooks struct {
	// Adding is called before a job is added; it may set headers. It is for queues, the others are for workers.
	Adding func(ctx context.Context, queue string, headers map[string]string)
	// Before is called before the job's handler, which runs with the context that Before returns.
	Before func(ctx context.Context, job *Job) context.Context
	// After is called when the job's handler has returned nil.
	After func(ctx context.Context, job *Job)
	// Failed is called when the job's handler has returned an error, also [RetryIn], [Snooze] or [GiveUp].
	Failed func(ctx context.Context, job *Job, err error)
	// Suspended is called when the job's handler has the job wait (see [ErrSuspended]). Neither After nor Failed is
	// called then; the handler will be called again.
	Suspended func(ctx context.Context, job *Job)
	// Lost is called when another worker may have the job: its lease expired before it was acknowledged, or it was
	// deleted.
	Lost func(job *Job)
	// Dead is called when a job has died: its attempts are used up, its handler gave it up, or a job that it was after
	// died. It is the job as it is then; queue is the queue's name.
	//
	// The worker that the server told calls it, one job at a time, in a goroutine of its own. If a job died with its lease or
	// with another job, each worker that has this hook finds that, at the latest a lease later: a job may be told of more than
	// once. Not found is what died before the worker's start, and what the queue's DEADLEN took before. Its context ends when
	// the worker has stopped: what is left of the drain is its time.
	Dead func(ctx context.Context, queue string, job *JobInfo)
}

// Around is middleware around handlers, for logging, metrics, transactions or locks. It calls next, which calls the
// handler; or it does not, and decides itself. What it returns is treated as the handler's error; [Job.Succeed] changes
// the result. There is one job, or those of a batch.
//
//	func timed(ctx context.Context, jobs []*dq.Job, next func(context.Context) error) error {
//		defer observe(time.Now())
//		return next(ctx)
//	}
type Around func(ctx context.Context, jobs []*Job, next func(context.Context) error) error
