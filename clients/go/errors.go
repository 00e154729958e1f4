package dq

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

var (
	// ErrQueueFull says that the queue has reached its MAXLEN or MAXBYTES; what was refused was not added.
	ErrQueueFull = errors.New("dq: queue is full")

	// ErrExists says that a job with this id is there already; it was not added again.
	ErrExists = errors.New("dq: a job with this id exists")

	// ErrNotFound says that the job, or the queue, does not exist.
	ErrNotFound = errors.New("dq: not found")

	// ErrLost is the cause (see [context.Cause]) with which a handler's context ends if another worker may have the
	// job: its lease expired, or it was deleted or replaced. What the handler then returns does not count.
	ErrLost = errors.New("dq: the job was lost")

	// ErrTimeout is the cause with which a handler's context ends when its Timeout is over. The attempt has failed;
	// what the handler does afterwards does not count.
	ErrTimeout = errors.New("dq: the handler's time is over")

	// ErrSuspended is returned by [Job.Sleep], [WaitSignal], [Job.WaitFor] and [Job.Spawn] if the job has to wait. The
	// handler returns it, and is called again when the wait is over. This attempt does not count.
	ErrSuspended = errors.New("dq: the job waits, this attempt is over")

	// ErrStopping is the cause with which a handler's context ends when the worker stops and its drain is over. The job
	// is given back, and the attempt does not count.
	ErrStopping = errors.New("dq: the worker stops")
)

// ConfigurationError says that something cannot work as it is configured; waiting would not help. It ends a worker. Its
// text says what to do.
type ConfigurationError struct {
	What  string
	Cause error
}

func (e *ConfigurationError) Error() string {
	if e.Cause == nil {
		return "dq: " + e.What
	}
	return fmt.Sprintf("dq: %s (%v)", e.What, e.Cause)
}

func (e *ConfigurationError) Unwrap() error { return e.Cause }

// fatal returns the error if waiting does not fix it, else nil.
func fatal(err error) *ConfigurationError {
	if already, ok := err.(*ConfigurationError); ok {
		return already
	}
	if what := trouble.Fatal(err); what != "" {
		return &ConfigurationError{what, err}
	}
	return nil
}

// RetryError is the error that [RetryIn] makes.
type RetryError struct {
	Delay time.Duration
	Err   error
}

func (e *RetryError) Error() string { return reasonOf(e.Err, "retry") }
func (e *RetryError) Unwrap() error { return e.Err }

// RetryIn makes an error for a handler whose attempt failed: the job is tried again after delay, whatever its backoff
// says. The text of err, which may be nil, becomes the job's reason.
func RetryIn(delay time.Duration, err error) error { return &RetryError{delay, err} }

// SnoozeError is the error that [Snooze] makes.
type SnoozeError struct {
	Delay  time.Duration
	Reason string
}

func (e *SnoozeError) Error() string { return "snooze " + e.Reason }

// Snooze makes an error for a handler that cannot do the job now: the job comes again after delay, and this attempt
// does not count.
func Snooze(delay time.Duration) error { return &SnoozeError{Delay: delay} }

// GiveUpError is the error that [GiveUp] makes.
type GiveUpError struct{ Err error }

func (e *GiveUpError) Error() string { return reasonOf(e.Err, "given up") }
func (e *GiveUpError) Unwrap() error { return e.Err }

// GiveUp makes an error for a handler whose job cannot succeed: the job is dead now, whatever attempts it has left.
func GiveUp(err error) error { return &GiveUpError{err} }

// PayloadError is what [Job.Decode] returns for a payload that cannot be decoded. If a handler returns it, as one of
// [Typed] does, the job is dead at once: another attempt would find the same payload.
type PayloadError struct {
	Err error
	of  any // the delivery
}

func (e *PayloadError) Error() string { return "payload cannot be decoded: " + reasonOf(e.Err, "nil") }
func (e *PayloadError) Unwrap() error { return e.Err }

// ResultError says that the codec cannot encode a result, or that no server can take it. The job is dead: its handler
// has done its work, and no other attempt would help.
type ResultError struct {
	Err        error
	isTooLarge bool
}

func (e *ResultError) Error() string {
	if e.isTooLarge {
		return reasonOf(e.Err, "")
	}
	return "result cannot be encoded: " + reasonOf(e.Err, "nil")
}
func (e *ResultError) Unwrap() error { return e.Err }

// PanicError is the error of an attempt whose handler panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func init() {
	guard.Panicked = func(raised any, stack []byte) error { return &PanicError{raised, stack} }
	guard.RaisedBy = func(err error) (any, bool) {
		var panicked *PanicError
		if errors.As(err, &panicked) {
			return panicked.Value, true
		}
		return nil, false
	}
}

func (e *PanicError) Error() string {
	return guard.Clip("panic: "+guard.Text(e.Value), guard.TextBytes)
}

func reasonOf(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return guard.Text(err)
}
