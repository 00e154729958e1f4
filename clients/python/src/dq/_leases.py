"""Leases: how long they are, when they are renewed, and when they expire, without I/O, threads or a clock.

``now`` comes from a monotonic clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from ._delivery import Command, Delivery
from .handler import Handler

USUAL_TTR_MS = 60_000
"""The TTR of jobs that were given none."""

SHORTEST_BEAT_S = 0.005


class Choice:
    """Which lease a worker asks for. A job's own TTR holds, unless the handlers want another lease."""

    def __init__(self, own_s: Optional[float], handlers: Sequence[Handler[Any]] = ()) -> None:
        said = {each.lease for each in handlers}
        self.differ = len(said) > 1
        self._for_all = said.pop() if len(said) == 1 else None
        self._own = own_s

    @property
    def said_s(self) -> Optional[float]:
        """What the worker and its handlers say, if they agree."""
        return self._own if self._for_all is None else self._for_all

    def words(self) -> Sequence[Any]:
        if self._for_all is not None:
            return b"TTR", ms(self._for_all)
        return (b"LEASE", ms(self._own)) if self._own is not None else ()

    def given(self, ttr_ms: int) -> float:
        """The lease of a delivery, in seconds; the shorter one if only the server knows."""
        if self._for_all is not None:
            return self._for_all
        if self._own is None:
            return ttr_ms / 1000
        return self._own if ttr_ms == USUAL_TTR_MS else min(self._own, ttr_ms / 1000)

    def corrected(self, delivery: Delivery) -> Optional[float]:
        """The lease that the job's handler wants instead; None if the lease is right."""
        wanted = delivery.handler.lease if delivery.handler else None
        return wanted if wanted is not None and wanted != delivery.lease_s else None


def ms(lease_s: float) -> int:
    return max(1, round(lease_s * 1000))


class Leases:
    """The leases of deliveries in hand, and of those whose end the server has not confirmed."""

    def __init__(self) -> None:
        self.held: dict[Delivery, None] = {}
        self.unanswered: dict[Delivery, None] = {}
        self.asked: dict[Delivery, float] = {}
        """Deliveries whose handlers want a lease of another length."""
        self.beat_at = math.inf
        self.look_at = math.inf
        """When the next lease may expire."""

    def taken(self, deliveries: Sequence[Delivery], since: float, shortest_s: float) -> bool:
        """Adds deliveries. Returns whether a heartbeat or an expiry is earlier than before."""
        for delivery in deliveries:
            self.held[delivery] = None
        beat_at, look_at = since + beat_s(shortest_s), since + shortest_s
        if beat_at >= self.beat_at and look_at >= self.look_at:
            return False
        self.beat_at = min(self.beat_at, beat_at)
        self.look_at = min(self.look_at, look_at)
        return True

    def ask(self, delivery: Delivery, lease_s: float) -> None:
        self.asked[delivery] = lease_s

    def settle(self, delivery: Delivery) -> bool:
        """Removes a delivery. Returns whether its end counts: it was neither lost nor settled before."""
        if self.asked:
            self.asked.pop(delivery, None)
        return self.held.pop(delivery, self) is not self

    def beats(self, now: float) -> list[tuple[Command, list[Delivery]]]:
        """The heartbeat, if it is due: one TOUCH for each queue. A nil in the reply means that the job is lost."""
        asked = self.asked.copy()
        made: list[tuple[Command, list[Delivery]]] = []
        for lease_s in set(asked.values()):
            made += touches([each for each, wanted in asked.items() if wanted == lease_s], b"TTR", ms(lease_s))
        if now < self.beat_at:
            return made
        every = [*list(self.held), *list(self.unanswered)]
        self.beat_at = now + beat_s(min(each.lease_s for each in every)) if every else math.inf
        return made + touches([each for each in every if each not in asked])

    def beaten(self, group: Iterable[Delivery], reply: Iterable[Any], sent: float) -> list[Delivery]:
        """Takes a heartbeat's reply. Returns the deliveries that are lost."""
        lost = []
        for delivery, deadline in zip(group, reply):
            delivery.lease_s = self.asked.pop(delivery, delivery.lease_s)
            if deadline is not None:
                delivery.lease_until = sent + delivery.lease_s
                self.beat_at = min(self.beat_at, sent + beat_s(delivery.lease_s))
            elif self.settle(delivery):
                lost.append(delivery)
        return lost

    def shortest_s(self) -> float:
        return min((each.lease_s for each in [*list(self.held), *list(self.unanswered)]), default=math.inf)

    def over(self, now: float) -> list[Delivery]:
        """Deliveries whose lease has expired by our clock. They are lost, whatever the server would say."""
        if now < self.look_at:
            return []
        held = list(self.held)
        lost = [each for each in held if each.lease_until <= now and self.settle(each)]
        self.look_at = min((each.lease_until for each in held if each.lease_until > now), default=math.inf)
        return lost


def beat_s(lease_s: float) -> float:
    third_s = lease_s / 3
    return third_s if third_s > SHORTEST_BEAT_S else SHORTEST_BEAT_S  # no call of max(): this runs for each job


def by_key(deliveries: Iterable[Delivery]) -> dict[bytes, list[Delivery]]:
    groups: dict[bytes, list[Delivery]] = {}
    for delivery in deliveries:
        groups.setdefault(delivery.key, []).append(delivery)
    return groups


def ids(deliveries: Sequence[Delivery]) -> list[Any]:
    words: list[Any] = [b"IDS", len(deliveries)]
    for delivery in deliveries:
        words += (delivery.id, delivery.token)
    return words


def touches(deliveries: Iterable[Delivery], *options: Any) -> list[tuple[Command, list[Delivery]]]:
    return [((b"DQ.TOUCH", key, *ids(group), *options), group) for key, group in by_key(deliveries).items()]


def give_back(deliveries: Iterable[Delivery], *options: Any) -> list[Command]:
    """One NACK for each queue."""
    return [(b"DQ.NACK", key, *ids(group), b"SILENT", *options) for key, group in by_key(deliveries).items()]
