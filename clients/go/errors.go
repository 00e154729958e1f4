package dq

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrQueueFull says that the queue has reached its MAXLEN or MAXBYTES; nothing was added.
	ErrQueueFull = errors.New("dq: queue is full")

	// ErrNotFound says that there is no such job, or no such queue.
	ErrNotFound = errors.New("dq: not found")

	// ErrLost is the cause (see [context.Cause]) with which a handler's context ends when another worker may have the
	// job: its lease expired, or it was deleted or replaced. The end of the handler will not count.
	ErrLost = errors.New("dq: the job was lost")

	// ErrTimeout is the cause with which a handler's context ends when its Timeout is over. The attempt has failed; what
	// the handler does afterwards does not count.
	ErrTimeout = errors.New("dq: the handler's time is over")

	// ErrSuspended is what [Job.Sleep], [WaitSignal], [Job.WaitFor] and [Job.Spawn] return where the job has to wait. The
	// handler returns it, and is called again when the wait is over. This attempt does not count.
	ErrSuspended = errors.New("dq: the job waits, this attempt is over")

	// ErrStopping is the cause with which a handler's context ends when the worker stops and the handler's time to
	// finish is over. The job is given back, and the attempt does not count.
	ErrStopping = errors.New("dq: the worker stops")
)

// ConfigurationError ends a worker that cannot run as it is configured; waiting would not help. Its text says what
// to do.
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

// RetryError is what [RetryIn] makes.
type RetryError struct {
	Delay time.Duration
	Err   error
}

func (e *RetryError) Error() string { return reasonOf(e.Err, "retry") }
func (e *RetryError) Unwrap() error { return e.Err }

// RetryIn is returned by a handler whose attempt failed, to be tried again after delay instead of what the ladder
// says. The error, which may be nil, becomes the job's reason.
func RetryIn(delay time.Duration, err error) error { return &RetryError{delay, err} }

// SnoozeError is what [Snooze] makes.
type SnoozeError struct {
	Delay  time.Duration
	Reason string
}

func (e *SnoozeError) Error() string { return "snooze " + e.Reason }

// Snooze is returned by a handler that cannot work on the job now: it comes again after delay, and this attempt does
// not count.
func Snooze(delay time.Duration) error { return &SnoozeError{Delay: delay} }

// GiveUpError is what [GiveUp] makes.
type GiveUpError struct{ Err error }

func (e *GiveUpError) Error() string { return reasonOf(e.Err, "given up") }
func (e *GiveUpError) Unwrap() error { return e.Err }

// GiveUp is returned by a handler whose job cannot succeed: it is dead now, whatever attempts it has left.
func GiveUp(err error) error { return &GiveUpError{err} }

// DecodeError is what [Job.Decode] returns for a payload that does not fit. A handler that returns it, as one of
// [Typed] does, has the job dead at once: another attempt would find the same payload.
type DecodeError struct {
	Err error
	of  *delivery
}

func (e *DecodeError) Error() string { return "payload cannot be decoded: " + reasonOf(e.Err, "nil") }
func (e *DecodeError) Unwrap() error { return e.Err }

// ResultError is the failure of a handler whose result the codec cannot encode.
type ResultError struct{ Err error }

func (e *ResultError) Error() string { return "result cannot be encoded: " + reasonOf(e.Err, "nil") }
func (e *ResultError) Unwrap() error { return e.Err }

// PanicError is the failure of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return "panic: " + textOf(e.Value) }

func reasonOf(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return textOf(err)
}
