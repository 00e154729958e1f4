// The probe of the behaviour suite (clients/suite/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

type fields = map[string]any

var (
	writing sync.Mutex
	runs    = map[string]int{}
)

func emit(event string, more fields) {
	out := fields{"event": event}
	for name, value := range more {
		out[name] = value
	}
	line, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// --- Handlers

type script struct {
	Do      string `json:"do"`
	Ms      int64  `json:"ms"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Times   int    `json:"times"`
	N       int    `json:"n"`
}

func announce(jobs []*dq.Job) {
	for _, job := range jobs {
		writing.Lock()
		runs[job.ID]++
		writing.Unlock()
		var kind any
		if job.Kind() != "" {
			kind = job.Kind()
		}
		headers := job.Headers()
		if headers == nil {
			headers = map[string]string{}
		}
		emit("started", fields{
			"job": job.ID, "queue": job.Queue, "attempt": job.Attempt, "kind": kind, "headers": headers,
			"payload": base64.StdEncoding.EncodeToString(job.Payload), "due": job.Due.UnixMilli(), "batch": len(jobs),
		})
	}
}

func scriptOf(job *dq.Job) (script, error) {
	var data any
	var todo script
	if err := job.Decode(&data); err != nil {
		return todo, err
	}
	if _, isObject := data.(map[string]any); isObject {
		_ = job.Decode(&todo) // any other object succeeds
	}
	writing.Lock()
	defer writing.Unlock()
	if todo.Times > 0 && runs[job.ID] > todo.Times {
		return script{}, nil
	}
	return todo, nil
}

func work(ctx context.Context, job *dq.Job) error {
	todo, err := scriptOf(job)
	if err != nil {
		return err
	}
	duration := time.Duration(todo.Ms) * time.Millisecond
	switch todo.Do {
	case "sleep":
		select {
		case <-time.After(duration):
		case <-ctx.Done():
			why := "stopping"
			if errors.Is(context.Cause(ctx), dq.ErrLost) {
				why = "lost"
			}
			emit("told", fields{"job": job.ID, "why": why})
			return ctx.Err()
		}
	case "stubborn":
		time.Sleep(duration)
	case "hang":
		select {}
	case "throw":
		return errors.New(todo.Message)
	case "retry":
		return dq.RetryIn(duration, reasonOf(todo))
	case "snooze":
		return dq.Snooze(duration)
	case "give_up":
		return dq.GiveUp(reasonOf(todo))
	case "hostile":
		return hostile[todo.N%len(hostile)](job)
	case "exit":
		os.Exit(3)
	case "fork":
		return exec.Command("sleep", "2").Start()
	case "quit_thread":
		runtime.Goexit()
	}
	return nil
}

func reasonOf(todo script) error {
	if todo.Reason == "" {
		return nil
	}
	return errors.New(todo.Reason)
}

func handle(ctx context.Context, job *dq.Job) error {
	announce([]*dq.Job{job})
	defer emit("ended", fields{"job": job.ID})
	return work(ctx, job)
}

func handleBatch(ctx context.Context, jobs []*dq.Job) error {
	announce(jobs)
	for _, job := range jobs {
		if err := work(ctx, job); err != nil {
			job.Fail(err)
		}
	}
	return nil
}

var reports = dq.Hooks{
	Before: func(ctx context.Context, job *dq.Job) context.Context {
		emit("before", fields{"job": job.ID})
		return ctx
	},
	After: func(_ context.Context, job *dq.Job) { emit("after", fields{"job": job.ID}) },
	Failed: func(_ context.Context, job *dq.Job, err error) {
		emit("failed", fields{"job": job.ID, "error": fmt.Sprintf("%T", err)})
	},
	Lost: func(job *dq.Job) { emit("lost", fields{"job": job.ID}) },
}

// --- Orders

type handlerOrder struct {
	Kind      string  `json:"kind"`
	Attempts  int     `json:"attempts"`
	BackoffMs []int64 `json:"backoff_ms"`
	LeaseMs   int64   `json:"lease_ms"`
	Batch     int     `json:"batch"`
}

type order struct {
	Do          string
	Queue       string
	URL         string
	Cluster     string
	Sentinels   []string
	Master      string
	Name        string
	Shards      int
	Queues      []string
	Weights     []float64
	Concurrency int
	Prefetch    int
	DrainMs     *int64 `json:"drain_ms"`
	WaitMs      int64  `json:"wait_ms"`
	LeaseMs     int64  `json:"lease_ms"`
	Hooks       any
	Own         bool
	Handlers    []handlerOrder
	Method      string
	Args        json.RawMessage
	Data        json.RawMessage
	Kind        string
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func handlers(given []handlerOrder) []dq.Handler {
	if len(given) == 0 {
		given = []handlerOrder{{}}
	}
	var made []dq.Handler
	for _, each := range given {
		handler := dq.Handler{Do: handle, Kind: each.Kind, Attempts: each.Attempts, Lease: duration(each.LeaseMs)}
		for _, ms := range each.BackoffMs {
			handler.Backoff = append(handler.Backoff, duration(ms))
		}
		if each.Batch > 0 {
			handler.Do, handler.DoBatch, handler.Batch = nil, handleBatch, each.Batch
		}
		made = append(made, handler)
	}
	return made
}

type probe struct {
	queues map[string]*dq.Queue
	worker *dq.Worker
}

func (p *probe) queue(o order) error {
	options := dq.QueueOptions{Shards: o.Shards}
	switch {
	case o.Cluster != "":
		parsed, err := redis.ParseClusterURL(o.Cluster)
		if err != nil {
			return err
		}
		p.queues[o.Queue] = dq.NewQueue(redis.NewClusterClient(parsed), o.Name, options)
	case len(o.Sentinels) > 0:
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: o.Master, SentinelAddrs: o.Sentinels})
		p.queues[o.Queue] = dq.NewQueue(client, o.Name, options)
	case o.Own:
		parsed, err := redis.ParseURL(o.URL)
		if err != nil {
			return err
		}
		p.queues[o.Queue] = dq.NewQueue(redis.NewClient(parsed), o.Name, options)
	default:
		queue, err := dq.Open(o.URL, o.Name, options)
		if err != nil {
			return err
		}
		p.queues[o.Queue] = queue
	}
	emit("made", nil)
	return nil
}

func (p *probe) start(ctx context.Context, o order) error {
	config := dq.WorkerConfig{
		Weights: o.Weights, Handlers: handlers(o.Handlers), Concurrency: o.Concurrency, Prefetch: o.Prefetch,
		Wait: duration(o.WaitMs), Lease: duration(o.LeaseMs),
	}
	if o.DrainMs != nil {
		if config.Drain = duration(*o.DrainMs); config.Drain == 0 {
			config.Drain = -1
		}
	}
	switch o.Hooks {
	case true:
		config.Hooks = []dq.Hooks{reports}
	case "hostile":
		config.Hooks = []dq.Hooks{rudeHooks}
	}
	for _, name := range o.Queues {
		config.Queues = append(config.Queues, p.queues[name])
	}
	worker, err := dq.NewWorker(config)
	if err != nil {
		return err
	}
	p.worker = worker
	emit("running", nil)
	go func() {
		if err := worker.Run(ctx); err != nil {
			emit("error", fields{"type": fmt.Sprintf("%T", err), "message": err.Error()})
		}
		emit("stopped", nil)
		if ctx.Err() != nil {
			os.Exit(0)
		}
	}()
	return nil
}

func (p *probe) obey(ctx context.Context, o order) error {
	switch o.Do {
	case "queue":
		return p.queue(o)
	case "worker":
		return p.start(ctx, o)
	case "stop":
		p.worker.Stop()
	case "inline":
		queue, err := dq.NewInlineQueue("inline", handlers(o.Handlers)...)
		if err != nil {
			return err
		}
		if _, err := queue.Add(ctx, o.Data, &dq.JobOptions{Kind: o.Kind}); err != nil {
			return err
		}
		emit("answer", fields{"value": nil})
	case "call":
		value, err := call(ctx, p.queues[o.Queue], o.Method, o.Args)
		if err != nil {
			return err
		}
		emit("answer", fields{"value": value})
	}
	return nil
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	emit("ready", fields{"language": "go", "version": runtime.Version()})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := &probe{queues: map[string]*dq.Queue{}}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var o order
		if err = json.Unmarshal(line, &o); err == nil {
			err = p.obey(ctx, o)
		}
		if err != nil {
			emit("refused", fields{"error": err.Error()})
		}
	}
}
