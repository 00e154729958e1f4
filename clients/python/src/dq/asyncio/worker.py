"""The worker for programs with asyncio: handlers are tasks.

Each link has two tasks. One fetches, with the acknowledgements of finished jobs in the same write. The *ack batcher*
sends what no fetch takes along within a millisecond, renews leases, and withdraws the waiting fetch when the
worker stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Callable, Optional

from .. import _core, _guard, _trouble
from .._delivery import Delivery
from .._errand import wait_s
from .._log import be_plain
from .._running import BaseWorker
from .._scheduler import LinkScheduler
from .._texts import asaid
from ..errors import Cancelled, ConfigurationError
from ..handler import Handler
from ..hooks import Hooks
from ._dead_hook import DeadHook
from ._link import Link
from ._within import keep, within
from .job import Job
from .queue import Queue


class Worker(BaseWorker[Queue]):
    __doc__ = BaseWorker.__doc__
    _queues = Queue
    _jobs = Job

    def _prepare(self) -> None:
        self._links: list[Link] = []
        self._tasks: dict[asyncio.Task[None], list[Delivery]] = {}
        self._fetchers: list[asyncio.Task[None]] = []
        self._couriers: list[asyncio.Task[None]] = []
        self._hooking: set[asyncio.Task[None]] = set()
        self._hears_signals = False
        self._heard: list[signal.Signals] = []
        self._stops = 0
        self._failure: Optional[ConfigurationError] = None

    def _check_function(self, function: Callable[..., Any]) -> None:
        if not _guard.is_coroutine_function(function):
            raise TypeError(
                f"{function!r} is no coroutine function: use dq.Worker, or asyncio.to_thread in a coroutine"
            )

    # --- Running and stopping

    async def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped, by ``stop``, SIGTERM or SIGINT. A second stop or signal ends the drain.

        If handlers then take no notice of their cancellation, the second signal ends the process.

        Raises ConfigurationError where waiting would not help.
        """
        with self._signals() if signals else contextlib.nullcontext():
            await self.start()
            await self.join()
        if len(self._heard) > 1 and self._tasks:  # asyncio.run would wait for them for ever
            signal.signal(self._heard[-1], signal.SIG_DFL)
            signal.raise_signal(self._heard[-1])

    async def start(self) -> None:
        """Starts the worker's tasks. ``stop`` and ``join`` must follow."""
        if self._links:
            raise RuntimeError("a worker runs only once: create another one")
        self._belongs_here()
        be_plain(self.log)
        self._make_links()
        await self._say_rules()
        self._started_line()
        if self._health is not None:
            self._health.start()
        if self._dead_hook is not None:
            self._dead_hook.start()
        self._fetchers = [asyncio.create_task(self._supply(link)) for link in self._links]
        self._couriers = [asyncio.create_task(link.carry()) for link in self._links]

    def stop(self) -> None:
        """Begins to stop, and returns at once; a second call ends the drain."""
        self._stops += 1
        self._stopping.set()

    async def join(self) -> None:
        """Waits until the worker has stopped: at most its drain and two seconds after ``stop``."""
        try:
            await self._stopping.wait()
        finally:
            await self._end()
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self) -> Worker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self.join()

    async def _end(self) -> None:
        drain_s = 0.0 if self._failure is not None else self.drain_s
        drain_until = time.monotonic() + drain_s
        self.draining = True
        self._return_backlog()
        self._room.set()
        self._stopping_line(len(self._tasks), drain_s)
        self._stopping.clear()
        withdrawing = [asyncio.create_task(link.withdraw()) for link in self._links]
        idle = asyncio.create_task(self._idle())
        await self._while_draining(idle, drain_until)
        idle.cancel()
        for task, batch in list(self._tasks.items()):
            self._cancel(task, batch, "stopping")
        # Jobs that a fetch was handed before it was withdrawn are read, to be given back.
        await asyncio.wait([*self._tasks, *self._fetchers], timeout=_core.TELLING_S / 2)
        for task in [*self._fetchers, *self._couriers, *withdrawing]:
            task.cancel()
        await asyncio.wait([*self._fetchers, *self._couriers], timeout=_core.TELLING_S / 4)
        finishing = asyncio.ensure_future(asyncio.gather(*(link.finish() for link in self._links)))
        await self._while_draining(finishing, drain_until)  # CLIENT PAUSE may hold the answers back
        with contextlib.suppress(asyncio.TimeoutError):
            await within(finishing, _core.TELLING_S)
        for link in self._links:
            await link.close()
        if self._dead_hook is not None:
            self._dead_hook.finish()
            await self._while_draining(self._dead_hook.task, max(drain_until, time.monotonic() + _core.HOOK_S))
            await self._dead_hook.leave()
        if self._hooking:
            await asyncio.wait(self._hooking, timeout=_core.HOOK_S)
        self._log.is_over = True
        if self._health is not None:
            await asyncio.to_thread(self._health.end)
        self._stopped_line()

    async def _while_draining(self, ending: asyncio.Future[Any], until: float) -> None:
        """Waits for what is ending, until the drain is over: at its time, or at a second stop."""
        if self._stops > 1:
            return
        again = asyncio.create_task(self._stopping.wait())
        left_s = max(0.0, until - time.monotonic())
        await asyncio.wait([again, ending], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        again.cancel()

    async def _idle(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.wait(self._fetchers)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
        try:
            for number in numbers:
                loop.add_signal_handler(number, self._hear, number)
            self._hears_signals = True
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not in the main thread
            numbers = ()
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _hear(self, number: signal.Signals) -> None:
        self._heard.append(number)
        self.stop()

    def _make_links(self) -> None:
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        if self._stops:
            self._stopping.set()
        self._dead_hook = DeadHook(self) if self._dead_hooks else None
        self._links = [Link(self, members, self._fetches(members)) for members in self._groups()]
        self._scheduler = LinkScheduler(len(self._links))

    async def _say_rules(self) -> None:
        queue: Any = self.queues[0]
        self._say([await queue._ready(call) for call in self._said_rules()])

    # --- Handling

    async def _claim(self, link: Link) -> int:
        """How many jobs the link may fetch, once there is room and it is its turn; 0 if the worker stops."""
        self._scheduler.want(link, time.monotonic())
        while not self.draining:
            claim, look_at = self._claim_for(link)
            if claim:
                self._room.set()  # it may be another one's turn
                return claim
            self._room.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await within(self._room.wait(), wait_s(look_at))
        return 0

    async def _supply(self, link: Link) -> None:
        """Fetches until the worker stops."""
        while not self.draining:
            claim = await self._claim(link) if len(self._links) == 1 or await link.open() else 0
            if claim:
                await self._fetch(link, claim)
            await link.rest()

    async def _fetch(self, link: Link, claim: int) -> None:
        wait_s = self.wait_s if len(self._links) == 1 else link.waits_s()
        found: list[Delivery] = []
        try:
            found = self._screened(await link.fetch(claim, wait_s))
        finally:
            self._scheduler.end(link, time.monotonic(), not found)
            self._take_on(claim, found)
        await asyncio.sleep(0)  # handlers that end at once go along with the next fetch

    def _take_on(self, claim: int, found: list[Delivery]) -> None:
        self._claimed -= claim
        self._accept(found)
        while len(self._tasks) < self.concurrency and self._has_next():
            batch = self._take()
            task = asyncio.create_task(self._handle(batch))
            self._tasks[task] = batch
            self._busy += 1
            task.add_done_callback(self._ended)
        self._room.set()

    def _looked_up(self, delivery: Delivery, is_killer: bool) -> None:
        super()._looked_up(delivery, is_killer)
        self._take_on(0, [])

    def _told(self) -> None:
        self._take_on(0, [])

    def _ended(self, task: asyncio.Task[None]) -> None:
        batch = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, KeyboardInterrupt):
            self._unforeseen(batch, error)
        self._finished(batch)
        self._take_on(0, [])

    async def _handle(self, taken: list[Delivery]) -> None:
        batch = self._ours(taken, time.monotonic())
        handler = batch[0].handler if batch else None
        if handler is None:
            return
        if self.hooks:
            await self._ahook("before", batch)
        if all(each.job.cancelled for each in batch):  # cancelled while the hooks ran
            ended: tuple[Any, Any] = Cancelled(), None
        else:
            ended = await self._run_handler(handler, batch)
        if issubclass(type(ended[0]), KeyboardInterrupt) and not self._hears_signals:
            raise ended[0]
        self._left_to_parent(ended)
        ends = [self._end_of(each, ended) for each in batch]
        if self.hooks:
            for delivery, error in reversed([*zip(batch, ends)]):  # so each hook finds what its ``before`` left
                name, *rest = self._hook_end(delivery, error)
                await self._ahook(name, [delivery], *rest)
        for delivery, error in zip(batch, ends):
            if error is None and ended[1] is None and not handler.batch:
                self._settled(delivery)
            else:
                result, trouble = self._encoded(delivery, error, ended[1])
                said = await asaid(error if trouble is None else trouble)
                self._settled(delivery, error, result, trouble, said)
            delivery.owner.told_soon()

    async def _run_handler(self, handler: Handler[Any], batch: list[Delivery]) -> tuple[Any, Any]:
        argument: Any = [each.job for each in batch] if handler.batch else batch[0].job
        if handler.timeout is None:
            return await _guard.arun(handler.function, argument, self._around)
        task: Any = asyncio.current_task()
        limit = asyncio.get_running_loop().call_later(handler.timeout, self._limit_is_over, task, batch)
        try:
            return await _guard.arun(handler.function, argument, self._around)
        finally:
            limit.cancel()

    def _limit_is_over(self, task: asyncio.Task[None], batch: list[Delivery]) -> None:
        self._time_is_over(batch)
        task.cancel()

    async def _ahook(self, name: str, batch: Sequence[Delivery], *rest: Any) -> None:
        for hooks in self.hooks:
            for delivery in batch:
                await _guard.ahook(self._log, hooks, name, delivery.job, *rest)

    def _later(self, hooks: Hooks, name: str, result: Any) -> None:
        keep(self._hooking, _guard.awaited(self._log, hooks, name, result), result)

    def _cancel(self, task: asyncio.Task[None], batch: list[Delivery], why: str) -> None:
        for delivery in batch:
            delivery.tell(why)
        task.cancel()

    def _lost(self, delivery: Delivery) -> None:
        super()._lost(delivery)
        for task, batch in self._tasks.items():
            # The task of a batch goes on for the other jobs in it.
            if delivery in batch and all(each.job is not None and each.job.lost for each in batch):
                task.cancel()

    def _fail(self, error: ConfigurationError) -> None:
        self._failure = error
        self._stopping.set()

    async def _rest(self, duration_s: float) -> None:
        """Waits for the duration, or until the worker stops."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(asyncio.shield(self._stopping_or_draining()), duration_s)

    def _stopping_or_draining(self) -> Coroutine[Any, Any, Any]:
        return asyncio.sleep(0) if self.draining else self._stopping.wait()

    # --- For tests

    async def drain(self) -> int:
        """Handles all jobs that are ready or become so meanwhile. Returns how many."""
        handled = 0
        self._belongs_here()
        if not self._links:
            self._make_links()
        await self._say_rules()
        for link in self._links:
            await link._run_errands()
            while True:
                self._accept(self._screened(await link.fetch(self._free(), _core.NO_WAIT_S)))
                if link.trouble is not None:
                    raise _trouble.fatal(link.trouble) or link.trouble
                await link.flush()
                if not self._backlog:
                    break
                while self._backlog:
                    batch = self._take()
                    await self._handle(batch)
                    self._in_hand -= len(batch)
                    handled += len(batch)
        return handled
