package dq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// again sends each EVAL twice, as go-redis does when an answer is lost.
type again struct{ twice }

func (again) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if command.Name() == "eval" {
			_ = next(ctx, command)
		}
		return next(ctx, command)
	}
}

func (again) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAScriptWhoseAnswerIsLostRunsOnce(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	client := redis.NewClient(server.Client.Options())
	defer client.Close()
	client.AddHook(again{})
	queue := dq.NewQueue(client, "q")
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Do: func(ctx context.Context, job *dq.Job) error {
			_, err := job.Once(ctx, "count", "redis.call('INCR', KEYS[1])", []string{"n"})
			return err
		},
	}}}))
	must(queue.Add(ctx, 1, nil))
	expect(t, must(worker.Drain(ctx)), 1)
	expect(t, client.Get(ctx, "n").Val(), "1")
}

func TestAStepIsKeptThoughTheConnectionIsLost(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	way := newPartition(t, server)
	theirs := way.queue(t, "q")
	server.Run(t, dq.WorkerConfig{Queues: []*dq.Queue{theirs}, Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
		made := 0
		for n := range 5 {
			_, err := dq.Step(ctx, job, fmt.Sprint(n), func(context.Context) (int, error) { way.cut(); made++; return n, nil })
			if err != nil {
				return err
			}
		}
		job.Succeed(made)
		return nil
	}}}})
	queue := server.Queue(t, "q")
	must(queue.Add(ctx, 1, kept("a")))
	expect(t, must(dq.Wait[int](ctx, queue, "a")), 5)
	expect(t, len(must(queue.Get(ctx, "a")).Steps), 0) // they went with its end
}

func TestAScriptRunsOnceInTheLifeOfAJob(t *testing.T) {
	const script = `
		if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('NOMONEY nothing in ' .. KEYS[1]) end
		redis.call('DECRBY', KEYS[1], ARGV[1])
		redis.call('INCRBY', KEYS[2], ARGV[1])`
	var ran []bool
	s := newStage(t, func(ctx context.Context, job *dq.Job) error {
		did, err := job.Once(ctx, "move", script, []string{"from", "to"}, 30)
		if err != nil {
			return err
		}
		ran = append(ran, did)
		return errors.New("afterwards")
	})
	ctx := t.Context()
	must(s.queue.Add(ctx, 1, kept("a")))
	for range 3 {
		s.drain()
		s.server.Client.SetNX(ctx, "from", 100, 0) // after the first attempt
		s.server.Clock.Advance(time.Minute)
	}
	expect(t, ran, []bool{true, false})
	expect(t, []string{s.server.Client.Get(ctx, "from").Val(), s.server.Client.Get(ctx, "to").Val()}, []string{"70", "30"})
	expect(t, string(s.get("a").Steps["move"]), "ended")
}

func TestWithoutEvalOnlyWhatNeedsItFails(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	must(server.Client.Do(ctx, "ACL", "SETUSER", "w", "on", ">p", "~*", "&*", "+@all", "-eval").Result())
	options := *server.Client.Options()
	options.Username, options.Password = "w", "p"
	client := redis.NewClient(&options)
	defer client.Close()
	server.Run(t, dq.WorkerConfig{Queues: []*dq.Queue{dq.NewQueue(client, "q")}, Handlers: []dq.Handler{
		{Kind: "sleeps", Attempts: 1, Do: func(_ context.Context, job *dq.Job) error { return job.Sleep("a", time.Hour) }},
		{Do: func(_ context.Context, job *dq.Job) error { job.Succeed(1); return nil }},
	}})
	queue := server.Queue(t, "q")
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a", Kind: "sleeps", Keep: time.Hour}))
	var failed *dq.JobFailedError
	_, err := dq.Wait[int](ctx, queue, "a")
	expect(t, errors.As(err, &failed) && strings.HasPrefix(failed.Reason, "NOPERM"), true)
	must(queue.Add(ctx, 1, kept("b")))
	expect(t, must(dq.Wait[int](ctx, queue, "b")), 1)
}
