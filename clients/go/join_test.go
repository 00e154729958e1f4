package dq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

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

// --- A join whose answer is lost

type lossy struct {
	*testing.T
	server *dqtest.Server
	way    *partition
	queue  *dq.Queue // whose connections lose what is sent
	near   *dq.Queue
}

func newLossy(t *testing.T) *lossy {
	server := dqtest.Start(t)
	way := newPartition(t, server)
	l := &lossy{t, server, way, way.queue(t, "q"), server.Queue(t, "q")}
	must(l.near.Add(t.Context(), 0, &dq.JobOptions{Delay: 1000 * time.Hour})) // a queue without jobs forgets how many were added
	return l
}

// loses has the next transaction lost, or its answer if it arrives. It calls meanwhile before anybody can look.
func (l *lossy) loses(arrives bool, meanwhile func()) {
	meet := meeting(func(raw []byte, server, _ io.Writer) bool {
		if !bytes.HasSuffix(raw, []byte("\r\nEXEC\r\n")) {
			return false
		}
		l.way.meets.Store(nil)
		if arrives {
			before := l.added()
			l.way.isFrozen.Store(true) // to what the server answers
			_, _ = server.Write(raw)
			until(l.T, "it arrives", func() bool { return l.added() > before })
		}
		meanwhile()
		l.way.cut()
		l.way.isFrozen.Store(false)
		return true
	})
	l.way.meets.Store(&meet)
}

func (l *lossy) added() int64 { return must(l.near.Stats(context.Background())).Totals.Added }

func (l *lossy) work(do func() error) {
	handler := dq.Handler{Do: func(context.Context, *dq.Job) error { return do() }}
	worker := must(dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{l.near}, Handlers: []dq.Handler{handler}}))
	must(worker.Drain(context.Background()))
}

func (l *lossy) join(then dq.JobOptions) (string, error) {
	return l.queue.Join(l.Context(), []dq.NewJob{{Data: 1, JobOptions: dq.JobOptions{Attempts: 1}}}, dq.NewJob{Data: 2, JobOptions: then})
}

// unknown expects that nobody knows what became of a join.
func (l *lossy) unknown(then dq.JobOptions, added int64) {
	l.Helper()
	before := l.added()
	_, err := l.join(then)
	if err == nil || !strings.HasSuffix(err.Error(), ": it is not known whether the jobs of the join were added") {
		l.Error(err)
	}
	expect(l.T, errors.Is(err, io.EOF), true)
	expect(l.T, l.added()-before, added)
}

func (l *lossy) known(then dq.JobOptions) {
	l.Helper()
	before := l.added()
	id, err := l.join(then)
	expect(l.T, err, nil)
	expect(l.T, l.added()-before, int64(2))
	if then.ID != "" {
		expect(l.T, id, then.ID)
	}
}

func idle()       {}
func good() error { return nil }

func TestAJoinIsNotTakenForAJobThatWasThere(t *testing.T) {
	for state, do := range map[dq.State]func() error{dq.Done: good, dq.Dead: func() error { return errors.New("no") }} {
		l := newLossy(t)
		then := dq.JobOptions{ID: "last", Keep: time.Hour, Attempts: 1, OnDead: dq.OnDeadRun}
		l.known(then)
		for _, arrives := range []bool{false, true} {
			l.work(do)
			expect(t, must(l.near.Get(t.Context(), "last")).State, state)
			l.loses(arrives, idle)
			l.known(then)
			expect(t, must(l.near.Get(t.Context(), "last")).State, dq.Blocked)
		}
	}
}

func TestNobodyKnowsOfAJoinIfAJobOfItsIDIsStillToRun(t *testing.T) {
	l := newLossy(t)
	l.known(dq.JobOptions{ID: "last"})
	for _, arrives := range []bool{true, false} {
		l.loses(arrives, idle)
		l.unknown(dq.JobOptions{ID: "last"}, map[bool]int64{true: 1}[arrives])
	}
}

func TestJobsOfAJoinThatRanAndWentAreNotAddedAgain(t *testing.T) {
	l := newLossy(t)
	for _, then := range []dq.JobOptions{
		{Keep: dq.NotKept}, {Keep: time.Millisecond, ID: "last"}, {TTL: time.Millisecond, Delay: time.Hour},
	} {
		l.loses(true, func() {
			l.work(good)
			l.server.Clock.Advance(time.Second)
			until(t, "all have gone", func() bool { return must(l.near.Len(context.Background(), dq.All)) == 1 })
		})
		l.unknown(then, 2)
	}
}

func TestARefusalOfTheQuestionSaysNothingOfAJoin(t *testing.T) {
	for _, code := range []string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "READONLY"} {
		l := newLossy(t)
		l.loses(true, func() {
			l.work(good)
			meet := meeting(func(raw []byte, _, client io.Writer) bool {
				asked := bytes.Count(raw, []byte("DQ.GET"))
				if asked == 0 {
					return false
				}
				l.way.meets.Store(nil)
				_, _ = io.WriteString(client, strings.Repeat("-"+code+" not now\r\n", asked))
				return true
			})
			l.way.meets.Store(&meet)
		})
		l.known(dq.JobOptions{})
	}
}

func TestAFullQueueSaysHowManyJobsOfAJoinWereAdded(t *testing.T) {
	l := newLossy(t)
	must(0, l.near.Configure(t.Context(), dq.Settings{MaxLen: ptr(2)}))
	_, err := l.join(dq.JobOptions{})
	expect(t, errors.Is(err, dq.ErrQueueFull) && strings.HasSuffix(err.Error(), "MAXLEN queue is full (1 of 2 jobs were added)"), true)
	expect(t, must(l.near.Len(t.Context(), dq.All)), 2)
}

func TestAJoinEndsWithItsContext(t *testing.T) {
	l := newLossy(t)
	ctx, cancel := context.WithCancel(t.Context())
	l.loses(true, cancel)
	_, err := l.queue.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{})
	expect(t, errors.Is(err, context.Canceled) && strings.Contains(err.Error(), "it is not known whether"), true)
	_, err = l.queue.Join(ctx, make([]dq.NewJob, 1), dq.NewJob{})
	expect(t, err, context.Canceled)
}
