package dq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ptr[T any](value T) *T { return &value }

func TestAJobsLifeByHand(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	now := server.Clock.Now()
	options := &dq.JobOptions{
		ID: "a", Delay: time.Minute, Priority: 5, TTR: time.Second, Attempts: 3, Backoff: []time.Duration{time.Second},
		TTL: time.Hour,
	}
	expect(t, must(queue.Add(ctx, map[string]int{"n": 1}, options)), "a")
	_, err := queue.Add(ctx, 1, options)
	expect(t, err, dq.ErrExists)
	job := must(queue.Get(ctx, "a"))
	expect(t, []any{job.State, job.Due, job.Priority, job.MaxAttempts, job.Backoff, job.Token}, []any{
		dq.Delayed, now.Add(time.Minute), 5, 3, []time.Duration{time.Second}, "",
	})
	expect(t, len(must(queue.Pop(ctx, nil))), 0)
	server.Clock.Advance(time.Minute)
	popped := must(queue.Pop(ctx, &dq.PopOptions{Count: 3}))[0]
	expect(t, []any{popped.ID, string(popped.Payload), popped.Attempt, popped.Due}, []any{"a", `{"n":1}`, 1, now.Add(time.Minute)})
	expect(t, must(queue.Touch(ctx, "a", popped.Token, 9*time.Second)), server.Clock.Now().Add(9*time.Second))
	expect(t, must(queue.Touch(ctx, "a", "17", 0)).IsZero(), true)
	expect(t, must(queue.Nack(ctx, "a", popped.Token, &dq.NackOptions{Reason: "no", Delay: ptr(time.Duration(0))})), "ready")
	expect(t, must(queue.Get(ctx, "a")).Reason, "no")
	popped = must(queue.BPop(ctx, time.Second, &dq.PopOptions{Lease: time.Hour}))[0]
	expect(t, []any{popped.TTR, popped.MaxAttempts, *popped.RetryIn, popped.Deadline.Sub(server.Clock.Now())},
		[]any{time.Second, 3, time.Second, time.Second})
	expect(t, must(queue.NackMany(ctx, map[string]string{"a": popped.Token, "x": "1"}, &dq.NackOptions{Mode: dq.Fatal})),
		map[string]string{"a": "dead", "x": ""})
	expect(t, must(queue.KickOldest(ctx, 5)), 1)
	popped = must(queue.Pop(ctx, &dq.PopOptions{ID: "a"}))[0]
	expect(t, must(queue.Ack(ctx, "a", "17")), false)
	expect(t, must(queue.Ack(ctx, "a", popped.Token)), true)
}

func TestIdsAreDataWhateverTheyRead(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	ids := []string{"UNRESERVED", "IDS", "2", "PRIORITY", "7", "WITHTOKENS", "RESULTS"}
	for _, id := range ids {
		expect(t, must(queue.Add(ctx, 1, &dq.JobOptions{ID: id, Keep: time.Hour})), id)
	}
	expect(t, must(queue.Reschedule(ctx, dq.RescheduleOptions{Delay: ptr(time.Hour)}, "PRIORITY", "7", "2")), 3)
	expect(t, must(queue.Get(ctx, "2")).Priority, 0)
	expect(t, must(queue.Reschedule(ctx, dq.RescheduleOptions{Priority: ptr(1)}, "IDS", "2")), 2)
	expect(t, must(queue.Delete(ctx, "IDS", "2")), 2)
	expect(t, must(queue.DeleteUnreserved(ctx, "UNRESERVED", "PRIORITY")), 2)
	for _, job := range must(queue.Pop(ctx, &dq.PopOptions{Count: 2})) {
		expect(t, must(queue.AckResults(ctx, dq.AckResult{ID: job.ID, Token: job.Token, Result: 1})), 1)
		expect(t, must(dq.Wait[int](ctx, queue, job.ID)), 1)
	}
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "IDS"}))
	for _, job := range must(queue.Pop(ctx, &dq.PopOptions{ID: "IDS"})) {
		expect(t, must(queue.Nack(ctx, job.ID, job.Token, &dq.NackOptions{Mode: dq.Silent})), "ready")
	}
	for _, job := range must(queue.Pop(ctx, &dq.PopOptions{ID: "IDS"})) {
		expect(t, must(queue.Ack(ctx, job.ID, job.Token)), true)
		expect(t, must(queue.Ack(ctx, job.ID, job.Token)), false)
	}
}

func TestNoPrintedFormShowsThePassword(t *testing.T) {
	const secret = "s3cr3t"
	queue := must(dq.Open("redis://user:"+secret+"@127.0.0.1:1/0", "q"))
	defer queue.Close()
	handler := dq.Handler{Do: func(context.Context, *dq.Job) error { return nil }}
	config := dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{handler}}
	worker := must(dq.NewWorker(config))
	config.Handlers = nil // JSON knows no functions
	_, refused := queue.Add(t.Context(), 1, nil)
	_, malformed := dq.Open("redis://user:"+secret+"%zz@127.0.0.1:1/0", "q")
	_, strange := dq.Open("redis://user:"+secret+"@127.0.0.1:1/0?protocol="+secret, "q")
	for _, value := range []any{queue, worker, config, &config, refused, malformed, strange} {
		printed := fmt.Sprintf("%v %+v %#v %s", value, value, value, value)
		raw, _ := json.Marshal(value)
		if strings.Contains(printed+string(raw), secret) {
			t.Errorf("%T: %s %s", value, printed, raw)
		}
	}
	if malformed == nil || !strings.Contains(malformed.Error(), "percent-encoded") {
		t.Error(malformed)
	}
}

func TestAJobAfterOneThatIsNotThereNamesIt(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "there"}))
	after := dq.JobOptions{ID: "sum", After: []string{"there", "gone"}}
	_, one := queue.Add(ctx, 1, &after)
	_, many := queue.AddMany(ctx, []dq.NewJob{{JobOptions: dq.JobOptions{ID: "new"}}, {JobOptions: dq.JobOptions{After: []string{"new", "gone"}}}})
	for _, err := range []error{one, many} {
		if text := err.Error(); !strings.Contains(text, "After names gone, which") || !strings.Contains(text, "AddMany") {
			t.Error(text)
		}
	}
}

func TestUnblockEndsWaits(t *testing.T) {
	server := dqtest.Start(t)
	queue := server.Queue(t, "q")
	ended := make(chan int)
	go func() { ended <- len(must(queue.BPop(context.Background(), 0, nil))) }()
	blocked(t, server.Client, "1")
	var ids []int64
	for _, line := range strings.Split(must(server.Client.ClientList(t.Context()).Result()), "\n") {
		if strings.Contains(line, "cmd=dq.bpop") {
			ids = append(ids, int64(must(strconv.Atoi(strings.TrimPrefix(strings.Fields(line)[0], "id=")))))
		}
	}
	expect(t, must(queue.Unblock(t.Context(), ids...)), 1)
	expect(t, <-ended, 0)
	expect(t, must(queue.Unblock(t.Context())), 0)
}

func TestGroups(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	must(queue.Add(ctx, 1, &dq.JobOptions{Group: "acme"}))
	expect(t, must(queue.LenOfGroup(ctx, "acme")), 1)
	_, groups, err := queue.Groups(ctx, "", nil)
	expect(t, groups, []dq.Group{{Name: "acme", Waiting: 1}})
	expect(t, err, nil)
}

func TestRulesAreSaidAgainWithoutHarm(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	rule := &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "report"}, TZ: "Europe/Berlin"}
	must(queue.Cron(ctx, "0 9 * * MON-FRI", nil, rule))
	before := must(queue.Next(ctx, "report", 3))
	server.Clock.Advance(time.Minute)
	must(queue.Cron(ctx, "0 9 * * MON-FRI", nil, rule))
	expect(t, must(queue.Next(ctx, "report", 3)), before)
	must(queue.Every(ctx, time.Minute, nil, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "sync"}, Times: 2}))
	expect(t, len(must(queue.Next(ctx, "sync", 5))), 2)
	_, err := queue.Every(ctx, time.Minute, nil, nil)
	expect(t, err == nil, false)
}

func TestSettingsAndLimits(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	err := queue.Configure(ctx, dq.Settings{
		TTR: ptr(7 * time.Second), MaxLen: ptr(1), Rate: &dq.Rate{Jobs: 5, Window: time.Second},
		Backoff: []time.Duration{time.Second, time.Minute},
	})
	expect(t, err, nil)
	settings := must(queue.Settings(ctx))
	expect(t, []any{*settings.TTR, *settings.MaxLen, *settings.Rate, settings.Backoff, *settings.MaxBytes}, []any{
		7 * time.Second, 1, dq.Rate{Jobs: 5, Window: time.Second}, []time.Duration{time.Second, time.Minute}, 0,
	})
	must(queue.Add(ctx, 1, nil))
	_, err = queue.Add(ctx, 2, nil)
	expect(t, errors.Is(err, dq.ErrQueueFull), true)
	expect(t, queue.Pause(ctx, 0), nil)
	expect(t, len(must(queue.Pop(ctx, nil))), 0)
	expect(t, queue.Resume(ctx), nil)
	expect(t, must(queue.Purge(ctx, dq.All)), 1)
}

func TestARefusalNamesJobArgumentAndValue(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var said *dq.RefusedError
	_, err := queue.Cron(ctx, "0 9 * * *", 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "TZ"}, TZ: "Europe/Berln"})
	expect(t, errors.As(err, &said), true)
	expect(t, []any{said.ID, said.Argument, said.Value, said.Code, said.Said}, []any{
		"TZ", "tz", "Europe/Berln", "ERR", "TZ is not the name of a known time zone",
	})
	expect(t, err.Error(), `dq: job "TZ" of queue "q": the server refused tz="Europe/Berln": ERR TZ is not the name of a known time zone`)
	must(0, server.Client.Set(ctx, "text", 1, 0).Err())
	_, err = server.Queue(t, "text").Delete(ctx, "a", "b")
	expect(t, errors.As(err, &said), true)
	expect(t, []any{said.ID, said.Argument, said.Value, said.Code}, []any{"", "", nil, "WRONGTYPE"})
	_, err = server.Queue(t, "text").BPop(ctx, time.Second, nil)
	expect(t, errors.As(err, &said) && errors.As(err, new(redis.Error)), true)
	_, err = queue.Unblock(ctx, -1)
	expect(t, strings.HasPrefix(err.Error(), "dq: the server refused DQ.UNBLOCK: ERR "), true)
	_, err = queue.Add(ctx, 1, &dq.JobOptions{After: []string{"gone"}, TTR: time.Hour})
	expect(t, errors.As(err, &said) && said.Argument == "after" && said.Value == int64(1), true)
}

func TestShardsAreAddedUp(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 5})
	var jobs []dq.NewJob
	for range 100 {
		jobs = append(jobs, dq.NewJob{Data: 1, JobOptions: dq.JobOptions{Delay: time.Hour}})
	}
	ids := must(queue.AddMany(ctx, jobs))
	expect(t, must(queue.Len(ctx, dq.Delayed)), 100)
	expect(t, must(queue.Stats(ctx)).Totals.Added, int64(100))
	seen := map[string]bool{}
	for id, err := range queue.IDs(ctx, nil) {
		expect(t, err, nil)
		seen[id] = true
	}
	expect(t, len(seen), 100)
	now := server.Clock.Now()
	expect(t, must(queue.Forecast(ctx, now, now.Add(2*time.Hour), 2)), []int{0, 100})
	expect(t, must(queue.Reschedule(ctx, dq.RescheduleOptions{Delay: ptr(time.Duration(0))}, ids...)), 100)
	expect(t, len(must(queue.Peek(ctx, dq.Ready, &dq.PeekOptions{Count: 3}))), 15)
	expect(t, must(queue.Delete(ctx, ids[:40]...)), 40)
	expect(t, must(queue.DeleteUnreserved(ctx, ids[40:]...)), 60)
}

func TestDrainHandlesWhatIsReadyAndBecomesSo(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	var seen []int
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Do: dq.Typed(func(ctx context.Context, job *dq.Job, n int) error {
			seen = append(seen, n)
			if n < 3 {
				must(queue.Add(ctx, n+1, nil))
			}
			return nil
		}),
	}}}))
	must(queue.Add(ctx, 1, nil))
	must(queue.Add(ctx, 9, &dq.JobOptions{Delay: time.Hour}))
	expect(t, must(worker.Drain(ctx)), 3)
	server.Clock.Advance(time.Hour)
	expect(t, must(worker.Drain(ctx)), 1)
	expect(t, seen, []int{1, 2, 3, 9})
	must(queue.Add(ctx, []byte("no JSON"), &dq.JobOptions{ID: "bad"}))
	expect(t, must(worker.Drain(ctx)), 1)
	expect(t, strings.Contains(must(queue.Get(ctx, "bad")).Reason, "payload cannot be decoded"), true)
}

func TestAPanicIsAFailure(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Do: func(context.Context, *dq.Job) error { panic("no paper") }, Attempts: 1,
	}}}))
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	expect(t, must(worker.Drain(ctx)), 1)
	job := must(queue.Get(ctx, "a"))
	expect(t, []any{job.State, job.Reason}, []any{dq.Dead, "panic: no paper"})
}

func TestTwoQueuesOfOneServerShareAConnection(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	one, two := server.Queue(t, "one"), server.Queue(t, "two")
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{one, two}, Handlers: []dq.Handler{{Do: func(context.Context, *dq.Job) error { return nil }}},
	}))
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	for must(server.Client.Info(ctx, "clients").Result()); !strings.Contains(must(server.Client.Info(ctx, "clients").Result()), "blocked_clients:1\r\n"); {
		time.Sleep(time.Millisecond)
	}
	worker.Stop()
	expect(t, <-ended, nil)
	if err := worker.Run(ctx); err == nil {
		t.Error("it runs twice")
	}
}

func TestAConfigurationThatCannotWorkIsSaid(t *testing.T) {
	queue := dq.NewQueue(redis.NewClient(&redis.Options{}), "q")
	do := []dq.Handler{{Do: func(context.Context, *dq.Job) error { return nil }}}
	for _, config := range []dq.WorkerConfig{
		{}, {Handlers: do}, {Queues: []*dq.Queue{queue}}, {Queues: []*dq.Queue{queue}, Handlers: do, Concurrency: -1},
		{Queues: []*dq.Queue{queue}, Handlers: do, Weights: []float64{1, 2}},
		{Queues: []*dq.Queue{queue}, Handlers: do, Weights: []float64{0}},
	} {
		var configuration *dq.ConfigurationError
		if _, err := dq.NewWorker(config); !errors.As(err, &configuration) {
			t.Errorf("%+v: %v", config, err)
		}
	}
	if _, err := dq.Open("nonsense", "q"); err == nil {
		t.Error("a URL that is none")
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("DQ_MODULE") == "" {
		panic("DQ_MODULE: the path of libdq.so")
	}
	os.Exit(m.Run())
}

func TestMistakesAreSaidBeforeAnythingIsSent(t *testing.T) {
	ctx := t.Context()
	queue := must(dq.Open("redis://127.0.0.1:1", "q"))
	defer queue.Close()
	sharded := dq.NewQueue(queue.Client(), "q", dq.QueueOptions{Shards: 3})
	add := func(options dq.JobOptions) error { _, err := queue.Add(ctx, 1, &options); return err }
	recurring := &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "a"}}
	nothing := func(context.Context, *dq.Job) error { return nil }
	for said, mistake := range map[string]func() error{
		"delay: 6311390400000 ms is not between 0 and 4398046511103":     func() error { return add(dq.JobOptions{Delay: 6311390400 * time.Second}) },
		"priority: 2147483648 is not between -2147483648 and 2147483647": func() error { return add(dq.JobOptions{Priority: 1 << 31}) },
		"group: 257 bytes is not between 1 and 256":                      func() error { return add(dq.JobOptions{Group: strings.Repeat("g", 257)}) },
		`id: "*" is not an id; leave it out for a new one`:               func() error { return add(dq.JobOptions{ID: "*"}) },
		"takes neither Delay nor At nor IfExists": func() error {
			_, err := queue.Every(ctx, time.Second, 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "r", Delay: time.Second}})
			return err
		},
		"delay: -5000 ms is not between 0 and 4398046511103":   func() error { return add(dq.JobOptions{Delay: -5 * time.Second}) },
		"ttr: -1000 ms is not between 1 and 4398046511103":     func() error { return add(dq.JobOptions{TTR: -time.Second}) },
		"ttl: -1000 ms is not between 1 and 4398046511103":     func() error { return add(dq.JobOptions{TTL: -time.Second}) },
		"backoff: -2000 ms is not between 0 and 4398046511103": func() error { return add(dq.JobOptions{Backoff: []time.Duration{-2 * time.Second}}) },
		"Delay or At, not both":                                func() error { return add(dq.JobOptions{Delay: 1, At: time.Now()}) },
		"delay: -3000 ms is not between 0 and 4398046511103": func() error {
			_, err := queue.AddMany(ctx, []dq.NewJob{{Data: 1}, {Data: 2, JobOptions: dq.JobOptions{Delay: -3 * time.Second}}})
			return err
		},
		"interval: -1000 ms is not between 1 and 4398046511103": func() error { _, err := queue.Every(ctx, -time.Second, 1, recurring); return err },
		"the jobs of rate: -1 is not between 0 and 4294967295":  func() error { return queue.Configure(ctx, dq.Settings{Rate: &dq.Rate{Jobs: -1, Window: time.Second}}) },
		"count: 0 is not between 1 and":                         func() error { _, err := queue.KickOldest(ctx, 0); return err },
		"a recurring job needs an id":                           func() error { _, err := queue.Cron(ctx, "0 9 * * *", 1, nil); return err },
		"Reschedule needs a new Delay, At or Priority": func() error {
			_, err := queue.Reschedule(ctx, dq.RescheduleOptions{}, "a")
			return err
		},
		"delay: -1000 ms is not between 0 and 4398046511103": func() error {
			_, err := queue.Reschedule(ctx, dq.RescheduleOptions{Delay: ptr(-time.Second)}, "a")
			return err
		},
		"delay: -4000 ms is not between 0 and 4398046511103": func() error {
			_, err := queue.Nack(ctx, "a", "1", &dq.NackOptions{Delay: ptr(-4 * time.Second)})
			return err
		},
		"timeout: -1000 ms is not between 0 and 4398046511103":            func() error { _, err := queue.BPop(ctx, -time.Second, nil); return err },
		"a pause: -1000 ms is not between 0 and 4398046511103":            func() error { return sharded.Pause(ctx, -time.Second) },
		"dedupe: -1000 ms is not between 0 and 4398046511103":             func() error { return queue.Configure(ctx, dq.Settings{Dedupe: ptr(-time.Second)}) },
		"the window of rate: -1000 ms is not between 0 and 4398046511103": func() error { return queue.Configure(ctx, dq.Settings{Rate: &dq.Rate{Jobs: 1, Window: -time.Second}}) },
		"Queues[0] is nil": func() error {
			_, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{nil}, Handlers: []dq.Handler{{Do: nothing}}})
			return err
		},
		"backoff: -1000 ms is not between 0 and 4398046511103": func() error {
			handler := dq.Handler{Do: nothing, Backoff: []time.Duration{-time.Second}}
			_, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{handler}})
			return err
		},
	} {
		err := mistake()
		var found *dq.ConfigurationError
		if !errors.As(err, &found) || !strings.Contains(err.Error(), said) {
			t.Errorf("%v, want %s", err, said)
		}
	}
}
