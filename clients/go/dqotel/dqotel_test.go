package dqotel

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

// spansOf are those of a job that is added, and attempted once.
func spansOf(t *testing.T, do dq.Func) []sdk.ReadOnlySpan {
	recorder := tracetest.NewSpanRecorder()
	tracers := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	hooks := []dq.Hooks{New(Options{Tracers: tracers, Propagator: propagation.TraceContext{}})}
	ctx, server := t.Context(), dqtest.Start(t)
	queue := dq.NewQueue(server.Client, "q", dq.QueueOptions{Hooks: hooks})
	worker, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Hooks: hooks, Handlers: []dq.Handler{{Do: do}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Add(ctx, 1, nil); err != nil {
		t.Fatal(err)
	}
	if handled, err := worker.Drain(ctx); handled != 1 || err != nil {
		t.Fatal(handled, err)
	}
	return recorder.Ended()
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
