"""Results of tasks whose end no worker sees, and what their chords and errbacks are told."""

from __future__ import annotations

from typing import Any

from kombu import serialization
from kombu.log import get_logger

from . import jobs

logger = get_logger("dq_celery")


def revoked(channel: Any, id: str, text: bytes) -> None:
    """Stores what a worker stores that discards the task."""
    from celery import current_app as app

    try:
        app.backend.mark_as_revoked(id, "revoked", request=_request(app, channel, text))
    except Exception as error:
        logger.warning("task %s is revoked, but its state was not stored: %r", id, error)


def failed(channel: Any, text: bytes, why: str) -> None:
    """Stores what a worker stores whose process was lost.

    Does nothing if the payload is not a task, or if the task has a result already.
    """
    from celery import current_app as app
    from celery.exceptions import WorkerLostError

    request = _request(app, channel, text)
    if request is None or request.id is None:
        return
    task = app.tasks.get(request.task)
    store = not request.ignore_result or getattr(task, "store_errors_even_if_ignored", False)
    if store and app.backend.get_state(request.id) in app.backend.READY_STATES:
        return
    logger.error("task %s[%s] failed: %s", request.task, request.id, why)
    app.backend.mark_as_failure(request.id, WorkerLostError(why), request=request, store_result=store)


def _request(app: Any, channel: Any, text: bytes) -> Any:
    """What the result backend needs to tell the task's chord. None if the task cannot be read."""
    from celery.app.task import Context

    try:
        accept = serialization.prepare_accept_content(app.conf.accept_content)
        raw = jobs.message(text, tag="", attempts=1, due_ms=0, now_ms=0)
        message = channel.Message(raw, channel=channel, accept=accept)
        args, kwargs, embedded = message.payload
        answer = {name: message.properties.get(name) for name in ("reply_to", "correlation_id")}
        return Context(message.headers, args=args, kwargs=kwargs, **answer, **(embedded or {}))
    except Exception as error:
        logger.debug("a task cannot be read: %r", error)
        return None
