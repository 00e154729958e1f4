package dq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

func TestAJoinIsInOneShardAndHasAllResults(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Shards: 5, Hooks: []dq.Hooks{
		{Adding: func(_ context.Context, _ string, headers map[string]string) { headers["by"] = "hook" }},
	}})
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Handlers: []dq.Handler{{
		Do: func(_ context.Context, job *dq.Job) error {
			said := job.Headers()["by"]
			for _, each := range job.Results() {
				said += string(each.Outcome) + string(each.Bytes())
			}
			job.Succeed(said)
			return nil
		},
	}}}))
	part := dq.JobOptions{Kind: "part"}
	last := must(queue.Join(ctx, []dq.NewJob{{Data: 1, JobOptions: part}, {Data: 2, JobOptions: part}}, dq.NewJob{
		JobOptions: dq.JobOptions{OnDead: dq.OnDeadRun, Priority: 1},
	}))
	expect(t, must(queue.Get(ctx, last)).OnDead, dq.OnDeadRun)
	expect(t, must(worker.Drain(ctx)), 3)
	expect(t, must(dq.Result[string](ctx, queue, last)), `hookdone"hook"done"hook"`)

	late := dq.NewJob{JobOptions: dq.JobOptions{ID: "late", Delay: time.Hour}}
	expect(t, must(queue.Join(ctx, make([]dq.NewJob, 1), late)), "late")
	_, err := queue.Join(ctx, make([]dq.NewJob, 1), late)
	expect(t, err, dq.ErrExists)
	late.ID, late.IfExists = "other", dq.OnlyReplace
	_, err = queue.Join(ctx, make([]dq.NewJob, 1), late)
	expect(t, err, dq.ErrNotFound)
	last = must(queue.Join(ctx, make([]dq.NewJob, 1001), dq.NewJob{JobOptions: dq.JobOptions{ID: strings.Repeat("x", 1024)}}))
	job := must(queue.Get(ctx, last))
	expect(t, []any{strings.HasPrefix(job.AfterGroup, "join:"), job.Keep}, []any{true, ptr(time.Minute)})
}

func TestWhatIsNoJoin(t *testing.T) {
	queue := dq.NewQueue(dqtest.Start(t).Client, "q", dq.QueueOptions{Shards: 5})
	var apart []dq.NewJob
	for n := range 9 {
		apart = append(apart, dq.NewJob{JobOptions: dq.JobOptions{ID: fmt.Sprint(n)}})
	}
	many := append(make([]dq.NewJob, 1001), dq.NewJob{JobOptions: dq.JobOptions{Group: "other"}})
	for mistake, join := range map[string]struct {
		jobs []dq.NewJob
		then dq.JobOptions
	}{
		"needs jobs":             {},
		"neither After nor":      {make([]dq.NewJob, 1), dq.JobOptions{After: []string{"a"}}},
		"in one shard":           {apart, dq.JobOptions{}},
		"by their group: give":   {many, dq.JobOptions{}},
		"ttr: -1000 ms is not":   {make([]dq.NewJob, 1), dq.JobOptions{TTR: -time.Second}},
		`"*" is not an id`:       {make([]dq.NewJob, 1), dq.JobOptions{ID: "*"}},
		"JSON cannot hold: json": {[]dq.NewJob{{Data: make(chan int)}}, dq.JobOptions{}},
	} {
		_, err := queue.Join(t.Context(), join.jobs, dq.NewJob{JobOptions: join.then})
		if err == nil || !strings.Contains(err.Error(), mistake) {
			t.Errorf("%s: %v", mistake, err)
		}
	}
}

func TestAFullQueueSaysHowManyJobsOfAJoinWereAdded(t *testing.T) {
	ctx, queue := t.Context(), dqtest.Start(t).Queue(t, "q")
	must(0, queue.Configure(ctx, dq.Settings{MaxLen: ptr(1)}))
	_, err := queue.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{})
	expect(t, errors.Is(err, dq.ErrQueueFull) && strings.HasSuffix(err.Error(), "MAXLEN queue is full (1 of 2 jobs were added)"), true)
	expect(t, must(queue.Len(ctx, dq.All)), 1)
}

// What becomes of a join whose answer is lost is the suite's.
func TestAJoinEndsWithItsContext(t *testing.T) {
	server := dqtest.Start(t)
	way := newPartition(t, server)
	queue := way.queue(t, "q")
	ctx, cancel := context.WithCancel(t.Context())
	way.holdsUp.Store(true)
	ended := make(chan error, 1)
	go func() { _, err := queue.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{}); ended <- err }()
	cancel()
	expect(t, within(t, "it ends", ended), context.Canceled)
	way.holdsUp.Store(false)
	_, err := queue.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{})
	expect(t, err, context.Canceled)

	// One that is about to connect when its caller has gone sends nothing afterwards.
	hasConnected := make(chan bool, 9)
	ctx, cancel = context.WithCancel(t.Context())
	options := *server.Client.Options()
	dial := options.Dialer
	options.Dialer = func(_ context.Context, network, address string) (net.Conn, error) {
		cancel()
		conn, err := dial(t.Context(), network, address)
		hasConnected <- true
		return conn, err
	}
	slow := dq.NewQueue(redis.NewClient(&options), "q")
	defer slow.Close()
	_, err = slow.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{})
	expect(t, err, context.Canceled)
	within(t, "it connects", hasConnected)
	expect(t, slow.Close(), nil)
	expect(t, must(server.Queue(t, "q").Len(t.Context(), dq.All)), 0)
}
