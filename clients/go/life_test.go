package dq_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

func waitsInBTouch(server *dqtest.Server) bool {
	for _, line := range strings.Split(server.Client.ClientList(context.Background()).Val(), "\n") {
		if strings.Contains(line, "cmd=dq.btouch") && strings.Contains(line, "flags=b") {
			return true
		}
	}
	return false
}

// --- Waits

func TestManyWaitsShareAConnection(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	server.Run(t, dq.WorkerConfig{Queues: []*dq.Queue{server.Queue(t, "q")}, Handlers: []dq.Handler{{Do: dq.Returning(
		func(_ context.Context, _ *dq.Job, n int) (int, error) { return n * n, nil })}}})
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() { expect(t, must(dq.AddAndWait[int](ctx, queue, n, nil)), n*n) })
	}
	all.Wait()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "late", Delay: time.Hour}))
	_, err := dq.Wait[int](short, queue, "late")
	var timedOut *dq.TimedOutError
	expect(t, errors.Is(err, context.DeadlineExceeded) && errors.As(err, &timedOut) && timedOut.ID == "late", true)
	expect(t, 0 < timedOut.Timeout && timedOut.Timeout <= 50*time.Millisecond, true)
	ended := make(chan error, 1)
	go func() { _, err := dq.Wait[int](ctx, queue, "late"); ended <- err }()
	until(t, "it waits", func() bool { return strings.Count(server.Client.ClientList(ctx).Val(), "cmd=dq.await") == 1 })
	must(queue.Delete(ctx, "late"))
	expect(t, within(t, "told", ended), error(&dq.JobFailedError{ID: "late", Outcome: dq.OutcomeDeleted}))
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "late", Delay: time.Hour}))
	go func() { _, err := dq.Wait[int](ctx, queue, "late"); ended <- err }()
	until(t, "it waits", func() bool { return strings.Count(server.Client.ClientList(ctx).Val(), "cmd=dq.await") == 1 })
	_ = queue.Close()
	expect(t, within(t, "closed", ended) == nil, false)
	_, err = dq.Wait[int](ctx, queue, "late")
	expect(t, err == nil, false)
}

// --- Cancelling

func TestAHandlerHearsThatItsJobWasCancelled(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	begun, why := make(chan string, 2), make(chan error, 2)
	run(t, dq.WorkerConfig{Queues: []*dq.Queue{queue}, Drain: -1, Handlers: []dq.Handler{{
		Lease: time.Hour, // so no heartbeat says so
		Do: func(ctx context.Context, job *dq.Job) error {
			begun <- job.ID
			<-ctx.Done()
			why <- context.Cause(ctx)
			return nil
		},
	}}})
	for _, id := range []string{"a", "b"} { // the second one joins the first
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: id}))
		within(t, "begins", begun)
		until(t, "it hears", func() bool { return waitsInBTouch(server) })
	}
	for _, id := range []string{"b", "a"} {
		expect(t, must(queue.Cancel(ctx, id)), true)
		expect(t, within(t, "told", why), dq.ErrLost)
	}
	expect(t, must(queue.Cancel(ctx, "a")), false)
	expect(t, must(queue.Stats(ctx)) == nil, false)
}

// --- The time that a handler has, and what is around it

func TestAHandlerHasOnlySoMuchTime(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	told, leave, failed := make(chan error, 1), make(chan bool), make(chan error, 9)
	limit := 100 * time.Millisecond
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Concurrency: 1, Hooks: []dq.Hooks{{
			Failed: func(_ context.Context, _ *dq.Job, err error) { failed <- err },
			After:  func(context.Context, *dq.Job) { failed <- nil },
		}},
		Handlers: []dq.Handler{{Timeout: limit, Do: func(ctx context.Context, job *dq.Job) error {
			if job.ID == "quick" {
				return nil
			}
			if _, has := ctx.Deadline(); !has {
				t.Error("no deadline")
			}
			<-ctx.Done()
			told <- context.Cause(ctx)
			<-leave
			job.Succeed("too late")
			return nil
		}}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a", Keep: time.Hour}))
	expect(t, within(t, "told", told), dq.ErrTimeout)
	until(t, "it failed", func() bool { return must(queue.Get(ctx, "a")).State == dq.Delayed })
	expect(t, []any{must(queue.Get(ctx, "a")).Reason, must(queue.Get(ctx, "a")).Attempts}, []any{"timeout after 0.1 s", 1})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "quick"}))
	expect(t, within(t, "the hook", failed), dq.ErrTimeout)
	expect(t, must(queue.Get(ctx, "quick")).State, dq.Ready) // its place is taken
	close(leave)
	expect(t, within(t, "the other's hook", failed), error(nil))
	expect(t, len(failed), 0)
	expect(t, must(queue.Get(ctx, "a")).State, dq.Delayed)
}

func TestAHandlerThatSleepsAndThenGoesOnPastItsTimeSleeps(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	run(t, dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Timeout: 50 * time.Millisecond,
		Do: func(ctx context.Context, job *dq.Job) error {
			_ = job.Sleep("nap", time.Hour)
			<-ctx.Done()
			return nil
		},
	}}})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	until(t, "it sleeps", func() bool { return must(queue.Get(ctx, "a")).State == dq.Delayed })
	expect(t, []any{must(queue.Get(ctx, "a")).Attempts, must(queue.Get(ctx, "a")).Reason}, []any{0, ""})
}

func TestWhatIsAroundAHandler(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var said []string
	type key struct{}
	layer := func(name string) dq.Around {
		return func(ctx context.Context, jobs []*dq.Job, next func(context.Context) error) error {
			said = append(said, "into "+name)
			err := next(context.WithValue(ctx, key{}, name))
			said = append(said, "out of "+name)
			if jobs[0].ID == "mended" {
				jobs[0].Succeed("mended")
				return nil
			}
			return err
		}
	}
	blocks := func(ctx context.Context, jobs []*dq.Job, next func(context.Context) error) error {
		if jobs[0].ID == "blocked" {
			return dq.GiveUp(errors.New("not today"))
		}
		return next(ctx)
	}
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Around: []dq.Around{layer("outer"), layer("inner"), blocks},
		Handlers: []dq.Handler{
			{Do: func(ctx context.Context, job *dq.Job) error {
				said = append(said, ctx.Value(key{}).(string))
				return errors.New("no")
			}},
			{Kind: "batch", Batch: 5, DoBatch: func(_ context.Context, jobs []*dq.Job) error { return nil }},
		},
	}))
	must(queue.Add(ctx, 1, kept("mended")))
	expect(t, must(worker.Drain(ctx)), 1)
	expect(t, said, []string{"into outer", "into inner", "inner", "out of inner", "out of outer"})
	expect(t, must(dq.Result[string](ctx, queue, "mended")), "mended")
	must(queue.Add(ctx, 1, kept("blocked")))
	must(queue.AddMany(ctx, []dq.NewJob{{JobOptions: dq.JobOptions{Kind: "batch"}}, {JobOptions: dq.JobOptions{Kind: "batch"}}}))
	expect(t, must(worker.Drain(ctx)), 3)
	expect(t, must(queue.Get(ctx, "blocked")).Reason, "not today")
	expect(t, len(said), 13) // once for the batch
}

// --- Progress

func TestTheLastProgressIsThereWhenTheJobEnds(t *testing.T) {
	s := newStage(t, func(_ context.Context, job *dq.Job) error {
		for n := range 10 {
			if err := job.Progress(float64(n+1)/10, "page\xff"); err != nil {
				return err
			}
		}
		return job.Progress(1.0/3, "")
	})
	must(s.queue.Add(t.Context(), 1, kept("a")))
	expect(t, s.drain(), 1)
	expect(t, s.get("a").Progress, "0.333")
}

// --- Costs

func TestWhatADeliveryCostsIsSaidBeforeOrAfterwards(t *testing.T) {
	s := newStage(t, func(ctx context.Context, job *dq.Job) error { return job.SetCost(ctx, 1) })
	ctx := t.Context()
	must(0, s.queue.Configure(ctx, dq.Settings{Rate: &dq.Rate{Jobs: 4, Window: time.Minute}}))
	must(s.queue.AddMany(ctx, []dq.NewJob{{JobOptions: dq.JobOptions{ID: "a", Cost: 2}}, {JobOptions: dq.JobOptions{ID: "b", Cost: 2}}}))
	expect(t, s.get("a").Cost, 2)
	expect(t, s.drain(), 2)
	must(s.queue.AddMany(ctx, make([]dq.NewJob, 3)))
	for _, handled := range []int{2, 0} { // two of four were left
		expect(t, must(s.worker.Drain(ctx)), handled)
	}
	s.server.Clock.Advance(time.Minute)
	job := must(s.queue.Pop(ctx, nil))[0]
	expect(t, []bool{must(s.queue.SetCost(ctx, job.ID, job.Token, 9)), must(s.queue.SetCost(ctx, job.ID, "17", 9))}, []bool{true, false})
}

// --- Health

func TestAWorkerSaysWhetherItIsHealthy(t *testing.T) {
	server := dqtest.Start(t)
	way := newPartition(t, server)
	file := filepath.Join(t.TempDir(), "healthy")
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{way.queue(t, "q")}, Wait: 100 * time.Millisecond, Health: file,
		Handlers: []dq.Handler{{Do: func(context.Context, *dq.Job) error { return nil }}},
	}))
	get := func() (int, string) {
		out := httptest.NewRecorder()
		worker.HealthHandler().ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/", nil))
		return out.Code, strings.TrimSpace(string(must(io.ReadAll(out.Body))))
	}
	code, why := get()
	expect(t, []any{code, why}, []any{503, "dq: the worker does not run"})
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- worker.Run(ctx) }()
	until(t, "healthy", worker.IsHealthy)
	code, why = get()
	expect(t, []any{code, why}, []any{200, "ok"})
	until(t, "the file", func() bool { _, err := os.Stat(file); return err == nil })
	_ = way.listener.Close()
	way.cut()
	until(t, "not healthy", func() bool { return !worker.IsHealthy() })
	if code, why = get(); code != 503 || !strings.Contains(why, "does not answer") {
		t.Error(code, why)
	}
	stop()
	within(t, "ends", ended)
	expect(t, worker.Health().Error(), "dq: the worker has stopped")
}

func TestHealthByHTTP(t *testing.T) {
	server := dqtest.Start(t)
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	config := dq.WorkerConfig{
		Queues: []*dq.Queue{server.Queue(t, "q")}, Health: taken.Listener.Addr().String(),
		Handlers: []dq.Handler{{Do: func(context.Context, *dq.Job) error { return nil }}},
	}
	var said *dq.ConfigurationError
	expect(t, errors.As(must(dq.NewWorker(config)).Run(t.Context()), &said), true)
	taken.Close()
	run(t, config)
	until(t, "ok", func() bool {
		answer, err := http.Get("http://" + config.Health)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == 200 && string(must(io.ReadAll(answer.Body))) == "ok\n"
	})
}

// --- Without a server

func TestALimitOfTimeHoldsWhereATestDrains(t *testing.T) {
	ctx, queue := t.Context(), dqtest.Start(t).Queue(t, "q")
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Do:      func(ctx context.Context, _ *dq.Job) error { <-ctx.Done(); return ctx.Err() },
		Timeout: 20 * time.Millisecond, Backoff: []time.Duration{time.Minute},
	}}}))
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	expect(t, must(worker.Drain(ctx)), 1)
	expect(t, must(queue.Get(ctx, "a")).Reason, "timeout after 0.02 s")
}
