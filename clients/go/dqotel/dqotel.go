// Package dqotel is OpenTelemetry for dq: traces and metrics by the semantic conventions for messaging.
//
//	telemetry := dqotel.New()
//	queue, err := dq.Open(url, "orders", dq.QueueOptions{Hooks: []dq.Hooks{telemetry}})
//	worker, err := dq.NewWorker(dq.WorkerConfig{Queues: []*dq.Queue{queue}, Hooks: []dq.Hooks{telemetry}, ...})
//
// The producer's context travels in the job's headers. Each attempt is a span of its own that is linked to the
// producer's: a child would keep that trace open for as long as the job waits, which may be months.
package dqotel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

const scope = "github.com/redis-dq/redis-dq/clients/go/dqotel"

// Options are the options of [New]. A nil field means OpenTelemetry's global one.
type Options struct {
	Tracers    trace.TracerProvider
	Meters     metric.MeterProvider
	Propagator propagation.TextMapPropagator
}

type telemetry struct {
	tracer                 trace.Tracer
	propagator             propagation.TextMapPropagator
	sent, consumed, losses metric.Int64Counter
	duration               metric.Float64Histogram
}

type beganKey struct{}

// New makes the hooks for queues and workers.
func New(options ...Options) dq.Hooks {
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	if o.Propagator == nil {
		o.Propagator = otel.GetTextMapPropagator()
	}
	t := &telemetry{tracer: o.Tracers.Tracer(scope), propagator: o.Propagator}
	meter := o.Meters.Meter(scope)
	// If an instrument cannot be made, the API returns one that does nothing.
	t.sent, _ = meter.Int64Counter("messaging.client.sent.messages", metric.WithUnit("{message}"))
	t.consumed, _ = meter.Int64Counter("messaging.client.consumed.messages", metric.WithUnit("{message}"))
	t.losses, _ = meter.Int64Counter("dq.client.lost.messages", metric.WithUnit("{message}"))
	t.duration, _ = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"))
	return dq.Hooks{Adding: t.adding, Before: t.before, After: t.after, Failed: t.failed, Suspended: t.suspended, Lost: t.lost}
}

func about(queue string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("messaging.system", "dq"), attribute.String("messaging.destination.name", queue)}
}

func (t *telemetry) adding(ctx context.Context, queue string, headers map[string]string) {
	attributes := append(about(queue), attribute.String("messaging.operation.type", "send"))
	ctx, span := t.tracer.Start(ctx, "send "+queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...))
	defer span.End()
	t.propagator.Inject(ctx, propagation.MapCarrier(headers))
	t.sent.Add(ctx, 1, metric.WithAttributes(about(queue)...))
}

func (t *telemetry) before(ctx context.Context, job *dq.Job) context.Context {
	producer := trace.SpanContextFromContext(t.propagator.Extract(context.Background(), propagation.MapCarrier(job.Headers())))
	attributes := append(about(job.Queue), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.message.id", job.ID), attribute.Int("dq.attempt", job.Attempt))
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...),
	}
	if producer.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: producer}))
	}
	ctx, _ = t.tracer.Start(ctx, "process "+job.Queue, options...)
	t.consumed.Add(ctx, 1, metric.WithAttributes(about(job.Queue)...))
	return context.WithValue(ctx, beganKey{}, time.Now())
}

func (t *telemetry) after(ctx context.Context, job *dq.Job) { t.end(ctx, job, about(job.Queue)) }

// suspended: the job waits, which is neither a failure nor its end
func (t *telemetry) suspended(ctx context.Context, job *dq.Job) {
	trace.SpanFromContext(ctx).AddEvent("suspended")
	t.end(ctx, job, about(job.Queue))
}

func (t *telemetry) failed(ctx context.Context, job *dq.Job, err error) {
	defer t.end(ctx, job, append(about(job.Queue), attribute.String("error.type", fmt.Sprintf("%T", err)))) // deferred: err.Error may panic
	span := trace.SpanFromContext(ctx)
	span.RecordError(err)
	var snooze *dq.SnoozeError
	if !errors.As(err, &snooze) {
		span.SetStatus(codes.Error, err.Error())
	}
}

// lost may be called after the handler's end, when the span can no longer record it.
func (t *telemetry) lost(job *dq.Job) {
	t.losses.Add(context.Background(), 1, metric.WithAttributes(about(job.Queue)...))
}

func (t *telemetry) end(ctx context.Context, job *dq.Job, attributes []attribute.KeyValue) {
	if began, ok := ctx.Value(beganKey{}).(time.Time); ok {
		t.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
	}
	span := trace.SpanFromContext(ctx)
	if job.Lost() {
		span.AddEvent("lost")
		span.SetStatus(codes.Error, "lost")
	}
	span.End()
}
