package dq

import "context"

// Hooks are where other code joins in: logging, metrics, tracing. Each function may be nil. They must not block. A
// panic of a hook is logged, and changes nothing.
type Hooks struct {
	// Adding: a job is about to be added; headers may be set. For a queue.
	Adding func(ctx context.Context, queue string, headers map[string]string)
	// Before: the job's handler is about to run, with the context that this answers.
	Before func(ctx context.Context, job *Job) context.Context
	// After: its handler ended without an error.
	After func(ctx context.Context, job *Job)
	// Failed: its handler ended with an error, or with what it may return to say how the job goes on.
	Failed func(ctx context.Context, job *Job, err error)
	// Suspended: its handler has the job wait, see [ErrSuspended]. It is called again, neither After nor Failed is.
	Suspended func(ctx context.Context, job *Job)
	// Lost: another worker may have the job, as its lease expired before it was acknowledged.
	Lost func(job *Job)
}
