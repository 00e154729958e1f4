"""OpenTelemetry: attempts are linked to their producer, no span stays current, and losses are counted."""

import pytest

import dq


@pytest.fixture
def watched():
    """The hooks, and what they say: the spans, and the figures by name."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from dq.otel import Telemetry

    spans, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    def figures():
        resources = reader.get_metrics_data().resource_metrics
        scopes = [scope for resource in resources for scope in resource.scope_metrics]
        return {metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics}

    return Telemetry(provider, MeterProvider([reader])), spans.get_finished_spans, figures


def test_telemetry_links_attempts_to_the_producer(dq_url, watched):
    telemetry, spans, figures = watched
    queue = dq.Queue(dq_url, "q", hooks=[telemetry])
    queue.add({"n": 1}, id="a", backoff=[60], attempts=1)

    def fail(job):
        raise ValueError("no")

    dq.Worker(queue, fail, hooks=[telemetry]).drain()
    sent, processed = spans()
    assert processed.links[0].context.trace_id == sent.context.trace_id
    assert processed.parent is None and processed.context.trace_id != sent.context.trace_id
    assert processed.status.is_ok is False
    assert {*figures()} == {
        "messaging.client.sent.messages", "messaging.client.consumed.messages", "messaging.process.duration",
    }  # fmt: skip


@pytest.mark.parametrize("batch", [0, 10])
def test_telemetry_leaves_no_span_behind_and_counts_losses(queue, watched, batch):
    from opentelemetry import trace

    telemetry, spans, figures = watched
    queue.add_many([{"data": n, "id": f"j{n}"} for n in range(4)])

    def handle(jobs):
        jobs = jobs if batch else [jobs]
        for job in jobs:
            if job.id == "j1":
                job.fail(ValueError("no"))
            if job.id == "j2":
                queue.add(1, id="j2", if_exists="replace", delay=60)  # it is lost, which its ACK finds out
            if job.id == "j3":
                job._delivery.owner.lose([job._delivery])  # as a heartbeat does while it runs

    worker = dq.Worker(queue, dq.Handler(handle, batch=batch), hooks=[telemetry])
    assert worker.drain() == 4
    assert not trace.get_current_span().get_span_context().is_valid, "a span is current after the handler"
    finished = {span.attributes["messaging.message.id"]: span for span in spans()}
    assert sorted(finished) == ["j0", "j1", "j2", "j3"]
    assert [event.name for event in finished["j3"].events] == ["lost"] and not finished["j3"].status.is_ok
    assert sum(point.value for point in figures()["dq.client.lost.messages"]) == 2
