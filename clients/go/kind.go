package dq

import (
	"cmp"
	"context"
	"reflect"
	"time"
)

// Kind is a kind of jobs, declared once: what its jobs hold (T), what they come to (R), and the options that they have
// unless they say otherwise. Whoever adds them and whoever handles them has the same types, and a misspelt kind does not
// compile.
//
//	var closing = dq.NewKind[Order]("close-order", dq.JobOptions{Attempts: 5})
//
//	id, err := closing.Add(ctx, queue, Order{17}, &dq.JobOptions{Delay: time.Minute})
//	config := dq.WorkerConfig{Handlers: []dq.Handler{closing.Handler(closeOrder)}}
type Kind[T, R any] struct {
	name     string
	defaults JobOptions
}

// NewKind declares a kind of jobs of whose results nothing is said. It panics where it has no name, or defaults that no
// server takes.
func NewKind[T any](name string, defaults ...JobOptions) *Kind[T, any] {
	return NewKindReturning[T, any](name, defaults...)
}

// NewKindReturning declares, as [NewKind] does, a kind of jobs whose results are of type R.
func NewKindReturning[T, R any](name string, defaults ...JobOptions) *Kind[T, R] {
	made := &Kind[T, R]{name: name}
	for _, each := range defaults {
		made.defaults = orElse(made.defaults, each)
	}
	made.defaults.Kind = name
	if name == "" {
		panic("dq: a kind needs a name")
	}
	if err := made.defaults.words(nil).mistake(); err != nil {
		panic(err)
	}
	return made
}

// Name returns the kind's name.
func (k *Kind[T, R]) Name() string { return k.name }

// Job returns a job for [Queue.AddMany], [Queue.Chain], [Queue.Join] and [Job.Spawn]. What the options leave out is as the
// kind says.
func (k *Kind[T, R]) Job(data T, options *JobOptions) NewJob {
	return NewJob{Data: data, JobOptions: *k.options(options)}
}

func (k *Kind[T, R]) options(given *JobOptions) *JobOptions {
	o, defaults := *cmp.Or(given, &JobOptions{}), k.defaults
	if o.Delay != 0 || !o.At.IsZero() {
		defaults.Delay, defaults.At = 0, time.Time{}
	}
	o.Kind = ""
	o = orElse(o, defaults)
	return &o
}

// Add adds a job, as [Queue.Add] does.
func (k *Kind[T, R]) Add(ctx context.Context, queue *Queue, data T, options *JobOptions) (string, error) {
	return queue.Add(ctx, data, k.options(options))
}

// AddAndWait adds a job and waits for its result, as the function [AddAndWait] does.
func (k *Kind[T, R]) AddAndWait(ctx context.Context, queue *Queue, data T, options *JobOptions) (R, error) {
	return AddAndWait[R](ctx, queue, data, k.options(options))
}

// Wait waits for the end of such a job, and returns its result, as the function [Wait] does.
func (k *Kind[T, R]) Wait(ctx context.Context, queue *Queue, id string) (R, error) {
	return Wait[R](ctx, queue, id)
}

// Result returns the result of such a job that is done and kept, as the function [Result] does.
func (k *Kind[T, R]) Result(ctx context.Context, queue *Queue, id string) (R, error) {
	return Result[R](ctx, queue, id)
}

// Handler returns the handler of its jobs, as [Typed] makes it, with these settings. A job of its Rule has the kind's
// options, too.
func (k *Kind[T, R]) Handler(do func(ctx context.Context, job *Job, data T) error, settings ...Handler) Handler {
	return k.handler(Typed(do), settings)
}

// Returning returns the handler of its jobs, as the function [Returning] makes it, with these settings.
func (k *Kind[T, R]) Returning(do func(ctx context.Context, job *Job, data T) (R, error), settings ...Handler) Handler {
	return k.handler(Returning(do), settings)
}

func (k *Kind[T, R]) handler(do Func, settings []Handler) Handler {
	made := Handler{Do: do, Kind: k.name}
	for _, each := range settings {
		made = orElse(made, each)
	}
	if made.Rule != nil {
		rule, defaults := *made.Rule, k.defaults
		defaults.ID, defaults.IfExists, defaults.Delay, defaults.At = "", Refuse, 0, time.Time{}
		rule.JobOptions = orElse(rule.JobOptions, defaults)
		made.Rule = &rule
	}
	return made
}

// orElse returns options, with those of others where nothing is set.
func orElse[S any](options, others S) S {
	to, from := reflect.ValueOf(&options).Elem(), reflect.ValueOf(others)
	for at := range to.NumField() {
		if field := to.Field(at); field.IsZero() {
			field.Set(from.Field(at))
		}
	}
	return options
}
