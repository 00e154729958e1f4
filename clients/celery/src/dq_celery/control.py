"""Celery's remote control, as far as it concerns queues."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from kombu import serialization
from kombu.log import get_logger
from kombu.utils.json import loads

from . import jobs, results

logger = get_logger("dq_celery")

#: How many tasks of one queue ``celery inspect scheduled`` shows.
SHOWN = 1000


def revoke(channel: Any, message: dict[str, Any]) -> None:
    """Carries out a command of the control exchange on tasks in the server, if it is a revoke for all workers."""
    command = _command(channel, message)
    arguments = command.get("arguments") or {}
    if command.get("method") == "revoke":
        ids = arguments.get("task_id") or []
        _delete(channel, [ids] if isinstance(ids, str) else [str(id) for id in ids])
    elif command.get("method") == "revoke_by_stamped_headers":
        wanted = _stamps(arguments.get("headers") or {})
        for found in channel.scan_tasks():
            _delete(channel, [id for id, text in found if _is_stamped(text, wanted)])


def _command(channel: Any, message: dict[str, Any]) -> dict[str, Any]:
    body = channel.decode_body(message["body"], message["properties"].get("body_encoding"))
    # The program may accept signed content only; this message is its own.
    command = serialization.loads(body, message.get("content-type"), message.get("content-encoding"), force=True)
    if not isinstance(command, dict) or command.get("destination") or command.get("pattern"):
        return {}
    return command


def _stamps(headers: Any) -> dict[str, list[Any]]:
    """The stamps by name. Celery's command line sends them as a list of ``name=value``."""
    if isinstance(headers, list):
        headers = dict(each.partition("=")[::2] for each in headers)
    return {name: _listed(values) for name, values in headers.items()}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _is_stamped(text: bytes, wanted: dict[str, list[Any]]) -> bool:
    try:
        headers = loads(text)["headers"]
        stamps = headers.get("stamps") or {}
        names = set(headers.get("stamped_headers") or ()) & wanted.keys() & stamps.keys()
        return any(stamp in wanted[name] for name in names for stamp in _listed(stamps[name]))
    except (AttributeError, KeyError, TypeError, ValueError):  # not a message of Celery
        return False


def _delete(channel: Any, ids: list[str]) -> None:
    """Deletes tasks, and records them as a worker does that discards a task: no worker will see them."""
    deleted = channel.delete_tasks(ids) if ids else {}
    if "celery" in sys.modules:
        for id, text in deleted.items():
            results.revoked(channel, id, text)


def show_delayed() -> None:
    """Has ``celery inspect scheduled`` show tasks that wait in the server, beside those of this process's worker."""
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
        for _id, text, *_ in channel.peek(queue, "DELAYED", "COUNT", SHOWN):
            try:
                raw = jobs.message(text, tag="", attempts=1, due_ms=0, now_ms=0)
                message = channel.Message(raw, channel=channel, accept=consumer.task_consumer.accept)
                request = Request(message, app=state.app, hostname=consumer.hostname)
                eta = request.eta.isoformat() if request.eta else None
                yield {"eta": eta, "priority": 6, "request": request.info()}
            except Exception as error:  # of an unknown task, say: another worker shows it
                logger.debug("a delayed job of %r is not shown: %r", queue, error)
