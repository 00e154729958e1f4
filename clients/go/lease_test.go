package dq_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// partition is a way to a server that can be cut, or swallow all that is sent.
type partition struct {
	listener net.Listener
	target   string
	isFrozen atomic.Bool
	holdsUp  atomic.Bool // what servers answer
	meets    atomic.Pointer[meeting]
	mu       sync.Mutex
	conns    []net.Conn
}

func newPartition(t *testing.T, server *dqtest.Server) *partition {
	p := &partition{listener: must(net.Listen("tcp", "127.0.0.1:0")), target: server.Client.Options().Addr}
	t.Cleanup(func() { _ = p.listener.Close(); p.cut() })
	go func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			go p.forward(conn)
		}
	}()
	return p
}

func (p *partition) forward(conn net.Conn) {
	server, err := net.Dial("unix", p.target)
	if err != nil {
		_ = conn.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, conn, server)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(&door{conn, p, nil}, server); _ = conn.Close() }()
	_, _ = io.Copy(&door{server, p, conn}, conn)
	_ = server.Close()
}

func (p *partition) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *partition) queue(t *testing.T, name string) *dq.Queue {
	queue := must(dq.Open("redis://"+p.listener.Addr().String(), name))
	t.Cleanup(func() { _ = queue.Close() })
	return queue
}

// meeting is called with what is on its way to a server, and says whether it has dealt with that.
type meeting func(raw []byte, server, client io.Writer) bool

type door struct {
	io.Writer
	partition *partition
	client    io.Writer // of what goes to a server
}

func (d *door) Write(raw []byte) (int, error) {
	for d.partition.holdsUp.Load() {
		time.Sleep(time.Millisecond)
	}
	if d.partition.isFrozen.Load() {
		return len(raw), nil
	}
	if meet := d.partition.meets.Load(); meet != nil && d.client != nil && (*meet)(raw, d.Writer, d.client) {
		return len(raw), nil
	}
	return d.Writer.Write(raw)
}

// --- Helpers

func run(t *testing.T, config dq.WorkerConfig) (ended chan error) {
	worker := must(dq.NewWorker(config))
	ended = make(chan error, 1)
	isOver := make(chan bool)
	go func() { ended <- worker.Run(context.Background()); close(isOver) }()
	t.Cleanup(func() { worker.Stop(); <-isOver })
	return ended
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not: " + what)
		}
	}
}

func within[T any](t *testing.T, what string, channel <-chan T) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(time.Minute):
		t.Fatal("not: " + what)
		panic("")
	}
}

func calls(server *dqtest.Server, command string) bool {
	return strings.Contains(must(server.Client.Info(context.Background(), "commandstats").Result()), "cmdstat_"+command+":")
}

// --- Leases

func TestAHandlerIsToldWhenItsLeaseIsOverThoughNoServerSaysSo(t *testing.T) {
	server := dqtest.Start(t)
	way := newPartition(t, server)
	begun, why, hooked := make(chan bool), make(chan error, 1), make(chan string, 1)
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{way.queue(t, "q")}, Drain: -1,
		Hooks: []dq.Hooks{{Lost: func(job *dq.Job) { hooked <- job.Kind() }}},
		Handlers: []dq.Handler{{Lease: 300 * time.Millisecond, Do: func(ctx context.Context, job *dq.Job) error {
			begun <- true
			for job.Kind() == "kind" && ctx.Err() == nil { // while the hook reads it, too
				time.Sleep(time.Millisecond)
			}
			why <- context.Cause(ctx)
			return nil
		}}},
	})
	queue := server.Queue(t, "q")
	must(queue.Add(t.Context(), 1, &dq.JobOptions{ID: "a", Kind: "kind"}))
	within(t, "begins", begun)
	way.isFrozen.Store(true)
	expect(t, within(t, "told", why), error(dq.ErrLost))
	expect(t, within(t, "hooked", hooked), "kind")
	way.isFrozen.Store(false)
	way.cut()
	until(t, "the worker is back", func() bool { return must(queue.Len(t.Context(), dq.Leased)) == 1 })
	expect(t, must(queue.Stats(t.Context())).Totals.Acked, int64(0)) // its end was not acknowledged
}

func TestAJobIsNotBegunWhileAnOlderDeliveryOfItIsInHand(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	begun, told, leave := make(chan int, 10), make(chan error, 10), make(chan bool)
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Concurrency: 3,
		Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
			begun <- job.Attempt
			if job.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			told <- context.Cause(ctx)
			<-leave
			return nil
		}}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	expect(t, within(t, "begins", begun), 1)
	for range 2 { // its lease ends, and it is delivered to the same worker
		server.Clock.Advance(2 * time.Minute)
		until(t, "given back", func() bool { return must(queue.Get(ctx, "a")).State == dq.Delayed })
		expect(t, must(queue.Get(ctx, "a")).Due.Sub(server.Clock.Now()), time.Second)
	}
	expect(t, within(t, "told", told), error(dq.ErrLost))
	expect(t, len(begun), 0)
	close(leave)
	until(t, "it comes again", func() bool {
		if job, err := queue.Get(ctx, "a"); err == nil && job.State == dq.Delayed { // else its lease would end
			server.Clock.Advance(time.Second)
		}
		return len(begun) == 1
	})
	expect(t, <-begun, 2)
}

func TestADeliveryThatIsReadAfterItsLeaseNeverBegins(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue, way := server.Queue(t, "q"), newPartition(t, server)
	begun := make(chan int, 10)
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{way.queue(t, "q")}, Lease: time.Second,
		Handlers: []dq.Handler{{Do: func(_ context.Context, job *dq.Job) error { begun <- job.Attempt; return nil }}},
	})
	blocked(t, server.Client, "1")
	way.holdsUp.Store(true)
	waited := time.Now()
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	until(t, "delivered", func() bool { return must(queue.Get(ctx, "a")).State == dq.Leased })
	server.Clock.Advance(time.Minute)
	until(t, "as old as its lease", func() bool { return time.Since(waited) > time.Second })
	way.holdsUp.Store(false)
	expect(t, within(t, "begins", begun), 2)
}

func TestTheLeaseOfAJobOrAQueueHolds(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	leave := make(chan bool)
	defer close(leave)
	hold := func(context.Context, *dq.Job) error { <-leave; return nil }
	run(t, dq.WorkerConfig{
		Queues: []*dq.Queue{queue}, Lease: 20 * time.Second, Drain: -1,
		Handlers: []dq.Handler{{Do: hold, Kind: "own", Lease: 40 * time.Second}, {Do: hold}},
	})
	for id, options := range map[string]dq.JobOptions{
		"worker's": {}, "job's": {TTR: 30 * time.Second}, "kind's": {Kind: "own"}, "kind's first": {Kind: "own", TTR: 30 * time.Second},
	} {
		options.ID = id
		must(queue.Add(ctx, 1, &options))
	}
	for id, want := range map[string]time.Duration{
		"worker's": 20 * time.Second, "job's": 30 * time.Second, "kind's": 40 * time.Second, "kind's first": 40 * time.Second,
	} {
		until(t, id, func() bool {
			job := must(queue.Get(ctx, id))
			return job.State == dq.Leased && job.Deadline.Sub(server.Clock.Now()) == want
		})
	}
}

// --- In hand

func TestNoMoreJobsAreInHandThanCanStart(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	for name, each := range map[string]struct {
		handlers int
		want     int // of both, two are fetched, then one
	}{"mixed": {2, 3}, "batches": {1, 20}} {
		queue := server.Queue(t, name)
		leave, plain := make(chan bool), make(chan bool, 1)
		begun := atomic.Int64{}
		handlers := []dq.Handler{
			{Kind: "batch", Batch: 10, DoBatch: func(_ context.Context, jobs []*dq.Job) error {
				begun.Add(int64(len(jobs)))
				<-leave
				return nil
			}},
			{Kind: "plain", Do: func(context.Context, *dq.Job) error { plain <- true; return nil }},
		}
		many := make([]dq.NewJob, 100)
		for at := range many {
			many[at].Kind = "batch"
		}
		must(queue.AddMany(ctx, many))
		run(t, dq.WorkerConfig{Queues: []*dq.Queue{queue}, Concurrency: 2, Handlers: handlers[:each.handlers], Drain: -1})
		until(t, "begins", func() bool { return begun.Load() == int64(each.want) })
		expect(t, must(queue.Len(ctx, dq.Leased)), each.want)
		if name == "mixed" {
			must(queue.Add(ctx, 1, &dq.JobOptions{Kind: "plain", Priority: -1}))
			leave <- true // two were in hand of one handler, or each in its own
			within(t, "the plain one begins", plain)
		}
		close(leave)
		until(t, "done", func() bool { return must(queue.Len(ctx, dq.All)) == 0 })
	}
}

func TestAFreeHandlerWaitsForNoOtherConnection(t *testing.T) {
	ctx := t.Context()
	for _, without := range [][]string{nil, {"+client|id"}} {
		one, two := as(t, dqtest.Start(t), "library-worker", without...), as(t, dqtest.Start(t), "library-worker", without...)
		begun := make(chan string, 1)
		ended := run(t, dq.WorkerConfig{
			Queues: []*dq.Queue{one, two}, Concurrency: 2, Wait: time.Hour, Drain: -1,
			Handlers: []dq.Handler{{Do: func(ctx context.Context, job *dq.Job) error {
				begun <- job.ID
				if job.ID == "long" {
					<-ctx.Done()
				}
				return nil
			}}},
		})
		begins := func(queue *dq.Queue, id string) {
			must(queue.Add(ctx, 1, &dq.JobOptions{ID: id}))
			expect(t, within(t, id, begun), id)
		}
		begins(two, "long")
		for n := range 8 { // two in a row: between them the other link takes the place
			begins([]*dq.Queue{one, two}[n/2%2], fmt.Sprint(n))
		}
		expect(t, len(ended), 0)
	}
}

// slowError takes until goesOn to say what it is, which is long.
type slowError struct{ asked, goesOn chan bool }

func (e *slowError) Error() string {
	e.asked <- true
	<-e.goesOn
	return strings.Repeat("x", 1<<20)
}

func TestLeasesAreKeptWhileTheTextOfAnErrorIsMade(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	slow := &slowError{make(chan bool), make(chan bool)}
	lease := 300 * time.Millisecond
	run(t, dq.WorkerConfig{
		Queues:   []*dq.Queue{queue},
		Handlers: []dq.Handler{{Lease: lease, Attempts: 1, Do: func(context.Context, *dq.Job) error { return slow }}},
	})
	must(queue.Add(ctx, 1, &dq.JobOptions{ID: "a"}))
	within(t, "its text is asked for", slow.asked)
	for range 3 {
		deadline := must(queue.Get(ctx, "a")).Deadline
		server.Clock.Advance(lease * 3 / 4)
		until(t, "it has a fresh lease", func() bool { return must(queue.Get(ctx, "a")).Deadline.After(deadline) })
	}
	close(slow.goesOn)
	until(t, "it is dead", func() bool {
		select {
		case <-slow.asked: // for the log
		default:
		}
		return must(queue.Get(ctx, "a")).State == dq.Dead
	})
	if job := must(queue.Get(ctx, "a")); job.Attempts != 1 || len(job.Reason) > 1024 || !strings.Contains(job.Reason, "xxx") {
		t.Error(job.Attempts, len(job.Reason))
	}
}
