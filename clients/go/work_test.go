package dq_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

type order struct{ Number int }

func TestWorkRunsOneHandlerUntilASignal(t *testing.T) {
	server := dqtest.Start(t)
	queue := server.Queue(t, "orders")
	must(queue.Add(t.Context(), order{17}, &dq.JobOptions{ID: "a"}))
	done, ended := make(chan *dq.Job, 1), make(chan error, 1)
	go func() {
		ended <- dq.Work(server.URL, "orders", func(_ context.Context, job *dq.Job, data order) error {
			if data.Number == 17 {
				done <- job
			}
			return nil
		}, dq.Handler{Attempts: 5})
	}()
	expect(t, within(t, "done", done).MaxAttempts, 5)
	must(0, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	expect(t, within(t, "ends", ended), error(nil))
	expect(t, must(queue.Len(t.Context(), dq.All)), 0)
}

func TestASecondSignalEndsTheDrain(t *testing.T) {
	server := dqtest.Start(t)
	queue := server.Queue(t, "orders")
	must(queue.Add(t.Context(), order{17}, &dq.JobOptions{ID: "a"}))
	begun, ended := make(chan bool), make(chan error, 1)
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Drain: time.Hour,
		Handlers: []dq.Handler{{Do: func(ctx context.Context, _ *dq.Job) error {
			begun <- true
			<-ctx.Done()
			return context.Cause(ctx)
		}}},
	}))
	go func() { ended <- worker.RunUntilSignal(t.Context()) }()
	within(t, "begins", begun)
	until(t, "it fetches more", func() bool { return must(queue.Stats(t.Context())).WaitingClients == 1 })
	must(0, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	until(t, "it drains", func() bool { return must(queue.Stats(t.Context())).WaitingClients == 0 })
	must(0, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	expect(t, within(t, "ends", ended), error(nil))
	job := must(queue.Get(t.Context(), "a"))
	expect(t, []any{job.State, job.Attempts}, []any{dq.Ready, 0})
}

func TestWorkHasOneHandler(t *testing.T) {
	nothing := func(context.Context, *dq.Job, int) error { return nil }
	var said *dq.ConfigurationError
	for _, settings := range [][]dq.Handler{{{}, {}}, {{Do: dq.Typed(nothing)}}, {{Attempts: -1}}} {
		if err := dq.Work("redis://127.0.0.1:1", "q", nothing, settings...); !errors.As(err, &said) {
			t.Error(err)
		}
	}
	if dq.Work("nonsense", "q", nothing) == nil {
		t.Error("a URL that is none")
	}
}
