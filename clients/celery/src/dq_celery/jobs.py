"""Converts messages of kombu to jobs of dq, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from kombu.utils.json import dumps, loads

LATEST_MS = (1 << 42) - 1
LONGEST_ID = 1024
LONGEST_LABEL = 256
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def job_id(message: Mapping[str, Any]) -> str:
    """The task's id, so that the task can be cancelled by it. Other messages have the id that kombu made for them."""
    headers = message.get("headers") or {}
    task_id = headers.get("id")
    if headers.get("task") and task_id and len(str(task_id).encode()) <= LONGEST_ID:
        if task_id == "*":  # the server would make an id
            raise ValueError('id: "*" is not an id; leave it out for a new one')
        return str(task_id)
    return message["properties"]["delivery_tag"]


def instant_ms(value: Any) -> Optional[int]:
    """Unix time in milliseconds, rounded up.

    None if the value is not an instant: a time without a zone is left to the worker.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return None
    return -((EPOCH - value) // timedelta(milliseconds=1))


def timing(message: Mapping[str, Any], now_ms: int, grace_ms: int) -> list[Any]:
    """The options of DQ.ADD that say when the job is due and when it expires.

    A task whose result may be waited for is kept for ``grace_ms`` after it expired, and is due by then. The worker that
    gets it does not run it, and records that it was revoked.
    """
    headers = message.get("headers") or {}
    due, expires = instant_ms(headers.get("eta")), instant_ms(headers.get("expires"))
    ttl_ms = message["properties"].get("expiration")
    if expires is not None:
        # Celery sets the message's own expiration as well.
        ttl_ms = expires - now_ms + (0 if headers.get("ignore_result") else grace_ms)
        due = due and min(due, expires + 1)
    options: list[Any] = []
    if due is not None and due > now_ms:
        options += ["AT", min(due, LATEST_MS)]
    if ttl_ms is not None and now_ms + int(ttl_ms) < LATEST_MS:
        options += ["TTL", max(1, int(ttl_ms))]
    return options


def labelled(message: Mapping[str, Any]) -> list[Any]:
    """The option of DQ.ADD that says which task it is, where its name can be a label."""
    try:
        name = str((message.get("headers") or {}).get("task") or "")
        return ["LABEL", name] if 1 <= len(name.encode()) <= LONGEST_LABEL else []
    except UnicodeEncodeError:
        return []


def payload(message: Mapping[str, Any]) -> str:
    return dumps(message)


def field(shown: Any, name: bytes) -> Any:
    """A field of DQ.GET's reply: in RESP2 a list of names and values. None if the reply is nil or an error."""
    if isinstance(shown, list):
        shown = dict(zip(shown[::2], shown[1::2]))
    return shown[name] if isinstance(shown, Mapping) else None


def message(text: bytes, tag: str, attempts: int, due_ms: int, now_ms: int) -> dict[str, Any]:
    """The message of a delivered job. Raises ValueError if the payload is not a message of kombu."""
    found = loads(text)
    try:
        properties, headers = found["properties"], found.setdefault("headers", {})
        properties["delivery_tag"] = tag
        if attempts > 1:
            headers["redelivered"] = True
            properties["delivery_info"]["redelivered"] = True
        eta = instant_ms(headers.get("eta"))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a message of kombu: {error!r}") from error
    if eta is not None and now_ms < eta <= due_ms:
        # It is due by the server's clock. If this host's clock is behind, the worker would hold it back.
        headers["eta"] = None
    return found
