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
	// Queue is the key that the job came from; of a sharded queue, the shard's key.
	Queue string
	// Payload is what was added, envelope included.
	Payload []byte
	// Token names this delivery.
	Token string
	// Attempt counts deliveries, this one included.
	Attempt int
	// MaxAttempts is the least of the limits of the job, or else its queue, and of its handler; 0: no limit.
	MaxAttempts int
	// Deadline is when the lease would have expired as it was at delivery. The worker renews it while the handler runs.
	Deadline time.Time
	// Due is when the job was due.
	Due time.Time

	delivery attempt // nil where a test made the job
}

// attempt is the delivery, as its job needs it.
type attempt interface {
	opened() *envelope
	content() (Codec, []byte)
	endings() []ending
	says(failure error, result any, isGood bool)
	why() error
}

// Occurrence returns the instant of a recurring job's occurrence, which is equal in all attempts.
func (j *Job) Occurrence() time.Time { return j.Due }

// Kind returns the kind that the job was added with, or "".
func (j *Job) Kind() string {
	if e := j.opened(); e != nil {
		return e.kind
	}
	return ""
}

// Headers returns a copy of the headers that the job was added with.
func (j *Job) Headers() map[string]string {
	if e := j.opened(); e != nil {
		return maps.Clone(e.headers)
	}
	return nil
}

// Decode decodes the job's data, with the queue's codec, into the value that v points to. The error is a
// [*PayloadError]: if the handler returns it, the job is dead at once.
func (j *Job) Decode(v any) (err error) {
	codec, payload := j.data()
	if failure := decoded(codec, payload, v); failure != nil {
		err = &PayloadError{failure, j.delivery}
	}
	return err
}

// data returns the job's data, and the codec that reads it.
func (j *Job) data() (Codec, []byte) {
	if e := j.opened(); e != nil {
		return JSON, e.data
	}
	if j.delivery != nil {
		return j.delivery.content()
	}
	return JSON, j.Payload
}

// isNull says whether the job's data is JSON's null.
func (j *Job) isNull() bool {
	codec, payload := j.data()
	_, isJSON := codec.(jsonCodec)
	return isJSON && string(bytes.TrimSpace(payload)) == "null"
}

// IsLastAttempt says whether the job is dead if this attempt fails.
func (j *Job) IsLastAttempt() bool { return 0 < j.MaxAttempts && j.MaxAttempts <= j.Attempt }

// Fail sets the error of this one job of a batch, which may be [RetryIn], [Snooze] or [GiveUp]. The other jobs are not
// affected.
func (j *Job) Fail(err error) {
	if d := j.delivery; d != nil {
		d.says(err, nil, false)
	}
}

// Succeed gives the job a result, which the queue's codec encodes, for [Result], [Wait] and the jobs that come after
// this one. It counts if the handler then returns nil. In a batch it says that this one job succeeded, whatever the
// others do.
func (j *Job) Succeed(result any) {
	if d := j.delivery; d != nil {
		d.says(nil, result, true)
	}
}

func (j *Job) correct(ctx context.Context, word string, value any) error {
	d, err := j.running()
	if err != nil {
		return err
	}
	reply, err := d.ask(ctx, words{"DQ.TOUCH", d.queue, d.id, "TOKEN", d.token, word, value})
	if err == nil && reply == nil {
		err = d.lost()
	}
	return err
}

// Results returns how the jobs ended that this job came after (see [JobOptions].After), in that order.
func (j *Job) Results() []JobResult {
	if j.delivery == nil {
		return nil
	}
	codec, _ := j.delivery.content()
	return resultsOf(j.delivery.endings(), codec)
}

// Lost says whether another worker may have the job. What its handler then returns does not count.
func (j *Job) Lost() bool { return j.delivery != nil && j.delivery.why() == ErrLost }

func (j *Job) opened() *envelope {
	if j.delivery == nil {
		return readEnvelope(j.Payload)
	}
	return j.delivery.opened()
}
