"""Errors that users see."""

from __future__ import annotations

from kombu.exceptions import KombuError
from redis import exceptions

#: Beginnings of errors that another connection, perhaps to another server, may avoid.
ELSEWHERE = ("UNBLOCKED", "READONLY", "LOADING", "MASTERDOWN")


class NoModule(KombuError):
    """The server has no dq module."""


class NotRetried(KombuError):
    """The server refused the new message of a retry, as its memory or the queue is full."""

    def __init__(self, text: str, retries: int, wait_ms: int) -> None:
        super().__init__(text, retries, wait_ms)
        self.retries = retries
        self.wait_ms = wait_ms


class OtherKey(KombuError):
    """The queue's name is that of a key that is not a queue of dq."""


def is_full(error: exceptions.ResponseError) -> bool:
    """Whether the server refused a command as its memory or the queue is full. redis-py cuts the first word off."""
    return "maxmemory" in str(error) or "queue is full" in str(error)


def translate(error: exceptions.ResponseError, key: str) -> Exception:
    """The exception to raise instead; the error itself if there is nothing to add."""
    text = str(error)
    if "unknown command" in text.lower():
        return NoModule(f"the broker has no dq module ({text}): load libdq.so, or use the redis:// transport")
    if "WRONGTYPE" in text or "wrong kind of value" in text:
        return OtherKey(
            f"the key {key!r} is no queue of dq, perhaps a list of kombu's redis transport: "
            "let the old workers empty it, or use another database, as in dq://host/1"
        )
    if isinstance(error, exceptions.ReadOnlyError) or text.startswith(ELSEWHERE):
        return exceptions.ConnectionError(text)
    return error
