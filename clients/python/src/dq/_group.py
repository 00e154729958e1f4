"""One group of a queue, such as a tenant: what it has of its own, its pause and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Optional

from . import _arguments as words
from ._delivery import as_map
from ._options import near_misses
from .codec import id_from
from .records import paused_until
from .times import Duration, between, to_ms

HEAVIEST = 1000


@dataclass(frozen=True)
class GroupStats:
    """Settings and figures of a group. A setting is None where the queue's holds."""

    weight: Optional[int]
    max: Optional[int]
    rate: Optional[tuple[int, timedelta]]
    """Deliveries, and the window; 0 of both is no limit."""
    maxlen: Optional[int]
    paused: Optional[datetime]
    """When its pause ends, as in ``Stats``."""
    waiting: int
    """Delayed and ready jobs."""
    reserved: int
    rate_used: int
    """What the deliveries in the window of its rate add up to."""

    @staticmethod
    def read(replies: Sequence[Any]) -> Optional[GroupStats]:
        """The settings of the first shard that has the group, and the figures of all of them."""
        found = [reply for reply in map(as_map, replies) if reply is not None]
        if not found:
            return None
        first = found[0]
        rate = first[b"rate"]
        waiting, reserved, used = (sum(each[of] for each in found) for of in (b"waiting", b"reserved", b"rate-used"))
        return GroupStats(
            weight=first[b"weight"],
            max=first[b"max"],
            rate=None if rate is None else (rate[0], timedelta(milliseconds=rate[1])),
            maxlen=first[b"maxlen"],
            paused=paused_until([each[b"paused"] for each in found]),
            waiting=waiting,
            reserved=reserved,
            rate_used=used,
        )


@near_misses("QueueGroup")
class QueueGroup:
    """One group of a queue, on each of its shards, by ``Queue.group``.

    What changes it returns False where the server's ACL denies this user the command, which the log says once.
    """

    def __init__(self, queue: Any, name: words.Bytes) -> None:
        self._name = words.bytes_of(name)
        between("group", len(self._name), 1, 256, " bytes")
        self._queue = queue
        self.name = id_from(self._name)

    def set(
        self,
        *,
        weight: Optional[int] = None,
        max: Optional[int] = None,
        rate: Optional[words.Rate] = None,
        maxlen: Optional[int] = None,
    ) -> bool:
        """Gives the group settings of its own, which hold instead of the queue's, on each shard.

        weight: how many deliveries its turn lasts. max: how many of its jobs may run at a time (0: any number).
        rate: how many may begin in a window, as (100, 60); 0: any number. maxlen: how many jobs it may have.
        """
        options = [
            *words.number("WEIGHT", weight, 1, HEAVIEST),
            *words.number("MAX", max, 0),
            *words.rate("RATE", rate),
            *words.number("MAXLEN", maxlen, 0),
        ]
        if not options:
            raise TypeError("set needs a weight, max, rate or maxlen, such as weight=3")
        return self._each("DQ.GROUPSET", self._name, *options)

    def clear(self) -> bool:
        """Takes its settings and its pause away: the queue's settings hold."""
        return self._each("DQ.GROUPSET", self._name, "CLEAR")

    def pause(self, duration: Optional[Duration] = None) -> bool:
        """Passes the group over for ``duration``, or until ``resume``."""
        return self._each(
            "DQ.PAUSE", *([] if duration is None else [to_ms(duration, "duration", 1)]), "GROUP", self._name
        )

    def resume(self) -> bool:
        """Ends its pause."""
        return self._each("DQ.RESUME", "GROUP", self._name)

    def stats(self) -> Optional[GroupStats]:
        """Its settings and figures; None if it has neither settings nor jobs."""
        return self._queue._each("DQ.GROUPGET", self._name, read=GroupStats.read)  # type: ignore[no-any-return]

    def _each(self, command: str, *rest: Any) -> bool:
        calls = [(command, key, *rest) for key in self._queue.keys]
        return self._queue._permitted(calls, f"{command} of a group")  # type: ignore[no-any-return]
