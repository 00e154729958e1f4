package dq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

func TestAJobForAHandlersUnitTest(t *testing.T) {
	ctx := t.Context()
	job := dq.TestJob{
		Data: "a", ID: "17", Kind: "close", Headers: map[string]string{"by": "hand"}, Attempt: 3, Attempts: 3, Queue: "orders",
		Results: []dq.TestResult{{"1", dq.OutcomeDone, 5}, {"2", dq.OutcomeDead, "no paper"}}, Signals: map[string]any{"signed": "Ada"},
	}.Job()
	expect(t, []any{job.ID, job.Kind(), job.Headers()["by"], job.Attempt, job.IsLastAttempt(), job.Queue}, []any{
		"17", "close", "hand", 3, true, "orders",
	})
	results := job.Results()
	expect(t, []string{string(results[0].Bytes()), results[1].Reason}, []string{"5", "no paper"})
	expect(t, must(dq.Step(ctx, job, "charge", func(context.Context) (int, error) { return 1, nil })), 1)
	expect(t, string(job.Steps()["charge"]), "1")
	expect(t, must(dq.WaitSignal[string](ctx, job, "signed", 0)), "Ada")
	expect(t, []error{job.Progress(1, "all"), job.SetCost(ctx, 5)}, []error{nil, nil})
	for what, call := range map[string]func() error{
		"Once": func() error { _, err := job.Once(ctx, "a", "", nil); return err },
		"jobs": func() error { _, err := job.Spawn(ctx, make([]dq.NewJob, 1)); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), what+" needs a server: see package dqtest") {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect(t, job.Sleep("a month", 30*24*time.Hour), dq.ErrSuspended)
}

func TestAHandlerWalksItsLadderWithoutAServer(t *testing.T) {
	ctx := t.Context()
	charged := 0
	handler := dq.Handler{Kind: "close", Attempts: 4, Backoff: []time.Duration{time.Minute}, Do: func(ctx context.Context, job *dq.Job) error {
		if job.Attempt == 1 {
			return errors.New("first")
		}
		if _, err := dq.Step(ctx, job, "charge", func(context.Context) (int, error) { charged++; return 0, nil }); err != nil {
			return err
		}
		if err := job.Sleep("a month", 30*24*time.Hour); err != nil {
			return err
		}
		_, err := dq.WaitSignal[int](ctx, job, "late", time.Hour)
		var late *dq.TimedOutError
		if !errors.As(err, &late) {
			return err
		}
		by, err := dq.WaitSignal[string](ctx, job, "signed", 0)
		if err != nil {
			return err
		}
		job.Succeed(by)
		return nil
	}}
	run := must(dq.TestJob{Signals: map[string]any{"signed": "Ada"}}.Run(ctx, handler))
	expect(t, []any{run.State, string(run.Bytes()), run.Reason, run.Err, run.Attempts, charged, len(run.Jobs)}, []any{
		dq.Done, `"Ada"`, "", nil, 2, 1, 5,
	})
	expect(t, run.Waits, []time.Duration{time.Minute, 30 * 24 * time.Hour, time.Hour})
	run = must(dq.TestJob{Backoff: []time.Duration{time.Second, time.Hour}}.Run(ctx, handler))
	expect(t, []any{run.State, run.Attempts, run.Waits[0]}, []any{dq.Blocked, 1, time.Second})

	fails := dq.Handler{Do: func(_ context.Context, job *dq.Job) error {
		switch job.Kind() {
		case "snooze":
			return dq.Snooze(time.Minute)
		case "spawn":
			_, err := job.Spawn(ctx, make([]dq.NewJob, 1))
			return err
		}
		return errors.New("no paper")
	}}
	run = must(dq.TestJob{Attempts: 3, Backoff: []time.Duration{time.Second, time.Hour}}.Run(ctx, fails))
	expect(t, []any{run.State, run.Reason, run.Err.Error(), run.Waits}, []any{
		dq.Dead, "*errors.errorString: no paper", "no paper", []time.Duration{time.Second, time.Hour},
	})
	run = must(dq.TestJob{}.Run(ctx, fails))
	expect(t, []any{run.State, run.Attempts, run.Waits[99] < 0}, []any{dq.Delayed, 100, true})
	run = must(dq.TestJob{Kind: "snooze"}.Run(ctx, fails))
	expect(t, []any{run.State, run.Attempts, run.Waits[0]}, []any{dq.Delayed, 0, time.Minute})
	for mistake, try := range map[string]func() (*dq.TestRun, error){
		"to wait for jobs needs a server": func() (*dq.TestRun, error) { return dq.TestJob{Kind: "spawn"}.Run(ctx, fails) },
		`no handler for jobs of kind "b"`: func() (*dq.TestRun, error) { return dq.TestJob{Kind: "b"}.Run(ctx, handler) },
		"no handler":                      func() (*dq.TestRun, error) { return dq.TestJob{}.Run(ctx) },
		"JSON cannot hold":                func() (*dq.TestRun, error) { return dq.TestJob{Data: func() {}}.Run(ctx, fails) },
		"dq.TestJob":                      func() (*dq.TestRun, error) { _, err := dq.NewInlineQueue("q", fails); return nil, err },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), mistake) {
			t.Errorf("%s: %v", mistake, err)
		}
	}
	batch := dq.Handler{Batch: 5, DoBatch: func(_ context.Context, jobs []*dq.Job) error {
		jobs[0].Succeed(len(jobs))
		return fmt.Errorf("others")
	}}
	expect(t, string(must(dq.TestJob{}.Run(ctx, batch)).Bytes()), "1")
}
