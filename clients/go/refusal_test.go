package dq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

func TestADelayThatTheServerRefusesEndsTheJobAnyway(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	century := 100 * 365 * 24 * time.Hour
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue},
		Handlers: []dq.Handler{{Backoff: []time.Duration{century}, Do: func(_ context.Context, job *dq.Job) error {
			switch job.ID {
			case "retry":
				return dq.RetryIn(century, errors.New("no paper"))
			case "snooze":
				return dq.Snooze(century)
			}
			return errors.New("no paper")
		}}},
	})
	for _, id := range []string{"retry", "snooze", "ladder"} {
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: id}))
		until(t, id, func() bool { return must(queue.Get(ctx, id)).State == dq.Delayed })
		job := must(queue.Get(ctx, id))
		if wait := job.Due.Sub(server.Clock.Now()); wait < time.Second || wait > 1100*time.Millisecond {
			t.Error(id, wait)
		}
		if job.Attempts != 1 || job.Reason == "" {
			t.Errorf("%+v", job)
		}
	}
}

func TestTheLadderOfTheHandlerTakesThePlaceOfADelayThatTheServerRefuses(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue},
		Handlers: []dq.Handler{{Backoff: []time.Duration{time.Hour}, Do: func(context.Context, *dq.Job) error {
			return dq.RetryIn(100*365*24*time.Hour, errors.New("no paper"))
		}}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	until(t, "a", func() bool { return must(queue.Get(ctx, "a")).State == dq.Delayed })
	job := must(queue.Get(ctx, "a"))
	if wait := job.Due.Sub(server.Clock.Now()); wait < time.Hour || job.Attempts != 1 || job.Reason != "no paper" {
		t.Errorf("%v %+v", wait, job)
	}
}

func TestAResultTooLargeForTheServerIsLeftOut(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	must(server.Client.ConfigSet(ctx, "proto-max-bulk-len", "1mb").Result())
	queue := server.Queue(t, "q")
	run(t, dq.WorkerConfig{
		Concurrency: 2,
		Queues:      []*dq.Queue{queue},
		Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
			if strings.HasPrefix(job.ID, "large") {
				job.Succeed(strings.Repeat("x", 5<<20))
			}
			if job.ID != "parent" {
				return nil
			}
			_, err := job.Spawn(ctx, []dq.NewJob{{Data: strings.Repeat("x", 5<<20)}})
			return err
		}}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "parent", Attempts: 1}))
	for n := range 20 {
		id := fmt.Sprint(n)
		if n%7 == 0 {
			id = "large" + id
		}
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: id}))
	}
	until(t, "all are done", func() bool { return must(queue.Stats(ctx)).Dead == 1 && must(queue.Len(ctx, "")) == 0 })
	reason := must(queue.Get(ctx, "parent")).Reason // the server's words, unless they were lost with the connection
	if !strings.Contains(reason, "bytes cut the connection 2 times") && !strings.Contains(reason, "invalid bulk length") {
		t.Error(reason)
	}
}

func TestWhatTheServerForbidsEndsAWorkerAtOnce(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	begun := make(chan bool)
	for forbidden, fails := range map[string]bool{"dq.nack": true, "dq.ack": false, "dq.bpop": false} {
		user := strings.ReplaceAll(forbidden, ".", "")
		must(server.Client.Do(ctx, "ACL", "SETUSER", user, "on", "nopass", "~*", "+@all").Result())
		options := *server.Client.Options()
		options.Username, options.Password = user, "x"
		client := redis.NewClient(&options)
		defer client.Close()
		must(server.Client.Do(ctx, "ACL", "SETUSER", user, "-"+forbidden).Result())
		queue := dq.NewQueue(client, user)
		ended := run(t, dq.WorkerConfig{
			Queues: []*dq.Queue{queue}, Drain: time.Hour, Concurrency: 2,
			Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
				if job.ID == "slow" {
					begun <- true
					<-ctx.Done()
				}
				if fails {
					return errors.New("no paper")
				}
				return nil
			}}},
		})
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: "slow"}))
		if forbidden != "dq.bpop" {
			within(t, "begins", begun)
		}
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
		var said *dq.ConfigurationError
		if err := within(t, "ends", ended); !errors.As(err, &said) || !strings.Contains(err.Error(), "ACL") {
			t.Error(forbidden, err)
		}
	}
}

// as returns a queue for a user with the rights that docs/operations.md prints, except some.
func as(t *testing.T, server *dqtest.Server, user string, without ...string) *dq.Queue {
	_, line, isThere := strings.Cut(string(must(os.ReadFile("../../docs/operations.md"))), "\n    user "+user+" ")
	if !isThere {
		t.Fatal("no line for " + user)
	}
	line, _, _ = strings.Cut(line, "\n")
	rule := []any{"ACL", "SETUSER", user, "reset"}
	for _, word := range strings.Fields(line) {
		if !slices.Contains(without, word) {
			rule = append(rule, word)
		}
	}
	must(server.Client.Do(t.Context(), rule...).Result())
	options := *server.Client.Options()
	options.Username, options.Password = user, "CHANGE-ME"
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return dq.NewQueue(client, "orders")
}

func TestTheRightsOfTheDocsAreEnoughForAProducer(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := as(t, server, "library-producer")
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a", Delay: time.Hour, Kind: "kind", Headers: map[string]string{"a": "b"}}))
	must(queue.AddMany(ctx, make([]dq.NewJob, 3)))
	must(queue.Cron(ctx, "@daily", 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "r"}}))
	must(queue.Every(ctx, time.Hour, 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "s"}}))
	must(queue.Reschedule(ctx, dq.RescheduleOptions{At: time.Now().Add(time.Hour)}, "a"))
	expect(t, must(queue.Get(ctx, "a")).State, dq.Delayed)
	expect(t, must(queue.DeleteUnreserved(ctx, "a"))+must(queue.Delete(ctx, "r", "s")), 3)
	expect(t, must(queue.Len(ctx, dq.All)), 3)
	must(queue.Chain(ctx, make([]dq.NewJob, 2)))
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "late", Delay: time.Hour}))
	expect(t, must(queue.Signal(ctx, "late", "signed", 1)), true)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := dq.Wait[any](short, queue, "late")
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	_, err = dq.Wait[any](ctx, queue, "never") // withdraws the first one
	expect(t, err, error(&dq.JobFailedError{ID: "never", Outcome: dq.OutcomeUnknown}))
	if _, err := as(t, server, "library-producer", "+dq.add").Add(ctx, 1, nil); err == nil {
		t.Error("the rights are not looked at")
	}
}

func TestTheRightsOfTheDocsAreEnoughForAWorker(t *testing.T) {
	for _, without := range [][]string{nil, {"+client|id", "+dq.unblock"}} {
		ctx, server := t.Context(), dqtest.Start(t)
		theirs := as(t, server, "library-worker", without...)
		queue := server.Queue(t, theirs.Name())
		begun := make(chan bool, 10)
		ended := run(t, dq.WorkerConfig{
			Queues: []*dq.Queue{theirs}, Drain: -1,
			Handlers: []dq.Handler{
				{Kind: "batch", Batch: 3, Lease: time.Second, DoBatch: func(context.Context, []*dq.Job) error { return nil }},
				{Kind: "one", Attempts: 2, Do: func(ctx context.Context, job *dq.Job) error {
					switch job.ID {
					case "fail":
						return errors.New("no paper")
					case "retry":
						return dq.RetryIn(time.Hour, nil)
					case "snooze":
						return dq.Snooze(time.Hour)
					case "give up":
						return dq.GiveUp(nil)
					case "hold":
						begun <- true
						<-ctx.Done()
					case "sleep":
						_, err := dq.Step(ctx, job, "a", func(context.Context) (int, error) { return 1, job.Progress(1, "a") })
						return errors.Join(err, job.Sleep("nap", time.Hour))
					case "spawn":
						_, err := job.Spawn(ctx, []dq.NewJob{{JobOptions: dq.JobOptions{Delay: time.Hour}}})
						return err
					}
					return nil
				}},
			},
		})
		states := map[string]dq.State{
			"fail": dq.Delayed, "retry": dq.Delayed, "snooze": dq.Delayed, "give up": dq.Dead, "unknown": dq.Delayed, "hold": dq.Leased,
			"sleep": dq.Delayed, "spawn": dq.Blocked,
		}
		for id := range states {
			must(queue.Add(ctx, 1, &dq.JobOptions{ID: id, Kind: map[bool]string{true: id, false: "one"}[id == "unknown"]}))
		}
		must(queue.Add(ctx, 1, &dq.JobOptions{ID: "batch", Kind: "batch"}))
		within(t, "begins", begun)
		for id, state := range states {
			until(t, id, func() bool { return must(queue.Get(ctx, id)).State == state })
		}
		until(t, "it hears", func() bool { return waitsInBTouch(server) })
		expect(t, string(must(queue.Get(ctx, "sleep")).Steps["a"]), "1")
		until(t, "batch", func() bool { _, err := queue.Get(ctx, "batch"); return errors.Is(err, dq.ErrNotFound) })
		select {
		case err := <-ended:
			t.Error(without, err)
		default:
		}
	}
}
