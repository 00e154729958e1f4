"""Every command of dq as a method, written once for ``dq.Queue`` and ``dq.asyncio.Queue``.

Each method builds its commands (one; on a sharded queue, one for each shard concerned) and says how to read the
replies. ``_run`` sends them: at once in ``dq.Queue``, as a coroutine in ``dq.asyncio.Queue``.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Callable, Optional, TypeVar

from . import _arguments as words
from . import _guard
from ._arguments import Bytes, Ladder
from ._delivery import Command, as_map
from ._job_info import JobInfo
from ._job_options import job_options
from ._many import Grouped
from ._options import near_misses
from ._outcomes import Outcomes
from .codec import Codec, JsonCodec, id_from, id_to
from .hooks import Hooks
from .records import Group, Peeked, Reserved, Stats, add_up
from .times import Duration, from_ms, instant_to_ms, seconds, to_ms

T = TypeVar("T")
WITH = ("WITHDUE", "WITHRESULTS", "WITHSTEPS")


@near_misses("Queue")
class Commands(Outcomes):
    """A queue. All instants are timezone-aware datetimes; durations are timedeltas or numbers of seconds.

    Ids are text. Bytes that are not UTF-8 become surrogates, as in file names.
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
        self._log = _guard.Log(logging.getLogger("dq"))
        self.keys = [id_to(f"{name}:{{{n}}}") for n in range(shards)] if shards else [id_to(name)]

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        raise NotImplementedError

    def _key(self, id: Bytes) -> bytes:
        """The key of the id's shard: by its CRC-32, as in the libraries of all languages."""
        return self.keys[zlib.crc32(words.bytes_of(id)) % self.shards] if self.shards else self.keys[0]

    def _one(self, id: Bytes, command: str, *rest: Any, read: Callable[[Any], T]) -> T:
        return self._run([(command, self._key(id), *rest)], lambda replies: read(replies[0]))

    def _each(self, command: str, *rest: Any, read: Callable[[list[Any]], T]) -> T:
        return self._run([(command, key, *rest) for key in self.keys], read)

    def _count_by_key(self, command: str, ids: Iterable[Bytes], *before: Any) -> int:
        """For commands that take many ids and reply with how many they found."""
        groups: dict[bytes, list[bytes]] = {}
        for id in ids:
            groups.setdefault(self._key(id), []).append(words.bytes_of(id))
        calls = [(command, key, *before, "IDS", len(group), *group) for key, group in groups.items()]
        return self._run(calls, sum)

    # --- Deliveries: a Worker sends these commands by itself

    def delete(self, *ids: Bytes, unreserved: bool = False) -> int:
        """Deletes jobs in any state; with ``unreserved``, only those that no worker holds. Returns how many."""
        return self._count_by_key("DQ.DEL", ids, *(["UNRESERVED"] if unreserved else []))

    def pop(
        self, count: int = 1, *, id: Optional[Bytes] = None, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Takes ready jobs without waiting: the first ``count`` (of each shard), or the one with ``id``.

        ttr: the length of their leases. noack: they are done at once, and need no ``ack``.
        """
        keys = self.keys if id is None else [self._key(id)]
        which = words.number("COUNT", count, 1) if id is None else ["ID", words.bytes_of(id)]
        calls = [("DQ.POP", key, *which, *words.ms("TTR", ttr, 1), *words.flag("NOACK", noack), *WITH) for key in keys]

        def read(replies: list[Any]) -> list[Reserved]:
            rows = [reply if id is None else [reply] if reply else [] for reply in replies]
            return [Reserved.read(key, row) for key, group in zip(keys, rows) for row in group]

        return self._run(calls, read)

    def bpop(
        self, timeout: Duration, count: int = 1, *, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Waits up to ``timeout`` for ready jobs, and takes up to ``count``. Not for a sharded queue in a cluster."""
        call = (
            "DQ.BPOP",
            *self.keys,
            seconds(timeout, "timeout"),
            *words.number("COUNT", count, 1),
            *words.ms("TTR", ttr, 1),
            *words.flag("NOACK", noack),
        )

        def read(replies: list[Any]) -> list[Reserved]:
            if replies[0] is None:
                return []
            key, rows = replies[0]
            return [Reserved.read(key, row) for row in rows]

        return self._run([(*call, *WITH)], read)

    def ack(self, id: Bytes, token: str, result: Any = None) -> bool:
        """The job is done. Returns False if the token is not current: the job is gone, or another worker has it."""
        return self._acked({id: token}, {} if result is None else {id: result}, bool)

    def ack_many(self, tokens: Mapping[str, str], results: Mapping[str, Any] = MappingProxyType({})) -> int:
        """``ack`` for many jobs: ``tokens`` and ``results`` are by id. Returns how many were done."""
        return self._acked(tokens, results, int)

    def _acked(self, tokens: Mapping[Any, str], results: Mapping[Any, Any], read: Callable[[int], T]) -> T:
        groups: dict[tuple[str, bytes], list[Any]] = {}
        for id, token in tokens.items():
            row = [words.bytes_of(id), token]
            if results.get(id) is None:
                groups.setdefault(("WITHTOKENS", self._key(id)), []).extend(row)
            else:
                groups.setdefault(("RESULTS", self._key(id)), []).extend([*row, self.codec.encode(results[id])])
        calls = [
            ("DQ.ACK", key, form, "IDS", len(rows) // (2 + (form == "RESULTS")), *rows)
            for (form, key), rows in groups.items()
        ]
        return self._run(calls, lambda replies: read(sum(map(sum, replies))))

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
        """Gives a job back. Returns its new state, or None if it is not reserved with that token.

        mode: "fail", "silent" (not counted) or "fatal" (dead now).
        """
        options = [*words.value("TOKEN", token), *words.nack_options(delay, priority, mode, reason)]
        return self._one(id, "DQ.NACK", words.bytes_of(id), *options, read=words.maybe_text)

    def nack_many(
        self,
        tokens: Mapping[str, str],
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        mode: str = "fail",
        reason: Optional[str] = None,
    ) -> dict[str, Optional[str]]:
        """``nack`` for many jobs: ``tokens`` maps ids to tokens. Returns the new state of each."""
        return self._many("DQ.NACK", tokens, words.nack_options(delay, priority, mode, reason), words.maybe_text)

    def touch(
        self,
        id: Bytes,
        token: Optional[str] = None,
        *,
        ttr: Optional[Duration] = None,
        cost: Optional[int] = None,
    ) -> Optional[datetime]:
        """Renews the lease from now. Returns when it ends, or None if the job is not reserved with that token.

        ttr: the length of the new lease.
        cost: what the delivery counts towards the rates, if that is known only afterwards.
        """
        return self._one(
            id,
            "DQ.TOUCH",
            words.bytes_of(id),
            *words.value("TOKEN", token),
            *words.ms("TTR", ttr, 1),
            *job_options({"cost": cost}),
            read=words.maybe_instant,
        )

    def touch_many(self, tokens: Mapping[str, str], *, ttr: Optional[Duration] = None) -> dict[str, Optional[datetime]]:
        """``touch`` for many jobs: ``tokens`` maps ids to tokens. Returns when each lease ends."""
        return self._many("DQ.TOUCH", tokens, words.ms("TTR", ttr, 1), words.maybe_instant)

    def _many(
        self, command: str, tokens: Mapping[str, str], options: Sequence[Any], read: Callable[[Any], T]
    ) -> dict[str, T]:
        groups: dict[bytes, list[str]] = {}
        for id in tokens:
            groups.setdefault(self._key(id), []).append(id)
        calls = [
            (
                command,
                key,
                "IDS",
                len(ids),
                *(word for id in ids for word in (words.bytes_of(id), tokens[id])),
                *options,
            )
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
        """Changes the due time, the priority or both of delayed or ready jobs. Returns how many it found."""
        options = [*words.due(delay, at), *words.number("PRIORITY", priority, *words.PRIORITIES)]
        if not options:
            raise TypeError("reschedule needs a new delay, at or priority, such as delay=60")
        return self._count_by_key("DQ.RESCHEDULE", ids, *options)

    def kick(self, *ids: Bytes) -> int:
        """Makes jobs ready that are dead or done, or blocked and should wait no longer. Returns how many."""
        return self._count_by_key("DQ.KICK", ids)

    def kick_oldest(self, count: int) -> int:
        """Makes the jobs ready again that have been dead longest, up to ``count`` of each shard. Returns how many."""
        return self._each("DQ.KICK", *words.number("COUNT", count, 1), read=sum)

    # --- Queries

    def get(self, id: Bytes, *, prefix: Optional[int] = None) -> Optional[JobInfo]:
        """Everything about one job; None if there is no such job.

        prefix: how many bytes of payload, result, results and steps to show. ``payload_bytes`` is the whole length.
        """
        options = words.number("PREFIX", prefix, 0)
        return self._one(id, "DQ.GET", words.bytes_of(id), *options, read=lambda reply: JobInfo.read(as_map(reply)))

    def peek(
        self,
        state: str,
        *,
        count: int = 1,
        since: Optional[datetime] = None,
        until: Optional[datetime] = None,
        prefix: Optional[int] = None,
    ) -> list[Peeked]:
        """The first jobs of a state ("delayed", "ready", "blocked", "done", ...), in its order (of each shard).

        There may be fewer than ``count`` once their payloads make 16 MB.

        prefix: how many bytes of each payload to show; 0 shows none, and always goes on to ``count``.
        """
        options = [state, *words.instant("FROM", since), *words.instant("TO", until), *words.number("COUNT", count, 1)]
        options += words.number("PREFIX", prefix, 0)
        return self._each(
            "DQ.PEEK",
            *options,
            read=lambda replies: [Peeked.read(row) for all in replies for row in all],
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
        options = [*words.value("STATE", state), *words.value("MATCH", match), *words.number("COUNT", count, 1)]
        return self._run(
            [("DQ.SCAN", self.keys[shard], cursor, *options)],
            lambda replies: (replies[0][0].decode(), [id_from(id) for id in replies[0][1]]),
        )

    def forecast(self, since: datetime, until: datetime, buckets: int) -> list[int]:
        """How many jobs will be due in each of ``buckets`` equal parts of the time from ``since`` to ``until``."""
        options = [
            "FROM",
            instant_to_ms(since, "since"),
            "TO",
            instant_to_ms(until, "until"),
            *words.number("BUCKETS", buckets, 1, 10_000),
        ]
        return self._each("DQ.FORECAST", *options, read=lambda replies: [sum(parts) for parts in zip(*replies)])

    def len(self, state: Optional[str] = None, *, group: Optional[str] = None) -> int:
        """How many jobs there are: in one state, of one group, or blocked, delayed, ready and reserved together."""
        return self._each("DQ.LEN", *([state] if state else []), *words.value("GROUP", group), read=sum)

    def stats(self) -> Optional[Stats]:
        """The queue's figures, added up over its shards; None if the queue does not exist."""
        return self._each("DQ.STATS", read=lambda replies: add_up([as_map(reply) for reply in replies]))

    def next(self, id: Bytes, count: int = 1) -> Optional[list[datetime]]:
        """When a recurring job will be due next; empty for another job, None if there is no such job."""
        return self._one(
            id,
            "DQ.NEXT",
            words.bytes_of(id),
            *words.number("COUNT", count, 1),
            read=lambda reply: None if reply is None else [*map(from_ms, reply)],
        )

    def groups(
        self, cursor: str = "0", *, shard: int = 0, match: Optional[str] = None, count: Optional[int] = None
    ) -> tuple[str, list[Group]]:
        """One step through the groups that hold jobs: the next cursor ("0" at the end) and some groups."""

        def read(replies: list[Any]) -> tuple[str, list[Group]]:
            then, rows = replies[0]
            return then.decode(), [Group(id_from(name), waiting, reserved) for name, waiting, reserved in rows]

        return self._run(
            [("DQ.GROUPS", self.keys[shard], cursor, *words.value("MATCH", match), *words.number("COUNT", count, 1))],
            read,
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
        donelen: Optional[int] = None,
        donettl: Optional[Duration] = None,
        donebytes: Optional[int] = None,
    ) -> None:
        """Changes the settings that are given, on each shard. 0 turns a limit off. Rates are (jobs, window)."""
        options = [
            *words.ms("TTR", ttr, 1),
            *words.number("ATTEMPTS", attempts, 0, words.RATE_MOST),
            *words.ladder(backoff),
            *words.number("MAXLEN", maxlen, 0),
            *words.number("MAXBYTES", maxbytes, 0),
            *words.number("DEADLEN", deadlen, 0),
            *words.ms("DEDUPE", dedupe),
            *words.number("MAXRESERVED", maxreserved, 0),
            *words.rate("RATE", rate),
            *words.number("GROUPMAX", groupmax, 0),
            *words.rate("GROUPRATE", grouprate),
            *words.value("GROUPFIFO", None if groupfifo is None else int(groupfifo)),
            *words.number("DONELEN", donelen, 0),
            *words.ms("DONETTL", donettl),
            *words.number("DONEBYTES", donebytes, 0),
        ]
        return self._each("DQ.CFGSET", *options, read=words.nothing)

    def cfgget(self) -> Optional[dict[str, Any]]:
        """All settings (of the first shard) by name, durations in milliseconds; None if the queue does not exist."""

        def read(replies: list[Any]) -> Optional[dict[str, Any]]:
            settings = as_map(replies[0])
            return None if settings is None else {name.decode(): value for name, value in settings.items()}

        return self._run([("DQ.CFGGET", self.keys[0])], read)

    def pause(self, duration: Optional[Duration] = None) -> None:
        """Stops deliveries for ``duration``, or until ``resume``."""
        return self._each(
            "DQ.PAUSE", *([] if duration is None else [to_ms(duration, "duration", 1)]), read=words.nothing
        )

    def resume(self) -> None:
        """Ends a pause."""
        return self._each("DQ.RESUME", read=words.nothing)

    def purge(self, state: str) -> int:
        """Deletes all jobs of a state ("dead", "done", ...), or "all". Returns how many."""
        return self._each("DQ.PURGE", state, read=sum)
