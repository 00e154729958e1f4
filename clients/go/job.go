package dq

import (
	"bytes"
	"context"
	"maps"
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
	// MaxAttempts is the limit of the job, else of its handler; 0: none.
	MaxAttempts int
	// Deadline is when the lease ended at delivery. The worker renews it while the handler runs.
	Deadline time.Time
	// Due is when the job was due; of a recurring one, the instant of its occurrence, the same in all attempts.
	Due time.Time

	delivery *delivery // nil where a test made the job
}

// Kind is the kind that it was added with, or "".
func (j *Job) Kind() string {
	if e := j.opened(); e != nil {
		return e.kind
	}
	return ""
}

// Headers are a copy of those that it was added with.
func (j *Job) Headers() map[string]string {
	if e := j.opened(); e != nil {
		return maps.Clone(e.headers)
	}
	return nil
}

// Decode stores what was added in the value that v points to, as the queue's codec reads it. The error is a
// [*DecodeError]: a handler that returns it has the job dead at once.
func (j *Job) Decode(v any) (err error) {
	codec, payload := j.data()
	if failure := decoded(codec, payload, v); failure != nil {
		err = &DecodeError{failure, j.delivery}
	}
	return err
}

// data is what was added, and what reads it.
func (j *Job) data() (Codec, []byte) {
	if e := j.opened(); e != nil {
		return JSON, e.data
	}
	if j.delivery != nil {
		return j.delivery.source.codec, j.delivery.payload
	}
	return JSON, j.Payload
}

// isNull says whether it is JSON's null.
func (j *Job) isNull() bool {
	codec, payload := j.data()
	_, isJSON := codec.(jsonCodec)
	return isJSON && string(bytes.TrimSpace(payload)) == "null"
}

// IsLastAttempt says whether the job is dead if this attempt fails.
func (j *Job) IsLastAttempt() bool { return 0 < j.MaxAttempts && j.MaxAttempts <= j.Attempt }

// Fail says, in a batch, that this one job failed (or is to be retried, snoozed, given up) and the others did not.
func (j *Job) Fail(err error) {
	if d := j.delivery; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failure, d.result, d.isGood = err, nil, false
	}
}

// Succeed gives the job a result, which its codec encodes, for [Result], [Wait] and the jobs that come after it. It
// counts if the handler then returns nil; in a batch it says that this one job succeeded, whatever the others do.
func (j *Job) Succeed(result any) {
	if d := j.delivery; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failure, d.result, d.isGood = nil, result, true
	}
}

// SetCost says what this delivery counts in the queue's rates (see [JobOptions].Cost), where that is known only
// afterwards. The error is [ErrLost] where another worker may have the job.
func (j *Job) SetCost(ctx context.Context, cost int) error {
	d, err := j.running()
	if err != nil {
		return err
	}
	reply, err := d.ask(ctx, words{"DQ.TOUCH", d.queue, d.id, "TOKEN", d.token, "COST", cost})
	if err == nil && reply == nil {
		err = d.lost()
	}
	return err
}

// Results are how the jobs ended that this one came after (see [JobOptions].After), in that order.
func (j *Job) Results() []JobResult {
	if j.delivery == nil {
		return nil
	}
	return resultsOf(j.delivery.results, j.delivery.source.codec)
}

// Lost says whether another worker may have the job: then the end of its handler will not count.
func (j *Job) Lost() bool { return j.delivery != nil && j.delivery.why() == ErrLost }

func (j *Job) opened() *envelope {
	if j.delivery == nil {
		return readEnvelope(j.Payload)
	}
	return j.delivery.opened()
}
