"""What workers with and without asyncio have in common: which jobs are begun, and how they end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from . import _ends, _guard
from ._core import DRAIN_S, WAIT_S, Handlers
from ._delivery import Delivery
from ._health import Health
from ._leases import Choice
from ._links import Members
from ._options import near_misses
from ._ruled import Ruled
from ._scheduler import NEVER, Isolation
from ._texts import NOTHING, Said, name, show, traced
from .errors import ConfigurationError, TimedOut
from .handler import Errors, Fill, Handler, handler, whole
from .hooks import Hooks
from .times import Duration, seconds

Q = TypeVar("Q")
F = TypeVar("F", bound=Callable[..., Any])
Function = Union[Handler[Any], Callable[..., Any]]

NAMED = 5
"""How many jobs a log line names."""


@near_misses("Worker")
class BaseWorker(Ruled[Q]):
    """Runs handlers on the jobs of one or several queues.

    queues: one, or several in strict order; with ``weights``, each comes first in its share of the fetches.
    handlers: functions, or what ``@handler`` makes of them; ``@worker.job("kind")`` adds more, ``@worker.cron`` and
        ``@worker.every`` those of recurring jobs.
    concurrency: how many handlers run at a time.
    prefetch: how many more jobs may be in hand, so that short handlers need not wait for the network.
    lease: how long a job stays with a worker that crashed, if neither the job, its queue nor its handler says.
    drain: how long handlers may go on when the worker stops; 25 s by default.
    wait: how long one fetch waits at the server; then it is sent again. 5 s by default.
    around: middleware: functions that are called with the job (in a batch: the list) and ``next``, the first one
        outermost. What one returns is the result; what it raises is the handler's error.
    health: where to ask whether it is healthy: "127.0.0.1:8081" (HTTP), or the path of a file that is touched.
    """

    def __init__(
        self,
        queues: Union[Q, Sequence[Q]],
        *handlers: Function,
        concurrency: int = 10,
        prefetch: int = 0,
        weights: Optional[Sequence[float]] = None,
        lease: Optional[Duration] = None,
        drain: Duration = DRAIN_S,
        wait: Duration = WAIT_S,
        hooks: Sequence[Hooks] = (),
        around: Sequence[Callable[..., Any]] = (),
        health: Optional[str] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        super().__init__(queues, lease=lease, wait=wait, hooks=hooks, logger=logger)
        if weights is not None and len(weights) != len(self.queues):
            raise ValueError("weights: one for each queue")
        self.concurrency = whole(concurrency, "concurrency", 1)
        self.prefetch = whole(prefetch, "prefetch")
        self.drain_s = seconds(drain, "drain")
        self._isolation = Isolation(self.drain_s)
        self._weights = weights
        self._handlers = Handlers(map(self._made, handlers))
        self._around = tuple(around)
        for each in self._around:
            self._check_around(each)
        self._health = None if health is None else Health(health, lambda: self.is_healthy)
        self._started = False
        self._prepare()

    def _prepare(self) -> None:
        """Sets up what differs with and without asyncio."""
        raise NotImplementedError

    def _made(self, function: Function, **options: Any) -> Handler[Any]:
        made = function if isinstance(function, Handler) else Handler(function, **options)
        self._check_function(made.function)
        return made

    def _check_function(self, function: Callable[..., Any]) -> None:
        if _guard.is_coroutine_function(function):
            raise TypeError(f"{function!r} is a coroutine function: use dq.asyncio.Worker")

    def _check_around(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"around takes functions of a job and next, not {function!r}")

    @property
    def is_healthy(self) -> bool:
        """A fetch or a heartbeat was answered within its time. False before the first one."""
        now = time.monotonic()
        return bool(self._links) and all(link.is_healthy(now) for link in self._links)

    def job(
        self,
        kind: str,
        *,
        attempts: int = 0,
        backoff: Optional[Sequence[Duration]] = None,
        lease: Optional[Duration] = None,
        batch: int = 0,
        fill: Optional[Fill] = None,
        timeout: Optional[Duration] = None,
        retry_on: Errors = (),
        give_up_on: Errors = (),
    ) -> Callable[[F], Handler[F]]:
        """Decorates the handler of jobs of one kind. It takes the options of ``@handler``."""
        if not isinstance(kind, str):
            raise TypeError(f'the kind of jobs comes first, as @worker.job("close-order"), not {show(kind)}')
        if self._started:
            raise RuntimeError(f"the worker runs already: its handler of {kind!r} must be known before")
        made = handler(
            kind=kind,
            attempts=attempts,
            backoff=backoff,
            lease=lease,
            batch=batch,
            fill=fill,
            timeout=timeout,
            retry_on=retry_on,
            give_up_on=give_up_on,
        )

        def register(function: F) -> Handler[F]:
            found = self._made(made(function))
            self._handlers.add(found)
            return found

        return register

    def _groups(self) -> list[Members]:
        if not self._handlers.all():
            raise ConfigurationError("the worker has no handler")
        self._started = True
        self._lease = Choice(self._lease_s, self._handlers.all())
        self._fill = self._handlers.fill()
        if self._fill is not None:
            self.wait_s += self._fill[1] / 1000  # so that few calls end before their batch is full
        return super()._groups()

    def _capacity(self) -> int:
        """How many jobs may be in hand. If only some handlers take batches, each job may be one that runs alone."""
        return self.concurrency * (1 if self._handlers.mixed else self._handlers.size) + self.prefetch

    def _free(self) -> int:
        """How many more jobs may be in hand: those that can begin, and those that are fetched ahead."""
        if self._suspects or self._killer or self._alone:
            return 0
        if self._isolation.until > NEVER and self._isolation.is_on(time.monotonic()):
            return int(not self._in_hand and not self._claimed)
        used = self._busy + len(self._backlog) if self._handlers.mixed else self._in_hand
        return self._capacity() - used - self._claimed

    def _claim_for(self, link: Any) -> tuple[int, float]:
        """How many jobs the link may fetch now. If none: 0, and when to ask again, unless anything changes before."""
        now, scheduler = time.monotonic(), self._scheduler
        if scheduler.is_first(link, now):
            free = self._free()
            if free > 0:
                claim = max(1, free // len(self._links))
                self._claimed += claim
                scheduler.begin(link, now)
                return claim, now
            late = scheduler.recall(now)
            if late is not None:
                late.recall()
        return 0, min(scheduler.look_at(link, now), self._isolation.look_at(now))

    def _ours(self, batch: list[Delivery], now: float) -> list[Delivery]:
        """Deliveries that may begin: a lease may have expired while its job waited for a handler."""
        ours = []
        for delivery in batch:
            if delivery.lease_until <= now:
                delivery.owner.lose([delivery])
            if delivery.job._why is not None:  # cancelled
                self._forget(delivery)
            else:
                ours.append(delivery)
        return ours

    def _end_of(self, delivery: Delivery, ended: tuple[Any, Any]) -> Any:
        """The error of this job, which may be one of a batch; None if it is done."""
        if delivery.job._why == "timeout":
            return TimedOut(_limit(delivery), delivery.job.id, delivery.handler.timeout if delivery.handler else None)
        return ended[0] if delivery.error is None else delivery.error

    def _hook_end(self, delivery: Delivery, error: Any) -> tuple[Any, ...]:
        """Name and arguments of the hook that is called when the handler ended."""
        if delivery.job._is_suspended:
            return ("suspended",)
        return ("after",) if error is None else ("failed", error)

    def _encoded(self, delivery: Delivery, error: Any, value: Any) -> tuple[Optional[bytes], Any]:
        """The result of a handler that is done, or the error of the codec; neither in all other cases."""
        if error is not None or delivery.suspension is not None or delivery.job._why == "timeout":
            return None, None
        if delivery.handler is not None and delivery.handler.batch:
            value = delivery.value
        return (None, None) if value is None else _guard.encoded(delivery.job._codec, value)

    def _settled(
        self,
        delivery: Delivery,
        error: Any = None,
        result: Optional[bytes] = None,
        trouble: Any = None,
        said: Said = NOTHING,
    ) -> None:
        """Settles a delivery whose handler ended.

        trouble: the error of the codec with its result. said: what that says, or the error.
        """
        self._forget(delivery)
        if delivery.job._why == "timeout":
            return
        if delivery.suspension is not None:
            delivery.owner.settle(delivery, _ends.suspended, *delivery.suspension)
            return
        if error is not None:
            delivery.owner.settle(delivery, _ends.ended, self._verdict(delivery, error, said))
        elif trouble is not None:
            found = _guard.unencodable(said.reason)
            self._log.say(logging.ERROR, "job %r is dead: %s", delivery.job.id, (found.reason or b"").decode())
            delivery.owner.settle(delivery, _ends.ended, found)
        elif result is None:
            delivery.owner.settle(delivery, _ends.done)
        else:
            delivery.owner.settle(delivery, _ends.succeeded, result)

    def _unforeseen(self, batch: Iterable[Delivery], error: BaseException) -> None:
        """Handles an error that no guard caught, a bug of this library. The jobs fail; the worker goes on."""
        reason = b"the worker failed: " + name(type(error))
        self._log.say(logging.ERROR, "the worker failed, and goes on", error=error)
        for delivery in batch:
            self._forget(delivery)
            delivery.owner.settle(delivery, _ends.ended, _guard.Verdict("fail", reason))
            delivery.owner.told_soon()

    def _time_is_over(self, batch: Iterable[Delivery]) -> None:
        """The handler's timeout is over: its jobs fail now, and what it does later is dropped."""
        for delivery in batch:
            if delivery.owner.settle(delivery, _ends.timed_out, _limit(delivery).encode()):
                self._log.say(logging.WARNING, "job %r failed: %s", delivery.job.id, _limit(delivery))
                delivery.tell("timeout")
                delivery.owner.told_soon()

    def _verdict(self, delivery: Delivery, error: Any, said: Said) -> _guard.Verdict:
        job = delivery.job
        found = _guard.verdict(error, said.reason, is_told=job.cancelled, job=job)
        if found is _guard.BACK and delivery.owner.holds(delivery):
            self._left([delivery])
        if found.trouble is not None:
            self._log.say(logging.ERROR, "job %r: %s; ignored", job.id, found.trouble)
        if not _guard.is_said(error) and not job.cancelled:
            if said.is_quick:
                self._log.say(logging.WARNING, "job %r failed, attempt %d", job.id, delivery.attempt, error=error)
            else:
                text, where = said.reason.decode("utf-8", "replace"), traced(error)
                self._log.say(logging.WARNING, "job %r failed, attempt %d\n%s%s", job.id, delivery.attempt, where, text)
            handler = delivery.handler
            if handler and found.what == "fail" and _guard.is_final(error, handler.retry_on, handler.give_up_on):
                return _guard.Verdict("give up", found.reason)
        return found

    def _started_line(self) -> None:
        self._log.say(logging.INFO, "started: %s, concurrency %d", self._named(), self.concurrency)

    def _named(self) -> str:
        queues: list[Any] = list(self.queues)
        return ("queue " if len(queues) == 1 else "queues ") + ", ".join(repr(each.name) for each in queues)

    def _stopping_line(self, handlers: int, drain_s: float) -> None:
        if handlers:
            what = "one handler" if handlers == 1 else f"{handlers} handlers"
            self._log.say(
                logging.INFO, "stopping: waiting up to %g s for %s; stop again to give the jobs back now", drain_s, what
            )

    def _stopped_line(self) -> None:
        back = self._given_back
        if not back:
            return self._log.say(logging.INFO, "stopped: %s, no job was given back", self._named())
        named = ", ".join(map(repr, back[:NAMED])) + (", ..." if len(back) > NAMED else "")
        jobs = "job" if len(back) == 1 else "jobs"
        text = "stopped: %s, gave back %d %s: %s"
        return self._log.say(logging.INFO, text, self._named(), len(back), jobs, named)


def _limit(delivery: Delivery) -> str:
    handler = delivery.handler
    return f"timeout after {(handler and handler.timeout) or 0:g} s"
