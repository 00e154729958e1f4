"""Which jobs have died, without I/O: those of which an answer said so, and those that time or another job ended.

The second are found at the server, by each worker that has the hook.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Optional

from redis.exceptions import ResponseError

from ._delivery import Command, as_map

USUAL_S = 60.0
"""How often to look, where no lease is said."""

MOST = 1000
"""How many deaths one look finds that were not found before."""

TOGETHER = 100
"""How many jobs are read at a time."""

_BY_TIME = re.compile(rb"lease ended|after .*: (dead|deleted|expired)", re.DOTALL)
"""Reasons of the server. All others were said in a NACK, whose sender heard of the death."""


class _Death(NamedTuple):
    key: bytes
    ids: Sequence[bytes]
    """The first of them that is dead is the job."""
    is_found: bool
    """By a look, so it counts only if no answer told of it."""


class Deaths:
    def __init__(self, keys: Iterable[bytes], every_s: float) -> None:
        self._every_s = every_s
        self.look_at = 0.0
        self._start_ms: Optional[int] = None
        """By the server's clock."""
        self._from_ms = 0
        """Since when to look: before the last look, as a server that has many deaths finds some of them late."""
        self._seen: dict[bytes, dict[bytes, int]] = {key: {} for key in keys}
        """Deaths since then that were found: when they were, by id."""
        self._unread: deque[_Death] = deque()
        self._reading: Sequence[_Death] = ()

    @property
    def is_reading(self) -> bool:
        return bool(self._unread)

    @property
    def next_at(self) -> float:
        """When there is something to ask."""
        return 0.0 if self._unread else self.look_at

    def answered(self, key: bytes, id: bytes, due_ms: int) -> None:
        """An answer said that the job is dead. An occurrence of a recurring one is a dead job of its own."""
        self._unread.append(_Death(key, (b"%b@%d" % (id, due_ms), id), False))

    def asks(self, now: float) -> list[Command]:
        """What to ask the server, again and again until there is nothing."""
        self._reading = [*islice(self._unread, TOGETHER)]
        if self._reading:
            return [("DQ.GET", each.key, id) for each in self._reading for id in each.ids]
        if now < self.look_at:
            return []
        looks = [
            ("DQ.PEEK", key, "DEAD", "FROM", self._from_ms, "COUNT", MOST + len(seen), "PREFIX", 0)
            for key, seen in self._seen.items()
        ]
        return [("DQ.CLOCK", "GET"), ("TIME",), *(looks if self._start_ms is not None else [])]

    def heard(self, replies: Sequence[Any], now: float) -> list[tuple[bytes, dict[bytes, Any]]]:
        """Takes the replies. Returns dead jobs, with their keys. Raises a refusal."""
        if self._reading:
            deaths = [self._unread.popleft() for _ in self._reading]
            rest = iter(_unrefused(replies))
            return [(each.key, job) for each in deaths for job in _dead(each, [next(rest) for _ in each.ids])]
        clock, *others = replies
        self.look_at = math.inf  # if they are refused
        time, *rows = _unrefused(others)
        self.look_at = now
        if all([self._find(key, some) for key, some in zip(self._seen, rows)]):
            self._looked(_ms(clock, time), now)
        return []

    def _find(self, key: bytes, rows: Sequence[Sequence[Any]]) -> bool:
        """Takes one queue's deaths. Returns whether they are all."""
        seen = self._seen[key]
        is_all = len(rows) < MOST + len(seen)
        for id, _, at, *_ in rows:
            if seen.get(id) != at:
                self._unread.append(_Death(key, (id,), True))
                seen[id] = at
        return is_all

    def _looked(self, server_ms: int, now: float) -> None:
        if self._start_ms is None:
            self._start_ms = self._from_ms = server_ms
            return
        self.look_at = now + self._every_s
        self._from_ms = max(self._start_ms, server_ms - round(self._every_s * 1000))
        for key, seen in self._seen.items():
            self._seen[key] = {id: at for id, at in seen.items() if at >= self._from_ms}


def _unrefused(replies: Sequence[Any]) -> Sequence[Any]:
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise reply
    return replies


def _dead(death: _Death, replies: Iterable[Any]) -> list[dict[bytes, Any]]:
    dead = [job for job in map(as_map, replies) if job is not None and job[b"state"] == b"dead"]
    return [job for job in dead[:1] if not death.is_found or _BY_TIME.fullmatch(job.get(b"reason") or b"")]


def _ms(test_clock: Any, time: Sequence[Any]) -> int:
    """The server's time, or that of its clock for tests."""
    if not isinstance(test_clock, ResponseError):
        return int(test_clock)
    return int(time[0]) * 1000 + int(time[1]) // 1000
