package io.github.redisdq.otel;

import io.github.redisdq.ControlException;
import io.github.redisdq.Hooks;
import io.github.redisdq.Job;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.api.metrics.LongCounter;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Traces and metrics by the semantic conventions for messaging, as hooks of queues and workers. Needs opentelemetry-api.
 *
 * <p>The producer's context travels in the job's headers. Each attempt is a span of its own that is linked to the
 * producer's: a child would keep that trace open for as long as the job waits, which may be months.
 */
public final class Telemetry implements Hooks {
    private static final String SCOPE = "io.github.redisdq";
    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("messaging.system");
    private static final AttributeKey<String> DESTINATION = AttributeKey.stringKey("messaging.destination.name");
    private static final AttributeKey<String> OPERATION = AttributeKey.stringKey("messaging.operation.type");
    private static final TextMapGetter<Map<String, String>> GETTER = new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, String> headers) {
            return headers.keySet();
        }

        @Override
        public String get(Map<String, String> headers, String key) {
            return headers == null ? null : headers.get(key);
        }
    };

    private record Running(Span span, Scope scope, long began) {}

    private final OpenTelemetry telemetry;
    private final Tracer tracer;
    private final LongCounter sent;
    private final LongCounter consumed;
    private final LongCounter lost;
    private final DoubleHistogram duration;
    private final Map<Job, Running> running = new ConcurrentHashMap<>();

    public Telemetry() {
        this(GlobalOpenTelemetry.get());
    }

    public Telemetry(OpenTelemetry telemetry) {
        this.telemetry = telemetry;
        tracer = telemetry.getTracer(SCOPE);
        Meter meter = telemetry.getMeter(SCOPE);
        sent = meter.counterBuilder("messaging.client.sent.messages").setUnit("{message}").build();
        consumed = meter.counterBuilder("messaging.client.consumed.messages").setUnit("{message}").build();
        lost = meter.counterBuilder("dq.client.lost.messages").setUnit("{message}").build();
        duration = meter.histogramBuilder("messaging.process.duration").setUnit("s").build();
    }

    private static Attributes about(String queue) {
        return Attributes.of(SYSTEM, "dq", DESTINATION, queue);
    }

    @Override
    public void adding(String queue, Map<String, String> headers) {
        Span span = tracer.spanBuilder("send " + queue)
                .setSpanKind(SpanKind.PRODUCER)
                .setAllAttributes(about(queue))
                .setAttribute(OPERATION, "send")
                .startSpan();
        Context context = Context.current().with(span);
        telemetry.getPropagators().getTextMapPropagator().inject(context, headers, Map::put);
        span.end();
        sent.add(1, about(queue));
    }

    @Override
    public void before(Job job) {
        Context from = telemetry.getPropagators().getTextMapPropagator().extract(Context.root(), job.headers(), GETTER);
        SpanContext producer = Span.fromContext(from).getSpanContext();
        SpanBuilder builder = tracer.spanBuilder("process " + job.queue())
                .setNoParent()
                .setSpanKind(SpanKind.CONSUMER)
                .setAllAttributes(about(job.queue()))
                .setAttribute(OPERATION, "process")
                .setAttribute("messaging.message.id", job.id())
                .setAttribute("dq.attempt", job.attempt());
        if (producer.isValid()) {
            builder.addLink(producer);
        }
        Span span = builder.startSpan();
        running.put(job, new Running(span, span.makeCurrent(), System.nanoTime()));
        consumed.add(1, about(job.queue()));
    }

    @Override
    public void after(Job job) {
        end(job, null);
    }

    @Override
    public void failed(Job job, Throwable error) {
        end(job, error);
    }

    @Override
    public void suspended(Job job) {
        end(job, null);
    }

    /** Perhaps after the handler's end: then its span cannot have it. */
    @Override
    public void lost(Job job) {
        lost.add(1, about(job.queue()));
        Running it = running.get(job);
        if (it != null) {
            it.span.addEvent("lost").setStatus(StatusCode.ERROR, "lost");
        }
    }

    private void end(Job job, Throwable error) {
        Running it = running.remove(job);
        if (it == null) {
            return;
        }
        Attributes attributes = about(job.queue());
        try {
            if (error != null) {
                attributes = attributes.toBuilder().put("error.type", error.getClass().getName()).build();
                if (!(error instanceof ControlException)) {
                    it.span.setStatus(StatusCode.ERROR);
                }
                it.span.recordException(error); // whose text may be hostile
            }
        } finally {
            duration.record((System.nanoTime() - it.began) / 1e9, attributes);
            it.scope.close();
            it.span.end();
        }
    }
}
