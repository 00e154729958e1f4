"""What both faces of worker and consumer have in common: settings, and who is told what."""

from __future__ import annotations

import logging
import os
import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from . import _core, _ends, _guard, _trouble
from ._core import Delivery, Fetches, Handlers
from ._ends import Outcome
from ._leases import Choice
from ._links import reach
from ._options import near_misses
from .errors import ConfigurationError
from .handler import Handler, handler, lease_s, whole
from .hooks import Hooks
from .times import Duration, seconds

Q = TypeVar("Q")
F = TypeVar("F", bound=Callable[..., Any])
Function = Union[Handler[Any], Callable[..., Any]]
Members = list[tuple[Any, bytes, float]]

NAMED = 5
"""How many jobs a line of the log names."""


class BaseConsumer(Generic[Q]):
    """What takes jobs from queues: with handlers, a worker; without, a consumer."""

    _queues: type
    """What it works on."""

    def __init__(
        self,
        queues: Union[Q, Sequence[Q]],
        *,
        lease: Optional[Duration] = None,
        wait: Duration = _core.WAIT_S,
        hooks: Sequence[Hooks] = (),
        logger: Optional[logging.Logger] = None,
    ) -> None:
        self.queues: list[Q] = (
            [*queues] if isinstance(queues, Sequence) and not isinstance(queues, (str, bytes)) else [queues]
        )
        for each in self.queues:
            self._check_queue(each)
        self.wait_s = seconds(wait, "wait")
        self.hooks = tuple(hooks)
        self.log = logger or logging.getLogger("dq")
        self.draining = False
        self._log = _guard.Log(self.log)
        self._weights: Optional[Sequence[float]] = None
        self._lease_s = None if lease is None else lease_s(lease)
        self._lease = Choice(self._lease_s)
        self._trouble_said: Optional[str] = None
        self._given_back: list[str] = []

    def _check_queue(self, queue: Q) -> None:
        made = type(self)._queues
        if isinstance(queue, made):
            return
        name = queue if isinstance(queue, str) else "orders"
        module = made.__module__.rpartition(".")[0]
        raise TypeError(
            f"a {type(self).__name__.lower()} of {module} needs a Queue of {module}, not {queue!r}: "
            f'{type(self).__name__}({module}.Queue("redis://localhost", "{name}"), ...)'
        )

    def _groups(self) -> list[Members]:
        """The queues' keys, those together that one BPOP can wait for: in a cluster, those of one slot."""
        groups: dict[Any, Members] = {}
        queues: list[Any] = list(self.queues)
        for each, weight in zip(queues, self._weights or [1.0] * len(queues)):
            client = each.client
            for key in each.keys:
                groups.setdefault(reach(client, key), []).append((each, key, weight))
        return list(groups.values())

    def _fetches(self, members: Members) -> Fetches:
        # The shards of a queue take turns: none comes first.
        weighted = self._weights is not None or any(each.shards for each, _, _ in members)
        weights = [weight for _, _, weight in members] if weighted else None
        return Fetches([key for _, key, _ in members], weights, self._lease)

    def _lost(self, delivery: Delivery) -> None:
        self._log.say(logging.WARNING, "lost job %r: its lease expired before it was acknowledged", delivery.job.id)
        delivery.job._tell("lost")
        if self.hooks:
            self._hook("lost", [delivery])

    def _refused(self, outcome: Outcome, why: str) -> None:
        """What a handler asked for can be something that the server does not do."""
        words = " ".join(_guard.show(word) for word in outcome.command[5:])
        id = outcome.delivery.job.id
        self._log.say(logging.ERROR, "job %r: the server refused %s (%s): sent without it", id, words or "its end", why)

    def _left(self, deliveries: Iterable[Delivery]) -> None:
        """Given back, as the worker or consumer stops."""
        self._given_back += [each.job.id for each in deliveries]

    def _hook(self, name: str, batch: Sequence[Delivery], *rest: Any) -> None:
        for hooks in self.hooks:
            for delivery in batch:
                self._later(hooks, name, _guard.hook(self._log, hooks, name, delivery.job, *rest))

    def _later(self, hooks: Hooks, name: str, result: Any) -> None:
        """What a hook returned."""
        if result is not None:
            _guard.unawaited(self._log, hooks, name, result)

    def _fail(self, error: ConfigurationError) -> None:
        """What waiting cannot mend."""
        raise NotImplementedError

    def _rest(self, duration_s: float) -> Any:
        """After trouble; it ends early where the worker or consumer stops."""
        raise NotImplementedError

    def _trouble(self, error: Exception) -> None:
        end = _trouble.fatal(error)
        if self.draining:
            return
        if end is not None:
            self._fail(end)
        text = f"{type(error).__name__}: {error}"
        if text != self._trouble_said:
            self._trouble_said = text
            self._log.say(logging.WARNING, "trouble with the server, trying again: %s", text)


class _Workers:
    """Those of this process."""

    def __init__(self) -> None:
        self._refs: tuple[weakref.ref[BaseWorker[Any]], ...] = ()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._refs = ()

    def add(self, worker: BaseWorker[Any]) -> None:
        self._refs = (*[each for each in self._refs if each() is not None], weakref.ref(worker))

    def others(self, worker: BaseWorker[Any]) -> Iterator[BaseWorker[Any]]:
        if len(self._refs) > 1:
            for each in self._refs:
                found = each()
                if found is not None and found is not worker:
                    yield found


_workers = _Workers()


@near_misses("Worker")
class BaseWorker(BaseConsumer[Q]):
    """Runs handlers on the jobs of one or several queues.

    queues: one, or several in strict order; with ``weights``, each comes first in its share of the fetches.
    handlers: functions or what ``@handler`` makes of them; more of them by ``@worker.job("kind")``.
    concurrency: how many handlers run at a time.
    prefetch: how many jobs more may be in hand, so that short handlers need not wait for the network.
    lease: for how long a job stays with a worker that crashed, where neither the job, its queue nor its handler says.
    drain: how long handlers may go on when the worker stops.
    wait: how long one fetch waits at the server; then it is sent again.
    """

    def __init__(
        self,
        queues: Union[Q, Sequence[Q]],
        *handlers: Function,
        concurrency: int = 10,
        prefetch: int = 0,
        weights: Optional[Sequence[float]] = None,
        lease: Optional[Duration] = None,
        drain: Duration = _core.DRAIN_S,
        wait: Duration = _core.WAIT_S,
        hooks: Sequence[Hooks] = (),
        logger: Optional[logging.Logger] = None,
    ) -> None:
        super().__init__(queues, lease=lease, wait=wait, hooks=hooks, logger=logger)
        if weights is not None and len(weights) != len(self.queues):
            raise ValueError("weights: one for each queue")
        self.concurrency = whole(concurrency, "concurrency", 1)
        self.prefetch = whole(prefetch, "prefetch")
        self.drain_s = seconds(drain, "drain")
        self._weights = weights
        self._handlers = Handlers(map(self._made, handlers))
        self._in_hand = 0
        self._begun: dict[Hashable, Delivery] = {}
        """Those that have a handler, or will get one; lost ones too, as long as their handler runs."""
        self._busy = 0
        """How many handlers run."""
        self._claimed = 0
        """How many jobs are being fetched."""
        self._backlog: deque[Delivery] = deque()
        self._started = False
        self._prepare()
        _workers.add(self)

    def _prepare(self) -> None:
        """What each face has of its own."""
        raise NotImplementedError

    def _made(self, function: Function, **options: Any) -> Handler[Any]:
        made = function if isinstance(function, Handler) else Handler(function, **options)
        self._check_function(made.function)
        return made

    def _check_function(self, function: Callable[..., Any]) -> None:
        if _guard.is_coroutine_function(function):
            raise TypeError(f"{function!r} is a coroutine function: use dq.asyncio.Worker")

    def job(
        self,
        kind: str,
        *,
        attempts: int = 0,
        backoff: Optional[Sequence[Duration]] = None,
        lease: Optional[Duration] = None,
        batch: int = 0,
    ) -> Callable[[F], Handler[F]]:
        """Decorates the handler of jobs of that kind; options as those of ``@handler``."""
        if not isinstance(kind, str):
            raise TypeError(f'the kind of jobs comes first, as @worker.job("close-order"), not {_guard.show(kind)}')
        if self._started:
            raise RuntimeError(f"the worker runs already: its handler of {kind!r} must be known before")
        made = handler(kind=kind, attempts=attempts, backoff=backoff, lease=lease, batch=batch)

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
        return super()._groups()

    def _capacity(self) -> int:
        """How many jobs may be in hand at most. Of several kinds each may be one that runs alone."""
        return self.concurrency * (1 if self._handlers.mixed else self._handlers.size) + self.prefetch

    def _free(self) -> int:
        """How many more jobs may be in hand: no more than can be begun, and those that are fetched ahead."""
        used = self._busy + len(self._backlog) if self._handlers.mixed else self._in_hand
        return self._capacity() - used - self._claimed

    def _screened(self, found: Iterable[Delivery]) -> list[Delivery]:
        """Those that a handler is for; the others go back to the server."""
        return [each for each in found if self._is_for_us(each)]

    def _is_for_us(self, delivery: Delivery) -> bool:
        delivery.handler = self._handlers.choose(delivery.job)
        if delivery.handler is None:
            kind = delivery.job.kind
            self._log.say(logging.WARNING, "no handler for kind %r: gave back job %r", kind, delivery.job.id)
            delivery.owner.settle(delivery, _ends.unknown)
            delivery.owner.told_soon()
            return False
        if self._runs_already(delivery):
            self._log.say(logging.WARNING, "job %r still runs here: gave back its new delivery", delivery.job.id)
            delivery.owner.settle(delivery, _ends.later)
            delivery.owner.told_soon()
            return False
        if self._lease.differ:
            delivery.owner.correct(delivery)
        return True

    def _runs_already(self, delivery: Delivery) -> bool:
        """Its lease ended unnoticed, as in a failover. Two handlers of one process must not run one job."""
        name = delivery.name
        older = self._begun.setdefault(name, delivery)
        if older is not delivery:
            older.owner.lose([older])
            return True
        # What another worker runs is told by its own heartbeat: it may be another thread's.
        if any(name in each._begun for each in _workers.others(self)):
            del self._begun[name]
            return True
        return False

    def _accept(self, found: Iterable[Delivery]) -> None:
        """Into the backlog, or back to the server."""
        for delivery in found:
            if self.draining:
                self._put_back(delivery)
            else:
                self._backlog.append(delivery)
                self._in_hand += 1

    def _put_back(self, delivery: Delivery) -> None:
        """It was not begun."""
        self._forget(delivery)
        if delivery.owner.holds(delivery):
            self._left([delivery])
        delivery.owner.settle(delivery, _ends.returned)
        delivery.owner.told_soon()

    def _forget(self, delivery: Delivery) -> None:
        """No handler runs it any more."""
        if self._begun.get(delivery.name) is delivery:
            del self._begun[delivery.name]

    def _take(self) -> list[Delivery]:
        """One job of the backlog, or as many as its handler takes at a time."""
        first = self._backlog.popleft()
        size = first.handler.size if first.handler else 1
        if size == 1:
            return [first]
        batch = [first, *[each for each in self._backlog if each.handler is first.handler][: size - 1]]
        taken = set(batch)
        self._backlog = deque(each for each in self._backlog if each not in taken)
        return batch

    def _return_backlog(self) -> None:
        for delivery in self._backlog:
            self._put_back(delivery)
        self._in_hand -= len(self._backlog)
        self._backlog.clear()

    def _ours(self, batch: list[Delivery], now: float) -> list[Delivery]:
        """Those that may be begun: a lease may have ended while its job waited for a handler."""
        ours = []
        for delivery in batch:
            if delivery.lease_until <= now:
                delivery.owner.lose([delivery])
            if delivery.job._why is not None:  # cancelled
                self._forget(delivery)
            else:
                ours.append(delivery)
        return ours

    def _settled(self, delivery: Delivery, error: Any) -> None:
        """Its handler ended."""
        self._forget(delivery)
        if error is None:
            delivery.owner.settle(delivery, _ends.done)
        else:
            delivery.owner.settle(delivery, _ends.ended, self._verdict(delivery, error))

    def _verdict(self, delivery: Delivery, error: Any) -> _guard.Verdict:
        job = delivery.job
        found = _guard.verdict(error, is_told=job.cancelled, job=job)
        if found is _guard.BACK and delivery.owner.holds(delivery):
            self._left([delivery])
        if found.trouble is not None:
            self._log.say(logging.ERROR, "job %r: %s; ignored", job.id, found.trouble)
        if not _guard.is_said(error) and not job.cancelled:
            self._log.say(logging.WARNING, "job %r failed, attempt %d", job.id, delivery.attempt, error=error)
        return found

    def _stopping_line(self, handlers: int, drain_s: float) -> None:
        if handlers:
            what = "one handler" if handlers == 1 else f"{handlers} handlers"
            self._log.say(
                logging.INFO, "stopping: waiting up to %g s for %s; stop again to give the jobs back now", drain_s, what
            )

    def _stopped_line(self) -> None:
        back = self._given_back
        if not back:
            return self._log.say(logging.INFO, "stopped: no job was given back")
        named = ", ".join(map(repr, back[:NAMED])) + (", ..." if len(back) > NAMED else "")
        return self._log.say(
            logging.INFO, "stopped: gave back %d %s: %s", len(back), "job" if len(back) == 1 else "jobs", named
        )
