package dq

import (
	"context"
	"fmt"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// Outcome is how a job ended; "" if it has not.
type Outcome string

// The outcomes of jobs. Unknown means that the job ended before, without being kept, or never existed.
const (
	OutcomeDone    Outcome = "done"
	OutcomeDead    Outcome = "dead"
	OutcomeDeleted Outcome = "deleted"
	OutcomeExpired Outcome = "expired"
	OutcomeUnknown Outcome = "unknown"
)

// JobFailedError says that a job has no result, because it did not succeed.
type JobFailedError struct {
	ID      string
	Outcome Outcome
	Reason  string
}

func (e *JobFailedError) Error() string {
	if e.Outcome == OutcomeUnknown {
		return fmt.Sprintf("dq: job %s is not known: it ended before it was asked for (add it with Keep, as KEEP of DQ.ADD, or "+
			"give the queue a DoneTTL), or it was never added", e.ID)
	}
	if e.Reason == "" {
		return fmt.Sprintf("dq: job %s: %s", e.ID, e.Outcome)
	}
	return fmt.Sprintf("dq: job %s: %s: %s", e.ID, e.Outcome, e.Reason)
}

// JobResult is how a job ended that another job came after.
type JobResult struct {
	ID string
	// Outcome is "" if the job that waited was kicked before this one ended.
	Outcome Outcome
	// Reason is why the job is dead.
	Reason string

	value []byte
	codec Codec
}

// Bytes returns the encoded result; nil: none.
func (r JobResult) Bytes() []byte { return r.value }

// Decode decodes the result, with the queue's codec, into the value that v points to. Without a result, it leaves the
// value as it is.
func (r JobResult) Decode(v any) error {
	if r.value == nil {
		return nil
	}
	return decoded(r.codec, r.value, v)
}

func resultsOf(all []ending, codec Codec) []JobResult {
	results := make([]JobResult, len(all))
	for at, each := range all {
		results[at] = JobResult{ID: each.id, Outcome: each.outcome, codec: codec}
		if each.outcome == OutcomeDone {
			results[at].value = each.value
		} else {
			results[at].Reason = string(each.value)
		}
	}
	return results
}

// Returning makes a Func, as [Typed] does, of a function that returns the job's result, for [Result] and [Wait].
func Returning[T, R any](do func(ctx context.Context, job *Job, data T) (R, error)) Func {
	return Typed(func(ctx context.Context, job *Job, data T) error {
		result, err := do(ctx, job, data)
		if err == nil && !isNothing(result) {
			job.Succeed(result)
		}
		return err
	})
}

// Result returns the result of a job that is done and kept (see [JobOptions].Keep). The error is [ErrNotFound] if the
// job does not exist or is not done yet, and a [*JobFailedError] if it is dead.
func Result[T any](ctx context.Context, queue *Queue, id string) (T, error) {
	var none T
	job, err := queue.Get(ctx, id)
	switch {
	case err != nil:
		return none, err
	case job.State == Dead:
		return none, &JobFailedError{id, OutcomeDead, job.Reason}
	case job.State != Done:
		return none, ErrNotFound
	}
	return resultOf[T](queue.codec, job.Result)
}

func resultOf[T any](codec Codec, raw []byte) (result T, err error) {
	if raw != nil {
		err = decoded(codec, raw, &result)
	}
	return result, err
}

// --- Codecs are code of users

func decoded(codec Codec, raw []byte, v any) (err error) {
	guard.Run(func() error { return codec.Decode(raw, v) }, func(failure error) { err = failure })
	return err
}

func encoded(codec Codec, value any) (raw []byte, err error) {
	guard.Run(func() (failure error) { raw, failure = codec.Encode(value); return failure }, func(failure error) { err = failure })
	if raw == nil {
		raw = []byte{}
	}
	return raw, err
}
