"""The consumer of programs without asyncio."""

from __future__ import annotations

import threading
import time
from typing import Optional

from . import _core
from ._consumer import JobConsumer
from ._link import Link, Watch
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
        self._link: Link = Link(self, self._members, self._fetches(self._members))
        self._watch = Watch([self._link])

    def fetch(self, count: int = 1, wait: Optional[Duration] = None) -> list[Job]:
        """Takes up to ``count`` jobs, and waits up to ``wait`` for the first one.

        Returns an empty list if there are none or the server is away. Raises ConfigurationError where waiting would not
        help.
        """
        if self._link.courier.ident is None:
            self._link.courier.start()
            self._watch.start()
        wait_s = self.wait_s if wait is None else min(seconds(wait, "wait"), self.wait_s)
        found = self._link.fetch(count, max(wait_s, _core.NO_WAIT_S))
        self._link.rest()
        if not found:
            self._check()
        return [each.job for each in found]

    def close(self, patience: Duration = _core.TELLING_S) -> None:
        """Tells the server how jobs ended, for up to ``patience``, and gives back all jobs that are still in hand."""
        finish_by = time.monotonic() + seconds(patience, "patience")
        self.draining = True
        self._resting.set()
        self._link.stop()
        self._link.finish(finish_by)
        if self._link.courier.ident is not None:
            self._link.courier.join(max(0.0, finish_by - time.monotonic()) + _core.SHORTEST_ANSWER_S)
        self._link.end()
        self._watch.end()

    def _rest(self, duration_s: float) -> None:
        self._resting.wait(min(duration_s, self.wait_s))
