package dq_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

func do(context.Context, *dq.Job) error { return nil }

func TestARuleBesideAHandlerIsSaidByAWorkersStart(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	reports := dq.NewKind[order]("report", dq.JobOptions{ID: "one", Delay: time.Hour, Attempts: 3})
	var numbers []int
	report := func(_ context.Context, _ *dq.Job, o order) error { numbers = append(numbers, o.Number); return nil }
	start := func() *dq.Worker {
		return must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{
			reports.Handler(report, dq.Handler{Rule: &dq.NewRule{Every: time.Hour, Data: order{7}}}),
			{Do: do, Rule: &dq.NewRule{Cron: "0 2 * * *", RuleOptions: dq.RuleOptions{JobOptions: dq.JobOptions{ID: "nightly"}, TZ: "Asia/Tokyo"}}},
		}}))
	}
	// So the other rule is not due within the hour.
	server.Clock.Set(time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC))
	worker := start()
	expect(t, must(worker.Drain(ctx)), 0)
	job := must(queue.Get(ctx, "report"))
	expect(t, []any{job.Rule.Every, job.MaxAttempts, job.Label}, []any{time.Hour, 3, "report"})
	expect(t, must(queue.Get(ctx, "nightly")).Rule.TZ, "Asia/Tokyo")
	server.Clock.Set(job.Due)
	expect(t, must(worker.Drain(ctx)), 1)
	server.Clock.Advance(time.Minute)
	must(start().Drain(ctx)) // as another worker
	expect(t, must(queue.Get(ctx, "report")).Due, job.Due.Add(time.Hour))
	expect(t, numbers, []int{7})
}

func TestARuleThatCannotBeSaid(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	said := func(queue *dq.Queue, rule dq.NewRule) (string, error) {
		var log bytes.Buffer
		worker, err := dq.NewWorker(dq.WorkerConfig{
			Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Kind: "nightly", Do: do, Rule: &rule}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err == nil {
			_, err = worker.Drain(ctx)
		}
		return log.String(), err
	}
	for what, rule := range map[string]dq.NewRule{
		"Every or Cron": {}, `cron="0 25 * * *"`: {Cron: "0 25 * * *"}, "JSON cannot hold": {Every: time.Hour, Data: func() {}},
		"neither Delay": {Every: time.Hour, RuleOptions: dq.RuleOptions{JobOptions: dq.JobOptions{Delay: 1}}},
	} {
		_, err := said(queue, rule)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Error(what, err)
		}
	}
	log, err := said(queue, dq.NewRule{Every: time.Hour, RuleOptions: dq.RuleOptions{Until: server.Clock.Now().Add(-time.Hour)}})
	expect(t, []any{strings.Contains(log, "a rule is over"), err}, []any{true, nil})
	must(0, queue.Configure(ctx, dq.Settings{MaxLen: ptr(1)}))
	must(queue.Add(ctx, 1, nil))
	log, err = said(queue, dq.NewRule{Every: time.Hour})
	expect(t, []any{strings.Contains(log, "until the next start"), err}, []any{true, nil})
	log, err = said(as(t, server, "library-worker", "+dq.add"), dq.NewRule{Every: time.Hour})
	expect(t, []any{strings.Contains(log, "the rules of handlers are not said"), err}, []any{true, nil})
}
