"""Every command of dq as a method, written once for ``dq.Queue`` and ``dq.asyncio.Queue``; here those that only read.

Each method builds its commands (one; on a sharded queue, one for each shard concerned) and says how to read the
replies. ``_run`` sends them: at once in ``dq.Queue``, as a coroutine in ``dq.asyncio.Queue``.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from . import _arguments as words
from . import _guard
from ._arguments import Bytes, State
from ._delivery import Command, as_map
from ._explanation import Explanation, reasons
from ._job_info import JobInfo
from ._many import Grouped
from ._options import near_misses
from ._rules import Rules
from .codec import Codec, JsonCodec, id_from, id_to
from .hooks import Hooks
from .records import Group, Peeked, Stats, add_up
from .times import from_ms, instant_to_ms

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._arguments import Filters

T = TypeVar("T")


@near_misses("Queue")
class Queries(Rules):
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
        self._denied: set[str] = set()
        self.keys = [id_to(f"{name}:{{{n}}}") for n in range(shards)] if shards else [id_to(name)]

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        raise NotImplementedError

    def _off(self, what: str, why: str) -> bool:
        """Logs, once, that the server denies this user what a feature needs."""
        if what not in self._denied:
            self._denied.add(what)
            self._log.say(
                logging.WARNING, "queue %r: the server refuses %s: nothing is changed (%s)", self.name, what, why
            )
        return False

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

    def get(self, id: Bytes, *, prefix: Optional[int] = None) -> Optional[JobInfo]:
        """Everything about one job; None if there is no such job.

        prefix: how many bytes of payload, result, results and steps to show. ``payload_bytes`` is the whole length.
        """
        options = words.number("PREFIX", prefix, 0)

        def read(reply: Any) -> Optional[JobInfo]:
            return JobInfo.read(as_map(reply), self.codec)

        return self._one(id, "DQ.GET", words.bytes_of(id), *options, read=read)

    def peek(
        self,
        state: State,
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
        count: Optional[int] = None,
        **filters: Unpack[Filters],
    ) -> tuple[str, list[str]]:
        """One step through the ids: the next cursor ("0" at the end) and some ids. ``ids`` takes all steps.

        state, group: only jobs in that state, or of that group. recurring: only those with a rule.
        match, payload, label, awaits, reason: patterns, as of KEYS, for the id, the payload, the label, the name of the
            signal that the job waits for, and why it failed last.
        """
        options = [*words.filters(filters), *words.number("COUNT", count, 1)]
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

    def len(self, state: Optional[State] = None, *, group: Optional[str] = None) -> int:
        """How many jobs there are: in one state, of one group, or blocked, delayed, ready and reserved together."""
        return self._each("DQ.LEN", *([state] if state else []), *words.value("GROUP", group), read=sum)

    def stats(self) -> Optional[Stats]:
        """The queue's figures, added up over its shards; None if the queue does not exist."""
        return self._each("DQ.STATS", read=lambda replies: add_up([as_map(reply) for reply in replies]))

    def explain(self, id: Optional[Bytes] = None) -> Optional[list[Explanation]]:
        """Why the queue delivers nothing, or why it does not deliver this job: all that holds, in the server's order.

        None if there is no such queue or job. Of a sharded queue, the numbers of its shards added up.
        """
        if id is not None:
            return self._one(id, "DQ.EXPLAIN", words.bytes_of(id), read=lambda reply: reasons([reply]))
        return self._each("DQ.EXPLAIN", read=reasons)

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
        self,
        cursor: str = "0",
        *,
        shard: int = 0,
        match: Optional[str] = None,
        count: Optional[int] = None,
        has_settings: bool = False,
    ) -> tuple[str, list[Group]]:
        """One step through the groups that hold jobs: the next cursor ("0" at the end) and some groups.

        has_settings: instead those with settings of their own, whether they hold jobs or not.
        """

        def read(replies: list[Any]) -> tuple[str, list[Group]]:
            then, rows = replies[0]
            return then.decode(), [Group(id_from(name), waiting, reserved) for name, waiting, reserved in rows]

        options = [*words.value("MATCH", match), *words.number("COUNT", count, 1), *words.flag("SET", has_settings)]
        return self._run([("DQ.GROUPS", self.keys[shard], cursor, *options)], read)
