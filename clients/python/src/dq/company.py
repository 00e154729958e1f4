"""Consumers in one process, one of which may get a job that must run alone."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Callable, Optional

from ._core import DRAIN_S
from ._delivery import Delivery
from ._links import BaseLink
from ._scheduler import Isolation


class Company:
    """The consumers of one process. A job that may have ended its process runs when none of them has another one.

    is_busy: whether something else runs in this process: jobs that were acknowledged before they ended.
    """

    def __init__(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._is_busy = is_busy
        self._lock = threading.Lock()
        self._links: weakref.WeakSet[BaseLink] = weakref.WeakSet()
        self._fetches = 0
        self._killer: Optional[Delivery] = None
        """The job that runs alone."""
        self._isolation = Isolation(DRAIN_S)
        self._is_isolated = False
        """The fetch is the one that ends the isolation."""

    def add(self, link: BaseLink) -> None:
        with self._lock:
            self._links.add(link)

    def enter(self, count: int) -> int:
        """How many of so many jobs may be fetched now. Unless it is 0, ``leave`` must follow."""
        with self._lock:
            places = self._places(count)
            self._fetches += bool(places)
            self._is_isolated = bool(places) and self._isolation.is_on(time.monotonic())
            return places

    def leave(self, is_found: bool) -> None:
        with self._lock:
            self._fetches -= 1
            if is_found and self._is_isolated:
                self._isolation.end()

    def may_enter(self) -> bool:
        with self._lock:
            return bool(self._places(1))

    def claim(self, delivery: Delivery) -> Optional[float]:
        """None if this job may run now, alone. Else it is to be given back, with that delay."""
        with self._lock:
            if self._killer is None and self._fetches == 1 and self._is_quiet(delivery):
                self._killer = delivery
                return None
            return self._isolation.want(time.monotonic())

    def _places(self, count: int) -> int:
        killer = self._killer
        if killer is not None and not killer.owner.holds(killer) and not killer.owner.is_telling():
            self._killer = None
        if self._killer is not None:
            return 0
        if not self._isolation.is_on(time.monotonic()):
            return count
        for each in self._links:
            each.recall()
        return int(not self._fetches and self._is_quiet())

    def _is_quiet(self, but: Optional[Delivery] = None) -> bool:
        """Whether no other job is in hand, and the server has confirmed all ends."""
        return not self._is_busy() and not any(each.has_besides(but) for each in self._links)
