"""The consumer of programs without asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Optional

from . import _core
from ._consumer import ALONE_EVERY_S, JobConsumer
from ._dead_hook import DeadHook
from ._delivery import Delivery
from ._link import Link
from ._watch import Watch
from .job import Job
from .queue import Queue
from .times import Duration, seconds


class Consumer(JobConsumer[Queue]):
    __doc__ = f"""{JobConsumer.__doc__}
    One thread fetches; any may call the other methods.
    """
    _queues = Queue
    _jobs = Job

    def _prepare(self) -> None:
        self._resting = threading.Event()
        self._dead_hook = DeadHook(self) if self._dead_hooks else None
        self._link: Link = Link(self, self._members, self._fetches(self._members))
        self._watch = Watch([self._link])
        self._company.add(self._link)

    def fetch(self, count: int = 1, wait: Optional[Duration] = None) -> list[Job]:
        """Takes up to ``count`` jobs, and waits up to ``wait`` for the first one.

        Returns an empty list if there are none or the server is away. Raises ConfigurationError where waiting would not
        help.
        """
        if self._link.batcher.ident is None:
            self._link.batcher.start()
            self._watch.start()
            if self._dead_hook is not None:
                self._dead_hook.start()
        wait_s = self.wait_s if wait is None else min(seconds(wait, "wait"), self.wait_s)
        count = self._company.enter(count)
        if not count:
            return self._wait(wait_s)
        found: list[Delivery] = []
        try:
            found = self._link.fetch(count, max(wait_s, _core.NO_WAIT_S))
            self._ask(self._doubtful(found))
            jobs = self._handed_out(found)
            while self._is_returning():
                self._rest(ALONE_EVERY_S)
        finally:
            self._company.leave(bool(found))
        self._link.rest()
        if not found:
            self._check()
        return jobs

    def _ask(self, doubtful: Sequence[Delivery]) -> None:
        """Asks why their deliveries before failed."""
        answered = threading.Semaphore(0)

        def then(delivery: Delivery, reason: bytes) -> None:
            delivery.reason = reason
            answered.release()

        for each in doubtful:
            self._link.look_up(each, then)
        for _ in doubtful:
            while not answered.acquire(timeout=ALONE_EVERY_S) and not self.draining:
                pass

    def _wait(self, wait_s: float) -> list[Job]:
        """Waits until a job may be fetched again, as one is to run alone."""
        finish_by = time.monotonic() + wait_s
        while not (self.draining or time.monotonic() >= finish_by or self._company.may_enter()):
            self._rest(ALONE_EVERY_S)
        return []

    def close(self, patience: Duration = _core.TELLING_S) -> None:
        """Tells the server how jobs ended, for up to ``patience``, and gives back all jobs that are still in hand."""
        finish_by = time.monotonic() + seconds(patience, "patience")
        self.draining = True
        self._resting.set()
        self._link.stop()
        self._link.finish(finish_by)
        if self._link.batcher.ident is not None:
            self._link.batcher.join(max(0.0, finish_by - time.monotonic()) + _core.SHORTEST_ANSWER_S)
        self._link.hurry()
        self._link.end()
        self._watch.end()
        if self._dead_hook is not None and self._dead_hook.ident is not None:
            self._dead_hook.finish()
            self._dead_hook.join(max(_core.HOOK_S, finish_by - time.monotonic()))
            self._dead_hook.leave()

    def _rest(self, duration_s: float) -> None:
        self._resting.wait(min(duration_s, self.wait_s))
