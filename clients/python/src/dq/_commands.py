"""Every command of dq as a method, written once.

Each method makes the calls (one; on a sharded queue, one for each shard concerned) and says what their answers
mean; ``_run`` carries them out: at once in ``dq.Queue``, as a coroutine in ``dq.asyncio.Queue``.
"""

from __future__ import annotations

import difflib
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Callable, Optional, TypeVar, Union

from ._core import Command, as_map
from .hooks import Hooks
from .job import Codec, Envelope, JsonCodec, id_from, id_to
from .records import Group, JobInfo, Peeked, Reserved, Stats, add_up
from .times import Duration, from_ms, instant_to_ms, seconds, to_ms, waits

T = TypeVar("T")
Ladder = Sequence[Duration]
Bytes = Union[str, bytes]
_NAMED = ("priority", "ttr", "attempts", "backoff", "ttl", "group")
_OF_JOBS = ("data", "delay", "at", "id", "if_exists", *_NAMED, "kind", "headers")


class Commands:
    """A queue. All instants are aware datetimes; durations are timedeltas or numbers of seconds.

    Ids are texts; bytes that are no UTF-8 become surrogates, as in file names.
    """

    name: str
    shards: int
    codec: Codec
    hooks: Sequence[Hooks]

    def _init(self, name: str, shards: int, codec: Optional[Codec], hooks: Sequence[Hooks]) -> None:
        if shards < 0:
            raise ValueError("shards is 0 (one queue) or more")
        if not isinstance(name, str):
            raise TypeError(f"a queue's name is text, not {name!r}")
        self.name = name
        self.shards = shards
        self.codec = codec or JsonCodec()
        self.hooks = tuple(hooks)
        self.keys = [id_to(f"{name}:{{{n}}}") for n in range(shards)] if shards else [id_to(name)]

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T]) -> T:
        raise NotImplementedError

    def _key(self, id: Bytes) -> bytes:
        """The shard of an id: by its CRC-32, the same in all languages."""
        return self.keys[zlib.crc32(_bytes(id)) % self.shards] if self.shards else self.keys[0]

    def _one(self, id: Bytes, command: str, *rest: Any, read: Callable[[Any], T]) -> T:
        return self._run([(command, self._key(id), *rest)], lambda replies: read(replies[0]))

    def _each(self, command: str, *rest: Any, read: Callable[[list[Any]], T]) -> T:
        return self._run([(command, key, *rest) for key in self.keys], read)

    def _count_by_key(self, command: str, ids: Iterable[Bytes], *before: Any, counted: bool = False) -> int:
        """For commands that take many ids and answer how many they found."""
        groups: dict[bytes, list[bytes]] = {}
        for id in ids:
            groups.setdefault(self._key(id), []).append(_bytes(id))
        calls = [(command, key, *before, *([len(group)] if counted else []), *group) for key, group in groups.items()]
        return self._run(calls, sum)

    # --- Adding

    def _add(
        self,
        data: Any,
        id: Optional[Bytes],
        kind: Optional[str],
        headers: Optional[Mapping[str, str]],
        options: Sequence[Any],
    ) -> Command:
        if self.hooks:
            headers = dict(headers or {})
            for hooks in self.hooks:
                hooks.adding(self.name, headers)
        payload = Envelope.write(data, kind, headers) if kind is not None or headers else self.codec.encode(data)
        if id is None and self.shards:
            id = uuid.uuid4().hex
        key = self.keys[0] if id is None else self._key(id)
        return ("DQ.ADD", key, b"*" if id is None else _bytes(id), payload, *options)

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
        """
        options = _job_options(priority, ttr, attempts, backoff, ttl, group)
        options += _condition(if_exists) + _due(delay, at)
        return self._run([self._add(data, id, kind, headers, options)], lambda replies: _maybe_id(replies[0]))

    def _added(self, job: Mapping[str, Any]) -> Command:
        """What adds a job: a mapping of what ``add`` takes."""
        if not isinstance(job, Mapping) or "data" not in job:
            raise TypeError(f'add_many takes mappings, as {{"data": ..., "delay": 60}}, not {job!r}')
        rest = dict(job)
        data, id = rest.pop("data"), rest.pop("id", None)
        kind, headers = rest.pop("kind", None), rest.pop("headers", None)
        options = _condition(rest.pop("if_exists", None)) + _due(rest.pop("delay", None), rest.pop("at", None))
        named = {name: rest.pop(name, None) for name in _NAMED}
        for name in rest:
            meant = difflib.get_close_matches(name, _OF_JOBS, 1)
            hint = f"did you mean {meant[0]!r}? " if meant else ""
            raise TypeError(f"a job of add_many has no option {name!r}: {hint}Its options are {', '.join(_OF_JOBS)}")
        return self._add(data, id, kind, headers, options + _job_options(**named))

    def add_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        """Adds many jobs in one round trip: each a mapping of what ``add`` takes, ``data`` among it."""
        calls = [self._added(job) for job in jobs]
        return self._run(calls, lambda replies: [_maybe_id(reply) for reply in replies])

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
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Optional[str]:
        """A job that comes every ``interval``. Say it again at each start: the same rule goes on as it was.

        until, times: when it ends. grace: an occurrence that late is skipped. jitter: up to so much later.
        """
        rule = ["EVERY", to_ms(interval, "interval"), *_rule(until, times, grace, jitter)]
        options = rule + _job_options(priority, ttr, attempts, backoff, ttl, group) + ["REPLACE"] + _due(None, first)
        return self._run([self._add(data, id, kind, headers, options)], lambda replies: _maybe_id(replies[0]))

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
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Optional[str]:
        """A job that comes by a cron expression, in the zone ``tz`` (an IANA name; UTC). See ``every``."""
        rule = ["CRON", expression, *(["TZ", tz] if tz else []), *_rule(until, times, grace, jitter)]
        options = rule + _job_options(priority, ttr, attempts, backoff, ttl, group) + ["REPLACE"]
        return self._run([self._add(data, id, kind, headers, options)], lambda replies: _maybe_id(replies[0]))

    # --- A job's life, by hand: a Worker does all of this

    def delete(self, *ids: Bytes, unreserved: bool = False) -> int:
        """Removes jobs, in whatever state; with ``unreserved``, not those at which a worker is."""
        return self._count_by_key("DQ.DEL", ids, *(["UNRESERVED"] if unreserved else []))

    def pop(
        self, count: int = 1, *, id: Optional[Bytes] = None, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Takes ready jobs, the first ``count`` (of each shard) or that one, without waiting."""
        keys = self.keys if id is None else [self._key(id)]
        which = ["COUNT", count] if id is None else ["ID", _bytes(id)]
        calls = [("DQ.POP", key, *which, *_ms("TTR", ttr), *_flag("NOACK", noack), "WITHDUE") for key in keys]

        def read(replies: list[Any]) -> list[Reserved]:
            rows = [reply if id is None else [reply] if reply else [] for reply in replies]
            return [Reserved.read(key, row) for key, group in zip(keys, rows) for row in group]

        return self._run(calls, read)

    def bpop(
        self, timeout: Duration, count: int = 1, *, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Waits for ready jobs for up to ``timeout`` and takes up to ``count``. Not of a sharded queue in a cluster."""
        call = (
            "DQ.BPOP",
            *self.keys,
            seconds(timeout, "timeout"),
            "COUNT",
            count,
            *_ms("TTR", ttr),
            *_flag("NOACK", noack),
        )

        def read(replies: list[Any]) -> list[Reserved]:
            if replies[0] is None:
                return []
            key, rows = replies[0]
            return [Reserved.read(key, row) for row in rows]

        return self._run([(*call, "WITHDUE")], read)

    def ack(self, id: Bytes, token: str) -> bool:
        """The job is done. False where the token is no longer its current one: somebody else has it, or it is gone."""
        return self._one(id, "DQ.ACK", "WITHTOKENS", _bytes(id), token, read=bool)

    def nack(
        self,
        id: Bytes,
        token: Optional[str] = None,
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        mode: str = "fail",
        reason: Optional[str] = None,
    ) -> Optional[str]:
        """Gives a job back; ``mode`` "fail", "silent" (not counted) or "fatal" (dead now). Returns its state."""
        options = [*_value("TOKEN", token), *nack_options(delay, priority, mode, reason)]
        return self._one(id, "DQ.NACK", _bytes(id), *options, read=_maybe_text)

    def nack_many(
        self,
        tokens: Mapping[str, str],
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        mode: str = "fail",
        reason: Optional[str] = None,
    ) -> dict[str, Optional[str]]:
        """``nack`` for many: a mapping of ids to tokens."""
        return self._many("DQ.NACK", tokens, nack_options(delay, priority, mode, reason), _maybe_text)

    def touch(self, id: Bytes, token: Optional[str] = None, *, ttr: Optional[Duration] = None) -> Optional[datetime]:
        """A fresh lease from now. Returns its end, or None where the job is not reserved with that token."""
        return self._one(id, "DQ.TOUCH", _bytes(id), *_value("TOKEN", token), *_ms("TTR", ttr), read=_maybe_instant)

    def touch_many(self, tokens: Mapping[str, str], *, ttr: Optional[Duration] = None) -> dict[str, Optional[datetime]]:
        """``touch`` for many: a mapping of ids to tokens."""
        return self._many("DQ.TOUCH", tokens, _ms("TTR", ttr), _maybe_instant)

    def _many(
        self, command: str, tokens: Mapping[str, str], options: Sequence[Any], read: Callable[[Any], T]
    ) -> dict[str, T]:
        groups: dict[bytes, list[str]] = {}
        for id in tokens:
            groups.setdefault(self._key(id), []).append(id)
        calls = [
            (command, key, "IDS", len(ids), *(word for id in ids for word in (_bytes(id), tokens[id])), *options)
            for key, ids in groups.items()
        ]
        order = [id for ids in groups.values() for id in ids]
        return self._run(calls, lambda replies: dict(zip(order, (read(one) for all in replies for one in all))))

    def reschedule(
        self,
        *ids: Bytes,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        priority: Optional[int] = None,
    ) -> int:
        """Gives delayed or ready jobs another due time, another priority, or both. Returns how many it found."""
        options = [*_due(delay, at), *_value("PRIORITY", priority)]
        if not options:
            raise TypeError("reschedule needs a new delay, at or priority, as delay=60")
        return self._count_by_key("DQ.RESCHEDULE", ids, *options)

    def kick(self, *ids: Bytes) -> int:
        """Makes dead jobs ready again. Returns how many."""
        return self._count_by_key("DQ.KICK", ids, "IDS", counted=True)

    def kick_oldest(self, count: int) -> int:
        """Makes the longest dead jobs ready again (of each shard). Returns how many."""
        return self._each("DQ.KICK", "COUNT", count, read=sum)

    # --- Looking

    def get(self, id: Bytes) -> Optional[JobInfo]:
        """All about one job."""
        return self._one(id, "DQ.GET", _bytes(id), read=lambda reply: JobInfo.read(as_map(reply)))

    def peek(
        self,
        state: str,
        *,
        count: int = 1,
        since: Optional[datetime] = None,
        until: Optional[datetime] = None,
    ) -> list[Peeked]:
        """The first jobs that are "delayed", "ready", "reserved" or "dead", in that state's order (of each shard)."""
        options = [state, *_instant("FROM", since), *_instant("TO", until), "COUNT", count]
        return self._each(
            "DQ.PEEK", *options, read=lambda replies: [Peeked.read(row) for all in replies for row in all]
        )

    def scan(
        self,
        cursor: str = "0",
        *,
        shard: int = 0,
        state: Optional[str] = None,
        match: Optional[str] = None,
        count: Optional[int] = None,
    ) -> tuple[str, list[str]]:
        """One step through the ids: the next cursor ("0" at the end) and some ids. ``ids`` takes all steps."""
        options = [*_value("STATE", state), *_value("MATCH", match), *_value("COUNT", count)]
        return self._run(
            [("DQ.SCAN", self.keys[shard], cursor, *options)],
            lambda replies: (replies[0][0].decode(), [id_from(id) for id in replies[0][1]]),
        )

    def forecast(self, since: datetime, until: datetime, buckets: int) -> list[int]:
        """How many jobs will be due in each of ``buckets`` equal parts of that time."""
        options = ["FROM", instant_to_ms(since, "since"), "TO", instant_to_ms(until, "until"), "BUCKETS", buckets]
        return self._each("DQ.FORECAST", *options, read=lambda replies: [sum(parts) for parts in zip(*replies)])

    def len(self, state: Optional[str] = None, *, group: Optional[str] = None) -> int:
        """How many jobs: delayed, ready and reserved together, or in one state, or of one group."""
        return self._each("DQ.LEN", *([state] if state else []), *_value("GROUP", group), read=sum)

    def stats(self) -> Optional[Stats]:
        """The queue's figures, added up over its shards; None where there is no queue."""
        return self._each("DQ.STATS", read=lambda replies: add_up([as_map(reply) for reply in replies]))

    def next(self, id: Bytes, count: int = 1) -> Optional[list[datetime]]:
        """When a recurring job will be due; empty for another job, None where there is none."""
        return self._one(
            id,
            "DQ.NEXT",
            _bytes(id),
            "COUNT",
            count,
            read=lambda reply: None if reply is None else [*map(from_ms, reply)],
        )

    def groups(
        self, cursor: str = "0", *, shard: int = 0, match: Optional[str] = None, count: Optional[int] = None
    ) -> tuple[str, list[Group]]:
        """One step through the groups that hold jobs."""

        def read(replies: list[Any]) -> tuple[str, list[Group]]:
            then, rows = replies[0]
            return then.decode(), [Group(id_from(name), waiting, reserved) for name, waiting, reserved in rows]

        return self._run(
            [("DQ.GROUPS", self.keys[shard], cursor, *_value("MATCH", match), *_value("COUNT", count))], read
        )

    # --- Settings

    def cfgset(
        self,
        *,
        ttr: Optional[Duration] = None,
        attempts: Optional[int] = None,
        backoff: Optional[Ladder] = None,
        maxlen: Optional[int] = None,
        maxbytes: Optional[int] = None,
        deadlen: Optional[int] = None,
        dedupe: Optional[Duration] = None,
        maxreserved: Optional[int] = None,
        rate: Optional[tuple[int, Duration]] = None,
        groupmax: Optional[int] = None,
        grouprate: Optional[tuple[int, Duration]] = None,
        groupfifo: Optional[bool] = None,
    ) -> None:
        """Sets the settings that are named, on each shard; 0 turns a limit off. Rates are (jobs, window)."""
        options = [
            *_ms("TTR", ttr),
            *_value("ATTEMPTS", attempts),
            *_ladder(backoff),
            *_value("MAXLEN", maxlen),
            *_value("MAXBYTES", maxbytes),
            *_value("DEADLEN", deadlen),
            *_ms("DEDUPE", dedupe),
            *_value("MAXRESERVED", maxreserved),
            *_rate("RATE", rate),
            *_value("GROUPMAX", groupmax),
            *_rate("GROUPRATE", grouprate),
            *_value("GROUPFIFO", None if groupfifo is None else int(groupfifo)),
        ]
        return self._each("DQ.CFGSET", *options, read=_nothing)

    def cfgget(self) -> Optional[dict[str, Any]]:
        """All settings (of the first shard) by name, durations in milliseconds; None where there is no queue."""

        def read(replies: list[Any]) -> Optional[dict[str, Any]]:
            settings = as_map(replies[0])
            return None if settings is None else {name.decode(): value for name, value in settings.items()}

        return self._run([("DQ.CFGGET", self.keys[0])], read)

    def pause(self, duration: Optional[Duration] = None) -> None:
        """Delivers nothing, for so long or until ``resume``."""
        return self._each("DQ.PAUSE", *([] if duration is None else [to_ms(duration)]), read=_nothing)

    def resume(self) -> None:
        """Ends a pause."""
        return self._each("DQ.RESUME", read=_nothing)

    def purge(self, state: str) -> int:
        """Removes all jobs that are "delayed", "ready", "reserved" or "dead", or "all". Returns how many."""
        return self._each("DQ.PURGE", state, read=sum)


# --- Arguments


def _bytes(text: Bytes) -> bytes:
    if isinstance(text, str):
        return id_to(text)
    if isinstance(text, bytes):
        return text
    raise TypeError(f"an id is text or bytes, as '17', not {text!r}")


def _value(name: str, value: Any) -> list[Any]:
    return [] if value is None else [name, value]


def _ms(name: str, duration: Optional[Duration]) -> list[Any]:
    return [] if duration is None else [name, to_ms(duration, name.lower())]


def _instant(name: str, instant: Optional[datetime]) -> list[Any]:
    return [] if instant is None else [name, instant_to_ms(instant, name.lower())]


def _flag(name: str, is_set: bool) -> list[Any]:
    return [name] if is_set else []


def _due(delay: Optional[Duration], at: Optional[datetime]) -> list[Any]:
    if delay is not None and at is not None:
        raise ValueError("delay or at, not both")
    return _ms("DELAY", delay) + _instant("AT", at)


def _ladder(backoff: Optional[Ladder]) -> list[Any]:
    if backoff is None:
        return []
    return ["BACKOFF", len(waits(backoff)), *(to_ms(step, "a step of backoff") for step in backoff)]


def _rate(name: str, rate: Optional[tuple[int, Duration]]) -> list[Any]:
    return [] if rate is None else [name, rate[0], to_ms(rate[1])]


_CONDITIONS = {"replace": "REPLACE", "only-replace": "XX", "next": "NEXT"}


def _condition(if_exists: Optional[str]) -> list[Any]:
    if if_exists is None:
        return []
    if if_exists not in _CONDITIONS:
        raise ValueError(f"if_exists is one of {', '.join(_CONDITIONS)}, not {if_exists!r}")
    return [_CONDITIONS[if_exists]]


def _job_options(
    priority: Optional[int],
    ttr: Optional[Duration],
    attempts: Optional[int],
    backoff: Optional[Ladder],
    ttl: Optional[Duration],
    group: Optional[str],
) -> list[Any]:
    return [
        *_value("PRIORITY", priority),
        *_ms("TTR", ttr),
        *_value("ATTEMPTS", attempts),
        *_ladder(backoff),
        *_ms("TTL", ttl),
        *_value("GROUP", group),
    ]


def _rule(
    until: Optional[datetime], times: Optional[int], grace: Optional[Duration], jitter: Optional[Duration]
) -> list[Any]:
    return [*_instant("UNTIL", until), *_value("TIMES", times), *_ms("GRACE", grace), *_ms("JITTER", jitter)]


_MODES = {"fail": "FAIL", "silent": "SILENT", "fatal": "FATAL"}


def nack_options(delay: Optional[Duration], priority: Optional[int], mode: str, reason: Optional[str]) -> list[Any]:
    if mode not in _MODES:
        raise ValueError(f"mode is one of {', '.join(_MODES)}, not {mode!r}")
    return [*_ms("DELAY", delay), *_value("PRIORITY", priority), _MODES[mode], *_value("REASON", reason)]


# --- Answers


def _nothing(replies: list[Any]) -> None:
    return None


def _maybe_id(reply: Optional[bytes]) -> Optional[str]:
    return None if reply is None else id_from(reply)


def _maybe_text(reply: Optional[bytes]) -> Optional[str]:
    return None if reply is None else reply.decode()


def _maybe_instant(reply: Optional[int]) -> Optional[datetime]:
    return None if reply is None else from_ms(reply)
