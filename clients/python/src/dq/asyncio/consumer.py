"""The consumer of programs with asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, Optional

from .. import _core, _guard
from .._consumer import ALONE_EVERY_S, JobConsumer
from .._delivery import Delivery
from ..hooks import Hooks
from ..times import Duration, seconds
from ._dead_hook import DeadHook
from ._link import Link
from ._within import keep, within
from .job import Job
from .queue import Queue


class Consumer(JobConsumer[Queue]):
    __doc__ = JobConsumer.__doc__
    _queues = Queue
    _jobs = Job

    def _prepare(self) -> None:
        self._link: Link
        self._courier: Optional[asyncio.Task[None]] = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._hooking: set[asyncio.Task[None]] = set()

    async def fetch(self, count: int = 1, wait: Optional[Duration] = None) -> list[Job]:
        """Takes up to ``count`` jobs, and waits up to ``wait`` for the first one.

        Returns an empty list if there are none or the server is away. Raises ConfigurationError where waiting would not
        help.
        It may be cancelled: the wait is withdrawn, and a job that comes at that moment is given back.
        """
        if self._courier is None:  # in the event loop from here on
            self._stopping = asyncio.Event()
            if self._dead_hooks:
                self._dead_hook = DeadHook(self)
                self._dead_hook.start()
            self._link = Link(self, self._members, self._fetches(self._members))
            self._company.add(self._link)
            self._courier = asyncio.create_task(self._link.carry())
        if self._leaving:  # one that was cancelled reads the same connection, and its withdrawal ends any wait there
            await asyncio.wait(set(self._leaving))
        wait_s = self.wait_s if wait is None else min(seconds(wait, "wait"), self.wait_s)
        fetching = asyncio.create_task(self._fetch(count, max(wait_s, _core.NO_WAIT_S)))
        try:
            found = await asyncio.shield(fetching)
        except asyncio.CancelledError:
            leaving = asyncio.create_task(self._leave(fetching))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            raise
        if not found:
            self._check()
        return found

    async def _fetch(self, count: int, wait_s: float) -> list[Job]:
        count = self._company.enter(count)
        if not count:
            return await self._wait(wait_s)
        found: list[Delivery] = []
        try:
            found = await self._link.fetch(count, wait_s)
            await self._ask(self._doubtful(found))
            jobs = self._handed_out(found)
            while self._is_returning():
                await self._rest(ALONE_EVERY_S)
        finally:
            self._company.leave(bool(found))
        await self._link.rest()
        return jobs

    async def _ask(self, doubtful: Sequence[Delivery]) -> None:
        """Asks why their deliveries before failed."""
        answered = asyncio.Semaphore(0)

        def then(delivery: Delivery, reason: bytes) -> None:
            delivery.reason = reason
            answered.release()

        for each in doubtful:
            self._link.look_up(each, then)
        for _ in doubtful:
            await answered.acquire()

    async def _wait(self, wait_s: float) -> list[Job]:
        """Waits until a job may be fetched again, as one is to run alone."""
        finish_by = time.monotonic() + wait_s
        while not (self.draining or time.monotonic() >= finish_by or self._company.may_enter()):
            await self._rest(ALONE_EVERY_S)
        return []

    async def _leave(self, fetching: asyncio.Task[list[Job]]) -> None:
        await self._link.withdraw()
        self.release(await fetching)

    async def close(self, patience: Duration = _core.TELLING_S) -> None:
        """Tells the server how jobs ended, for up to ``patience``, and gives back all jobs that are still in hand."""
        self.draining = True
        if self._courier is None:
            return
        self._stopping.set()
        finish_by = time.monotonic() + seconds(patience, "patience")
        with contextlib.suppress(asyncio.TimeoutError):
            await within(self._end(self._courier), seconds(patience, "patience"))
        await self._link.close()
        if self._dead_hook is not None:
            self._dead_hook.finish()
            await asyncio.wait([self._dead_hook.task], timeout=max(_core.HOOK_S, finish_by - time.monotonic()))
            await self._dead_hook.leave()

    async def _end(self, batcher: asyncio.Task[None]) -> None:
        if self._leaving:
            await asyncio.wait(set(self._leaving))
        await self._link.withdraw()
        batcher.cancel()
        await asyncio.wait([batcher])
        await self._link.finish()

    def _later(self, hooks: Hooks, name: str, result: Any) -> None:
        keep(self._hooking, _guard.awaited(self._log, hooks, name, result), result)

    async def _rest(self, duration_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await within(self._stopping.wait(), min(duration_s, self.wait_s))
