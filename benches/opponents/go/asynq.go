package main

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
)

const concurrency = 10

// asynq: a task that is to be processed at an instant. It has no way to add many at once.
type asynqSystem struct {
	options asynq.RedisClientOpt
	client  *asynq.Client
}

func newAsynq(address string) *asynqSystem {
	options := asynq.RedisClientOpt{Addr: address}
	return &asynqSystem{options, asynq.NewClient(options)}
}

func (a *asynqSystem) add(j job) {
	var options []asynq.Option
	if j.dueMs != 0 {
		options = append(options, asynq.ProcessAt(time.UnixMilli(j.dueMs)))
	}
	_, err := a.client.Enqueue(asynq.NewTask("job", []byte(j.payload)), options...)
	must(err)
}

func (a *asynqSystem) addMany() func([]job) { return nil }

func (a *asynqSystem) work(handle func(string) bool, isReady func()) {
	server := asynq.NewServer(a.options, asynq.Config{Concurrency: concurrency, LogLevel: asynq.WarnLevel})
	must(server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(string(task.Payload()))
		return nil
	})))
	isReady()
}
