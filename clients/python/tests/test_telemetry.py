"""OpenTelemetry: no span stays current, and losses are counted."""

import pytest

import dq


@pytest.mark.parametrize("batch", [0, 10])
def test_telemetry_leaves_no_span_behind_and_counts_losses(dq_url, batch):
    from opentelemetry import trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from dq.otel import Telemetry

    spans, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = Telemetry(provider, MeterProvider([reader]))
    queue = dq.Queue(dq_url, "q")
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
    finished = {span.attributes["messaging.message.id"]: span for span in spans.get_finished_spans()}
    assert sorted(finished) == ["j0", "j1", "j2", "j3"]
    assert [event.name for event in finished["j3"].events] == ["lost"] and not finished["j3"].status.is_ok
    (lost,) = [
        metric
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "dq.client.lost.messages"
    ]
    assert sum(point.value for point in lost.data.data_points) == 2
