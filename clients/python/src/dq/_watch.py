"""Threads beside those of handlers and couriers."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

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


class DeadHook:
    """Calls the hook of dead jobs, in a thread of its own: heartbeats must not wait for what it does."""

    def __init__(self, call: Callable[[str, Any], None]) -> None:
        self._call = call
        self._died: queue.SimpleQueue[Optional[tuple[str, Any]]] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def tell(self, name: str, job: Any) -> None:
        self._died.put((name, job))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dq-dead", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (died := self._died.get()) is not None:
            self._call(*died)

    def end(self, wait_s: float) -> None:
        """Waits until it has been told of all."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._died.put(None)
            thread.join(wait_s)
