"""Hears that jobs were cancelled: which jobs one DQ.BTOUCH waits for, and when it is sent anew, without I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Optional

from redis.exceptions import ResponseError

from ._delivery import Command, Delivery
from ._leases import SHORTEST_BEAT_S, beat_s, ids
from ._trouble import is_final

COVER_AFTER_S = 0.02
"""Jobs that end sooner are not waited for. Nor is a wait sent anew more often than that."""

MOST_KEYS = 8
"""With more queues on one link, only heartbeats notice that a job was cancelled."""


class Listening:
    """One DQ.BTOUCH at a time, for the jobs of one queue that have been in hand for some time."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.covered: set[Delivery] = set()
        self.wait_s = 0.0
        self.is_off = False
        """The server does not know DQ.BTOUCH, or denies it to this user."""
        self._order: list[Delivery] = []

    def lacks_at(self, held: Iterable[Delivery]) -> float:
        """When the next job must be covered; infinity if all are."""
        if self.is_off:
            return math.inf
        missing = [each.since for each in held if each.key == self.key and each not in self.covered]
        return min(missing, default=math.inf) + COVER_AFTER_S

    def begin(self, held: Iterable[Delivery], now: float) -> Optional[Command]:
        """The next command; None if there is nothing to wait for."""
        self._order = [each for each in held if each.key == self.key and each.since + COVER_AFTER_S <= now]
        self.covered = set(self._order)
        if not self._order or self.is_off:
            return None
        self.wait_s = max(SHORTEST_BEAT_S, min(beat_s(each.lease_s) for each in self._order))
        return (b"DQ.BTOUCH", self.key, f"{self.wait_s:.3f}", *ids(self._order))

    def heard(self, reply: Any, sent: float) -> list[Delivery]:
        """Deliveries that are not ours any more, unless they ended meanwhile. Raises an error reply."""
        order, self._order, self.covered = self._order, [], set()
        if isinstance(reply, ResponseError):
            self.is_off = is_final(reply)
            raise reply
        for delivery, deadline in zip(order, reply):
            if deadline is not None:
                delivery.lease_until = max(delivery.lease_until, sent + delivery.lease_s)
        return [delivery for delivery, deadline in zip(order, reply) if deadline is None]

    def stumbled(self) -> None:
        """The connection was lost."""
        self._order, self.covered = [], set()
