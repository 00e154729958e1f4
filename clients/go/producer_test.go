package dq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// twice sends each ADD again, as go-redis does when an answer is lost.
type twice struct{}

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }

func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if command.Name() == "dq.add" {
			_ = next(ctx, command)
		}
		return next(ctx, command)
	}
}

func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		_ = next(ctx, commands)
		return next(ctx, commands)
	}
}

func TestAnAddThatIsSentTwiceAddsOneJob(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	client := redis.NewClient(server.Client.Options())
	defer client.Close()
	client.AddHook(twice{})
	queue := dq.NewQueue(client, "q")
	ids := []string{must(queue.Add(ctx, 1, nil)), must(queue.Add(ctx, 1, &dq.JobOptions{IfExists: dq.RunAgain}))}
	ids = append(ids, must(queue.AddMany(ctx, []dq.NewJob{{Data: 1}, {Data: 2}}))...)
	expect(t, must(queue.Len(ctx, dq.All)), 4)
	for _, id := range ids {
		expect(t, must(queue.Get(ctx, id)).ID, id)
	}
	for refused, options := range map[error]dq.JobOptions{dq.ErrExists: {ID: "mine"}, dq.ErrNotFound: {IfExists: dq.OnlyReplace}} {
		id, err := queue.Add(ctx, 1, &options)
		expect(t, []any{id, err}, []any{"", refused})
	}
}

func TestIDsGrowWithTime(t *testing.T) {
	queue := dqtest.Start(t).Queue(t, "q")
	before := must(queue.Add(t.Context(), 1, nil))
	for range 20 {
		time.Sleep(time.Millisecond)
		id := must(queue.Add(t.Context(), 1, nil))
		if len(id) != 32 || id <= before {
			t.Fatalf("%s after %s", id, before)
		}
		before = id
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	sharded := dq.NewQueue(server.Client, "s", dq.QueueOptions{Shards: 3})
	for name, look := range map[string]func() error{
		"Get":      func() error { _, err := queue.Get(ctx, "a"); return err },
		"Next":     func() error { _, err := queue.Next(ctx, "a", 1); return err },
		"Stats":    func() error { _, err := queue.Stats(ctx); return err },
		"Settings": func() error { _, err := queue.Settings(ctx); return err },
		"shards":   func() error { _, err := sharded.Stats(ctx); return err },
	} {
		if err := look(); !errors.Is(err, dq.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatsHaveAllFields(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 2})
	for range 20 {
		must(queue.Add(ctx, 1, &dq.JobOptions{Group: "g"}))
	}
	must(queue.Every(ctx, time.Minute, 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "r"}}))
	expect(t, len(must(queue.Pop(ctx, nil))), 2)
	expect(t, queue.Pause(ctx, time.Hour), nil)
	stats := must(queue.Stats(ctx))
	expect(t, []any{stats.Ready, stats.Reserved, stats.Delayed, stats.Recurring, stats.Groups, stats.Totals.Added, stats.Totals.Delivered},
		[]any{18, 2, 1, 1, 2, int64(21), int64(2)})
	expect(t, []any{stats.Paused, stats.PausedUntil, stats.LatenessCount}, []any{true, server.Clock.Now().Add(time.Hour), int64(2)})
	if stats.Bytes < 21 || len(stats.LatenessBuckets) == 0 || len(stats.Other) != 0 {
		t.Errorf("%+v", stats)
	}
	expect(t, queue.Pause(ctx, 0), nil)
	stats = must(queue.Stats(ctx))
	expect(t, []any{stats.Paused, stats.PausedUntil.IsZero()}, []any{true, true})
}

func TestARuleIsReadAsItWasGiven(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	until := server.Clock.Now().Add(365 * 24 * time.Hour)
	must(queue.Cron(ctx, "0 9 * * *", 1, &dq.RuleOptions{
		JobOptions: dq.JobOptions{ID: "report"}, TZ: "Europe/Berlin", Until: until, Times: 5, Grace: time.Hour, Jitter: time.Second,
	}))
	job := must(queue.Get(ctx, "report"))
	occurrence := job.Rule.Occurrence
	if occurrence.IsZero() || job.Due.Before(occurrence) || job.Due.After(occurrence.Add(time.Second)) {
		t.Error(occurrence, job.Due)
	}
	expect(t, *job.Rule, dq.Rule{
		Cron: "0 9 * * *", TZ: "Europe/Berlin", Until: until, Times: 5, Grace: time.Hour, Jitter: time.Second, Occurrence: occurrence,
	})
	must(queue.Every(ctx, time.Minute, 1, &dq.RuleOptions{JobOptions: dq.JobOptions{ID: "sync"}}))
	expect(t, must(queue.Get(ctx, "sync")).Rule.Every, time.Minute)
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "plain"}))
	expect(t, must(queue.Get(ctx, "plain")).Rule == nil, true)
}

func TestManyAreAcknowledgedAtOnce(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 3})
	for range 30 {
		must(queue.Add(ctx, 1, nil))
	}
	tokens := map[string]string{"unknown": "17"}
	for _, job := range must(queue.Pop(ctx, &dq.PopOptions{Count: 30})) {
		tokens[job.ID] = job.Token
	}
	expect(t, must(queue.AckMany(ctx, tokens)), 30)
	expect(t, must(queue.AckMany(ctx, nil)), 0)
}

// --- Contexts

// silent is the address of a server that never answers.
func silent(t *testing.T) string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestACallLastsAsLongAsItsContext(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: silent(t), ReadTimeout: -1, MaxRetries: -1}) // it would wait for ever
	for name, call := range map[string]func(context.Context, *dq.Queue) error{
		"Add": func(ctx context.Context, q *dq.Queue) error { _, err := q.Add(ctx, 1, nil); return err },
		"AddMany": func(ctx context.Context, q *dq.Queue) error {
			_, err := q.AddMany(ctx, []dq.NewJob{{}, {}})
			return err
		},
		"BPop":  func(ctx context.Context, q *dq.Queue) error { _, err := q.BPop(ctx, 0, nil); return err },
		"Stats": func(ctx context.Context, q *dq.Queue) error { _, err := q.Stats(ctx); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := call(ctx, dq.NewQueue(client, "q")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if err := call(ctx, dq.NewQueue(client, "q")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, over before: %v", name, err)
		}
	}
}

func blocked(t *testing.T, client *redis.Client, count string) {
	for !strings.Contains(must(client.Info(context.Background(), "clients").Result()), "blocked_clients:"+count+"\r\n") {
		if t.Context().Err() != nil {
			t.Fatal("not blocked")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAWaitThatIsCancelledTakesNoJobAlong(t *testing.T) {
	server := dqtest.Start(t)
	queue := server.Queue(t, "q")
	for n := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int)
		go func() {
			found, err := queue.BPop(ctx, 0, nil)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			ended <- len(found)
		}()
		blocked(t, server.Client, "1")
		if n%2 == 0 { // at the same time as the job
			go must(queue.Add(t.Context(), 1, nil))
		}
		cancel()
		popped := <-ended
		blocked(t, server.Client, "0")
		if n%2 == 1 {
			must(queue.Add(t.Context(), 1, nil))
		}
		for popped == 0 && must(queue.Len(t.Context(), dq.Ready)) == 0 {
			time.Sleep(time.Millisecond)
		}
		must(queue.Purge(t.Context(), dq.All))
	}
}

func TestAWaitEndsWithTheDeadlineOfItsContext(t *testing.T) {
	server := dqtest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := server.Queue(t, "q").BPop(ctx, time.Hour, nil)
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	blocked(t, server.Client, "0")
}

// --- Hooks and codecs

type panickyCodec struct{}

func (panickyCodec) Encode(any) ([]byte, error) { panic("no encoder") }
func (panickyCodec) Decode([]byte, any) error   { runtime.Goexit(); return nil }

func TestAHookThatFailsChangesNothing(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Hooks: []dq.Hooks{
		{Adding: func(_ context.Context, _ string, headers map[string]string) { headers["a"] = "1" }},
		{Adding: func(_ context.Context, _ string, headers map[string]string) { headers["a"] = "2"; panic("no") }},
		{Adding: func(_ context.Context, _ string, headers map[string]string) { clear(headers); runtime.Goexit() }},
	}})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	expect(t, string(must(queue.Get(ctx, "a")).Payload), `{"dq":1,"data":1,"headers":{"a":"1"}}`)
	if said := log.String(); !strings.Contains(said, "panic: no") || !strings.Contains(said, "it ended its goroutine") {
		t.Error(said)
	}
}

func TestWhatCannotBeEncodedIsAnError(t *testing.T) {
	ctx := t.Context()
	queue := dq.NewQueue(redis.NewClient(&redis.Options{Addr: silent(t)}), "q")
	for _, data := range []any{math.NaN(), math.Inf(1), map[string]any{"a": math.Inf(-1)}, make(chan int), bad{}} {
		for _, kind := range []string{"", "kind"} {
			if _, err := queue.Add(ctx, data, &dq.JobOptions{Kind: kind}); err == nil {
				t.Errorf("%T is added", data)
			}
		}
	}
	_, err := dq.NewQueue(queue.Client(), "q", dq.QueueOptions{Codec: panickyCodec{}}).Add(ctx, 1, nil)
	expect(t, err.Error(), "panic: no encoder")
}

type bad struct{}

func (bad) MarshalJSON() ([]byte, error) { return []byte("NaN"), nil }
