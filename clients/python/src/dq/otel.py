"""OpenTelemetry: ``pip install dq-redis[otel]``.

    telemetry = dq.otel.Telemetry()
    queue = dq.Queue(url, "orders", hooks=[telemetry])
    worker = dq.Worker(queue, close, hooks=[telemetry])

The producer's context travels in the job's headers. Each attempt is a span of its own that is *linked* to the
producer's. A child would keep the producer's trace open for as long as the job waits, which may be months.
"""

from __future__ import annotations

import time
from contextvars import Token
from typing import Any, Optional

from opentelemetry import context, metrics, propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from ._texts import brief
from .errors import ControlError
from .hooks import Hooks
from .job import BaseJob

SYSTEM = {"messaging.system": "dq"}


class Telemetry(Hooks):
    """Spans and metrics by the semantic conventions for messaging."""

    def __init__(
        self,
        tracer_provider: Optional[trace.TracerProvider] = None,
        meter_provider: Optional[metrics.MeterProvider] = None,
    ) -> None:
        self._tracer = trace.get_tracer("dq", tracer_provider=tracer_provider)
        meter = metrics.get_meter("dq", meter_provider=meter_provider)
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs that were added")
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Jobs that were delivered"
        )
        self._duration = meter.create_histogram("messaging.process.duration", "s", "Duration of handlers")
        self._lost = meter.create_counter(
            "dq.client.lost.messages", "{message}", "Jobs whose lease ended unacknowledged"
        )
        self._running: dict[BaseJob, tuple[Span, Token[Any], float]] = {}

    def adding(self, queue: str, headers: dict[str, str]) -> None:
        attributes = {**SYSTEM, "messaging.destination.name": queue, "messaging.operation.type": "send"}
        with self._tracer.start_as_current_span(f"send {queue}", kind=SpanKind.PRODUCER, attributes=attributes):
            propagate.inject(headers)
        self._sent.add(1, {**SYSTEM, "messaging.destination.name": queue})

    def before(self, job: BaseJob) -> None:
        producer = trace.get_current_span(propagate.extract(dict(job.headers), context.Context())).get_span_context()
        attributes: dict[str, Any] = {
            **SYSTEM,
            "messaging.destination.name": job.queue,
            "messaging.operation.type": "process",
            "messaging.message.id": job.id,
            "dq.attempt": job.attempt,
        }
        span = self._tracer.start_span(
            f"process {job.queue}",
            context=context.Context(),
            kind=SpanKind.CONSUMER,
            links=[Link(producer)] if producer.is_valid else [],
            attributes=attributes,
        )
        token = context.attach(trace.set_span_in_context(span))
        self._running[job] = span, token, time.perf_counter()
        self._consumed.add(1, {**SYSTEM, "messaging.destination.name": job.queue})

    def after(self, job: BaseJob) -> None:
        self._end(job, None)

    def suspended(self, job: BaseJob) -> None:
        self._end(job, None)

    def failed(self, job: BaseJob, error: BaseException) -> None:
        self._end(job, error)

    def _end(self, job: BaseJob, error: Optional[BaseException]) -> None:
        if job not in self._running:
            return
        span, token, begin = self._running.pop(job)
        context.detach(token)  # first: with an odd error the rest may fail
        attributes = {**SYSTEM, "messaging.destination.name": job.queue}
        if error is not None:
            attributes["error.type"] = type(error).__name__
            span.record_exception(error)
            if not isinstance(error, ControlError):
                span.set_status(Status(StatusCode.ERROR, brief(error).decode()))
        self._duration.record(time.perf_counter() - begin, attributes)
        span.end()

    def lost(self, job: BaseJob) -> None:
        """Called by another thread or task, perhaps after the handler's end. Then its span cannot show the loss."""
        self._lost.add(1, {**SYSTEM, "messaging.destination.name": job.queue})
        span, *_ = self._running.get(job, (None,))
        if span is not None:
            span.add_event("lost", {"messaging.message.id": job.id})
            span.set_status(Status(StatusCode.ERROR, "lost"))
