package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

// action is one action of a script.
type action struct {
	Step    *string
	Sleep   *string
	Wait    *string
	WaitFor []string `json:"wait_for"`
	Spawn   []struct{ Data json.RawMessage }
	Throw   *string
	Exit    bool
	Return  *json.RawMessage
	Value   any
	Ms      int64
	Times   int
}

func play(ctx context.Context, job *dq.Job, actions []action) error {
	for _, each := range actions {
		if err := each.play(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

func (a action) play(ctx context.Context, job *dq.Job) error {
	switch {
	case a.Step != nil:
		value, err := dq.Step(ctx, job, *a.Step, func(context.Context) (any, error) {
			emit("stepped", fields{"job": job.ID, "name": *a.Step})
			return a.Value, nil
		})
		if err == nil {
			emit("step", fields{"job": job.ID, "name": *a.Step, "value": value})
		}
		return err
	case a.Sleep != nil:
		return job.Sleep(*a.Sleep, duration(a.Ms))
	case a.Wait != nil:
		return await(ctx, job, *a.Wait, duration(a.Ms))
	case a.WaitFor != nil:
		return told(job)(job.WaitFor(ctx, a.WaitFor))
	case a.Spawn != nil:
		children := make([]dq.NewJob, len(a.Spawn))
		for at, each := range a.Spawn {
			children[at].Data = each.Data
		}
		return told(job)(job.Spawn(ctx, children))
	case a.Return != nil:
		job.Succeed(*a.Return)
	case a.Throw != nil && a.isNow(job):
		return errors.New(*a.Throw)
	case a.Exit && a.isNow(job):
		os.Exit(3)
	}
	return nil
}

func (a action) isNow(job *dq.Job) bool {
	writing.Lock()
	defer writing.Unlock()
	return a.Times == 0 || runs[job.ID] <= a.Times
}

func await(ctx context.Context, job *dq.Job, name string, timeout time.Duration) error {
	value, err := dq.WaitSignal[any](ctx, job, name, timeout)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		emit("waited", fields{"job": job.ID, "name": name, "timed_out": true})
	case err != nil:
		return err
	default:
		emit("waited", fields{"job": job.ID, "name": name, "value": value})
	}
	return nil
}

func told(job *dq.Job) func([]dq.JobResult, error) error {
	return func(results []dq.JobResult, err error) error {
		if err == nil {
			emit("results", fields{"job": job.ID, "results": resultsOf(results)})
		}
		return err
	}
}

func resultsOf(results []dq.JobResult) []any {
	out := []any{}
	for _, each := range results {
		var value any
		switch each.Outcome {
		case dq.OutcomeDone:
			_ = each.Decode(&value)
		case dq.OutcomeDead:
			value = each.Reason
		}
		out = append(out, []any{each.ID, each.Outcome, value})
	}
	return out
}
