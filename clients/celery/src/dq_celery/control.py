"""Remote control of Celery, where it reaches into queues."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from kombu import serialization
from kombu.log import get_logger

from . import jobs

logger = get_logger("dq_celery")

#: Tasks of one queue that ``celery inspect scheduled`` shows.
SHOWN = 1000


def revoked_ids(channel: Any, message: dict[str, Any]) -> list[str]:
    """The task ids of a command of the control exchange, if it is a revoke meant for all workers."""
    body = channel.decode_body(message["body"], message["properties"].get("body_encoding"))
    # The program may have disabled all content but signed one; this is its own.
    command = serialization.loads(body, message.get("content-type"), message.get("content-encoding"), force=True)
    if not isinstance(command, dict) or command.get("method") != "revoke":
        return []
    if command.get("destination") or command.get("pattern"):
        return []
    ids = (command.get("arguments") or {}).get("task_id") or []
    return [ids] if isinstance(ids, str) else [str(id) for id in ids]


def record_revoked(ids: Iterable[str]) -> None:
    """As a worker would that discards the task. No worker will see it."""
    celery = sys.modules.get("celery")
    if celery is None:
        return
    for id in ids:
        try:
            celery.current_app.backend.mark_as_revoked(id, "revoked")
        except Exception as error:
            logger.warning("task %s is revoked, but its state was not stored: %r", id, error)


def show_delayed() -> None:
    """Lets ``celery inspect scheduled`` show what waits in the server, beside what this process's worker holds."""
    control = sys.modules.get("celery.worker.control")
    if control is None:
        return
    shown = control.Panel.data["scheduled"]
    if getattr(shown, "shows_delayed", False):
        return

    @control.inspect_command(alias="dump_schedule")
    def scheduled(state: Any, **kwargs: Any) -> list[Any]:
        """List of currently scheduled ETA/countdown tasks."""
        return list(shown(state, **kwargs)) + list(_delayed(state))

    scheduled.shows_delayed = True


def _delayed(state: Any) -> Iterator[dict[str, Any]]:
    from celery.worker.request import Request

    consumer = state.consumer
    channel = consumer.task_consumer.channel
    for queue in channel.active_queues:
        for text in channel.peek_delayed(queue, SHOWN):
            try:
                raw = jobs.message(text, tag="", attempts=1, due_ms=0, now_ms=0)
                message = channel.Message(raw, channel=channel, accept=consumer.task_consumer.accept)
                request = Request(message, app=state.app, hostname=consumer.hostname)
                eta = request.eta.isoformat() if request.eta else None
                yield {"eta": eta, "priority": 6, "request": request.info()}
            except Exception as error:  # of an unknown task, say: shown by others
                logger.debug("a delayed job of %r is not shown: %r", queue, error)
