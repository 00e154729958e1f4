"""Consumers in one process, of which one may have a job that must run alone."""

from __future__ import annotations

import threading
import weakref
from typing import Callable, Optional

from ._delivery import Delivery
from ._links import BaseLink


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
        """The job that waits to run alone, or runs."""
        self._runs = False

    def add(self, link: BaseLink) -> None:
        with self._lock:
            self._links.add(link)

    def enter(self) -> bool:
        """Whether a fetch may begin. If so, ``leave`` must follow."""
        with self._lock:
            if self._is_closed():
                return False
            self._fetches += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._fetches -= 1

    def claim(self, delivery: Delivery) -> bool:
        """Whether this job is the next one to run alone."""
        with self._lock:
            if self._is_closed():
                return False
            self._killer, self._runs = delivery, False
            return True

    def is_closed(self) -> bool:
        """Whether no fetch may begin."""
        with self._lock:
            return self._is_closed()

    def take(self, link: BaseLink) -> Optional[Delivery]:
        """The job to run alone, if it is this link's and nothing else is in hand."""
        with self._lock:
            killer = self._killer if self._is_closed() and not self._runs else None
            if killer is None or killer.owner is not link:
                return None
            for each in self._links:
                each.recall()
            if self._fetches or self._is_busy() or any(each.has_besides(killer) for each in self._links):
                return None
            self._runs = True
            return killer

    def _is_closed(self) -> bool:
        killer = self._killer
        if killer is not None and not killer.owner.holds(killer) and not killer.owner.is_telling:
            self._killer = None
        return self._killer is not None
