package dq

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrQueueFull says that the queue has reached its MAXLEN or MAXBYTES; nothing was added.
	ErrQueueFull = errors.New("dq: queue is full")

	// ErrLost is the cause (see [context.Cause]) with which a handler's context ends when another worker may have the
	// job: its lease ended, or it was deleted or replaced. The end of the handler will not count.
	ErrLost = errors.New("dq: the job was lost")

	// ErrStopping is the cause with which a handler's context ends when the worker stops and the handler's time to
	// finish is over. The job is given back, and the attempt does not count.
	ErrStopping = errors.New("dq: the worker stops")

	errExited = errors.New("the handler ended its goroutine")
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

// PanicError is the failure of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func reasonOf(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}
