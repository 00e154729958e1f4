package dq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/quick"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// --- Errors of users

type fields struct{ code int }

func (e *fields) Error() string { return fmt.Sprint(e.code) }

type panicking struct{ value any }

func (e panicking) Error() string { panic(e.value) }

type exiting struct{}

func (exiting) Error() string  { runtime.Goexit(); return "" }
func (exiting) String() string { runtime.Goexit(); return "" }
func (exiting) Unwrap() error  { runtime.Goexit(); return nil }

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }

type leaving struct{}

func (leaving) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

type circle struct{ text string }

func (e *circle) Error() string { return e.text }
func (e *circle) Unwrap() error { return e }

type many []error // it cannot be compared

func (e many) Error() string   { return "many" }
func (e many) Unwrap() []error { return e }

type liar struct{ error }

func (liar) Is(error) bool { panic("Is") }
func (liar) As(any) bool   { panic("As") }
func (liar) Unwrap() error { panic("Unwrap") }

var endless = []any{nil}

func init() { endless[0] = endless }

var (
	noFields *fields
	plain    = errors.New("plain")
	nothing  = map[string]int(nil)
)

// hostilities are what a handler may return, or do instead.
var hostilities = map[string]func(job *dq.Job) error{
	"a typed nil":        func(*dq.Job) error { return noFields },
	"retry, typed nil":   func(*dq.Job) error { return dq.RetryIn(time.Second, noFields) },
	"give up, typed nil": func(*dq.Job) error { return dq.GiveUp(noFields) },
	"no retry":           func(*dq.Job) error { return (*dq.RetryError)(nil) },
	"no snooze":          func(*dq.Job) error { return (*dq.SnoozeError)(nil) },
	"no giving up":       func(*dq.Job) error { return (*dq.GiveUpError)(nil) },
	"no decoding":        func(*dq.Job) error { return (*dq.PayloadError)(nil) },
	"no panic":           func(*dq.Job) error { return (*dq.PanicError)(nil) },
	"empty errors": func(*dq.Job) error {
		return errors.Join(&dq.PayloadError{}, &dq.PanicError{}, &dq.ConfigurationError{})
	},
	"a text that panics":         func(*dq.Job) error { return panicking{"boom"} },
	"a text that panics so":      func(*dq.Job) error { return panicking{panicking{"boom"}} },
	"a text that panics nil":     func(*dq.Job) error { return dq.RetryIn(time.Minute, panicking{nil}) },
	"a text that panics round":   func(*dq.Job) error { return dq.GiveUp(panicking{endless}) },
	"a text that exits":          func(*dq.Job) error { return exiting{} },
	"give up, a text that exits": func(*dq.Job) error { return dq.GiveUp(exiting{}) },
	"a long text":                func(*dq.Job) error { return errors.New(strings.Repeat("\xff", 1<<22)) },
	"no text":                    func(*dq.Job) error { return errors.New("\x00\r\n") },
	"a circle":                   func(*dq.Job) error { return &circle{"round"} },
	"many":                       func(*dq.Job) error { return many{nil, noFields, many{}, exiting{}, &circle{}} },
	"many to retry":              func(*dq.Job) error { return many{nil, dq.RetryIn(time.Second, many{})} },
	"a liar":                     func(*dq.Job) error { return liar{plain} },
	"a wrapped liar":             func(*dq.Job) error { return fmt.Errorf("%w, %w", liar{plain}, dq.Snooze(-1)) },
	"a negative wait":            func(*dq.Job) error { return dq.RetryIn(-time.Hour, plain) },
	"the least wait":             func(*dq.Job) error { return dq.RetryIn(math.MinInt64, plain) },
	"the longest wait":           func(*dq.Job) error { return dq.RetryIn(math.MaxInt64, plain) },
	"a century":                  func(*dq.Job) error { return dq.RetryIn(100*365*24*time.Hour, plain) },
	"a negative snooze":          func(*dq.Job) error { return dq.Snooze(-1) },
	"the least snooze":           func(*dq.Job) error { return dq.Snooze(math.MinInt64) },
	"the longest snooze":         func(*dq.Job) error { return dq.Snooze(math.MaxInt64) },
	"a snooze of bytes":          func(*dq.Job) error { return &dq.SnoozeError{Delay: time.Hour, Reason: "\xff\x00"} },
	"a long snooze":              func(*dq.Job) error { return &dq.SnoozeError{Reason: strings.Repeat("x", 1<<20)} },
	"a panic":                    func(*dq.Job) error { panic("boom") },
	"a panic of nil":             func(*dq.Job) error { panic(nil) }, //nolint:govet // that is the point
	"a panic of an error":        func(*dq.Job) error { panic(noFields) },
	"a panic of what exits":      func(*dq.Job) error { panic(exiting{}) },
	"a panic that panics":        func(*dq.Job) error { panic(panicking{panicking{1}}) },
	"a panic that goes round":    func(*dq.Job) error { panic(endless) },
	"a panic of a function":      func(*dq.Job) error { panic(func() {}) },
	"a panic in a panic":         func(*dq.Job) error { defer func() { panic("two") }(); panic("one") },
	"a fault":                    func(*dq.Job) error { nothing["a"] = 1; return nil },
	"an exit":                    func(*dq.Job) error { runtime.Goexit(); return nil },
	"an exit in a panic":         func(*dq.Job) error { defer runtime.Goexit(); panic("one") },
	"fail, typed nil":            func(job *dq.Job) error { job.Fail(noFields); return nil },
	"fail, what exits":           func(job *dq.Job) error { job.Fail(exiting{}); return plain },
	"a result that panics":       func(job *dq.Job) error { job.Succeed(explosive{}); return nil },
	"a result that exits":        func(job *dq.Job) error { job.Succeed(leaving{}); return nil },
	"a result without end":       func(job *dq.Job) error { job.Succeed(endless); return nil },
	"a function as result":       func(job *dq.Job) error { job.Succeed(func() {}); return plain },
	"progress that is none":      func(job *dq.Job) error { return job.Progress(math.NaN(), "\xff") },
	"progress, much":             func(job *dq.Job) error { return job.Progress(1, strings.Repeat("\xff", 1<<12)) },
	"a sleep that is swallowed":  func(job *dq.Job) error { _ = job.Sleep("nap", time.Hour); panic("boom") },
	"the longest sleep":          func(job *dq.Job) error { return job.Sleep("nap", math.MaxInt64) },
	"a wait for itself":          func(job *dq.Job) error { _, err := job.WaitFor(context.Background(), []string{job.ID}); return err },
	"a step that panics": func(job *dq.Job) error {
		_, err := dq.Step(context.Background(), job, "a", func(context.Context) (int, error) { panic("boom") })
		return err
	},
	"a step of what exits": func(job *dq.Job) error {
		_, err := dq.Step(context.Background(), job, "a", func(context.Context) (leaving, error) { return leaving{}, nil })
		return err
	},
	"another job": func(job *dq.Job) error { *job = dq.Job{}; job.Fail(plain); return nil }, //nolint:govet // so too
	"another token": func(job *dq.Job) error {
		job.ID, job.Queue, job.Token, job.Payload = "", "\xff", "x", nil
		return plain
	},
	"another job to decode": func(*dq.Job) error { return (&dq.Job{Payload: []byte("{")}).Decode(new(int)) },
	"nowhere to decode to":  func(job *dq.Job) error { return job.Decode(nil) },
	"success":               func(*dq.Job) error { return nil },
}

func names() []string {
	var all []string
	for name := range hostilities {
		all = append(all, name)
	}
	return all
}

// scene says who misbehaves, and how, in one round.
type scene struct{ Handler, Batch, Before, After, Failed, Lost, Log, Adding, Around, Rule string }

func (scene) Generate(random *rand.Rand, _ int) reflect.Value {
	all := names()
	one := func() string { return all[random.Intn(len(all))] }
	return reflect.ValueOf(scene{one(), one(), one(), one(), one(), one(), one(), one(), one(), one()})
}

// theatre is a worker with a user's code around it.
type theatre struct {
	t      *testing.T
	queue  *dq.Queue
	played atomic.Pointer[scene]
	good   atomic.Int64
	said   chatter
	begun  sync.Map
}

// chatter is a logger that misbehaves, and remembers.
type chatter struct {
	slog.Handler
	misbehave func()
}

func (c *chatter) Handle(ctx context.Context, record slog.Record) error {
	_ = c.Handler.Handle(ctx, record)
	c.misbehave()
	return nil
}

func (t *theatre) misbehave(name string, job *dq.Job) error {
	_, _ = job.Kind(), job.Headers()
	return hostilities[name](job)
}

func (t *theatre) handle(_ context.Context, job *dq.Job) error {
	if _, isHostile := job.Headers()["hostile"]; !isHostile {
		t.good.Add(1)
		return nil
	}
	if strings.HasPrefix(job.ID, "stolen") {
		must(t.queue.Delete(context.Background(), job.ID))
	}
	t.begun.Store(job.ID, true)
	return t.misbehave(t.played.Load().Handler, job)
}

func (t *theatre) batch(_ context.Context, jobs []*dq.Job) error {
	for _, job := range jobs {
		t.begun.Store(job.ID, true)
	}
	played, first := t.played.Load(), jobs[0]
	clear(jobs)
	return t.misbehave(played.Batch, first)
}

// around misbehaves instead of the handler, or behind it.
func (t *theatre) around(ctx context.Context, jobs []*dq.Job, next func(context.Context) error) error {
	job := jobs[0]
	if _, isHostile := job.Headers()["hostile"]; !isHostile {
		return next(ctx)
	}
	t.begun.Store(job.ID, true)
	if t.played.Load().Around == "success" {
		return next(ctx)
	}
	return t.misbehave(t.played.Load().Around, job)
}

// isFinal misbehaves, and answers no.
func (t *theatre) isFinal(error) bool {
	_ = t.misbehave(t.played.Load().Rule, &dq.Job{})
	return false
}

func (t *theatre) hooks() dq.Hooks {
	return dq.Hooks{
		Adding: func(context.Context, string, map[string]string) { _ = t.misbehave(t.played.Load().Adding, &dq.Job{}) },
		Before: func(ctx context.Context, job *dq.Job) context.Context {
			if t.misbehave(t.played.Load().Before, &dq.Job{ID: job.ID}) == nil {
				return ctx
			}
			return nil
		},
		After:     func(_ context.Context, job *dq.Job) { _ = t.misbehave(t.played.Load().After, job) },
		Failed:    func(_ context.Context, job *dq.Job, _ error) { _ = t.misbehave(t.played.Load().Failed, job) },
		Suspended: func(_ context.Context, job *dq.Job) { _ = t.misbehave(t.played.Load().Failed, job) },
		Lost:      func(job *dq.Job) { _ = t.misbehave(t.played.Load().Lost, job) },
	}
}

func newTheatre(t *testing.T, url string) *theatre {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // where a queue's hooks are reported
	t.Cleanup(func() { slog.SetDefault(before) })
	made := &theatre{t: t}
	made.played.Store(&scene{Adding: "success"})
	made.queue = must(dq.Open(url, "q", dq.QueueOptions{Hooks: []dq.Hooks{made.hooks()}}))
	var sink bytes.Buffer
	made.said = chatter{slog.NewTextHandler(&sink, nil), func() { _ = made.misbehave(made.played.Load().Log, &dq.Job{}) }}
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{made.queue}, Concurrency: 3, Hooks: []dq.Hooks{made.hooks()}, Logger: slog.New(&made.said),
		Around:   []dq.Around{made.around},
		Handlers: []dq.Handler{{Do: made.handle, GiveUpOn: made.isFinal}, {Kind: "batch", DoBatch: made.batch, Batch: 10}},
	}))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	t.Cleanup(func() {
		worker.Stop()
		expect(t, <-ended, nil)
		_ = made.queue.Close()
	})
	return made
}

// play has hostile jobs worked on, then a hundred good ones.
func (t *theatre) play(played scene) bool {
	ctx := context.Background()
	t.played.Store(&played)
	ids := []string{"bad", "stolen", "batch"}
	for _, id := range ids {
		t.begun.Delete(id)
		options := &dq.JobOptions{ID: id, Headers: map[string]string{"hostile": "1"}}
		if id == "batch" {
			options.Kind = id
		}
		must(t.queue.Add(ctx, 1, options))
	}
	for _, id := range ids {
		t.await(played, id+" begins", func() bool { _, has := t.begun.Load(id); return has })
	}
	t.await(played, "all of them end", func() bool { return must(t.queue.Len(ctx, dq.Leased)) == 0 })
	before := t.good.Load()
	many := make([]dq.NewJob, 100)
	must(t.queue.AddMany(ctx, many))
	t.await(played, "100 good jobs are done", func() bool { return t.good.Load() == before+100 })
	t.await(played, "all of them end", func() bool { return must(t.queue.Len(ctx, dq.Leased)) == 0 })
	must(t.queue.Purge(ctx, dq.All))
	return !t.t.Failed()
}

func (t *theatre) await(played scene, what string, is func() bool) {
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.t.Fatalf("not: %s; %+v", what, played)
		}
	}
}

func TestNothingThatCodeOfUsersDoesStopsAWorker(t *testing.T) {
	made := newTheatre(t, dqtest.Start(t).URL)
	for name := range hostilities {
		if !made.play(scene{name, name, name, name, name, name, name, name, "success", name}) {
			t.Fatal(name)
		}
	}
	if err := quick.Check(made.play, &quick.Config{MaxCount: 30}); err != nil {
		t.Error(err)
	}
}

const unguarded = "DQ_UNGUARDED"

// In a process of its own for each place: a panic ends it.
func TestCanaryOfWhatCodeOfUsersDoes(t *testing.T) {
	server := dqtest.Start(t)
	for at := range reflect.TypeFor[scene]().NumField() {
		place := reflect.TypeFor[scene]().Field(at).Name
		command := exec.Command(os.Args[0], "-test.run", "^TestWithoutTheGuard$", "-test.timeout", "50s")
		command.Env = append(os.Environ(), unguarded+"="+place, "DQ_URL="+server.URL)
		said, err := command.CombinedOutput()
		if err == nil || !bytes.Contains(said, []byte("panic: boom")) {
			t.Errorf("%s: %v, without the guard\n%s", place, err, said)
		}
		must(server.Client.FlushAll(t.Context()).Result())
	}
}

func TestWithoutTheGuard(t *testing.T) {
	place := os.Getenv(unguarded)
	if place == "" {
		t.Skip("for the canary")
	}
	dq.WithoutGuard()
	played := scene{"success", "success", "success", "success", "success", "success", "success", "success", "success", "success"}
	if place == "Failed" || place == "Rule" {
		played.Handler = "no text"
	}
	reflect.ValueOf(&played).Elem().FieldByName(place).SetString("a panic")
	newTheatre(t, os.Getenv("DQ_URL")).play(played)
}
