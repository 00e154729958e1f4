package dq

import (
	"context"
	"sync"
	"time"
)

// Job is one delivery of a job.
type Job struct {
	ID string
	// Queue is the key that it came from; of a sharded queue, the shard's.
	Queue string
	// Payload is what was added, envelope included.
	Payload []byte
	// Token names this delivery.
	Token string
	// Attempt counts deliveries, this one included.
	Attempt int
	// Deadline is when the lease ended at delivery. The worker renews it while the handler runs.
	Deadline time.Time
	// Due is when the job was due; of a recurring one, the instant of its occurrence, the same in all attempts.
	Due time.Time

	codec    Codec
	envelope *envelope
	isRead   bool
	link     *link
	handler  *Handler
	err      error           // what Fail was given
	ctx      context.Context // its handler's

	mu   sync.Mutex
	told error
	tell func(error) // ends the context of its handler
}

// Kind is the kind that it was added with, or "".
func (j *Job) Kind() string {
	if e := j.opened(); e != nil {
		return e.kind
	}
	return ""
}

// Headers are those that it was added with.
func (j *Job) Headers() map[string]string {
	if e := j.opened(); e != nil {
		return e.headers
	}
	return nil
}

// Decode stores what was added in the value that v points to, as the queue's codec reads it.
func (j *Job) Decode(v any) error {
	if e := j.opened(); e != nil {
		return JSON.Decode(e.data, v)
	}
	return j.codec.Decode(j.Payload, v)
}

// Fail says, in a batch, that this one job failed (or is to be retried, snoozed, given up) and the others did not.
func (j *Job) Fail(err error) { j.err = err }

// Lost says whether another worker may have the job: then the end of its handler will not count.
func (j *Job) Lost() bool { return j.why() == ErrLost }

func (j *Job) opened() *envelope {
	if !j.isRead {
		j.envelope, j.isRead = readEnvelope(j.Payload), true
	}
	return j.envelope
}

// why is what the handler was told, or nil.
func (j *Job) why() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

func (j *Job) end(why error) {
	j.mu.Lock()
	tell := j.tell
	first := j.told == nil
	if first {
		j.told = why
	}
	j.mu.Unlock()
	if first && tell != nil {
		tell(why)
	}
}

// contextOf makes the context of a batch's handler: it ends when all its jobs were told.
func contextOf(parent context.Context, batch []*Job) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	var mu sync.Mutex
	left := len(batch)
	tell := func(why error) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			cancel(why)
		}
	}
	for _, job := range batch {
		job.mu.Lock()
		job.tell = tell
		told := job.told
		job.mu.Unlock()
		if told != nil { // in the meantime
			tell(told)
		}
	}
	return ctx, cancel
}
