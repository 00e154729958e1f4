"""What both faces' links have in common: what is in hand, what the server is still to be told, and what it answered."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Callable, Optional

from redis.exceptions import ResponseError

from . import _trouble
from ._core import ANSWER_S, SHORTEST_ANSWER_S, Command, Delivery, Fetches
from ._ends import Outcome
from ._leases import Leases, give_back
from .job import Job

if TYPE_CHECKING:
    from ._base import BaseConsumer, Members


def reach(client: Any, key: bytes) -> Hashable:
    """Equal where one connection can wait for both."""
    if hasattr(client, "keyslot"):
        return id(client), client.keyslot(key)
    settings = client.connection_pool.connection_kwargs
    place = tuple(settings.get(name) for name in ("host", "port", "path", "db", "username"))
    return place if settings.get("host") or settings.get("path") else id(client)


class BaseLink:
    """The queues that are reached by one pair of connections: one that waits, one for the rest."""

    def __init__(self, worker: BaseConsumer[Any], members: Members, fetches: Fetches) -> None:
        self._base = worker
        self.place = reach(members[0][0].client, members[0][1])
        self._fetches = fetches
        self._codecs = {key: each.codec for each, key, _ in members}
        self._leases = Leases()
        self._lengths: dict[int, float] = {}
        """Of leases, by the TTR of the job."""
        self._outcomes: deque[Outcome] = deque()
        self._fetching = False
        self._troubles = 0
        self.is_kept = False
        """Somebody renews the leases."""
        self.trouble: Optional[Exception] = None
        """The last one."""

    def _ring(self) -> None:
        """There is something to tell the server."""
        raise NotImplementedError

    def _wake(self) -> None:
        """A heartbeat, or the end of a lease, may come earlier than it was to."""
        raise NotImplementedError

    def _take_outcomes(self, count: float = math.inf) -> deque[Outcome]:
        told: deque[Outcome] = deque()
        outcomes = self._outcomes
        while outcomes and len(told) < count:
            told.append(outcomes.popleft())
        return told

    def _put_back(self, told: deque[Outcome]) -> None:
        """Those that were sent, and whose answers did not come."""
        for outcome in told:
            outcome.is_repeated = True
        self._outcomes.extendleft(reversed(told))

    def _answered(self, outcome: Outcome, reply: Any) -> Optional[ResponseError]:
        """Trouble that passes, or that ends the worker."""
        if isinstance(reply, ResponseError):
            if not _trouble.is_refusal(reply):
                self._outcomes.append(outcome)
                return reply
            self._base._refused(outcome, str(reply))
            is_last = outcome.refused(str(reply).encode("utf-8", "replace"))
        else:
            is_last = outcome.answered(reply)
        if not is_last:
            self._outcomes.append(outcome)
            return None
        self._leases.unheard.pop(outcome.delivery, None)
        if outcome.verdict in ("lost", "refused"):
            self._base._lost(outcome.delivery)
        return None

    def _found(self, reply: Any, since: float) -> list[Delivery]:
        """since: when their leases began, at the earliest that can be told."""
        if isinstance(reply, ResponseError):
            raise reply
        if reply is None:
            return []
        key, rows = reply
        codec, given, lengths = self._codecs[key], self._base._lease.given, self._lengths
        found, shortest_s = [], math.inf
        for row in rows:
            delivery = Delivery(key, row, self)
            delivery.job = Job(delivery, codec)
            lease_s = lengths.get(delivery.ttr_ms)
            if lease_s is None:
                lease_s = lengths[delivery.ttr_ms] = given(delivery.ttr_ms)
            delivery.lease_s = lease_s
            if self.is_kept:
                delivery.lease_until = since + lease_s
            if lease_s < shortest_s:
                shortest_s = lease_s
            found.append(delivery)
        if self._leases.taken(found, since, shortest_s) and self.is_kept:
            self._wake()
        return found

    def settle(self, delivery: Delivery, decide: Callable[..., Outcome], *rest: Any) -> None:
        """Who takes a delivery out of those in hand decides how it ends: its handler, a heartbeat or the stop.

        To be followed by ``told_soon``, unless a fetch follows at once.
        """
        if self._leases.settle(delivery):
            self._leases.unheard[delivery] = None
            self._outcomes.append(decide(delivery, *rest))

    def holds(self, delivery: Delivery) -> bool:
        return delivery in self._leases.held

    def lose(self, deliveries: Iterable[Delivery]) -> None:
        """Those that are still held."""
        for delivery in deliveries:
            if self._leases.settle(delivery):
                self._base._lost(delivery)

    def correct(self, delivery: Delivery) -> None:
        """Its handler may want a lease of another length."""
        lease_s = self._base._lease.corrected(delivery)
        if lease_s is not None:
            self._leases.ask(delivery, lease_s)
            self._wake()

    def told_soon(self) -> None:
        if self._outcomes:
            self._ring()

    @property
    def _answer_s(self) -> float:
        """How long an answer may take, but those of fetches: heartbeats must be in time."""
        return min(ANSWER_S, max(self._leases.shortest_s() / 3, SHORTEST_ANSWER_S))

    def _beaten(self, group: list[Delivery], reply: Any, sent: float) -> None:
        if isinstance(reply, ResponseError):
            raise reply
        for delivery in self._leases.beaten(group, reply, sent):
            self._base._lost(delivery)

    def _look(self, now: float) -> None:
        """For leases that are over, whatever the server would say."""
        for delivery in self._leases.over(now):
            self._base._lost(delivery)

    def _leave(self) -> list[Command]:
        """Gives back all that is left."""
        left: list[Delivery] = []
        while self._leases.held:
            left.append(self._leases.held.popitem()[0])
        for delivery in left:
            delivery.job._tell("stopping")
        self._base._left(left)
        return give_back(left)
