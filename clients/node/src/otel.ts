// OpenTelemetry: needs @opentelemetry/api.
//
//     const telemetry = new Telemetry();
//     const queue = new Queue(url, 'orders', { hooks: [telemetry] });
//     const worker = new Worker(queue, close, { hooks: [telemetry] });
//
// The producer's context travels in the job's headers. Each attempt is a span of its own that is *linked* to the producer's.
// A child would keep the producer's trace open for as long as the job waits, which may be months.

import {
  type Attributes,
  type Context,
  context,
  type Counter,
  type Histogram,
  metrics,
  type MeterProvider,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { isControl } from './guard';
import type { Hooks } from './hooks';
import type { Job } from './job';
import { stackOf, textOf, typeOf } from './format';

interface Running {
  span: Span;
  context: Context;
  beginMs: number;
}

const about = (queue: string): Attributes => ({ 'messaging.system': 'dq', 'messaging.destination.name': queue });

/** Spans and metrics by the semantic conventions for messaging. */
export class Telemetry implements Hooks {
  private readonly tracer: Tracer;
  private readonly sent: Counter;
  private readonly consumed: Counter;
  private readonly losses: Counter;
  private readonly duration: Histogram;
  private readonly running = new WeakMap<Job, Running>();

  constructor(providers: { tracerProvider?: TracerProvider; meterProvider?: MeterProvider } = {}) {
    const meter = (providers.meterProvider ?? metrics).getMeter('dq');
    const messages = (description: string) => ({ unit: '{message}', description });
    this.tracer = (providers.tracerProvider ?? trace).getTracer('dq');
    this.sent = meter.createCounter('messaging.client.sent.messages', messages('Jobs that were added'));
    this.consumed = meter.createCounter('messaging.client.consumed.messages', messages('Jobs that were delivered'));
    this.losses = meter.createCounter('dq.client.lost.messages', messages('Jobs whose lease ended unacknowledged'));
    this.duration = meter.createHistogram('messaging.process.duration', {
      unit: 's',
      description: 'Duration of handlers',
    });
  }

  adding(queue: string, headers: Record<string, string>): void {
    const attributes = { ...about(queue), 'messaging.operation.type': 'send' };
    const span = this.tracer.startSpan(`send ${queue}`, { kind: SpanKind.PRODUCER, attributes });
    propagation.inject(trace.setSpan(context.active(), span), headers);
    span.end();
    this.sent.add(1, about(queue));
  }

  before(job: Job): void {
    const producer = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, job.headers));
    const attributes = {
      ...about(job.queue),
      'messaging.operation.type': 'process',
      'messaging.message.id': job.id,
      'dq.attempt': job.attempt,
    };
    const links = producer ? [{ context: producer }] : [];
    const options = { kind: SpanKind.CONSUMER, attributes, links };
    const span = this.tracer.startSpan(`process ${job.queue}`, options, ROOT_CONTEXT);
    this.running.set(job, { span, context: trace.setSpan(ROOT_CONTEXT, span), beginMs: performance.now() });
    this.consumed.add(1, about(job.queue));
  }

  /** Runs the handler in its span's context; a batch runs in that of its first job. */
  context(jobs: readonly Job[], next: () => unknown): unknown {
    return context.with(this.running.get(jobs[0]!)?.context ?? context.active(), next);
  }

  after(job: Job): void {
    this.end(job);
  }

  suspended(job: Job): void {
    this.end(job);
  }

  failed(job: Job, error: unknown): void {
    this.end(job, error, true);
  }

  private end(job: Job, error?: unknown, isFailed = false): void {
    const running = this.running.get(job);
    if (!running) return;
    this.running.delete(job);
    const attributes = about(job.queue);
    if (isFailed) {
      attributes['error.type'] = typeOf(error);
      const message = textOf(error);
      running.span.recordException({ name: typeOf(error), message, stack: stackOf(error) });
      if (!isControl(error)) running.span.setStatus({ code: SpanStatusCode.ERROR, message });
    }
    this.duration.record((performance.now() - running.beginMs) / 1000, attributes);
    running.span.end();
  }

  /** Called perhaps after the handler's end. Then its span cannot show the loss. */
  lost(job: Job): void {
    this.losses.add(1, about(job.queue));
    const span = this.running.get(job)?.span;
    span?.addEvent('lost', { 'messaging.message.id': job.id });
    span?.setStatus({ code: SpanStatusCode.ERROR, message: 'lost' });
  }
}
