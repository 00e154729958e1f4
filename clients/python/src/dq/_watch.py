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


class Limits:
    """Until when handlers may run, by their threads."""

    def __init__(self) -> None:
        self._until: dict[int, tuple[float, list[Delivery]]] = {}

    def begin(self, until: float, batch: list[Delivery]) -> None:
        self._until[threading.get_ident()] = until, batch

    def end(self) -> None:
        self._until.pop(threading.get_ident(), None)

    def over(self, now: float) -> list[list[Delivery]]:
        """The batches whose time is over, once."""
        threads = [thread for thread, (until, _) in list(self._until.items()) if until <= now]
        found = [self._until.pop(thread, None) for thread in threads]
        return [each[1] for each in found if each is not None]

    def look_at(self) -> float:
        return min([until for until, _ in list(self._until.values())], default=math.inf)
