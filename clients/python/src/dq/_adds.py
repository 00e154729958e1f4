"""What adds jobs."""

from __future__ import annotations

import os
import random
import time
from binascii import hexlify
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from . import _arguments as words
from . import _guard
from ._arguments import Bytes, Ladder
from ._delivery import Command
from ._many import Added, Grouped
from ._options import near_misses, unknown
from .codec import Codec, Envelope
from .hooks import Hooks
from .times import Duration, to_ms

T = TypeVar("T")
_NAMED = ("priority", "ttr", "attempts", "backoff", "ttl", "group", "keep", "cost")
_AFTER = ("after", "after_group", "on_dead")
_FIXED = (int, float, str, bytes, timedelta, datetime, type(None))
_ABSENT = object()
_OWN = frozenset(("data", "id", "kind", "headers"))
_OF_JOBS = ("data", "delay", "at", "id", "if_exists", *_NAMED, *_AFTER, "kind", "headers")

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class AddOptions(TypedDict, total=False):
        id: Bytes
        delay: Duration
        at: datetime
        if_exists: str
        priority: int
        ttr: Duration
        attempts: int
        backoff: Ladder
        ttl: Duration
        group: str
        cost: int
        after: Sequence[Bytes]
        after_group: str
        on_dead: str
        kind: str
        headers: Mapping[str, str]


_CHANCE = random.Random()
"""Of this process alone, whatever the program does with that of the module."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHANCE.seed)


def new_id() -> bytes:
    """Later ones are greater, and no two are alike: 48 bits of time, 80 of chance."""
    return hexlify((time.time_ns() // 1_000_000 << 80 | _CHANCE.getrandbits(80)).to_bytes(16, "big"))


class _Like:
    """The words of a job's options: of many jobs most have the same."""

    def __init__(self) -> None:
        self._options: Mapping[str, Any] = {}
        self.words: Sequence[Any] = []
        self.if_exists: Optional[str] = None
        self.is_how = (False, True)
        """Whether it is after others, and whether it can go along with others."""

    def or_of_job(self, job: Mapping[str, Any]) -> _Like:
        """Itself, with the words of the options that this job has."""
        if not self._are_those_of(job):
            options = {name: value for name, value in job.items() if name not in _OWN}
            self._read({**options})
            self._options = options
        return self

    def _are_those_of(self, job: Mapping[str, Any]) -> bool:
        """Of the same types, too; what can change may have changed."""
        options = self._options
        left = len(options)
        for name, value in job.items():
            if name in _OWN:
                continue
            known = options.get(name, _ABSENT)
            if type(value) not in _FIXED or type(known) is not type(value) or known != value:
                return False
            left -= 1
        return left == 0

    def _read(self, rest: dict[str, Any]) -> None:
        self.if_exists = rest.pop("if_exists", None)
        after = words.after(*(rest.pop(name, None) for name in _AFTER))
        due = words.due(rest.pop("delay", None), rest.pop("at", None))
        named = {name: rest.pop(name, None) for name in _NAMED}
        for name in rest:
            raise unknown("a job", name, _OF_JOBS)
        self.words = [*words.condition(self.if_exists), *due, *words.job_options(**named), *after]
        self.is_how = (bool(after), self.if_exists != "next" and not after)


@near_misses("Queue")
class Adds:
    name: str
    hooks: Sequence[Hooks]
    codec: Codec
    _log: _guard.Log

    def _key(self, id: Bytes) -> bytes:
        raise NotImplementedError

    def _run(self, calls: Sequence[Any], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        """grouped: what makes fewer commands of the calls."""
        raise NotImplementedError

    def _steps(
        self,
        data: Any,
        id: bytes,
        kind: Optional[str],
        headers: Optional[Mapping[str, str]],
        options: Sequence[Any],
        key: Optional[bytes] = None,
    ) -> Generator[_guard.Adding, None, Command]:
        """Yields each hook whose answer is to be awaited before the next one is called."""
        for hooks in self.hooks:
            adding = _guard.Adding(self._log, hooks, self.name, dict(headers or {}))
            if adding.waits is not None:
                yield adding
            headers = adding.headers
        payload = Envelope.write(data, kind, headers) if kind is not None or headers else self.codec.encode(data)
        return ("DQ.ADD", key or self._key(id), id, payload, *options)

    def _now(self, steps: Any) -> Command:
        """The command, where nothing can be awaited."""
        while not isinstance(steps, tuple):
            try:
                adding = next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            _guard.unawaited(self._log, adding.hooks, "adding", adding.waits)
        return steps

    def _add(self, *parts: Any) -> Any:
        """The command, or the steps to it."""
        return self._now(self._steps(*parts))

    def add(
        self,
        data: Any,
        *,
        id: Optional[Bytes] = None,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        if_exists: Optional[str] = None,
        priority: Optional[int] = None,
        ttr: Optional[Duration] = None,
        attempts: Optional[int] = None,
        backoff: Optional[Ladder] = None,
        ttl: Optional[Duration] = None,
        group: Optional[str] = None,
        keep: Optional[Duration] = None,
        cost: Optional[int] = None,
        after: Optional[Sequence[Bytes]] = None,
        after_group: Optional[str] = None,
        on_dead: Optional[str] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Optional[str]:
        """Adds a job, due now, after ``delay`` or ``at`` an instant. Returns its id, or None where it was refused.

        data: bytes, or what the codec makes bytes of (JSON unless the queue says otherwise).
        id: unique in the queue; without one the job gets one. A second job of an id that is there is refused, so
            adding twice does no harm; ``if_exists`` may be "replace", "only-replace" (XX) or "next" (run once more
            when the current run is over).
        attempts, backoff, ttr: the job's own; without them the queue's, then those of the worker's handler count.
        ttl: the job vanishes so long after it was added.
        keep: so long it stays with its result after it is done.
        cost: what it counts in the rates of the queue and of its group.
        after: ids of jobs of this queue that end before it begins; its ``job.results`` tells how.
        after_group: the same for all jobs of that group.
        on_dead: what it does if one of ``after`` dies: "wait" (the default, as it may be kicked), "run" or "die".
        """
        options = words.job_options(priority, ttr, attempts, backoff, ttl, group, keep, cost)
        options += words.condition(if_exists) + words.due(delay, at) + words.after(after, after_group, on_dead)
        made = new_id() if id is None else words.bytes_of(id)
        # One of our own that is there already came by a first sending, whose answer was lost.
        known = made if id is None and if_exists != "only-replace" else None
        call = self._add(data, made, kind, headers, options)
        return self._run([call], lambda replies: words.maybe_id(replies[0] or known))

    def _added(self, job: Mapping[str, Any], key: Optional[bytes] = None, before: Optional[_Like] = None) -> Added:
        """What adds a job, a mapping of what ``add`` takes.

        key: whatever its id's own shard is.
        before: what is known of the options of the one before.
        """
        if not (type(job) is dict or isinstance(job, Mapping)) or "data" not in job:
            raise TypeError(f'a job is a mapping of what add takes, as {{"data": ..., "delay": 60}}, not {job!r}')
        data, id, kind, headers = job["data"], job.get("id"), job.get("kind"), job.get("headers")
        made = new_id() if id is None else words.bytes_of(id)
        like = (_Like() if before is None else before).or_of_job(job)
        known = made if id is None and like.if_exists != "only-replace" else None
        if not self.hooks and kind is None and not headers and key is None:
            return Added(("DQ.ADD", self._key(made), made, self.codec.encode(data), *like.words), known, *like.is_how)
        return Added(self._add(data, made, kind, headers, like.words, key), known, *like.is_how)

    def add_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        """Adds many jobs in one round trip: each a mapping of what ``add`` takes, ``data`` among it.

        Those with equal options go in few commands. If some are ``after`` others, all are added at once, or none.
        """
        before = _Like()
        return self._run_many([self._added(job, None, before) for job in jobs])

    def chain(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        """Adds jobs of which each begins when the one before it has ended, all at once. Returns their ids."""
        made: list[Added] = []
        before: Optional[bytes] = None
        for job in jobs:
            id = words.bytes_of(job["id"]) if isinstance(job, Mapping) and job.get("id") is not None else None
            chained = {**job} if before is None else {**job, "after": [*(job.get("after") or ()), before]}
            before = id or self._id_beside(before)
            added = self._added({**chained, "id": before})
            if not id:
                added.known = before
            made.append(added)
        return self._run_many(made)

    def _id_beside(self, other: Optional[bytes]) -> bytes:
        """A new id of the same shard."""
        while True:
            made = new_id()
            if other is None or self._key(made) == self._key(other):
                return made

    def _run_many(self, made: Sequence[Added]) -> list[Optional[str]]:
        grouped = Grouped(made)
        return self._run(
            [each.call for each in made],
            lambda replies: [words.maybe_id(reply or each.known) for reply, each in zip(replies, made)],
            grouped,
        )

    def every(
        self,
        interval: Duration,
        data: Any = None,
        *,
        id: Bytes,
        first: Optional[datetime] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        priority: Optional[int] = None,
        ttr: Optional[Duration] = None,
        attempts: Optional[int] = None,
        backoff: Optional[Ladder] = None,
        ttl: Optional[Duration] = None,
        group: Optional[str] = None,
        keep: Optional[Duration] = None,
        cost: Optional[int] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Optional[str]:
        """A job that comes every ``interval``. Say it again at each start: the same rule goes on as it was.

        until, times: when it ends. grace: an occurrence that late is skipped. jitter: up to so much later.
        """
        rule = ["EVERY", to_ms(interval, "interval"), *words.rule(until, times, grace, jitter)]
        options = (
            rule
            + words.job_options(priority, ttr, attempts, backoff, ttl, group, keep, cost)
            + ["REPLACE"]
            + words.due(None, first)
        )
        return self._run(
            [self._add(data, words.bytes_of(id), kind, headers, options)], lambda replies: words.maybe_id(replies[0])
        )

    def cron(
        self,
        expression: str,
        data: Any = None,
        *,
        id: Bytes,
        tz: Optional[str] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        priority: Optional[int] = None,
        ttr: Optional[Duration] = None,
        attempts: Optional[int] = None,
        backoff: Optional[Ladder] = None,
        ttl: Optional[Duration] = None,
        group: Optional[str] = None,
        keep: Optional[Duration] = None,
        cost: Optional[int] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Optional[str]:
        """A job that comes by a cron expression, in the zone ``tz`` (an IANA name; UTC). See ``every``."""
        rule = ["CRON", expression, *(["TZ", tz] if tz else []), *words.rule(until, times, grace, jitter)]
        options = rule + words.job_options(priority, ttr, attempts, backoff, ttl, group, keep, cost) + ["REPLACE"]
        return self._run(
            [self._add(data, words.bytes_of(id), kind, headers, options)], lambda replies: words.maybe_id(replies[0])
        )
