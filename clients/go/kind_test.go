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

var charging = dq.NewKindReturning[order, int]("charge", dq.JobOptions{Keep: time.Hour, Delay: time.Minute, Attempts: 5})

func charge(_ context.Context, _ *dq.Job, o order) (int, error) { return o.Number * 2, nil }

func TestAKindHasItsTypesAndItsOptions(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	must(charging.Add(ctx, queue, order{17}, &dq.JobOptions{ID: "a"}))
	must(charging.Add(ctx, queue, order{18}, &dq.JobOptions{ID: "b", At: server.Clock.Now(), Keep: 2 * time.Hour, Kind: "other"}))
	must(queue.AddMany(ctx, []dq.NewJob{charging.Job(order{19}, &dq.JobOptions{ID: "c", Delay: time.Second, Attempts: dq.Unlimited})}))
	now := server.Clock.Now()
	for id, want := range map[string][]any{
		"a": {now.Add(time.Minute), 5, time.Hour}, "b": {now, 5, 2 * time.Hour}, "c": {now.Add(time.Second), 0, time.Hour},
	} {
		job := must(queue.Get(ctx, id))
		expect(t, []any{job.Due, job.MaxAttempts, *job.Keep}, want)
		expect(t, job.Label, "charge")
	}
	server.Clock.Advance(time.Minute)
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{charging.Returning(charge)}}))
	expect(t, must(worker.Drain(ctx)), 3)
	expect(t, must(charging.Result(ctx, queue, "a")), 34)
	expect(t, must(charging.Wait(ctx, queue, "b")), 36)
}

func TestAKindIsAddedAndWaitedFor(t *testing.T) {
	server := dqtest.Start(t)
	queue := server.Queue(t, "q")
	asking := dq.NewKindReturning[order, int](charging.Name())
	server.Run(t, dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{asking.Returning(charge)}})
	expect(t, must(asking.AddAndWait(t.Context(), queue, order{4}, nil)), 8)
}

func TestTheSettingsOfAHandlerGoWithItsKind(t *testing.T) {
	kind := dq.NewKind[order]("remind")
	do := func(context.Context, *dq.Job, order) error { return nil }
	made := kind.Handler(do, dq.Handler{Attempts: 4, Kind: "other"}, dq.Handler{Attempts: 5, Lease: time.Minute})
	expect(t, []any{made.Kind, made.Attempts, made.Lease, made.Do != nil}, []any{"remind", 4, time.Minute, true})
	_, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{{}}, Handlers: []dq.Handler{
		kind.Handler(do, dq.Handler{DoBatch: func(context.Context, []*dq.Job) error { return nil }, Batch: 2}),
	}})
	expect(t, err != nil, true)
}

func TestAKindThatCannotBeIsSaidWhereItIsDeclared(t *testing.T) {
	for _, declare := range []func(){
		func() { dq.NewKind[order]("") },
		func() { dq.NewKind[order]("a", dq.JobOptions{TTR: -time.Second}) },
	} {
		func() {
			defer func() { expect(t, recover() != nil, true) }()
			declare()
		}()
	}
}

func TestALogNamesTheKindThatWasMeant(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	do := func(context.Context, *dq.Job) error { return nil }
	handlers := []dq.Handler{{Kind: "close-order", Do: do}, {Kind: "remind", Do: do}}
	for given, meant := range map[string]string{
		"clsoe_order": "close-order", "Remind": "remind", "remin": "remind", "mail": "", strings.Repeat("x", 100_000): "",
	} {
		var log bytes.Buffer
		must(queue.Add(ctx, nil, &dq.JobOptions{Kind: given}))
		worker := must(dq.NewWorker(dq.WorkerConfig{
			Queues: []*dq.Queue{queue}, Handlers: handlers, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}))
		must(worker.Drain(ctx))
		expect(t, strings.Contains(log.String(), `"did it mean"=`+meant) && meant != "", meant != "")
		expect(t, strings.Contains(log.String(), "did it mean"), meant != "")
	}
	_, err := dq.TestJob{Kind: "close_order"}.Run(ctx, handlers...)
	expect(t, strings.Contains(err.Error(), `did it mean "close-order"?`), true)
}
