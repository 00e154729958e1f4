package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type riverArgs struct {
	Payload string `json:"payload"`
}

func (riverArgs) Kind() string { return "job" }

// River: jobs in a table of PostgreSQL. It makes its tables when the worker begins, before a producer comes.
type riverSystem struct {
	driver *riverpgxv5.Driver
	client *river.Client[pgx.Tx]
}

func newRiver(address string) *riverSystem {
	pool, err := pgxpool.New(context.Background(), "postgres://postgres@"+address+"/postgres")
	must(err)
	driver := riverpgxv5.New(pool)
	client, err := river.NewClient(driver, &river.Config{})
	must(err)
	return &riverSystem{driver, client}
}

func (r *riverSystem) add(j job) {
	options := &river.InsertOpts{}
	if j.dueMs != 0 {
		options.ScheduledAt = time.UnixMilli(j.dueMs)
	}
	_, err := r.client.Insert(context.Background(), riverArgs{j.payload}, options)
	must(err)
}

func (r *riverSystem) addMany() func([]job) {
	return func(jobs []job) {
		many := make([]river.InsertManyParams, len(jobs))
		for at, j := range jobs {
			many[at] = river.InsertManyParams{Args: riverArgs{j.payload}, InsertOpts: &river.InsertOpts{}}
			if j.dueMs != 0 {
				many[at].InsertOpts.ScheduledAt = time.UnixMilli(j.dueMs)
			}
		}
		_, err := r.client.InsertMany(context.Background(), many)
		must(err)
	}
}

func (r *riverSystem) work(handle func(string) bool, isReady func()) {
	background := context.Background()
	migrator, err := rivermigrate.New(r.driver, nil)
	must(err)
	_, err = migrator.Migrate(background, rivermigrate.DirectionUp, nil)
	must(err)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverArgs]) error {
		handle(job.Args.Payload)
		return nil
	}))
	client, err := river.NewClient(r.driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		FetchCooldown: river.FetchCooldownMin,
		Workers:       workers,
	})
	must(err)
	must(client.Start(background))
	isReady()
}
