"""The worker for programs without asyncio: handlers run in threads.

Handler threads also fetch. An idle one *leads*: it waits at the server, with the acknowledgements of finished jobs in
the same write, takes the first job itself and leaves the others to the rest. So a job goes to its handler without a
change of threads. Where handlers are brief, one thread runs all and wakes no other; the *watch* does if one takes long.

The *ack batcher* of each link sends what no fetch takes along within a millisecond, renews leases, and withdraws the
waiting fetch when the worker stops. The watch also tells handlers that their lease or their time is over.

The thread that called ``run`` only waits, so that it stops the worker in time whatever hangs.
"""

from __future__ import annotations

import contextlib
import math
import queue
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional, Union

from . import _core, _guard, _trouble
from ._dead_hook import DeadHook
from ._delivery import Delivery
from ._errand import wait_s
from ._link import Link
from ._log import be_plain
from ._running import BaseWorker
from ._scheduler import Brevity, LinkScheduler
from ._texts import said
from ._watch import Limits, Watch
from .errors import ConfigurationError
from .job import Job
from .queue import Queue


class Worker(BaseWorker[Queue]):
    __doc__ = BaseWorker.__doc__
    _queues = Queue
    _jobs = Job

    def _prepare(self) -> None:
        self._orders: queue.SimpleQueue[Union[str, ConfigurationError]] = queue.SimpleQueue()
        self._resting = threading.Event()
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._idle = 0
        self._waking = False
        self._leading = False
        self._brevity = Brevity()
        self._links: list[Link] = []
        self._limits = Limits()
        self._watch: Optional[Watch] = None
        self._dead_hook = DeadHook(self) if self._dead_hooks else None

    # --- Running and stopping

    def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped, by ``stop``, SIGTERM or SIGINT. A second stop or signal ends the drain.

        Raises ConfigurationError where waiting would not help.
        """
        with self._signals() if signals else contextlib.nullcontext():
            self.start()
            self.join()

    def start(self) -> None:
        """Starts the worker's threads. ``stop`` and ``join`` must follow."""
        if self._links:
            raise RuntimeError("a worker runs only once: create another one")
        self._belongs_here()
        be_plain(self.log)
        self._links = self._make_links()
        self._say(self._said_rules())
        self._started_line()
        self._scheduler = LinkScheduler(len(self._links))
        self._watch = Watch(self._links, self._look_at_handlers)
        if self._health is not None:
            self._health.start()
        threads = [threading.Thread(target=self._work, name=f"dq-handler-{n}") for n in range(self.concurrency)]
        if len(self._links) > 1:
            threads += [threading.Thread(target=self._supply, args=(link,), name="dq-fetch") for link in self._links]
        if self._dead_hook is not None:
            self._dead_hook.start()
        # Batchers first: without one, a handler would use the connection that the batcher uses a moment later.
        for thread in [*(link.batcher for link in self._links), self._watch, *threads]:
            thread.daemon = True  # a handler that hangs must not keep the process
            thread.start()

    def stop(self) -> None:
        """Begins to stop, and returns at once; a second call ends the drain. Safe in a signal handler."""
        self._orders.put("stop")

    def join(self) -> None:
        """Waits until the worker has stopped: at most its drain and two seconds after ``stop``."""
        while (order := self._orders.get()) == "idle":  # from a thread of the worker that ended
            pass
        is_fatal = isinstance(order, ConfigurationError)
        self._end(0.0 if is_fatal else self.drain_s)
        if isinstance(order, ConfigurationError):
            raise order

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    def _end(self, drain_s: float) -> None:
        drain_until = time.monotonic() + drain_s
        with self._lock:
            self.draining = True
            self._return_backlog()
            self._ready.notify_all()
            self._room.notify_all()
            busy = self._busy
        self._stopping_line(busy, drain_s)
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
        self._wait_until(lambda: all(link.is_finished for link in self._links), finish_by)
        for link in self._links:
            link.hurry()
        last_by = time.monotonic() + _core.LAST_S
        for link in self._links:
            link.end(max(0.0, last_by - time.monotonic()))
        if self._dead_hook is not None:
            self._end_dead_hook(self._dead_hook, drain_until)
        if self._watch is not None:
            self._watch.end()
        if self._health is not None:
            self._health.end()
        self._stopped_line()

    def _end_dead_hook(self, hook: DeadHook, drain_until: float) -> None:
        """Gives it what is left of the drain, after which nothing else is to be done."""
        hook.finish()
        self._wait_until(lambda: hook.is_over, max(drain_until, time.monotonic() + _core.HOOK_S))
        hook.leave()

    def _wait_idle(self, until: float) -> bool:
        """Waits until all handlers have ended. Returns False at ``until``, or at a second stop."""
        return self._wait_until(self._is_idle, until)

    def _is_idle(self) -> bool:
        with self._lock:
            return self._busy == 0 and not self._leading and self._claimed == 0

    def _wait_until(self, is_over: Callable[[], bool], until: float) -> bool:
        while True:
            if is_over():
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(queue.Empty):
                if self._orders.get(timeout=left) != "idle":
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

    def _make_links(self) -> list[Link]:
        return [Link(self, members, self._fetches(members)) for members in self._groups()]

    # --- Handler threads

    def _work(self) -> None:
        finished: list[Delivery] = []
        while True:
            batch = self._next(finished)
            if batch is None:
                return self._orders.put("idle")
            try:
                self._handle(batch)
            except BaseException as error:
                self._unforeseen(batch, error)
            finished = batch

    def _next(self, finished: list[Delivery]) -> Optional[list[Delivery]]:
        """The next jobs to handle. A thread that finds none leads, or waits. None: the thread must end."""
        lone = len(self._links) == 1
        with self._lock:
            self._finished(finished)
            if finished and not lone:
                self._room.notify_all()
            while not self.draining:
                if self._has_next():
                    batch = self._take()
                    self._busy += 1
                    if not self._brevity.is_on:
                        self._wake_another()
                        self._tell_soon()
                    elif not self._brevity.is_watched:
                        self._brevity.is_watched = True
                        self._look_out()
                    return batch
                if lone and not self._leading and self._free() > 0:
                    self._lead()
                    continue
                self._tell_soon()
                self._idle += 1
                self._ready.wait(wait_s(self._isolation.look_at(time.monotonic())))
                self._idle -= 1
                self._waking = False
            self._tell_soon()
            return None

    def _tell_soon(self) -> None:
        """Announces outcomes, as no fetch of this thread takes them along."""
        for link in self._links:
            if link._outcomes and not link._armed:
                link._ring()

    def _wake_another(self) -> None:
        """Wakes one thread at a time. It wakes the next one if there is more to do."""
        if self._idle and not self._waking:
            self._waking = True
            self._ready.notify()

    def _looked_up(self, delivery: Delivery, is_killer: bool) -> None:
        with self._lock:
            super()._looked_up(delivery, is_killer)
            self._ready.notify_all()
            self._room.notify_all()

    def _told(self) -> None:
        with self._lock:
            self._ready.notify_all()

    def _lead(self) -> None:
        """Fetches, with the lock released."""
        self._leading = True
        self._brevity.goes_on(self._busy, time.monotonic())
        count = self._free()
        self._lock.release()
        found: list[Delivery] = []
        try:
            found = self._screened(self._links[0].fetch(count, self.wait_s))
            self._links[0].rest()
        finally:
            self._brevity.found(len(found), time.monotonic())
            self._lock.acquire()
            self._leading = False
            self._accept(found)

    def _look_after_brief(self, now: float) -> float:
        """Wakes a thread if the one that was to run all takes longer. Returns when to look again."""
        with self._lock:
            look_at = self._brevity.look_at(now)
            if look_at == math.inf and self._brevity.is_on and not self._leading:
                self._brevity.is_on = False
                self._wake_another()
                self._tell_soon()
            return look_at

    def _claim(self, link: Link) -> int:
        """How many jobs the link may fetch, once there is room and it is its turn; 0 if the worker stops."""
        with self._lock:
            self._scheduler.want(link, time.monotonic())
            while not self.draining:
                claim, look_at = self._claim_for(link)
                if claim:
                    self._room.notify_all()  # it may be another one's turn
                    return claim
                self._room.wait(wait_s(look_at))
        return 0

    def _supply(self, link: Link) -> None:
        """Fetches for a link, in a thread of its own, if there are several links. They share the places for jobs."""
        while not self.draining:
            claim = self._claim(link) if link.open() else 0
            if claim:
                self._fetch(link, claim)
            link.rest()
        self._orders.put("idle")

    def _fetch(self, link: Link, claim: int) -> None:
        found: list[Delivery] = []
        try:
            found = self._screened(link.fetch(claim, link.waits_s()))
        finally:
            with self._lock:
                self._claimed -= claim
                self._scheduler.end(link, time.monotonic(), not found)
                self._accept(found)
                self._wake_another()
                self._room.notify_all()

    def _handle(self, taken: list[Delivery]) -> None:
        batch = self._ours(taken, time.monotonic())
        handler = batch[0].handler if batch else None
        if handler is None:
            return
        if self.hooks:
            self._hook("before", batch)
        if handler.timeout is not None:
            self._limits.begin(time.monotonic() + handler.timeout, batch)
            self._look_out()
        argument: Any = [each.job for each in batch] if handler.batch else batch[0].job
        ended = _guard.run(handler.function, argument, self._around)
        self._left_to_parent(ended)
        if handler.timeout is not None:
            self._limits.end()
        if len(batch) == 1 and not self.hooks:
            return self._told_end(batch[0], self._end_of(batch[0], ended), ended[1])
        ends = [self._end_of(each, ended) for each in batch]
        if self.hooks:
            for delivery, error in reversed([*zip(batch, ends)]):  # so each hook finds what its ``before`` left
                name, *rest = self._hook_end(delivery, error)
                self._hook(name, [delivery], *rest)
        for delivery, error in zip(batch, ends):
            self._told_end(delivery, error, ended[1])

    def _told_end(self, delivery: Delivery, error: Any, value: Any) -> None:
        if error is None and value is None and delivery.value is None:
            return self._settled(delivery)
        result, trouble = self._encoded(delivery, error, value)
        return self._settled(delivery, error, result, trouble, said(error if trouble is None else trouble))

    def _look_out(self) -> None:
        if self._watch is not None:
            self._watch.bell.set()

    def _look_at_handlers(self, now: float) -> float:
        """Tells those whose timeout is over. Returns when to look again."""
        for batch in self._limits.over(now):
            self._time_is_over(batch)
        look_at = self._look_after_brief(now) if self._brevity.is_watched else math.inf
        return min(look_at, self._limits.look_at())

    def _check_around(self, function: Any) -> None:
        super()._check_around(function)
        if _guard.is_coroutine_function(function):
            raise TypeError(f"{function!r} is a coroutine function: use dq.asyncio.Worker")

    def _carried(self) -> None:
        self._orders.put("idle")

    def _fail(self, error: ConfigurationError) -> None:
        self._orders.put(error)

    def _rest(self, duration_s: float) -> None:
        """Waits for the duration, or until the worker stops."""
        self._resting.wait(duration_s)

    # --- For tests

    def drain(self) -> int:
        """Handles all jobs, in this thread, that are ready or become so meanwhile. Returns how many."""
        self._belongs_here()
        self._links = self._links or self._make_links()
        self._say(self._said_rules())
        self._watch = Watch([], self._look_at_handlers)
        self._watch.daemon = True
        self._watch.start()
        try:
            return sum(map(self._drain, self._links))
        finally:
            self._watch.end()

    def _drain(self, link: Link) -> int:
        handled = 0
        link._run_errands()
        while True:
            self._accept(self._screened(link.fetch(self._free(), _core.NO_WAIT_S)))
            if link.trouble is not None:
                raise _trouble.fatal(link.trouble) or link.trouble
            link.flush()
            if not self._backlog:
                return handled
            while self._backlog:
                batch = self._take()
                self._handle(batch)
                self._in_hand -= len(batch)
                handled += len(batch)
