package dq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// stage is a queue whose jobs a worker handles when the test says so.
type stage struct {
	*testing.T
	server *dqtest.Server
	queue  *dq.Queue
	worker *dq.Worker
	waits  atomic.Int64 // how many attempts ended because the job has to wait
	fails  atomic.Int64
}

func newStage(t *testing.T, do dq.Func) *stage {
	s := &stage{T: t, server: dqtest.Start(t)}
	s.queue = s.server.Queue(t, "q")
	s.worker = must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{s.queue}, Handlers: []dq.Handler{{Do: do, Backoff: []time.Duration{time.Minute}}},
		Hooks: []dq.Hooks{{
			Suspended: func(context.Context, *dq.Job) { s.waits.Add(1) },
			Failed:    func(context.Context, *dq.Job, error) { s.fails.Add(1) },
		}},
	}))
	return s
}

func (s *stage) drain() int {
	s.Helper()
	return must(s.worker.Drain(s.Context()))
}

func (s *stage) get(id string) *dq.JobInfo { return must(s.queue.Get(s.Context(), id)) }

func kept(id string) *dq.JobOptions { return &dq.JobOptions{ID: id, Keep: 48 * time.Hour} }

// --- Results

func TestWhatAHandlerReturnsIsTheResult(t *testing.T) {
	type order struct{ Number int }
	s := newStage(t, dq.Returning(func(_ context.Context, job *dq.Job, data order) (*order, error) {
		switch job.ID {
		case "dead":
			return &data, dq.GiveUp(errors.New("no paper"))
		case "none":
			return nil, nil
		}
		return &order{data.Number + 1}, nil
	}))
	ctx := t.Context()
	for _, id := range []string{"a", "none", "dead"} {
		must(s.queue.Add(ctx, order{16}, kept(id)))
	}
	_, err := dq.Result[order](ctx, s.queue, "a")
	expect(t, err, dq.ErrNotFound) // not yet
	expect(t, s.drain(), 3)
	expect(t, must(dq.Result[order](ctx, s.queue, "a")), order{17})
	expect(t, must(dq.Wait[order](ctx, s.queue, "a")), order{17})
	expect(t, must(dq.Result[*order](ctx, s.queue, "none")), (*order)(nil))
	_, err = dq.Result[order](ctx, s.queue, "dead")
	expect(t, err, &dq.JobFailedError{ID: "dead", Outcome: dq.OutcomeDead, Reason: "no paper"})
	_, err = dq.Wait[order](ctx, s.queue, "dead")
	expect(t, err, &dq.JobFailedError{ID: "dead", Outcome: dq.OutcomeDead, Reason: "no paper"})
	_, err = dq.Wait[order](ctx, s.queue, "never")
	expect(t, err, &dq.JobFailedError{ID: "never", Outcome: dq.OutcomeUnknown})
	expect(t, strings.Contains(err.Error(), "Keep"), true)
	_, err = dq.Result[int](ctx, s.queue, "a")
	expect(t, err == nil, false)
	job := s.get("a")
	expect(t, []any{job.State, string(job.Result), *job.Keep, job.Finished.IsZero()}, []any{dq.Done, `{"Number":17}`, 48 * time.Hour, false})
}

func TestResultsByHand(t *testing.T) {
	ctx, queue := t.Context(), dqtest.Start(t).Queue(t, "q")
	must(queue.AddMany(ctx, []dq.NewJob{{JobOptions: *kept("a")}, {JobOptions: *kept("b")}}))
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "c", After: []string{"a", "b"}}))
	jobs := must(queue.Pop(ctx, &dq.PopOptions{Count: 2}))
	expect(t, must(queue.Step(ctx, "a", jobs[0].Token, map[string][]byte{"x": []byte("y")})), true)
	expect(t, must(queue.Step(ctx, "a", "17", map[string][]byte{"x": nil})), false)
	expect(t, string(must(queue.Get(ctx, "a")).Steps["x"]), "y")
	expect(t, must(queue.AckResults(ctx, dq.AckResult{ID: "a", Token: jobs[0].Token, Result: 1}, dq.AckResult{ID: "b", Token: jobs[1].Token, Result: "x"})), 2)
	expect(t, must(dq.Result[string](ctx, queue, "b")), "x")
	results := must(queue.Pop(ctx, nil))[0].Results
	n := 0
	expect(t, results[0].Decode(&n), nil)
	expect(t, []any{n, results[1].ID, results[1].Outcome}, []any{1, "b", dq.OutcomeDone})
	_, err := queue.AckResults(ctx, dq.AckResult{ID: "c", Token: "1", Result: func() {}})
	expect(t, strings.Contains(err.Error(), "result cannot be encoded"), true)
}

func TestWaitsByHand(t *testing.T) {
	ctx, queue := t.Context(), dqtest.Start(t).Queue(t, "q")
	must(queue.AddMany(ctx, []dq.NewJob{{JobOptions: *kept("a")}, {JobOptions: *kept("b")}}))
	tokens := map[string]string{}
	for _, job := range must(queue.Pop(ctx, &dq.PopOptions{Count: 2})) {
		tokens[job.ID] = job.Token
	}
	expect(t, must(queue.SetProgress(ctx, "a", tokens["a"], "0.5 half")), true)
	expect(t, must(queue.SetProgress(ctx, "a", "17", "x")), false)
	expect(t, must(queue.Get(ctx, "a")).Progress, "0.5 half")
	held := must(queue.BTouch(ctx, time.Millisecond, tokens))
	expect(t, []bool{held["a"].IsZero(), held["b"].IsZero()}, []bool{false, false})
	expect(t, must(queue.Nack(ctx, "b", tokens["b"], &dq.NackOptions{Mode: dq.Silent, After: []string{"a"}, OnDead: dq.OnDeadDie})), "blocked")
	expect(t, must(queue.Get(ctx, "b")).OnDead, dq.OnDeadDie)
	go func() { _, _ = queue.Cancel(context.Background(), "a") }()
	held = must(queue.BTouch(ctx, time.Minute, map[string]string{"a": tokens["a"]}))
	expect(t, held, map[string]time.Time{"a": {}})
	must(queue.Add(ctx, 1, kept("c")))
	job := must(queue.Pop(ctx, nil))[0]
	expect(t, must(queue.Nack(ctx, "c", job.Token, &dq.NackOptions{Mode: dq.Silent, Await: "x", Delay: ptr(time.Hour)})), "delayed")
	expect(t, must(queue.Get(ctx, "c")).Awaits, "x")
	_, err := queue.BTouch(ctx, 0, tokens)
	expect(t, err == nil, false)
}

// --- Steps

func TestAHandlerThatSleepsThirtyDays(t *testing.T) {
	charged := 0
	s := newStage(t, func(ctx context.Context, job *dq.Job) error {
		receipt, err := dq.Step(ctx, job, "charge", func(context.Context) (string, error) { charged++; return "ch_1", nil })
		if err != nil {
			return err
		}
		if err := job.Sleep("trial", 30*24*time.Hour); err != nil {
			return fmt.Errorf("wrapped: %w", err)
		}
		job.Succeed(receipt)
		return nil
	})
	must(s.queue.Add(t.Context(), 1, &dq.JobOptions{ID: "a", Keep: time.Hour, Attempts: 1}))
	expect(t, s.drain(), 1)
	job := s.get("a")
	expect(t, []any{job.State, job.Attempts, job.Due.Sub(s.server.Clock.Now())}, []any{dq.Delayed, 0, 30 * 24 * time.Hour})
	expect(t, string(job.Steps["charge"]), `"ch_1"`)
	s.server.Clock.Advance(29 * 24 * time.Hour)
	expect(t, s.drain(), 0)
	s.server.Clock.Advance(24 * time.Hour)
	expect(t, s.drain(), 1)
	expect(t, must(dq.Result[string](t.Context(), s.queue, "a")), "ch_1")
	expect(t, []int64{int64(charged), s.waits.Load(), s.fails.Load()}, []int64{1, 1, 0})
}

func TestASignalBeforeAfterAndNever(t *testing.T) {
	s := newStage(t, func(ctx context.Context, job *dq.Job) error {
		by, err := dq.WaitSignal[string](ctx, job, "signed", 24*time.Hour)
		var late *dq.TimedOutError
		if errors.As(err, &late) && errors.Is(err, context.DeadlineExceeded) && late.Timeout == 24*time.Hour {
			job.Succeed(late.ID)
			return nil
		}
		if err == nil {
			job.Succeed(by)
		}
		return err
	})
	ctx := t.Context()
	for _, id := range []string{"before", "after", "never"} {
		must(s.queue.Add(ctx, 1, kept(id)))
	}
	expect(t, must(s.queue.Signal(ctx, "before", "signed", "Ada")), true)
	expect(t, must(s.queue.Signal(ctx, "before", "signed", "Eve")), false)
	expect(t, s.drain(), 3)
	expect(t, []any{s.get("after").Awaits, s.get("after").Attempts}, []any{"signed", 0})
	expect(t, must(s.queue.Signal(ctx, "after", "signed", "Bob")), true)
	expect(t, s.drain(), 1)
	s.server.Clock.Advance(24 * time.Hour)
	expect(t, s.drain(), 1)
	for id, want := range map[string]string{"before": "Ada", "after": "Bob", "never": "never"} {
		expect(t, must(dq.Result[string](ctx, s.queue, id)), want)
	}
	_, err := s.queue.Signal(ctx, "nobody", "signed", nil)
	expect(t, err, dq.ErrNotFound)
}

func TestAStepOfAJobThatWasLostIsNotKept(t *testing.T) {
	var s *stage
	s = newStage(t, func(ctx context.Context, job *dq.Job) error {
		_, err := dq.Step(ctx, job, "a", func(context.Context) (int, error) {
			must(s.queue.Add(ctx, 2, &dq.JobOptions{ID: job.ID, IfExists: dq.Replace, Delay: time.Hour}))
			return 1, nil
		})
		expect(t, err, dq.ErrLost)
		_, err = dq.Step(ctx, job, "b", func(context.Context) (int, error) { t.Error("it ran"); return 1, nil })
		expect(t, err, dq.ErrLost)
		return err
	})
	must(s.queue.Add(t.Context(), 1, kept("a")))
	expect(t, s.drain(), 1)
	expect(t, []any{s.get("a").State, len(s.get("a").Steps)}, []any{dq.Delayed, 0})
}

func TestWhatAHandlerDoesAfterItHasToWaitIsDropped(t *testing.T) {
	s := newStage(t, func(_ context.Context, job *dq.Job) error {
		if job.Sleep("nap", time.Hour) != nil {
			job.Succeed("too early")
			panic("swallowed")
		}
		job.Succeed("slept")
		return nil
	})
	must(s.queue.Add(t.Context(), 1, kept("a")))
	expect(t, s.drain(), 1)
	expect(t, []any{s.get("a").State, s.get("a").Attempts, s.fails.Load()}, []any{dq.Delayed, 0, int64(0)})
	s.server.Clock.Advance(time.Hour)
	expect(t, s.drain(), 1)
	expect(t, must(dq.Result[string](t.Context(), s.queue, "a")), "slept")
}

// --- Flows

func TestAHandlerSpawnsJobsAndWaitsForThem(t *testing.T) {
	s := newStage(t, func(ctx context.Context, job *dq.Job) error {
		var n int
		if err := job.Decode(&n); err != nil {
			return err
		}
		if n > 0 {
			if n == 13 {
				return dq.GiveUp(errors.New("no"))
			}
			job.Succeed(n * n)
			return nil
		}
		results, err := job.Spawn(ctx, []dq.NewJob{{Data: 2}, {Data: 13}, {Data: 3}})
		if err != nil {
			return err
		}
		more, err := job.WaitFor(ctx, []string{"other"}, dq.WaitOptions{Name: "other"})
		if err != nil {
			return err
		}
		said := ""
		for _, each := range append(results, more...) {
			said += fmt.Sprintf("%s %s %s%s,", each.ID, each.Outcome, each.Bytes(), each.Reason)
		}
		job.Succeed(said)
		return nil
	})
	must(s.queue.Add(t.Context(), 0, kept("a")))
	must(s.queue.Add(t.Context(), 5, &dq.JobOptions{ID: "other", Delay: time.Hour}))
	expect(t, s.drain(), 5) // the parent, its children, and again
	expect(t, s.get("a").After, []string{"other"})
	s.server.Clock.Advance(time.Hour)
	expect(t, s.drain(), 2)
	expect(t, must(dq.Result[string](t.Context(), s.queue, "a")), "a/1/0 done 4,a/1/1 dead no,a/1/2 done 9,other done 25,")
	expect(t, s.waits.Load(), int64(2))
}

func TestJobsThatAreSpawnedBelongIntoTheShardOfTheirParent(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 5})
	server.Run(t, dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
		if strings.Contains(job.ID, "/") {
			job.Succeed(1)
			return nil
		}
		results, err := job.Spawn(ctx, make([]dq.NewJob, 4))
		job.Succeed(len(results))
		return err
	}}}})
	for n := range 5 {
		expect(t, must(dq.AddAndWait[int](ctx, queue, 0, &dq.JobOptions{ID: fmt.Sprint(n)})), 4)
	}
}

func TestAWaitThatTheServerRefusesFailsTheJob(t *testing.T) {
	s := newStage(t, func(ctx context.Context, job *dq.Job) error {
		if job.ID == "c" {
			_, err := job.Spawn(ctx, []dq.NewJob{
				{JobOptions: dq.JobOptions{ID: "d", Delay: time.Hour}}, {JobOptions: dq.JobOptions{After: []string{"d", "lost"}}},
			})
			return err
		}
		_, err := job.WaitFor(ctx, []string{map[string]string{"a": "a", "b": "gone"}[job.ID]})
		return err
	})
	wayOut := "never added. Add it with a Keep, or by Spawn (waited for: "
	for id, part := range map[string]string{"a": "AFTER", "b": wayOut + "gone)", "c": wayOut + "lost)"} {
		must(s.queue.Add(t.Context(), 0, kept(id)))
		expect(t, s.drain(), 1)
		job := s.get(id)
		expect(t, []any{job.State, job.Attempts, strings.Contains(job.Reason, part)}, []any{dq.Delayed, 1, true})
	}
}

func TestAChainAndJobsThatAreAfterOneAnother(t *testing.T) {
	var order []string
	s := newStage(t, func(_ context.Context, job *dq.Job) error {
		order = append(order, fmt.Sprintf("%s%d", job.Payload, len(job.Results())))
		return nil
	})
	ctx := t.Context()
	ids := must(s.queue.Chain(ctx, []dq.NewJob{{Data: 1}, {Data: 2}, {Data: 3}}))
	expect(t, s.get(ids[2]).After, []string{ids[1]})
	must(s.queue.AddMany(ctx, []dq.NewJob{
		{Data: 4, JobOptions: dq.JobOptions{ID: "a"}}, {Data: 5, JobOptions: dq.JobOptions{After: []string{"a", ids[2]}, OnDead: dq.OnDeadRun}},
	}))
	must(s.queue.Add(ctx, 6, &dq.JobOptions{ID: "last", AfterGroup: "g"}))
	expect(t, must(s.queue.Len(ctx, dq.Blocked)), 3)
	expect(t, s.drain(), 6)
	slices.Sort(order)
	expect(t, order, []string{"10", "21", "31", "40", "52", "60"})
}

func TestManyJobsInFewCommands(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	sharded := dq.NewQueue(server.Client, "s", dq.QueueOptions{Shards: 3})
	jobs := make([]dq.NewJob, 2500)
	for n := range jobs {
		jobs[n] = dq.NewJob{Data: n, JobOptions: dq.JobOptions{ID: fmt.Sprint(n), Priority: 3, Delay: time.Hour}}
	}
	ids := must(sharded.AddMany(ctx, jobs))
	expect(t, []any{len(ids), ids[0], ids[2499], must(sharded.Len(ctx, dq.Delayed))}, []any{2500, "0", "2499", 2500})
	expect(t, calls(server, "dq.add"), false)
	again := must(sharded.AddMany(ctx, append(jobs[:2:2], dq.NewJob{JobOptions: dq.JobOptions{ID: "new", Priority: 3, Delay: time.Hour}})))
	expect(t, again, []string{"", "", "new"})
	chained := must(sharded.Chain(ctx, make([]dq.NewJob, 5)))
	expect(t, len(must(sharded.Get(ctx, chained[4])).After), 1)
	_, err := sharded.AddMany(ctx, []dq.NewJob{{JobOptions: dq.JobOptions{ID: "x"}}, {JobOptions: dq.JobOptions{ID: "y", After: []string{"x"}}}})
	expect(t, err == nil, false) // of two shards
}

func TestThousandsOfJobsInTheirOrderOrNoneForAMistake(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{})
	jobs := make([]dq.NewJob, 9500)
	for at := range jobs {
		jobs[at].Data = at
	}
	ids := must(queue.AddMany(ctx, jobs))
	expect(t, len(ids), len(jobs))
	for _, at := range []int{0, 3999, 4000, 9499} {
		expect(t, string(must(queue.Get(ctx, ids[at])).Payload), fmt.Sprint(at))
	}

	jobs[9000].Data = make(chan int)
	ids, err := queue.AddMany(ctx, jobs)
	expect(t, len(ids) == 0 && err != nil, true)
	jobs[9000] = dq.NewJob{JobOptions: dq.JobOptions{Delay: -time.Second}}
	ids, err = queue.AddMany(ctx, jobs)
	expect(t, len(ids) == 0 && err != nil, true)
	expect(t, must(queue.Len(ctx, dq.Ready)), len(jobs))

	jobs[9000] = dq.NewJob{}
	must(0, queue.Configure(ctx, dq.Settings{MaxLen: ptr(2*len(jobs) - 1500)}))
	ids, err = queue.AddMany(ctx, jobs)
	expect(t, errors.Is(err, dq.ErrQueueFull), true)
	expect(t, strings.Contains(err.Error(), "(8000 of 9500 jobs were added)"), true)
	expect(t, []bool{ids[7999] != "", ids[8000] == ""}, []bool{true, true})
}

// Jobs that wait for others are in their shard.
func TestJobsAfterOthersInAShardedQueue(t *testing.T) {
	server := dqtest.Start(t)
	ctx := t.Context()
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 7})
	add := func(data any, options *dq.JobOptions) string {
		id, err := queue.Add(ctx, data, options)
		expect(t, err, nil)
		return id
	}
	for n := range 9 {
		first := add(1, &dq.JobOptions{ID: fmt.Sprint(n)})
		after := add(2, &dq.JobOptions{After: []string{first}})
		chain, err := queue.Chain(ctx, []dq.NewJob{{Data: 3, JobOptions: dq.JobOptions{After: []string{after}}}, {Data: 4}})
		expect(t, err, nil)
		for _, id := range append(chain, after) {
			job, err := queue.Get(ctx, id)
			expect(t, err, nil)
			expect(t, job.State, dq.Blocked)
		}
	}
	for _, options := range []dq.JobOptions{
		{After: []string{"0", "1", "2", "3", "4"}}, {ID: "5", After: []string{"0", "1", "2", "3", "4"}}, {AfterGroup: "g"},
	} {
		_, err := queue.Add(ctx, 1, &options)
		var mistake *dq.ConfigurationError
		expect(t, errors.As(err, &mistake), true)
	}
}
