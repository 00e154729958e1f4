"""Which jobs have died, without I/O: those of which an answer said so, and those that time or another job ended.

The second are found at the server, by each worker that has the hook. All wait for it in one short list of the worker,
by their ids: payloads may be large.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Optional, Protocol

from redis.exceptions import ResponseError

from ._delivery import Command, as_map

USUAL_S = 60.0
"""How often to look, where no lease is said."""

MOST = 1000
"""How many deaths wait for the hook."""

PAGE = 100
"""How many deaths one question finds. With less room in the list none is asked."""

KNOWN = 10_000
"""How many deaths of a queue are remembered, so that the hook is called once for each."""

SET_BACK_MS = 1000
"""From so much on a server's clock that is behind was set back."""

_BY_TIME = re.compile(rb"lease ended|after .*: (dead|deleted|expired)", re.DOTALL)
"""Reasons of the server. All others were said in a NACK, whose sender heard of the death."""

Record = Generator[Sequence[Command], Any, Optional[dict[bytes, Any]]]


class Death(NamedTuple):
    of: Deaths
    ids: Sequence[bytes]
    """The first of them that is dead is the job."""
    at: Optional[int] = None
    """When it died, of one that was found; an answer does not say."""
    is_any: bool = True
    """It counts whatever it died of. Others count if no answer can have told of them."""


class Hook(Protocol):
    @property
    def room(self) -> int:
        """In its list."""

    def tell(self, death: Death) -> bool:
        """Puts a death into the list. Returns whether there was room."""

    def refused(self, error: ResponseError) -> None:
        """The server does not tell of deaths."""


class Deaths:
    """Those of one queue, or of one of its shards."""

    def __init__(self, link: Any, key: bytes, every_s: float, hook: Hook) -> None:
        self.link = link
        """Its connections reach the queue."""
        self.key = key
        self._every_s = every_s
        self._hook = hook
        self.look_at = 0.0
        self._from_ms = 0
        """Since when to look: before the last look began, as a server that has many deaths finds some of them late."""
        self._is_looking = False
        self._began_ms, self._began = 0, math.inf
        """When the last look began, by the server's clock and by ours. At first: not yet."""
        self._at_ms = self._past = 0
        """How far this look has come: the instant, and how many deaths at it."""
        self._is_short = self._takes_all = False
        """A death of which an answer told found no room: the next look, or this one, is for those, too."""
        self._found: dict[bytes, int] = {}
        self._called: dict[bytes, int] = {}
        """When those died that were found, and those that the hook was called for."""

    @property
    def next_at(self) -> float:
        """When there is something to ask."""
        return self.look_at if self._hook.room >= PAGE else math.inf

    def answered(self, id: bytes, due_ms: int) -> None:
        """An answer said that the job is dead. An occurrence of a recurring one is a dead job of its own."""
        if not self._hook.tell(Death(self, (b"%b@%d" % (id, due_ms), id))):
            self._is_short = True
            if self.look_at < math.inf:
                self.look_at = 0.0

    def asks(self, now: float) -> Sequence[Command]:
        """What to ask the server, again and again until there is nothing."""
        if now < self.next_at:
            return []
        if not self._is_looking:
            return [("DQ.CLOCK", "GET"), ("TIME",)]
        return [("DQ.PEEK", self.key, "DEAD", "FROM", self._at_ms, "COUNT", PAGE + self._past, "PREFIX", 0)]

    def heard(self, replies: Sequence[Any], now: float) -> None:
        """Takes the replies. After a refusal nothing more is looked for."""
        reply = replies[-1]
        if isinstance(reply, ResponseError):
            self.look_at = math.inf
            return self._hook.refused(reply)
        self.look_at = now
        if self._is_looking:
            self._find(reply, now)
        else:
            self._begin(_ms(replies[0], reply), now)

    def _begin(self, now_ms: int, now: float) -> None:
        if self._began == math.inf:
            self._from_ms = now_ms
        else:
            behind_ms = self._began_ms + round((now - self._began) * 1000) - now_ms
            if behind_ms > SET_BACK_MS or now_ms < self._from_ms:
                # The server's clock was set back, as by a failover: by this one, the last look began earlier.
                self._from_ms = max(0, min(self._from_ms, self._began_ms - max(0, behind_ms)))
        self._began_ms, self._began, self._is_looking = now_ms, now, True
        self._at_ms, self._past = self._from_ms, 0
        self._takes_all, self._is_short = self._is_short, False
        if self._takes_all:
            # The look before may have found such deaths, when it was not for them.
            self._found.clear()

    def _find(self, rows: Sequence[Sequence[Any]], now: float) -> None:
        """Takes the next deaths, as many as there is room for."""
        is_all, self._past = len(rows) < PAGE + self._past, 0
        for id, _, at, *_ in rows:
            if self._found.get(id) != at:
                if not self._hook.tell(Death(self, (id,), at, self._takes_all)):
                    return
                self._found[id] = at
            self._past = self._past + 1 if at == self._at_ms else 1
            self._at_ms = at
        self._forget()
        if is_all:
            self._is_looking = False
            self.look_at = 0.0 if self._is_short else now + self._every_s
            self._from_ms = max(self._from_ms, self._began_ms - round(self._every_s * 1000))

    def _forget(self) -> None:
        """Forgets what no look asks for, and the oldest of too many: the next look begins after them."""
        for known in self._found, self._called:
            if len(known) > KNOWN:
                self._from_ms = max(self._from_ms, sorted([*known.values()])[-KNOWN // 2])
            for id, at in [*known.items()]:
                if at < self._from_ms:
                    known.pop(id, None)

    def record(self, death: Death) -> Record:
        """Asks for the job when the hook is about to be called. None: it is dead no more, or the hook was called."""
        if death.at is not None and self._called.get(death.ids[0]) == death.at:
            return None
        if not death.is_any:
            dead = _dead((yield [("DQ.GET", self.key, death.ids[0], "PREFIX", 0)]))
            if dead is None or not _BY_TIME.fullmatch(dead.get(b"reason") or b""):
                return None
        for id in death.ids:
            dead = _dead((yield [("DQ.GET", self.key, id)]))
            if dead is not None:
                at = dead[b"failed"] or 0
                if self._called.get(id) == at:
                    return None
                self._called[id] = at
                return dead
        return None


def _dead(replies: Sequence[Any]) -> Optional[dict[bytes, Any]]:
    """The job, if it is dead. Raises a refusal."""
    if isinstance(replies[0], ResponseError):
        raise replies[0]
    job = as_map(replies[0])
    return job if job is not None and job[b"state"] == b"dead" else None


def _ms(test_clock: Any, time: Sequence[Any]) -> int:
    """The server's time, or that of its clock for tests."""
    if not isinstance(test_clock, ResponseError):
        return int(test_clock)
    return int(time[0]) * 1000 + int(time[1]) // 1000
