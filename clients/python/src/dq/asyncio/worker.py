"""The worker of programs with asyncio: handlers are tasks.

Each link has two tasks: one fetches, with the acknowledgements of finished jobs in the same write; the *courier*
tells the server what no fetch took along within a millisecond, renews leases, and withdraws the fetch that waits
when the worker stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Callable, Optional, Union

from redis.exceptions import ResponseError

from .. import _core
from .._base import BaseLink, BaseWorker, Function, Members
from .._core import Delivery, Fetches, Outcome
from ..errors import Cancelled, ConfigurationError
from ._line import Line
from .queue import Queue


class _Link(BaseLink):
    def __init__(self, worker: Worker, members: Members, fetches: Fetches) -> None:
        super().__init__(worker, members, fetches)
        self._worker = worker
        queue, key, _ = members[0]
        self._waiting = Line(queue.client, key, _core.ANSWER_S)
        self._control = Line(queue.client, key, worker.answer_s)
        self._one_at_a_time = asyncio.Lock()
        self._bell = asyncio.Event()
        self._armed = False

    async def fetch(self, count: int, wait_s: float) -> list[Delivery]:
        """Tells what happened since, and waits for jobs. Never raises: trouble is waited out."""
        told = self._take_outcomes()
        self._fetching = True
        try:
            packed = _core.pack([each.command for each in told]) + self._fetches.packed(count, wait_s)
            try:
                found, trouble = await asyncio.wait_for(self._exchange(told, packed), wait_s + _core.SLACK_S)
            except asyncio.TimeoutError:  # when the process stood still, the answer may be there
                found, trouble = await asyncio.wait_for(self._answers(told), _core.LATE_S)
            if trouble is not None and not found:
                raise trouble
            self._troubles = 0
            return found
        except Exception as error:
            self.trouble = error
            await self._waiting.close()
            self._worker._trouble(error)
            self._troubles += 1
            await self._worker._rest(_core.trouble_s(self._troubles))
            return []
        finally:
            self._fetching = False
            if told:
                self._outcomes.extendleft(reversed(told))
                self._ring()

    async def _exchange(self, told: deque[Outcome], packed: bytes) -> tuple[list[Delivery], Optional[ResponseError]]:
        await self._waiting.send(packed)
        return await self._answers(told)

    async def _answers(self, told: deque[Outcome]) -> tuple[list[Delivery], Optional[ResponseError]]:
        trouble = await self._hear(self._waiting, told)
        return self._found(await self._waiting.read()), trouble

    async def _hear(self, line: Line, told: deque[Outcome]) -> Optional[ResponseError]:
        """Takes the answers in, and returns one that is an error. What has none yet stays in ``told``."""
        trouble: Optional[ResponseError] = None
        while told:
            reply = await line.read()
            trouble = self._answered(told.popleft(), reply) or trouble
        if self._outcomes:
            self._ring()
        return trouble

    def _ring(self) -> None:
        """In a millisecond, so that a fetch may take them along; at once where there are many."""
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_later(_core.FLUSH_AFTER_S, self._bell.set)
        if len(self._outcomes) >= _core.FLUSH_COUNT:
            self._bell.set()

    async def supply(self) -> None:
        """Fetches as long as the worker works."""
        worker = self._worker
        wait_s = worker.wait_s if worker._capacity() >= len(worker._links) else _core.TURN_S
        while True:
            claim = await worker._claim()
            if not claim:
                return
            found: list[Delivery] = []
            try:
                found = await self.fetch(claim, wait_s)
            finally:
                worker._take_on(claim, found)
            await asyncio.sleep(0)  # what is done at once goes along with the next fetch

    async def carry(self) -> None:
        """The courier."""
        clock = asyncio.get_running_loop().time
        beat_s = max(self._worker.lease_s / 3, _core.SHORTEST_BEAT_S)
        next_beat = clock() + beat_s
        troubles = 0
        while True:
            try:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), max(0.0, next_beat - clock()))
                self._bell.clear()
                self._armed = False
                # First, so that nothing that the server refuses keeps leases from being renewed.
                if clock() >= next_beat:
                    await self._beat()
                    next_beat = clock() + beat_s
                await self._tell_some()
                troubles = 0
            except asyncio.CancelledError:
                await self._control.close()  # perhaps with answers that nobody read
                raise
            except Exception as error:
                await self._control.close()
                self._worker._trouble(error)
                troubles += 1
                await asyncio.sleep(min(_core.trouble_s(troubles), beat_s))
                self._bell.set()

    async def _tell_some(self) -> None:
        told = self._take_outcomes(_core.TELL_AT_ONCE)
        if not told:
            return
        try:
            trouble = await asyncio.wait_for(self._tell(told), self._worker.answer_s)
        finally:
            self._outcomes.extendleft(reversed(told))
        if trouble is not None:
            raise trouble

    async def _tell(self, told: deque[Outcome]) -> Optional[ResponseError]:
        async with self._one_at_a_time:
            await self._control.send(_core.pack([each.command for each in told]))
            return await self._hear(self._control, told)

    async def _ask(self, commands: list[_core.Command]) -> list[Any]:
        async with self._one_at_a_time:
            return await asyncio.wait_for(self._control.ask(commands), self._worker.answer_s)

    async def _beat(self) -> None:
        beats = self._beats()
        if beats:
            replies = await self._ask([command for command, _ in beats])
            for (_, group), reply in zip(beats, replies):
                self._beaten(group, reply)

    async def withdraw(self) -> None:
        """Ends the fetch that waits. A job that was handed out in that instant is read, and given back."""
        with contextlib.suppress(Exception):
            while self._fetching:
                waiting = self._waiting.client_id
                if waiting is None or not isinstance((await self._ask([(b"CLIENT", b"UNBLOCK", waiting)]))[0], int):
                    break
                await asyncio.sleep(0.005)

    async def finish(self) -> None:
        """What the server has still to hear; and all that is left goes back to it."""
        commands = self._leave()
        troubles = 0
        while commands or self._outcomes:
            try:
                if commands:
                    await self._ask(commands)
                    commands = []
                await self._tell_some()
            except Exception:
                await self._control.close()
                troubles += 1
                await asyncio.sleep(_core.trouble_s(troubles))

    async def close(self) -> None:
        await self._waiting.close()
        await self._control.close()


class Worker(BaseWorker[Queue]):
    __doc__ = BaseWorker.__doc__
    _queues = Queue

    def __init__(self, queues: Union[Queue, Sequence[Queue]], *handlers: Function, **options: Any) -> None:
        super().__init__(queues, *handlers, **options)
        self._links: list[_Link] = []
        self._tasks: dict[asyncio.Task[None], list[Delivery]] = {}
        self._fetchers: list[asyncio.Task[None]] = []
        self._couriers: list[asyncio.Task[None]] = []
        self._claimed = 0
        self._stops = 0
        self._failure: Optional[ConfigurationError] = None
        self._pid = os.getpid()

    def _check_function(self, function: Callable[..., Any]) -> None:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function!r} is no coroutine function: use dq.Worker, or asyncio.to_thread in a coroutine"
            )

    # --- Running and stopping

    async def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped: by ``stop``, or by SIGTERM or SIGINT (a second one ends the drain).

        Raises ConfigurationError where waiting would not help.
        """
        with self._signals() if signals else contextlib.nullcontext():
            await self.start()
            await self.join()

    async def start(self) -> None:
        """Works in tasks of its own. To be followed by ``stop`` and ``join``."""
        if self._links:
            raise RuntimeError("a worker runs once: make another one")
        self._make_links()
        self._fetchers = [asyncio.create_task(link.supply()) for link in self._links]
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
        self.draining = True
        self._return_backlog()
        self._room.set()
        self._stopping.clear()
        withdrawing = [asyncio.create_task(link.withdraw()) for link in self._links]
        for fetcher in self._fetchers:
            asyncio.get_running_loop().call_later(_core.TELLING_S, fetcher.cancel)
        await self._wait_idle(self.drain_s)
        for task, batch in list(self._tasks.items()):
            self._cancel(task, batch, "stopping")
        # What a fetch was handed before it was withdrawn is read, to be given back.
        await asyncio.wait([*self._tasks, *self._fetchers], timeout=_core.TELLING_S / 2)
        for task in [*self._fetchers, *self._couriers, *withdrawing]:
            task.cancel()
        await asyncio.wait([*self._fetchers, *self._couriers], timeout=_core.TELLING_S / 4)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(link.finish() for link in self._links)), _core.TELLING_S)
        for link in self._links:
            await link.close()
        self.log.info("stopped")

    async def _wait_idle(self, duration_s: float) -> None:
        """Until all handlers have ended, a second stop, or then."""
        if self._stops > 1:
            return
        again = asyncio.create_task(self._stopping.wait())
        idle = asyncio.create_task(self._idle())
        await asyncio.wait([again, idle], timeout=duration_s, return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        idle.cancel()

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
                loop.add_signal_handler(number, self.stop)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not in the main thread
            numbers = ()
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _make_links(self) -> None:
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._turn = asyncio.Lock()
        if self._stops:
            self._stopping.set()
        self.answer_s = min(_core.ANSWER_S, max(self.lease_s / 3, _core.SHORTEST_ANSWER_S))
        self._links = [_Link(self, members, self._fetches(members)) for members in self._groups()]

    # --- Handling

    async def _claim(self) -> int:
        """How many jobs a link may fetch, when there is room and it is its turn; 0 to end."""
        async with self._turn:
            while not self.draining:
                free = self._capacity() - self._in_hand - self._claimed
                if free > 0:
                    claim = max(1, free // len(self._links))
                    self._claimed += claim
                    return claim
                self._room.clear()
                await self._room.wait()
        return 0

    def _take_on(self, claim: int, found: list[Delivery]) -> None:
        self._claimed -= claim
        self._accept(found)
        while self._backlog and len(self._tasks) < self.concurrency:
            batch = self._take()
            task = asyncio.create_task(self._handle(batch))
            self._tasks[task] = batch
            task.add_done_callback(self._ended)
        self._room.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._in_hand -= len(self._tasks.pop(task))
        self._take_on(0, [])

    async def _handle(self, batch: list[Delivery]) -> None:
        batch = [each for each in batch if not each.job.cancelled]
        handler = batch[0].handler if batch else None
        if handler is None:
            return
        if self.hooks:
            self._hook("before", batch)
        error: Optional[BaseException] = None
        try:
            await handler.function([each.job for each in batch] if handler.batch else batch[0].job)
        except asyncio.CancelledError as cancelled:
            error = Cancelled() if batch[0].job.cancelled else cancelled
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # SystemExit would end the loop
            error = raised
        if os.getpid() != self._pid:  # the handler forked, and this is the child: the job is its parent's
            os._exit(1 if error else 0)
        for delivery in batch:
            self._handled(delivery, delivery.error or error)
            delivery.owner.told_soon()

    def _cancel(self, task: asyncio.Task[None], batch: list[Delivery], why: str) -> None:
        for delivery in batch:
            delivery.job._tell(why)
        task.cancel()

    def _lost(self, delivery: Delivery) -> None:
        super()._lost(delivery)
        for task, batch in self._tasks.items():
            # A batch goes on for the others in it.
            if delivery in batch and all(each.job.lost for each in batch):
                task.cancel()

    def _fail(self, error: ConfigurationError) -> None:
        self._failure = error
        self._stopping.set()

    async def _rest(self, duration_s: float) -> None:
        """Until then, or until the worker stops."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._stopping_or_draining()), duration_s)

    def _stopping_or_draining(self) -> Coroutine[Any, Any, Any]:
        return asyncio.sleep(0) if self.draining else self._stopping.wait()

    # --- For tests

    async def drain(self) -> int:
        """Handles all jobs that are ready or become so meanwhile. Returns how many."""
        handled = 0
        if not self._links:
            self._make_links()
        for link in self._links:
            while True:
                self._accept(await link.fetch(self._capacity(), _core.NO_WAIT_S))
                if link.trouble is not None:
                    raise _core.fatal(link.trouble) or link.trouble
                while link._outcomes:
                    await link._tell_some()
                if not self._backlog:
                    break
                while self._backlog:
                    batch = self._take()
                    await self._handle(batch)
                    self._in_hand -= len(batch)
                    handled += len(batch)
        return handled
