package dqotel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// meters count how much was added, by the counter's name.
type meters struct {
	noop.MeterProvider
	meter
}

func (m meters) Meter(string, ...metric.MeterOption) metric.Meter { return m.meter }

type meter struct {
	noop.Meter
	counters map[string]*counter
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	m.counters[name] = &counter{}
	return m.counters[name], nil
}

type counter struct {
	noop.Int64Counter
	sum atomic.Int64
}

func (c *counter) Add(_ context.Context, n int64, _ ...metric.AddOption) { c.sum.Add(n) }

// spansOf are those of a job that is added, and attempted once.
func spansOf(t *testing.T, do dq.Func) []sdk.ReadOnlySpan {
	spans, _ := toldOf(t, func(ctx context.Context, _ *dq.Queue, job *dq.Job) error { return do(ctx, job) })
	return spans
}

func toldOf(t *testing.T, do func(context.Context, *dq.Queue, *dq.Job) error) ([]sdk.ReadOnlySpan, map[string]*counter) {
	counted := map[string]*counter{}
	recorder := tracetest.NewSpanRecorder()
	tracers := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	hooks := []dq.Hooks{New(Options{Tracers: tracers, Meters: meters{meter: meter{counters: counted}}, Propagator: propagation.TraceContext{}})}
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Hooks: hooks})
	worker, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Hooks: hooks, Handlers: []dq.Handler{{
		Do: func(ctx context.Context, job *dq.Job) error { return do(ctx, queue, job) },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Add(ctx, 1, nil); err != nil {
		t.Fatal(err)
	}
	if handled, err := worker.Drain(ctx); handled != 1 || err != nil {
		t.Fatal(handled, err)
	}
	return recorder.Ended(), counted
}

func TestALossThatTheEndFindsOutIsCounted(t *testing.T) {
	spans, counted := toldOf(t, func(ctx context.Context, queue *dq.Queue, job *dq.Job) error {
		_, err := queue.Delete(ctx, job.ID)
		return err
	})
	if len(spans) != 2 || counted["messaging.client.consumed.messages"].sum.Load() != 1 {
		t.Errorf("%d spans, %v", len(spans), counted)
	}
	lost := counted["dq.client.lost.messages"]
	for end := time.Now().Add(30 * time.Second); lost.sum.Load() != 1; time.Sleep(time.Millisecond) { // nobody waits for hooks
		if time.Now().After(end) {
			t.Fatalf("%d were lost", lost.sum.Load())
		}
	}
}

type silent struct{}

func (silent) Error() string { panic("no text") }

func TestTheSpanOfAnErrorWithoutATextEnds(t *testing.T) {
	if spans := spansOf(t, func(context.Context, *dq.Job) error { return silent{} }); len(spans) != 2 {
		t.Errorf("%d spans", len(spans))
	}
}

func TestAnAttemptThatWaitsIsASpanWithoutAnError(t *testing.T) {
	spans := spansOf(t, func(_ context.Context, job *dq.Job) error { return job.Sleep("nap", time.Hour) })
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	if process := spans[1]; process.Status().Code != codes.Unset || len(process.Events()) != 1 || process.Events()[0].Name != "suspended" {
		t.Errorf("%v, %v", process.Status(), process.Events())
	}
}

func TestAnAttemptIsASpanLinkedToItsProducers(t *testing.T) {
	spans := spansOf(t, func(context.Context, *dq.Job) error { return errors.New("no paper") })
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	send, process := spans[0], spans[1]
	if send.Name() != "send q" || process.Name() != "process q" || process.Status().Code != codes.Error {
		t.Errorf("%s, %s, %v", send.Name(), process.Name(), process.Status())
	}
	if process.Parent().IsValid() || len(process.Links()) != 1 {
		t.Fatalf("parent %v, links %v", process.Parent(), process.Links())
	}
	for _, event := range process.Events() {
		if event.Name == "lost" {
			t.Error("it was not lost")
		}
	}
	if process.Links()[0].SpanContext.SpanID() != send.SpanContext().SpanID() {
		t.Error("linked to another span")
	}
}
