// Code generated from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

package dq

import (
	"context"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// JobOptions are the options of a job, for [Queue.Add]. What is not set is decided by the queue's settings or the
// worker's handler.
type JobOptions struct {
	// ID is unique in the queue; without one the library makes one, which grows with time.
	ID       string
	IfExists IfExists
	// Delay or At says when the job is due; the default is now.
	Delay time.Duration
	At    time.Time
	// The job's priority: smaller is delivered first.
	Priority int
	// The length of the job's leases.
	TTR time.Duration
	// How often the job may be delivered; 0: without limit, whatever the queue's settings say. Here 0 is Unlimited.
	Attempts int
	// The job expires this long after it was added.
	TTL time.Duration
	// The group that the job belongs to, such as a tenant or a user. Groups take turns.
	Group string
	// How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all. Here 0 is
	// NotKept.
	Keep time.Duration
	// What a delivery counts towards the rates of the queue and of its group; 1 by default.
	Cost int
	// The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits.
	Backoff []time.Duration
	// What kind of job it is, for those who look; it changes nothing of how the job is served.
	Label string
	// After blocks the job until these jobs of its queue have ended. AfterGroup: until that group has no jobs left.
	After      []string
	AfterGroup string
	// OnDead says what the job does if a job in After dies.
	OnDead OnDead
	// Kind chooses the worker's handler.
	Kind    string
	Headers map[string]string
}

// said appends what a job may have.
func (o *JobOptions) said(call words) words {
	if o.Priority != 0 {
		call = append(call, "PRIORITY", between("priority", int64(o.Priority), "", -2147483648, 2147483647))
	}
	if o.TTR != 0 {
		call = append(call, "TTR", between("ttr", resp.Ms(o.TTR), " ms", 1, latest))
	}
	if o.Attempts != 0 {
		call = append(call, "ATTEMPTS", between("attempts", max(0, int64(o.Attempts)), "", 0, 4294967295))
	}
	if o.TTL != 0 {
		call = append(call, "TTL", between("ttl", resp.Ms(o.TTL), " ms", 1, latest))
	}
	if o.Group != "" {
		call = append(call, "GROUP", bounded("group", o.Group, 256))
	}
	if o.Keep != 0 {
		call = append(call, "KEEP", between("keep", resp.Ms(o.Keep), " ms", 0, latest))
	}
	if o.Cost != 0 {
		call = append(call, "COST", between("cost", int64(o.Cost), "", 1, 1000000))
	}
	call = call.ladder(o.Backoff)
	if o.Label != "" {
		call = append(call, "LABEL", bounded("label", o.Label, 256))
	}
	return call
}

// SetCost is [Job.SetCost] for programs without a worker, and renews the lease. It returns false if the token is not
// the job's current one.
func (q *Queue) SetCost(ctx context.Context, id, token string, cost int) (bool, error) {
	return q.correct(ctx, id, token, "COST", between("cost", int64(cost), "", 1, 1000000))
}

// SetCost sets it for this delivery: what a delivery counts towards the rates of the queue and of its group. The error
// is [ErrLost] if another worker may have the job.
func (j *Job) SetCost(ctx context.Context, cost int) error {
	return j.correct(ctx, "COST", between("cost", int64(cost), "", 1, 1000000))
}
