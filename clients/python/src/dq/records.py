"""What the queries answer, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from ._delivery import as_map
from .codec import id_from
from .times import from_ms, maybe_duration, maybe_from_ms


@dataclass(frozen=True)
class Reserved:
    """A job that was popped by hand, without a worker."""

    queue: str
    id: str
    payload: bytes
    token: Optional[str]
    """What ``ack``, ``nack`` and ``touch`` need; None with NOACK."""
    attempt: int
    deadline: Optional[datetime]
    due: datetime
    results: list[tuple[str, Optional[str], Optional[bytes]]]
    """Id, outcome and result (or reason) of the jobs that it was after."""
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
            results=[(id_from(id), _text(outcome), value) for id, outcome, value in results],
            steps=_steps(steps),
        )


@dataclass(frozen=True)
class Rule:
    """When a recurring job comes: by ``every`` or by ``cron``."""

    every: Optional[timedelta]
    cron: Optional[str]
    tz: Optional[str]
    until: Optional[datetime]
    times: Optional[int]
    grace: Optional[timedelta]
    jitter: Optional[timedelta]
    occurrence: Optional[datetime]
    """The instant of the next one, or of the one that runs."""
    runs: int
    """How many have ended."""

    @staticmethod
    def read(fields: Mapping[str, Any]) -> Optional[Rule]:
        """None for a job that comes once."""
        if fields.get("every") is None and fields.get("cron") is None:
            return None
        return Rule(
            every=maybe_duration(fields.get("every")),
            cron=_text(fields.get("cron")),
            tz=_text(fields.get("tz")),
            until=maybe_from_ms(fields.get("until")),
            times=fields.get("times"),
            grace=maybe_duration(fields.get("grace")),
            jitter=maybe_duration(fields.get("jitter")),
            occurrence=maybe_from_ms(fields.get("occurrence")),
            runs=fields.get("runs") or 0,
        )


@dataclass(frozen=True)
class JobInfo:
    """A job as DQ.GET shows it."""

    id: str
    payload: bytes
    state: str
    priority: int
    due: Optional[datetime]
    deadline: Optional[datetime]
    ttr: timedelta
    attempts: int
    max_attempts: int
    backoff: list[timedelta]
    expires: Optional[datetime]
    token: Optional[str]
    reason: Optional[str]
    failed: Optional[datetime]
    group: Optional[str]
    next: Optional[bytes]
    """The payload of the job that follows this one (``if_exists="next"``)."""
    rule: Optional[Rule]
    result: Optional[bytes]
    """What its handler returned, as the codec encoded it; ``Queue.result`` decodes it."""
    progress: Optional[str]
    keep: Optional[timedelta]
    """How long it stays once it is done; None: as its queue says."""
    cost: int
    started: Optional[datetime]
    finished: Optional[datetime]
    after: list[str]
    """The jobs that it waits for, of those that have not ended."""
    after_group: Optional[str]
    on_dead: Optional[str]
    steps: Mapping[str, bytes]
    awaits: Optional[str]
    """The signal that it waits for."""
    fields: Mapping[str, Any]
    """All fields as the server gave them."""

    @staticmethod
    def read(reply: Optional[dict[bytes, Any]]) -> Optional[JobInfo]:
        if reply is None:
            return None
        fields = {name.decode(): value for name, value in reply.items()}
        return JobInfo(
            id=id_from(fields["id"]),
            payload=fields["payload"],
            state=fields["state"].decode(),
            priority=fields["priority"],
            due=maybe_from_ms(fields["due"]),
            deadline=maybe_from_ms(fields["deadline"]),
            ttr=timedelta(milliseconds=fields["ttr"]),
            attempts=fields["attempts"],
            max_attempts=fields["max-attempts"],
            backoff=[timedelta(milliseconds=ms) for ms in fields["backoff"]],
            expires=maybe_from_ms(fields["expires"]),
            token=_text(fields["token"]),
            reason=_text(fields.get("reason")),
            failed=maybe_from_ms(fields.get("failed")),
            group=None if fields.get("group") is None else id_from(fields["group"]),
            next=fields.get("next"),
            rule=Rule.read(fields),
            result=fields.get("result"),
            progress=_text(fields.get("progress")),
            keep=maybe_duration(fields.get("keep")),
            cost=fields.get("cost", 1),
            started=maybe_from_ms(fields.get("started")),
            finished=maybe_from_ms(fields.get("finished")),
            after=[id_from(id) for id in fields.get("after") or ()],
            after_group=None if fields.get("after-group") is None else id_from(fields["after-group"]),
            on_dead=_text(fields.get("on-dead")),
            steps=_steps(fields.get("steps")),
            awaits=_text(fields.get("awaits")),
            fields=fields,
        )


@dataclass(frozen=True)
class Peeked:
    """A job as DQ.PEEK shows it."""

    id: str
    payload: bytes
    at: datetime
    """When it is due, its lease ends, or it died, by the state that was asked for."""
    attempts: int
    priority: int

    @staticmethod
    def read(row: list[Any]) -> Peeked:
        id, payload, at, attempts, priority = row
        return Peeked(id_from(id), payload, from_ms(at), attempts, priority)


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
    """When the pause ends; ``datetime.max`` (in UTC): when it is resumed; None: it is not paused."""
    totals: Mapping[str, int]
    """``added``, ``delivered``, ``acked``, ``nacked``, ``timed-out``, ``died``, ``deleted``, ``expired``, ..."""
    lateness_count: int
    lateness_mean: timedelta
    lateness_max: timedelta
    lateness_buckets: list[tuple[Optional[timedelta], int]]
    """Upper bound (None: no bound) and how many deliveries were at most so late."""


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
    """None where there is no queue. A server may know fields that this library does not, and the other way round."""
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
        paused=_paused([each["paused"] for each in found]),
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


def _paused(ends: list[int]) -> Optional[datetime]:
    if -1 in ends:
        return PAUSED_UNTIL_RESUMED
    return from_ms(max(ends)) if max(ends) else None


def _steps(reply: Any) -> Mapping[str, bytes]:
    return {id_from(name): value for name, value in (as_map(reply) or {}).items()}


def _text(raw: Optional[bytes]) -> Optional[str]:
    return None if raw is None else raw.decode("utf-8", "replace")
