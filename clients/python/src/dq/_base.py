"""Base of workers and consumers, with and without asyncio: settings, and reports to log and hooks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Optional, TypeVar, Union

from . import _core, _ends, _guard, _trouble
from ._core import Fetches
from ._delivery import Delivery
from ._ends import Outcome
from ._errand import reach
from ._leases import Choice
from ._links import Members
from ._texts import show
from .errors import ConfigurationError
from .handler import lease_s
from .hooks import Hooks
from .job import BaseJob
from .times import Duration, seconds

Q = TypeVar("Q")


class BaseConsumer(Generic[Q]):
    """Takes jobs from queues. A worker runs handlers on them; a consumer hands them to the program."""

    _queues: type
    """The class of its queues."""
    _jobs: type[BaseJob]
    """The class of its jobs."""

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
        self._dead_hooks = [each for each in self.hooks if _guard.hears_of_deaths(each, Hooks.dead)]
        self._dead_hook: Any = None
        self._log = _guard.Log(self.log)
        self._weights: Optional[Sequence[float]] = None
        self._lease_s = None if lease is None else lease_s(lease)
        self._lease = Choice(self._lease_s)
        self._fill: Optional[tuple[int, int]] = None
        self._trouble_said: Optional[str] = None
        self._given_back: list[str] = []
        self._killer: Optional[Delivery] = None
        """A job that may have ended its worker. It will run with nothing else in hand."""
        self._returning: list[Delivery] = []
        """Such jobs that were given back, until the server has confirmed it."""
        self._without: set[str] = set()
        """The features that the server does not permit."""

    def _check_queue(self, queue: Q) -> None:
        made = type(self)._queues
        if isinstance(queue, made):
            return
        is_url = isinstance(queue, str) and "://" in queue  # which may hold a password
        name = queue if isinstance(queue, str) and not is_url else "orders"
        shown = "a URL" if is_url else repr(queue)
        module = made.__module__.rpartition(".")[0]
        raise TypeError(
            f"a {type(self).__name__.lower()} of {module} needs a Queue of {module}, not {shown}: "
            f'{type(self).__name__}({module}.Queue("redis://localhost", "{name}"), ...)'
        )

    def _groups(self) -> list[Members]:
        """Groups the queues' keys by what one BPOP can wait for: in a cluster, the keys of one slot."""
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
        return Fetches([key for _, key, _ in members], weights, self._lease, self._fill)

    def _lost(self, delivery: Delivery) -> None:
        if delivery.lease_until > time.monotonic():
            self._log.say(logging.INFO, "job %r was cancelled", delivery.job.id)
        else:
            self._log.say(logging.WARNING, "lost job %r: its lease expired", delivery.job.id)
        delivery.tell("lost")
        if self.hooks:
            self._hook("lost", [delivery])

    def _used_up(self, delivery: Delivery) -> None:
        """Ends a job that was delivered more often than it may be."""
        self._log.say(logging.ERROR, "job %r is dead: %s", delivery.job.id, _ends.USED_UP.decode())
        delivery.owner.settle(delivery, _ends.used_up)
        delivery.owner.told_soon()

    def _refused(self, outcome: Outcome, why: str) -> None:
        """Logs that the server refused what a handler asked for."""
        if outcome.what:
            text = "job %r: the server refused %s (%s): the attempt failed"
            return self._log.say(logging.ERROR, text, outcome.delivery.job.id, outcome.what, why)
        words = " ".join(show(word) for word in outcome.command[5:])
        if outcome.command[0] == b"DQ.ACK":
            words = f"its result of {len(outcome.command[-1])} bytes" if outcome.command[2] == b"RESULTS" else ""
        id = outcome.delivery.job.id
        self._log.say(logging.ERROR, "job %r: the server refused %s (%s): sent without it", id, words or "its end", why)

    def _told(self) -> None:
        """Called when the server has confirmed an end, while jobs wait for that: one to run alone, or others for it."""

    def _off(self, feature: str, why: Any) -> None:
        """Logs, once, that the server does not permit what a feature needs. Everything else goes on."""
        if feature not in self._without:
            self._without.add(feature)
            self._log.say(logging.WARNING, "%s (%s)", feature, why)

    def _carried(self) -> None:
        """Called when a batcher has sent its last."""

    def _left(self, deliveries: Iterable[Delivery]) -> None:
        """Notes jobs that are given back because the worker or consumer stops."""
        self._given_back += [each.job.id for each in deliveries]

    def _hook(self, name: str, batch: Sequence[Delivery], *rest: Any) -> None:
        for hooks in self.hooks:
            for delivery in batch:
                self._later(hooks, name, _guard.hook(self._log, hooks, name, delivery.job, *rest))

    def _later(self, hooks: Hooks, name: str, result: Any) -> None:
        """Handles what a hook returned."""
        if result is not None:
            _guard.unawaited(self._log, hooks, name, result)

    def _fail(self, error: ConfigurationError) -> None:
        """Reports an error that waiting does not fix."""
        raise NotImplementedError

    def _rest(self, duration_s: float) -> Any:
        """Waits after trouble; returns early if the worker or consumer stops."""
        raise NotImplementedError

    def _trouble(self, error: Exception) -> None:
        end = _trouble.fatal(error)
        if self.draining:
            return
        if end is not None:
            self._fail(end)
        text = f"{type(error).__name__}: {error}" if end is None else str(end)
        if text == self._trouble_said:
            return
        self._trouble_said = text
        if end is None:
            self._log.say(logging.WARNING, "trouble with the server, trying again: %s", text)
        else:
            self._log.say(logging.ERROR, "cannot go on: %s", text)
