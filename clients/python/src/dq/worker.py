"""The worker of programs without asyncio: handlers run in threads.

Three kinds of threads share the work. Handler threads also fetch: one that has nothing to do *leads*, that is, it
waits at the server with the acknowledgements of finished jobs in the same write, takes the first job itself and
leaves the others to the rest. So a job goes to its handler without a change of threads. The *courier* of each
link tells the server what no fetch took along within a millisecond, renews leases, and withdraws the fetch that waits
when the worker stops. The thread that called ``run`` only watches: it stays in time whatever hangs.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from redis.exceptions import ResponseError

from . import _core
from ._base import BaseLink, BaseWorker, Function, Members
from ._core import Delivery, Fetches, Outcome
from ._line import Line
from .errors import ConfigurationError
from .queue import Queue


class _Link(BaseLink):
    def __init__(self, worker: Worker, members: Members, fetches: Fetches) -> None:
        super().__init__(worker, members, fetches)
        self._worker = worker
        queue, key, _ = members[0]
        self._waiting = Line(queue.client, key, worker.wait_s + _core.SLACK_S)
        self._control = Line(queue.client, key, worker.answer_s)
        self._armed = False
        self._bell = threading.Event()
        self._pause = threading.Event()
        self._finish_by: Optional[float] = None
        self.courier = threading.Thread(target=self._carry, name="dq-courier", daemon=True)

    # --- Fetching, in a handler's thread or one of its own

    def fetch(self, count: int, wait_s: float) -> list[Delivery]:
        """Tells what happened since, and waits for jobs. Never raises: trouble is waited out."""
        told = self._take_outcomes()
        self._fetching = True
        try:
            if self._worker.draining:
                return []
            self._waiting.send(_core.pack([each.command for each in told]) + self._fetches.packed(count, wait_s))
            trouble = self._hear(self._waiting, told)
            found = self._found(self._waiting.read())  # whatever became of the rest: they are ours now
            if trouble is not None and not found:
                raise trouble
            self._troubles = 0
            return found
        except Exception as error:
            self.trouble = error
            self._waiting.close()
            self._worker._trouble(error)
            self._troubles += 1
            self._worker._rest(_core.trouble_s(self._troubles))
            return []
        finally:
            self._fetching = False
            if told:
                self._outcomes.extendleft(reversed(told))
                self._ring()

    def _hear(self, line: Line, told: deque[Outcome]) -> Optional[ResponseError]:
        """Takes the answers in, and returns one that is an error. What has none yet stays in ``told``."""
        trouble: Optional[ResponseError] = None
        while told:
            reply = line.read()
            trouble = self._answered(told.popleft(), reply) or trouble
        if self._outcomes:
            self._ring()
        return trouble

    def _ring(self) -> None:
        if not self._armed:
            self._armed = True
            self._bell.set()

    # --- The courier

    def _carry(self) -> None:
        beat_s = max(self._worker.lease_s / 3, _core.SHORTEST_BEAT_S)
        next_beat = time.monotonic() + beat_s
        troubles = 0
        while self._finish_by is None:
            try:
                self._bell.wait(max(0.0, next_beat - time.monotonic()))
                self._bell.clear()
                if self._worker.draining:
                    self._withdraw()
                self._let_gather()
                # First, so that nothing that the server refuses keeps leases from being renewed.
                if time.monotonic() >= next_beat:
                    self._beat()
                    next_beat = time.monotonic() + beat_s
                self._tell_some()
                troubles = 0
            except Exception as error:
                self._control.close()
                self._worker._trouble(error)
                troubles += 1
                self._pause.wait(min(_core.trouble_s(troubles), beat_s))
                self._pause.clear()
                self._bell.set()
        self._finish(self._finish_by)

    def _let_gather(self) -> None:
        """For a millisecond, so that a fetch may take them along."""
        if self._outcomes and len(self._outcomes) < _core.FLUSH_COUNT and not self._worker.draining:
            time.sleep(_core.FLUSH_AFTER_S)
        self._armed = False

    def _tell_some(self) -> None:
        told = self._take_outcomes(_core.TELL_AT_ONCE)
        if not told:
            return
        try:
            self._control.send(_core.pack([each.command for each in told]))
            trouble = self._hear(self._control, told)
        finally:
            self._outcomes.extendleft(reversed(told))
        if trouble is not None:
            raise trouble

    def _beat(self) -> None:
        beats = self._beats()
        if beats:
            replies = self._control.ask([command for command, _ in beats])
            for (_, group), reply in zip(beats, replies):
                self._beaten(group, reply)

    def _withdraw(self) -> None:
        """Ends the fetch that waits. A job that was handed out in that instant is read, and given back."""
        patience = time.monotonic() + _core.TELLING_S
        while self._fetching and time.monotonic() < patience:
            waiting = self._waiting.client_id
            if waiting is None or not isinstance(self._control.ask([(b"CLIENT", b"UNBLOCK", waiting)])[0], int):
                break
            time.sleep(0.005)
        if self._fetching:
            self._waiting.cut()

    def _finish(self, finish_by: float) -> None:
        """What the server has still to hear; and all that is left goes back to it."""
        commands = self._leave()
        troubles = 0
        while commands or self._outcomes:
            try:
                if commands:
                    self._control.ask(commands)
                    commands = []
                self._tell_some()
            except Exception:
                self._control.close()
                troubles += 1
                pause_s = _core.trouble_s(troubles)
                if time.monotonic() + pause_s >= finish_by:
                    return
                time.sleep(pause_s)

    # --- Orders of the one that watches

    def stop(self) -> None:
        self._bell.set()
        self._pause.set()

    def tell(self) -> None:
        for delivery in list(self._held):
            delivery.job._tell("stopping")

    def finish(self, finish_by: float) -> None:
        self._finish_by = finish_by
        self.stop()

    def end(self) -> None:
        for line, is_free in (self._waiting, not self._fetching), (self._control, not self.courier.is_alive()):
            line.close() if is_free else line.cut()

    def flush(self) -> None:
        """For tests, without a courier."""
        while self._outcomes:
            self._tell_some()


class Worker(BaseWorker[Queue]):
    __doc__ = BaseWorker.__doc__
    _queues = Queue

    def __init__(self, queues: Union[Queue, Sequence[Queue]], *handlers: Function, **options: Any) -> None:
        super().__init__(queues, *handlers, **options)
        self._orders: queue.SimpleQueue[Union[str, ConfigurationError]] = queue.SimpleQueue()
        self._resting = threading.Event()
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._turns: deque[_Link] = deque()
        self._claimed = 0
        self._running = 0
        self._idle = 0
        self._waking = False
        self._leading = False
        self._links: list[_Link] = []
        self._pid = os.getpid()

    # --- Running and stopping

    def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped: by ``stop``, or by SIGTERM or SIGINT (a second one ends the drain).

        Raises ConfigurationError where waiting would not help.
        """
        with self._signals() if signals else contextlib.nullcontext():
            self.start()
            self.join()

    def start(self) -> None:
        """Works in threads of its own. To be followed by ``stop`` and ``join``."""
        if self._links:
            raise RuntimeError("a worker runs once: make another one")
        self._pid = os.getpid()
        self._links = self._make_links()
        threads = [threading.Thread(target=self._work, name=f"dq-handler-{n}") for n in range(self.concurrency)]
        if len(self._links) > 1:
            threads += [threading.Thread(target=self._supply, args=(link,), name="dq-fetch") for link in self._links]
        for thread in [*threads, *(link.courier for link in self._links)]:
            thread.daemon = True  # a handler that hangs must not keep the process
            thread.start()

    def stop(self) -> None:
        """Begins to stop, and returns at once; a second call ends the drain. Safe in a signal handler."""
        self._orders.put("stop")

    def join(self) -> None:
        """Waits until the worker has stopped: at most its drain and two seconds after ``stop``."""
        order = self._orders.get()
        self._end(time.monotonic() + self.drain_s)
        if isinstance(order, ConfigurationError):
            raise order

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    def _end(self, drain_until: float) -> None:
        with self._lock:
            self.draining = True
            self._return_backlog()
            self._ready.notify_all()
            self._room.notify_all()
        self._resting.set()
        for link in self._links:
            link.stop()
        if not self._wait_idle(drain_until):
            for link in self._links:
                link.tell()
            self._wait_idle(time.monotonic() + _core.TELLING_S / 2)
            drain_until = time.monotonic()
        finish_by = drain_until + _core.TELLING_S
        for link in self._links:
            link.finish(finish_by)
        for link in self._links:
            link.courier.join(max(0.0, finish_by - time.monotonic()))
            link.end()
        self.log.info("stopped")

    def _wait_idle(self, until: float) -> bool:
        """Whether all handlers ended before that, and before a second stop."""
        while True:
            with self._lock:
                if self._running == 0 and not self._leading and self._claimed == 0:
                    return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(queue.Empty):
                if self._orders.get(timeout=left) == "stop":
                    return False

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _make_links(self) -> list[_Link]:
        self.answer_s = min(_core.ANSWER_S, max(self.lease_s / 3, _core.SHORTEST_ANSWER_S))
        return [_Link(self, members, self._fetches(members)) for members in self._groups()]

    # --- Handler threads

    def _work(self) -> None:
        finished = 0
        while True:
            batch = self._next(finished)
            if batch is None:
                return self._orders.put("idle")
            self._handle([each for each in batch if not each.job.cancelled])
            finished = len(batch)

    def _next(self, finished: int) -> Optional[list[Delivery]]:
        """The next jobs to handle, when there are some; the one that finds none to do leads. None to end."""
        lone = len(self._links) == 1
        with self._lock:
            self._running -= finished
            self._in_hand -= finished
            if finished and not lone:
                self._room.notify_all()
            while not self.draining:
                if self._backlog:
                    batch = self._take()
                    self._running += len(batch)
                    self._wake_another()
                    self._tell_soon()
                    return batch
                if lone and not self._leading:
                    self._lead()
                    continue
                self._tell_soon()
                self._idle += 1
                self._ready.wait()
                self._idle -= 1
                self._waking = False
            self._tell_soon()
            return None

    def _tell_soon(self) -> None:
        """Of what has ended: no fetch of this thread takes it along."""
        for link in self._links:
            link.told_soon()

    def _wake_another(self) -> None:
        """One at a time: who is woken wakes the next, where there is more to do."""
        if self._idle and not self._waking:
            self._waking = True
            self._ready.notify()

    def _lead(self) -> None:
        """Fetches, with the lock released."""
        self._leading = True
        count = self._capacity() - self._in_hand
        self._lock.release()
        found: list[Delivery] = []
        try:
            found = self._links[0].fetch(count, self.wait_s)
        finally:
            self._lock.acquire()
            self._leading = False
            self._accept(found)

    def _supply(self, link: _Link) -> None:
        """Where there are several links, each has a thread that fetches; together they claim what may be in hand."""
        wait_s = self.wait_s if self._capacity() >= len(self._links) else _core.TURN_S
        while not self.draining:
            with self._lock:
                self._turns.append(link)
                while (self._turns[0] is not link or self._free() < 1) and not self.draining:
                    self._room.wait()
                self._turns.remove(link)
                claim = max(1, self._free() // len(self._links))
                self._claimed += claim
                self._room.notify_all()
            found: list[Delivery] = []
            try:
                found = link.fetch(claim, wait_s)
            finally:
                with self._lock:
                    self._claimed -= claim
                    self._accept(found)
                    self._wake_another()
                    self._room.notify_all()
        self._orders.put("idle")

    def _free(self) -> int:
        return self._capacity() - self._in_hand - self._claimed

    def _handle(self, batch: list[Delivery]) -> None:
        handler = batch[0].handler if batch else None
        if handler is None:
            return
        if self.hooks:
            self._hook("before", batch)
        error: Optional[BaseException] = None
        try:
            handler.function([each.job for each in batch] if handler.batch else batch[0].job)
        except BaseException as raised:  # a handler must not end its thread, not by sys.exit() either
            error = raised
        if os.getpid() != self._pid:  # the handler forked, and this is the child: the job is its parent's
            os._exit(1 if error else 0)
        for delivery in batch:
            self._handled(delivery, delivery.error or error)

    def _fail(self, error: ConfigurationError) -> None:
        self._orders.put(error)

    def _rest(self, duration_s: float) -> None:
        """Until then, or until the worker stops."""
        self._resting.wait(duration_s)

    # --- For tests

    def drain(self) -> int:
        """Handles in this thread all jobs that are ready or become so meanwhile. Returns how many."""
        handled = 0
        self._links = self._links or self._make_links()
        for link in self._links:
            while True:
                self._accept(link.fetch(self._capacity(), _core.NO_WAIT_S))
                if link.trouble is not None:
                    raise _core.fatal(link.trouble) or link.trouble
                link.flush()
                if not self._backlog:
                    break
                while self._backlog:
                    batch = self._take()
                    self._handle(batch)
                    self._in_hand -= len(batch)
                    handled += len(batch)
        return handled
