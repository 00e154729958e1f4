package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

// What the handlers do.

type script struct {
	Do      string `json:"do"`
	Ms      int64  `json:"ms"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Times   int    `json:"times"`
	N       int    `json:"n"`
	Type    string
	Value   any
	Steps   [][2]any
	Actions []action
}

type (
	flaky  struct{ message string }
	broken struct{ message string }
)

func (e *flaky) Error() string  { return e.message }
func (e *broken) Error() string { return e.message }

func thrown(todo script) error {
	switch todo.Type {
	case "Flaky":
		return &flaky{todo.Message}
	case "Broken":
		return &broken{todo.Message}
	}
	return errors.New(todo.Message)
}

func announce(jobs []*dq.Job) {
	for _, job := range jobs {
		writing.Lock()
		runs[job.ID]++
		writing.Unlock()
		var kind any
		if job.Kind() != "" {
			kind = job.Kind()
		}
		headers := job.Headers()
		if headers == nil {
			headers = map[string]string{}
		}
		emit("started", fields{
			"job": job.ID, "queue": job.Queue, "attempt": job.Attempt, "kind": kind, "headers": headers,
			"results": resultsOf(job.Results()),
			"payload": base64.StdEncoding.EncodeToString(job.Payload), "due": job.Due.UnixMilli(), "batch": len(jobs),
		})
	}
}

func scriptOf(job *dq.Job) (script, error) {
	var data any
	var todo script
	if err := job.Decode(&data); err != nil {
		return todo, err
	}
	if _, isObject := data.(map[string]any); isObject {
		_ = job.Decode(&todo) // any other object succeeds
	}
	writing.Lock()
	defer writing.Unlock()
	if todo.Times > 0 && runs[job.ID] > todo.Times {
		return script{}, nil
	}
	return todo, nil
}

func work(ctx context.Context, job *dq.Job) error {
	todo, err := scriptOf(job)
	if err != nil {
		return err
	}
	duration := time.Duration(todo.Ms) * time.Millisecond
	switch todo.Do {
	case "sleep":
		return sleep(ctx, job, duration)
	case "progress":
		for _, step := range todo.Steps {
			if err := job.Progress(step[0].(float64), step[1].(string)); err != nil {
				return err
			}
		}
		return sleep(ctx, job, duration)
	case "return":
		job.Succeed(todo.Value)
	case "unencodable":
		job.Succeed(func() {})
	case "script":
		return play(ctx, job, todo.Actions)
	case "stubborn":
		time.Sleep(duration)
	case "hang":
		select {}
	case "throw":
		return thrown(todo)
	case "retry":
		return dq.RetryIn(duration, reasonOf(todo))
	case "snooze":
		return dq.Snooze(duration)
	case "give_up":
		return dq.GiveUp(reasonOf(todo))
	case "hostile":
		return hostile[todo.N%len(hostile)](job)
	case "exit":
		os.Exit(3)
	case "fork":
		return exec.Command("sleep", "2").Start()
	case "quit_thread":
		runtime.Goexit()
	}
	return nil
}

var whys = map[error]string{dq.ErrLost: "lost", dq.ErrStopping: "stopping", dq.ErrTimeout: "timeout"}

func sleep(ctx context.Context, job *dq.Job, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		emit("told", fields{"job": job.ID, "why": whys[context.Cause(ctx)]})
		return ctx.Err()
	}
}

func reasonOf(todo script) error {
	if todo.Reason == "" {
		return nil
	}
	return errors.New(todo.Reason)
}

func handle(ctx context.Context, job *dq.Job) error {
	announce([]*dq.Job{job})
	defer emit("ended", fields{"job": job.ID})
	return work(ctx, job)
}

func handleBatch(ctx context.Context, jobs []*dq.Job) error {
	announce(jobs)
	for _, job := range jobs {
		if err := work(ctx, job); err != nil {
			job.Fail(err)
		}
	}
	return nil
}

func aroundAll(ctx context.Context, jobs []*dq.Job, next func(context.Context) error) error {
	for _, job := range jobs {
		emit("around", fields{"job": job.ID, "phase": "entered"})
		defer emit("around", fields{"job": job.ID, "phase": "left"})
	}
	return next(ctx)
}

func reportDeath(_ context.Context, queue string, job *dq.JobInfo) {
	var data, kind any
	if err := job.Decode(&data); err != nil {
		data = err.Error()
	}
	if job.Kind() != "" {
		kind = job.Kind()
	}
	headers := job.Headers()
	if headers == nil {
		headers = map[string]string{}
	}
	emit("dead", fields{
		"job": job.ID, "queue": queue, "reason": job.Reason, "attempts": job.Attempts, "kind": kind, "data": data, "headers": headers,
	})
	if todo, isObject := data.(map[string]any); isObject && todo["dead"] == "hang" {
		select {}
	}
}

var reports = dq.Hooks{
	Before: func(ctx context.Context, job *dq.Job) context.Context {
		emit("before", fields{"job": job.ID})
		return ctx
	},
	After: func(_ context.Context, job *dq.Job) { emit("after", fields{"job": job.ID}) },
	Failed: func(_ context.Context, job *dq.Job, err error) {
		emit("failed", fields{"job": job.ID, "error": fmt.Sprintf("%T", err)})
	},
	Lost: func(job *dq.Job) { emit("lost", fields{"job": job.ID}) },
}
