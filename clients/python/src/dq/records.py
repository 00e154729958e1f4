"""Typed replies of all queries but DQ.GET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from ._reading import results_of, steps_of
from .codec import id_from
from .times import from_ms, maybe_duration, maybe_from_ms


@dataclass(frozen=True)
class Reserved:
    """A job taken by ``pop`` or ``bpop``, without a worker."""

    queue: str
    id: str
    payload: bytes
    token: Optional[str]
    """What ``ack``, ``nack`` and ``touch`` need; None with ``noack``."""
    attempt: int
    deadline: Optional[datetime]
    due: datetime
    results: list[tuple[str, Optional[str], Optional[bytes]]]
    """Id, outcome and result (or reason) of the jobs that this one was ``after``."""
    steps: Mapping[str, bytes]

    @staticmethod
    def read(key: bytes, row: list[Any]) -> Reserved:
        id, payload, token, attempt, deadline, due, results, steps = row
        return Reserved(
            queue=id_from(key),
            id=id_from(id),
            payload=payload,
            token=token and token.decode(),
            attempt=attempt,
            deadline=maybe_from_ms(deadline),
            due=from_ms(due),
            results=results_of(results),
            steps=steps_of(steps),
        )


@dataclass(frozen=True)
class Peeked:
    """A job as DQ.PEEK shows it."""

    id: str
    payload: bytes
    at: Optional[datetime]
    """When the job is due, its lease ends, or it died, depending on the state that was asked for."""
    attempts: int
    priority: int
    payload_bytes: int
    """The payload's whole length, where ``payload`` is a prefix of it, too."""

    @staticmethod
    def read(row: list[Any]) -> Peeked:
        id, payload, at, attempts, priority, *whole = row
        return Peeked(id_from(id), payload, maybe_from_ms(at), attempts, priority, whole[0] if whole else len(payload))


@dataclass(frozen=True)
class Group:
    """A group that holds jobs."""

    name: str
    waiting: int
    reserved: int


PAUSED_UNTIL_RESUMED = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Stats:
    """A queue's figures; of a sharded queue, those of its shards added up."""

    delayed: int
    ready: int
    reserved: int
    dead: int
    blocked: int
    done: int
    done_bytes: int
    recurring: int
    groups: int
    rate_used: int
    bytes: int
    next_due: Optional[datetime]
    oldest_ready: Optional[timedelta]
    waiting_clients: int
    paused: Optional[datetime]
    """When the pause ends. ``datetime.max`` (in UTC): when it is resumed. None: the queue is not paused."""
    totals: Mapping[str, int]
    """``added``, ``delivered``, ``acked``, ``nacked``, ``timed-out``, ``died``, ``deleted``, ``expired``, ..."""
    lateness_count: int
    lateness_mean: timedelta
    lateness_max: timedelta
    lateness_buckets: list[tuple[Optional[timedelta], int]]
    """Upper bounds (None: no bound), and how many deliveries were at most that late."""


_COUNTS = {
    "delayed": "delayed",
    "ready": "ready",
    "reserved": "reserved",
    "dead": "dead",
    "blocked": "blocked",
    "done": "done",
    "done-bytes": "done_bytes",
    "recurring": "recurring",
    "groups": "groups",
    "rate-used": "rate_used",
    "bytes": "bytes",
    "waiting-clients": "waiting_clients",
}
_NOT_TOTALS = {*_COUNTS, "next-due", "oldest-ready-ms", "paused"}


def add_up(replies: list[Optional[dict[bytes, Any]]]) -> Optional[Stats]:
    """The shards' figures, added up; None if there is no queue. Server and library need not know the same fields."""
    found = [{name.decode(): value for name, value in reply.items()} for reply in replies if reply is not None]
    if not found:
        return None

    def total(name: str) -> int:
        return sum(each.get(name, 0) for each in found)

    dues = [each["next-due"] for each in found if each["next-due"] is not None]
    ages = [each["oldest-ready-ms"] for each in found if each["oldest-ready-ms"] is not None]
    count = total("lateness-count")
    buckets: dict[Optional[int], int] = {}
    for each in found:
        for bound, number in each["lateness-buckets"]:
            buckets[bound] = buckets.get(bound, 0) + number
    return Stats(
        **{field: total(name) for name, field in _COUNTS.items()},
        next_due=maybe_from_ms(min(dues, default=None)),
        oldest_ready=maybe_duration(max(ages, default=None)),
        paused=paused_until([each["paused"] for each in found]),
        totals={
            name: total(name)
            for name, value in found[0].items()
            if name not in _NOT_TOTALS and not name.startswith("lateness-") and isinstance(value, int)
        },
        lateness_count=count,
        lateness_mean=timedelta(microseconds=total("lateness-sum") / count if count else 0),
        lateness_max=timedelta(microseconds=max(each["lateness-max"] for each in found)),
        lateness_buckets=[
            (None if bound is None else timedelta(microseconds=bound), number) for bound, number in buckets.items()
        ],
    )


def paused_until(ends: list[int]) -> Optional[datetime]:
    if -1 in ends:
        return PAUSED_UNTIL_RESUMED
    return from_ms(max(ends)) if max(ends) else None
