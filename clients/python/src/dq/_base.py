"""What both faces of worker and consumer have in common beside ``_core``: settings, links, and who is told what."""

from __future__ import annotations

import inspect
import logging
import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from redis.exceptions import ResponseError

from . import _core
from ._core import Delivery, Fetches, Handlers, Outcome
from .errors import ConfigurationError, Say
from .handler import DEFAULT_LEASE_S, Handler, lease_s, whole
from .hooks import Hooks
from .job import Job
from .times import Duration, seconds

Q = TypeVar("Q")
Function = Union[Handler[Any], Callable[..., Any]]
Members = list[tuple[Any, bytes, float]]


class BaseLink:
    """The queues that are reached by one pair of connections: one that waits, one for the rest."""

    def __init__(self, worker: BaseConsumer[Any], members: Members, fetches: Fetches) -> None:
        self._base = worker
        self._fetches = fetches
        self._codecs = {key: each.codec for each, key, _ in members}
        self._held: dict[Delivery, None] = {}
        self._unheard: dict[Delivery, None] = {}  # settled, and the server has not answered yet
        self._outcomes: deque[Outcome] = deque()
        self._fetching = False
        self._troubles = 0
        self.trouble: Optional[Exception] = None
        """The last one."""

    def _ring(self) -> None:
        """There is something to tell the server."""
        raise NotImplementedError

    def _take_outcomes(self, count: float = math.inf) -> deque[Outcome]:
        told: deque[Outcome] = deque()
        outcomes = self._outcomes
        while outcomes and len(told) < count:
            told.append(outcomes.popleft())
        return told

    def _answered(self, outcome: Outcome, reply: Any) -> Optional[ResponseError]:
        if isinstance(reply, ResponseError):
            self._outcomes.append(outcome)
            return reply
        if outcome.answered(reply):
            self._unheard.pop(outcome.delivery, None)
            if outcome.verdict == "lost":
                self._base._lost(outcome.delivery)
        else:
            self._outcomes.append(outcome)
        return None

    def _found(self, reply: Any) -> list[Delivery]:
        if isinstance(reply, ResponseError):
            raise reply
        if reply is None:
            return []
        key, rows = reply
        codec, held = self._codecs[key], self._held
        found = [Delivery(key, row, self) for row in rows]
        for delivery in found:
            delivery.job = Job(delivery, codec)
            held[delivery] = None
        return found

    def settle(self, delivery: Delivery, decide: Callable[..., Outcome], *rest: Any) -> None:
        """Who takes a delivery out of ``_held`` decides how it ends: its handler, a heartbeat or the stop.

        To be followed by ``told_soon``, unless a fetch follows at once.
        """
        if self._held.pop(delivery, self) is not self:
            self._unheard[delivery] = None
            self._outcomes.append(decide(delivery, *rest))

    def told_soon(self) -> None:
        if self._outcomes:
            self._ring()

    def _beats(self) -> list[tuple[_core.Command, list[Delivery]]]:
        return _core.heartbeats(list(self._held) + list(self._unheard), self._base.lease_ms)

    def _beaten(self, group: list[Delivery], reply: Any) -> None:
        if isinstance(reply, ResponseError):
            raise reply
        for delivery, deadline in zip(group, reply):
            if deadline is None and self._held.pop(delivery, self) is not self:
                self._base._lost(delivery)

    def _leave(self) -> list[_core.Command]:
        """Gives back all that is left."""
        left: list[Delivery] = []
        while self._held:
            left.append(self._held.popitem()[0])
        for delivery in left:
            delivery.job._tell("stopping")
        return _core.give_back(left)


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
        self._weights: Optional[Sequence[float]] = None
        self._lease_s = None if lease is None else lease_s(lease)
        self._trouble_said: Optional[str] = None

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

    @property
    def lease_s(self) -> float:
        return self._lease_s or DEFAULT_LEASE_S

    @property
    def lease_ms(self) -> int:
        return max(1, round(self.lease_s * 1000))

    @property
    def answer_s(self) -> float:
        """How long answers may take, but those of fetches: heartbeats must be in time."""
        return min(_core.ANSWER_S, max(self.lease_s / 3, _core.SHORTEST_ANSWER_S))

    def _groups(self) -> list[Members]:
        """The queues' keys, those together that one BPOP can wait for: in a cluster, those of one slot."""
        groups: dict[Any, Members] = {}
        queues: list[Any] = list(self.queues)
        for each, weight in zip(queues, self._weights or [1.0] * len(queues)):
            client = each.client
            for key in each.keys:
                groups.setdefault(_reach(client, key), []).append((each, key, weight))
        return list(groups.values())

    def _fetches(self, members: Members) -> Fetches:
        # The shards of a queue take turns: none comes first.
        weighted = self._weights is not None or any(each.shards for each, _, _ in members)
        weights = [weight for _, _, weight in members] if weighted else None
        return Fetches([key for _, key, _ in members], weights, self.lease_ms)

    def _lost(self, delivery: Delivery) -> None:
        self.log.warning("lost job %r: its lease ended before it was acknowledged", delivery.job.id)
        delivery.job._tell("lost")
        if self.hooks:
            self._hook("lost", [delivery])

    def _hook(self, name: str, batch: Sequence[Delivery], *rest: Any) -> None:
        for hooks in self.hooks:
            for delivery in batch:
                try:
                    getattr(hooks, name)(delivery.job, *rest)
                except Exception:
                    self.log.exception("the hook %s of %r failed", name, hooks)

    def _fail(self, error: ConfigurationError) -> None:
        """What waiting cannot mend."""
        raise NotImplementedError

    def _rest(self, duration_s: float) -> Any:
        """After trouble; it ends early where the worker or consumer stops."""
        raise NotImplementedError

    def _trouble(self, error: Exception) -> None:
        if self.draining:
            return
        end = _core.fatal(error)
        if end is not None:
            self._fail(end)
        text = f"{type(error).__name__}: {error}"
        if text != self._trouble_said:
            self._trouble_said = text
            self.log.warning("trouble with the server, trying again: %s", text)


class BaseWorker(BaseConsumer[Q]):
    """Runs handlers on the jobs of one or several queues.

    queues: one, or several in strict order; with ``weights``, each comes first in its share of the fetches.
    handlers: functions or what ``@handler`` makes of them; more of them by ``@worker.job("kind")``.
    concurrency: how many handlers run at a time.
    prefetch: how many jobs more may be in hand, so that short handlers need not wait for the network.
    lease: instead of the longest of the handlers'.
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
            raise ValueError("as many weights as queues, please")
        self.concurrency = whole(concurrency, "concurrency", 1)
        self.prefetch = whole(prefetch, "prefetch")
        self.drain_s = seconds(drain, "drain")
        self._weights = weights
        self._handlers = Handlers(map(self._made, handlers))
        self._in_hand = 0
        self._backlog: deque[Delivery] = deque()

    def _made(self, function: Function, **options: Any) -> Handler[Any]:
        made = function if isinstance(function, Handler) else Handler(function, **options)
        self._check_function(made.function)
        return made

    def _check_function(self, function: Callable[..., Any]) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function!r} is a coroutine function: use dq.asyncio.Worker")

    def job(self, kind: str, **options: Any) -> Callable[[Callable[..., Any]], Handler[Callable[..., Any]]]:
        """Decorates the handler of jobs of that kind; options as those of ``@handler``."""

        def register(function: Callable[..., Any]) -> Handler[Callable[..., Any]]:
            made = self._made(function, kind=kind, **options)
            self._handlers.add(made)
            return made

        return register

    @property
    def lease_s(self) -> float:
        return self._lease_s or self._handlers.lease_s()

    def _groups(self) -> list[Members]:
        if not self._handlers.all():
            raise ConfigurationError("the worker has no handler")
        return super()._groups()

    def _capacity(self) -> int:
        """How many jobs may be in hand."""
        return self.concurrency * self._handlers.size + self.prefetch

    def _accept(self, found: Iterable[Delivery]) -> None:
        """Into the backlog, or back to the server."""
        for delivery in found:
            if self.draining:
                delivery.owner.settle(delivery, _core.returned)
                delivery.owner.told_soon()
                continue
            delivery.handler = self._handlers.choose(delivery.job)
            if delivery.handler is None:
                self.log.warning("no handler for kind %r: gave back job %r", delivery.job.kind, delivery.job.id)
                delivery.owner.settle(delivery, _core.unknown)
                delivery.owner.told_soon()
            else:
                self._backlog.append(delivery)
                self._in_hand += 1

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
            delivery.owner.settle(delivery, _core.returned)
            delivery.owner.told_soon()
        self._in_hand -= len(self._backlog)
        self._backlog.clear()

    def _handled(self, delivery: Delivery, error: Optional[BaseException]) -> None:
        """Its handler ended."""
        if error is not None:
            if not isinstance(error, Say) and not delivery.job.cancelled:
                self.log.warning("job %r failed, attempt %d", delivery.job.id, delivery.attempt, exc_info=error)
            if self.hooks:
                self._hook("failed", [delivery], error)
        elif self.hooks:
            self._hook("after", [delivery])
        delivery.owner.settle(delivery, _core.ended, error)


def _reach(client: Any, key: bytes) -> Hashable:
    """Equal where one connection can wait for both."""
    if hasattr(client, "keyslot"):
        return id(client), client.keyslot(key)
    settings = client.connection_pool.connection_kwargs
    place = tuple(settings.get(name) for name in ("host", "port", "path", "db", "username"))
    return place if settings.get("host") or settings.get("path") else id(client)
