package dq_test

import (
	"bytes"
	"context"
	"math/rand"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// slowToNotice is a connection that loses the write of an acknowledgement and a fetch. Its reader learns late that it
// is closed.
type slowToNotice struct {
	net.Conn
	hasLost chan bool
	isLost  atomic.Bool
	once    sync.Once
}

func (c *slowToNotice) Write(raw []byte) (int, error) {
	if bytes.Contains(raw, []byte("DQ.ACK")) && bytes.Contains(raw, []byte("DQ.BPOP")) {
		c.isLost.Store(true)
		c.once.Do(func() { c.hasLost <- true })
		return len(raw), nil
	}
	return c.Conn.Write(raw)
}

func (c *slowToNotice) Read(into []byte) (int, error) {
	size, err := c.Conn.Read(into)
	if err != nil && c.isLost.Load() {
		<-time.After(50 * time.Millisecond)
	}
	return size, err
}

func TestAnAckThatAFetchTookAlongIsToldWhenTheWorkerCloses(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	options := *server.Client.Options()
	hasLost := make(chan bool, 1)
	options.Dialer = func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		return &slowToNotice{Conn: conn, hasLost: hasLost}, err
	}
	client := redis.NewClient(&options)
	defer client.Close()
	worker := must(dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{dq.NewQueue(client, "q")}, Concurrency: 1, Drain: -1,
		Handlers: []dq.Handler{{Do: func(context.Context, *dq.Job) error { return nil }}},
	}))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	queue := server.Queue(t, "q")
	must(queue.Add(ctx, 1, nil))
	within(t, "the ack goes with a fetch", hasLost)
	worker.Stop()
	expect(t, within(t, "ends", ended), error(nil))
	expect(t, must(queue.Len(ctx, dq.All)), 0)
}

func TestWhateverTheMomentAtWhichAWorkerClosesWhatWasDoneIsAcknowledged(t *testing.T) {
	ctx, server := t.Context(), dqtest.Start(t)
	queue := server.Queue(t, "q")
	must(0, queue.Configure(ctx, dq.Settings{})) // so that its totals stay, also when it is empty
	random := rand.New(rand.NewSource(7))
	var handled atomic.Int64
	for round := range 40 {
		must(queue.AddMany(ctx, make([]dq.NewJob, 200)))
		stopAt := handled.Load() + 1 + random.Int63n(150)
		worker := must(dq.NewWorker(dq.WorkerConfig{
			Queues: []*dq.Queue{queue}, Concurrency: 1 + round%3, Prefetch: round % 5,
			Handlers: []dq.Handler{{Do: func(context.Context, *dq.Job) error { handled.Add(1); return nil }}},
		}))
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		until(t, "some are handled", func() bool { return handled.Load() >= stopAt || must(queue.Len(ctx, dq.All)) == 0 })
		worker.Stop()
		expect(t, within(t, "ends", ended), error(nil))
		expect(t, must(queue.Len(ctx, dq.Leased)), 0)
		expect(t, must(queue.Stats(ctx)).Totals.Acked, handled.Load())
	}
}
