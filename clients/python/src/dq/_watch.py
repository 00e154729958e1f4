"""Threads beside those of handlers and couriers."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable

from ._delivery import Delivery
from ._errand import wait_s


class Watch(threading.Thread):
    """Tells handlers that their lease or their time is over, even while couriers hang.

    besides: another check to be made; it returns when to look again.
    """

    def __init__(self, links: Sequence[Any], besides: Callable[[float], float] = lambda _: math.inf) -> None:
        super().__init__(name="dq-watch", daemon=True)
        self._links = links
        self._besides = besides
        self._ended = False
        self.bell = threading.Event()
        for link in links:
            link.watch = self
            link.is_kept = True

    def run(self) -> None:
        while not self._ended:
            now = time.monotonic()
            look_at = min([self._besides(now), *(link.look(now) for link in self._links)])
            self.bell.wait(wait_s(look_at))
            self.bell.clear()

    def end(self) -> None:
        self._ended = True
        self.bell.set()


class _Limit:
    __slots__ = ("batch", "until")

    def __init__(self, until: float, batch: list[Delivery]) -> None:
        self.until, self.batch = until, batch


class Limits:
    """Until when handlers may run, by their threads."""

    def __init__(self) -> None:
        self._until: dict[int, _Limit] = {}

    def begin(self, until: float, batch: list[Delivery]) -> None:
        self._until[threading.get_ident()] = _Limit(until, batch)

    def end(self) -> None:
        self._until.pop(threading.get_ident(), None)

    def over(self, now: float) -> list[list[Delivery]]:
        """The batches whose time is over, once."""
        found = [limit for limit in list(self._until.values()) if limit.until <= now]
        # Not taken out, as their threads may have begun what comes next.
        for limit in found:
            limit.until = math.inf
        return [limit.batch for limit in found]

    def look_at(self) -> float:
        return min([limit.until for limit in list(self._until.values())], default=math.inf)
