package dq_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// obituaries are what the hook was called with.
type obituaries struct {
	sync.Mutex
	told map[string][]string // reasons, by queue and id
}

func (o *obituaries) hook() dq.Hooks {
	return dq.Hooks{Dead: func(_ context.Context, queue string, job *dq.JobInfo) {
		o.Lock()
		defer o.Unlock()
		if o.told == nil {
			o.told = map[string][]string{}
		}
		o.told[queue+"/"+job.ID] = append(o.told[queue+"/"+job.ID], job.Reason)
	}}
}

func (o *obituaries) len() int { o.Lock(); defer o.Unlock(); return len(o.told) }

func giveUp(context.Context, *dq.Job) error { return dq.GiveUp(fmt.Errorf("no such order")) }

func TestAHookIsToldOfTheDead(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	lose := func(id string) {
		must(queue.Add(ctx, map[string]string{"of": id}, &dq.JobOptions{ID: id, Kind: "sell", Attempts: 1, TTR: time.Second}))
		must(queue.Pop(ctx, nil))
		server.Clock.Advance(time.Second)
	}
	lose("old")
	var told obituaries
	var seen *dq.JobInfo
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Do: giveUp}}, Hooks: []dq.Hooks{
		{Dead: func(_ context.Context, _ string, job *dq.JobInfo) { seen = job; panic("no paper") }}, told.hook(),
	}}))
	server.Clock.Advance(time.Second)
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "own"}))
	must(queue.Every(ctx, time.Hour, 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "often"}, First: server.Clock.Now()}))
	due := server.Clock.Now().UnixMilli()
	must(worker.Drain(ctx))
	lose("late")
	for range 2 {
		must(worker.Drain(ctx))
	}
	expect(t, told.told, map[string][]string{
		"q/own": {"no such order"}, fmt.Sprintf("q/often@%d", due): {"no such order"}, "q/late": {"lease ended"},
	})
	var data map[string]string
	must(0, seen.Decode(&data))
	expect(t, []any{seen.Kind(), data["of"]}, []any{"sell", "late"})
}

func TestDeathsThatFindNoRoomAreFoundLater(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var told obituaries
	goOn := make(chan bool)
	server.Run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Do: giveUp, Lease: time.Second}},
		Hooks: []dq.Hooks{{Dead: func(context.Context, string, *dq.JobInfo) { <-goOn }}, told.hook()},
	})
	const count = 1200
	must(queue.AddMany(ctx, make([]dq.NewJob, count)))
	until(t, "all are dead", func() bool { return must(queue.Len(ctx, dq.Dead)) == count }) // the hook holds up no handler
	close(goOn)
	until(t, "all are told", func() bool { return told.len() == count })
}

func TestDeathsThatFindNoRoomDuringALongLookAreFoundLater(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var told obituaries
	begun, goOn := make(chan bool), make(chan bool)
	server.Run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Do: giveUp, Lease: time.Second}},
		Hooks: []dq.Hooks{told.hook(), {Dead: func(_ context.Context, _ string, job *dq.JobInfo) {
			if job.ID == "late" {
				begun <- true
				<-goOn
			}
		}}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "early"}))
	until(t, "it looks", func() bool { return told.len() == 1 })
	must(queue.AddMany(ctx, []dq.NewJob{
		{JobOptions: dq.JobOptions{ID: "first"}}, {JobOptions: dq.JobOptions{ID: "late", After: []string{"first"}, OnDead: dq.OnDeadDie}},
	}))
	within(t, "it is called in a look", begun)
	const count = 1200
	must(queue.AddMany(ctx, make([]dq.NewJob, count)))
	until(t, "all are dead", func() bool { return must(queue.Len(ctx, dq.Dead)) == 3+count })
	server.Clock.Advance(time.Minute)
	close(goOn)
	until(t, "all are told", func() bool { return told.len() == 3+count })
}

func TestAHookThatHangsIsLeftBehind(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var log bytes.Buffer
	begun, ended := make(chan bool), make(chan error, 1)
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Do: giveUp}}, Drain: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Hooks: []dq.Hooks{{Dead: func(ctx context.Context, _ string, _ *dq.JobInfo) { begun <- true; <-ctx.Done(); select {} }}},
	}))
	go func() { ended <- worker.Run(ctx) }()
	must(queue.Add(ctx, 1, nil))
	within(t, "it is called", begun)
	must(queue.AddMany(ctx, make([]dq.NewJob, 1200)))
	until(t, "all are dead", func() bool { return must(queue.Len(ctx, dq.Dead)) == 1201 })
	worker.Stop()
	expect(t, <-ended, nil)
	expect(t, strings.Count(log.String(), "stopped without the hook Dead"), 1)
	expect(t, strings.Contains(log.String(), "waiting=1200\n"), true)
}
