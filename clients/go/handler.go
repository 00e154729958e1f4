package dq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Func handles one job. Its context ends when the job was lost ([ErrLost]), when its Timeout is over ([ErrTimeout]), or
// when the worker's drain is over ([ErrStopping]).
//
// If it returns nil, the job is done. [RetryIn], [Snooze] and [GiveUp] say how the job goes on. After any other error,
// and after a panic, the job is tried again: by its own backoff, else the handler's, else the server's default-backoff.
type Func func(ctx context.Context, job *Job) error

// Handler is a function with the settings for its jobs. Exactly one of Do and DoBatch is set.
type Handler struct {
	Do Func
	// DoBatch handles up to Batch jobs at a time; [Job.Fail] fails one of them, [Job.Succeed] gives one a result.
	DoBatch func(ctx context.Context, jobs []*Job) error
	Batch   int
	// Fill has a fetch wait for a batch. All handlers of the worker must have one; of several Fills the least Jobs and the
	// shortest Wait hold.
	Fill Fill

	// Kind is the kind of jobs that the handler takes; without one, it takes all jobs that no other handler of the
	// worker takes.
	Kind string
	// Attempts is how many deliveries a job may have (0: no limit): it is dead after the last one failed, or if that ended
	// with its worker. If the job or its queue has a limit, too, the least one holds.
	Attempts int
	// Backoff has the waits after the 1st, 2nd, ... failure; the last one repeats. The job's own backoff goes first.
	Backoff []time.Duration
	// Lease is how long a job stays with a worker that crashed. Slow handlers need no longer lease: the worker renews
	// it. With a Kind, it holds for all jobs of that kind; without one, for jobs without a TTR of their own or of their
	// queue. Without it, the worker's Lease holds; without both, the job's TTR, one minute unless the job or its queue
	// says otherwise.
	Lease time.Duration
	// Timeout is how long the handler may run (0: without limit). Then its context ends, with the cause [ErrTimeout],
	// and the job fails at once. The handler still counts for Concurrency until it returns.
	Timeout time.Duration
	// RetryOn, if it is set, says which errors are tried again; all others give the job up. GiveUpOn says which errors
	// give the job up. [RetryIn], [Snooze] and [GiveUp] go first. See [ErrorIs] and [ErrorAs].
	RetryOn, GiveUpOn func(err error) bool
	// Rule has a job of the Kind come again: the worker adds it to its first queue when it starts, as [Queue.Cron] and
	// [Queue.Every] do. Its ID is the Kind, unless the rule has another. Other workers may have the same rule; when none has it
	// any more, delete the job.
	Rule *NewRule
}

// Fill is how long a fetch waits for a batch: until so many Jobs are ready, at most a Wait from the first of them.
type Fill struct {
	Jobs int
	Wait time.Duration
}

// ErrorIs makes a function for RetryOn and GiveUpOn of a [Handler]: whether an error is one of these, by [errors.Is].
func ErrorIs(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// ErrorAs makes a function for RetryOn and GiveUpOn of a [Handler]: whether an error is of this type, by [errors.As].
func ErrorAs[E error]() func(error) bool {
	return func(err error) bool { var found E; return errors.As(err, &found) }
}

// Typed makes a Func of a function that also takes the job's decoded data. A job whose payload cannot be decoded is
// dead at once. So is one whose payload is null, unless T is an interface, has no fields, or implements
// [json.Unmarshaler].
func Typed[T any](do func(ctx context.Context, job *Job, data T) error) Func {
	return func(ctx context.Context, job *Job) error {
		var data T
		if err := job.Decode(&data); err != nil {
			return err
		}
		if isNil(data) || job.isNull() && !takesNull(&data) {
			return &PayloadError{fmt.Errorf("nothing for a %T", data), job.delivery}
		}
		return do(ctx, job, data)
	}
}

// takesNull says whether null is a value of the type. For other types [json.Unmarshal] makes a zero value of null,
// which nobody has sent.
func takesNull(v any) bool {
	if _, isOwn := v.(json.Unmarshaler); isOwn {
		return true
	}
	t := reflect.TypeOf(v).Elem()
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct && t.NumField() == 0
}

// isNil says whether the data is a nil pointer, map or slice, as a payload null leaves it.
func isNil(data any) bool {
	switch v := reflect.ValueOf(data); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// isNothing says whether the value is nil, of any kind.
func isNothing(value any) bool { return value == nil || isNil(value) }

func (h *Handler) check() error {
	switch {
	case (h.Do == nil) == (h.DoBatch == nil):
		return &ConfigurationError{What: "a handler has either Do or DoBatch"}
	case (h.DoBatch == nil) != (h.Batch == 0) || h.Batch < 0 || h.Attempts < 0 || h.Lease < 0 || h.Timeout < 0:
		return &ConfigurationError{What: "Batch goes with DoBatch; Batch, Attempts, Lease and Timeout are 0 or more"}
	}
	if h.Fill != (Fill{}) {
		jobs := between("the jobs of Fill", int64(h.Fill.Jobs), "", 2, int64(h.Batch))
		ms := between("the wait of Fill", resp.Ms(h.Fill.Wait), " ms", 1, latest)
		if err := (words{jobs, ms}).mistake(); err != nil {
			return err
		}
	}
	if r := h.Rule; r != nil && (r.Every == 0 == (r.Cron == "") || r.ID == "" && h.Kind == "") {
		return &ConfigurationError{What: "a handler's Rule needs Every or Cron, and an ID if the handler has no Kind"}
	}
	return words{}.ladder(h.Backoff).mistake()
}

// size is how many jobs the handler takes at a time.
func (h *Handler) size() int { return max(1, h.Batch) }

// delay returns the step of its backoff after a failed attempt.
func (h *Handler) delay(attempt int) time.Duration {
	return h.Backoff[min(attempt, len(h.Backoff))-1]
}

// handlers are a worker's handlers, by kind.
type handlers struct {
	other  *Handler
	byKind map[string]*Handler
	ruled  []*Handler // those with a rule
	size   int        // of the smallest batch
	fill   Fill
}

func newHandlers(all []Handler) (*handlers, error) {
	made := &handlers{byKind: map[string]*Handler{}}
	for at := range all {
		h := all[at]
		h.Backoff = slices.Clone(h.Backoff)
		if err := h.check(); err != nil {
			return nil, err
		}
		if h.Kind == "" && made.other != nil {
			return nil, &ConfigurationError{What: "two handlers without a kind: name the kind of all but one"}
		}
		if made.byKind[h.Kind] != nil {
			return nil, &ConfigurationError{What: "two handlers for jobs of kind " + h.Kind}
		}
		if h.Kind == "" {
			made.other = &h
		} else {
			made.byKind[h.Kind] = &h
		}
		if h.Rule != nil {
			made.ruled = append(made.ruled, &h)
		}
		made.size = min(cmp.Or(made.size, h.size()), h.size())
		made.fill.join(h.Fill)
	}
	if len(all) == 0 {
		return nil, &ConfigurationError{What: "the worker has no handler"}
	}
	if made.fill.Jobs > 0 && slices.ContainsFunc(all, func(h Handler) bool { return h.Batch == 0 }) {
		return nil, &ConfigurationError{What: "Fill needs handlers that all have a Batch: another one of this worker takes single jobs"}
	}
	return made, nil
}

func (f *Fill) join(other Fill) {
	if other.Jobs > 0 {
		f.Jobs, f.Wait = min(cmp.Or(f.Jobs, other.Jobs), other.Jobs), min(cmp.Or(f.Wait, other.Wait), other.Wait)
	}
}

// choose returns the handler of a job, or nil if none takes it.
func (h *handlers) choose(opened func() *envelope) *Handler {
	if len(h.byKind) == 0 {
		return h.other
	}
	e := opened()
	if e == nil {
		return h.other
	}
	if e.version != envelopeVersion {
		return nil
	}
	if found := h.byKind[e.kind]; found != nil {
		return found
	}
	return h.other
}

// nearest returns the kind that one without a handler may have meant, or "".
func (h *handlers) nearest(kind string) (best string) {
	least := max(1, len(kind)/3) + 1
	for known := range h.byKind {
		if far := distance(strings.ToLower(kind), strings.ToLower(known), least); far < least {
			best, least = known, far
		}
	}
	return best
}

// distance is how many letters differ; two that have changed places are one mistake. From most on it may say most.
func distance(one, other string, most int) int {
	if max(len(one)-len(other), len(other)-len(one)) >= most {
		return most
	}
	var before []int
	row := make([]int, len(other)+1)
	for at := range row {
		row[at] = at
	}
	for i := range len(one) {
		next := make([]int, len(row))
		next[0] = i + 1
		for j := range len(other) {
			changed := row[j]
			if one[i] != other[j] {
				changed++
			}
			next[j+1] = min(changed, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && one[i] == other[j-1] && one[i-1] == other[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(other)]
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
