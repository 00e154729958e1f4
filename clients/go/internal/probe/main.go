// The probe of the behaviour suite (clients/suite/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/internal/idle"
)

type handlerOrder struct {
	Kind      string     `json:"kind"`
	Attempts  int        `json:"attempts"`
	BackoffMs []int64    `json:"backoff_ms"`
	Cron      string     `json:"cron"`
	TZ        string     `json:"tz"`
	EveryMs   int64      `json:"every_ms"`
	LeaseMs   int64      `json:"lease_ms"`
	Batch     int        `json:"batch"`
	Fill      []int64    `json:"fill"`
	TimeoutMs int64      `json:"timeout_ms"`
	RetryOn   errorTypes `json:"retry_on"`
	GiveUpOn  errorTypes `json:"give_up_on"`
}

// errorTypes are names of the probe's types of errors.
type errorTypes []string

func (names errorTypes) rule() func(error) bool {
	if names == nil {
		return nil
	}
	return func(err error) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return name == "Flaky" && dq.ErrorAs[*flaky]()(err) || name == "Broken" && dq.ErrorAs[*broken]()(err)
		})
	}
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
	IdleMs      int64  `json:"idle_ms"`
	Hooks       any
	Dead        bool
	Around      any
	Tag         string
	Own         bool
	Handlers    []handlerOrder
	Method      string
	Args        json.RawMessage
	Data        json.RawMessage
	Kind        string
}

func handlers(given []handlerOrder) []dq.Handler {
	if len(given) == 0 {
		given = []handlerOrder{{}}
	}
	var made []dq.Handler
	for _, each := range given {
		handler := dq.Handler{Do: handle, Kind: each.Kind, Attempts: each.Attempts, Lease: duration(each.LeaseMs)}
		handler.Timeout, handler.RetryOn, handler.GiveUpOn = duration(each.TimeoutMs), each.RetryOn.rule(), each.GiveUpOn.rule()
		if each.Cron != "" || each.EveryMs > 0 {
			handler.Rule = &dq.NewRule{Cron: each.Cron, Every: duration(each.EveryMs), RuleOptions: dq.RuleOptions{TZ: each.TZ}}
		}
		for _, ms := range each.BackoffMs {
			handler.Backoff = append(handler.Backoff, duration(ms))
		}
		if each.Batch > 0 {
			handler.Do, handler.DoBatch, handler.Batch = nil, handleBatch, each.Batch
			if each.Fill != nil {
				handler.Fill = dq.Fill{Jobs: int(each.Fill[0]), Wait: duration(each.Fill[1])}
			}
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
	if o.IdleMs > 0 {
		idle.After = duration(o.IdleMs)
	}
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
	if o.Dead {
		config.Hooks = append(config.Hooks, dq.Hooks{Dead: reportDeath})
	}
	switch o.Around {
	case true:
		config.Around = []dq.Around{aroundAll}
	case "hostile":
		config.Around = []dq.Around{func(context.Context, []*dq.Job, func(context.Context) error) error { panic(itself) }}
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
		if err := worker.RunUntilSignal(context.WithoutCancel(ctx)); err != nil {
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
		run, err := dq.TestJob{Data: o.Data, Kind: o.Kind}.Run(ctx, handlers(o.Handlers)...)
		if err != nil {
			return err
		}
		emit("answer", fields{"value": walked(run)})
	case "health":
		emit("answer", fields{"value": p.worker.IsHealthy()})
	case "call":
		if o.Tag != "" {
			go p.call(ctx, o)
		} else {
			p.call(ctx, o)
		}
	}
	return nil
}

func walked(run *dq.TestRun) fields {
	var result, reason any
	_ = run.Decode(&result)
	if run.Reason != "" {
		reason = run.Reason
	}
	waits := []int64{}
	for _, wait := range run.Waits {
		waits = append(waits, wait.Milliseconds())
	}
	return fields{"state": run.State, "result": result, "reason": reason, "attempts": run.Attempts, "waits": waits}
}

func (p *probe) call(ctx context.Context, o order) {
	said := fields{}
	if o.Tag != "" {
		said["tag"] = o.Tag
	}
	value, err := call(ctx, p.queues[o.Queue], o.Method, o.Args)
	if err == nil {
		said["value"] = value
		emit("answer", said)
		return
	}
	refuse(said, err)
}

func refuse(said fields, err error) {
	said["error"], said["message"] = err.Error(), err.Error()
	var failed *dq.JobFailedError
	var late *dq.TimedOutError
	if errors.As(err, &failed) {
		said["error"], said["outcome"], said["reason"] = "JobFailed", failed.Outcome, failed.Reason
	} else if errors.As(err, &late) {
		said["error"] = "timeout"
	}
	emit("refused", said)
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
			refuse(fields{}, err)
		}
	}
}
