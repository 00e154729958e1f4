package dq

import (
	"fmt"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
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
