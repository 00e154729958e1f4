package main

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

// What the suite calls hostile: the worst that a handler or a hook can do. None of it is a success.

type silent struct{}

func (*silent) Error() string { panic("no text") }

type leaving struct{}

func (leaving) Error() string { runtime.Goexit(); return "" }

type round struct{ error }

func (e *round) Error() string { return "round" }
func (e *round) Unwrap() error { return e }

func returning(err error) func(*dq.Job) error { return func(*dq.Job) error { return err } }

func panicking(value any) func(*dq.Job) error { return func(*dq.Job) error { panic(value) } }

var (
	nobody *silent
	itself = []any{nil}
)

func init() { itself[0] = itself }

var hostile = []func(*dq.Job) error{
	returning(nobody),
	returning(leaving{}),
	returning(&round{}),
	returning(errors.New("\xff")),
	returning(dq.RetryIn(time.Hour, nobody)),
	returning(dq.GiveUp(nobody)),
	returning(dq.GiveUp(leaving{})),
	returning((*dq.RetryError)(nil)),
	returning(dq.RetryIn(-time.Hour, nil)),
	returning(dq.RetryIn(math.MaxInt64, nil)),
	returning(dq.Snooze(math.MinInt64)),
	returning(&dq.SnoozeError{Delay: time.Hour, Reason: "\xff"}),
	panicking(nobody),
	panicking(leaving{}),
	panicking(itself),
	panicking(errors.New("no paper")),
	func(*dq.Job) error { runtime.Goexit(); return nil },
	func(job *dq.Job) error { job.Fail(nobody); return nil },
	func(job *dq.Job) error { job.ID, job.Token = "", ""; return errors.New("no id") },
}

var rudeHooks = dq.Hooks{
	Before: func(context.Context, *dq.Job) context.Context { return nil },
	After:  func(context.Context, *dq.Job) { panic(nobody) },
	Failed: func(context.Context, *dq.Job, error) { runtime.Goexit() },
	Lost:   func(*dq.Job) { panic(itself) },
}
