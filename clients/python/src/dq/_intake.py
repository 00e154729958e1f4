"""Which deliveries a worker takes, with and without asyncio: those in hand, not begun yet, or running alone."""

from __future__ import annotations

import difflib
import logging
import os
import time
import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Optional, TypeVar

from . import _ends
from ._base import BaseConsumer
from ._core import Handlers
from ._delivery import Delivery
from ._scheduler import NEVER, Isolation, LinkScheduler

MOST_SHOWN = 100
"""How much of an unknown kind is compared and shown: it may be as long as a payload."""
MOST_HINTS = 100

Q = TypeVar("Q")


class _Workers:
    """All workers of this process."""

    def __init__(self) -> None:
        self._refs: tuple[weakref.ref[Intake[Any]], ...] = ()
        self.forks = 0
        """How many forks led to this process: to ask for its number at each job would be a call of the system."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._refs = ()
        self.forks += 1

    def add(self, worker: Intake[Any]) -> None:
        self._refs = (*[each for each in self._refs if each() is not None], weakref.ref(worker))

    def others(self, worker: Intake[Any]) -> Sequence[Intake[Any]]:
        if len(self._refs) < 2:
            return ()
        found = [each() for each in self._refs]
        return [each for each in found if each is not None and each is not worker]


_workers = _Workers()


class Intake(BaseConsumer[Q]):
    """What is in a worker's hands."""

    _handlers: Handlers
    _isolation: Isolation

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._links: list[Any] = []
        self._in_hand = 0
        self._begun: dict[Hashable, Delivery] = {}
        """Deliveries that have or will get a handler; also lost ones, as long as their handler runs."""
        self._busy = 0
        """How many handlers run."""
        self._hints: dict[str, str] = {}
        """By kinds without a handler: to compare one with all others takes milliseconds."""
        self._claimed = 0
        """How many jobs are being fetched."""
        self._scheduler = LinkScheduler(1)
        self._forks = _workers.forks
        self._backlog: deque[Delivery] = deque()
        self._suspects: dict[Delivery, None] = {}
        """Jobs at their last attempt. The server is asked how the one before ended."""
        self._alone: Optional[Delivery] = None
        """Such a job that runs."""
        _workers.add(self)

    def _belongs_here(self) -> None:
        """This process runs the worker from now on. It may have been made before a fork."""
        self._forks = _workers.forks

    def _left_to_parent(self, ended: tuple[Any, Any]) -> None:
        """Ends the process if it is a child that a handler forked: the job is its parent's."""
        if self._forks != _workers.forks:
            os._exit(1 if ended[0] is not None else 0)

    def _screened(self, found: Iterable[Delivery]) -> list[Delivery]:
        """Deliveries that have a handler. The others go back to the server."""
        return [each for each in found if self._is_for_us(each)]

    def _is_for_us(self, delivery: Delivery) -> bool:
        delivery.handler = self._handlers.choose(delivery.job)
        if delivery.handler is None:
            kind = (delivery.job.kind or "")[:MOST_SHOWN]
            text = "no handler for kind %r: gave back job %r%s"
            self._log.say(logging.WARNING, text, kind, delivery.job.id, self._hint(kind))
            delivery.owner.settle(delivery, _ends.unknown, kind)
            delivery.owner.told_soon()
            return False
        if delivery.attempt > 1 and 0 < delivery.limit < delivery.attempt:
            self._used_up(delivery)
            return False
        if self._runs_already(delivery):
            self._log.say(logging.WARNING, "job %r still runs here: gave back its new delivery", delivery.job.id)
            delivery.owner.settle(delivery, _ends.later)
            delivery.owner.told_soon()
            return False
        if self._lease.differ:
            delivery.owner.correct(delivery)
        return True

    def _hint(self, kind: str) -> str:
        """What the log says of the known kind that is like this one."""
        if kind not in self._hints:
            if len(self._hints) >= MOST_HINTS:
                self._hints.clear()
            meant = difflib.get_close_matches(kind, self._handlers.kinds, 1)
            self._hints[kind] = f"; did it mean {meant[0]!r}?" if meant else ""
        return self._hints[kind]

    def _runs_already(self, delivery: Delivery) -> bool:
        """The job's earlier lease ended unnoticed, as in a failover. A process must not run one job twice at a time."""
        name = delivery.name
        older = self._begun.setdefault(name, delivery)
        if older is not delivery:
            older.owner.lose([older])
            return True
        # Another worker's handler is told by that worker's heartbeat: it may belong to another thread.
        for each in _workers.others(self):
            if name in each._begun:
                del self._begun[name]
                return True
        return False

    def _accept(self, found: Sequence[Delivery]) -> None:
        """Puts deliveries into the backlog, or gives them back if the worker stops."""
        if self._isolation.until > NEVER and found and not self._in_hand:
            self._isolation.end()
        for delivery in found:
            if self.draining:
                self._put_back(delivery)
                continue
            self._in_hand += 1
            if delivery.attempt > 1 and delivery.attempt == delivery.limit and delivery.owner.is_kept:
                self._suspects[delivery] = None
                delivery.owner.look_up(delivery, lambda each, why: self._looked_up(each, why == _ends.LEASE_ENDED))
            else:
                self._backlog.append(delivery)

    def _looked_up(self, delivery: Delivery, is_killer: bool) -> None:
        """Takes what the server said of a suspect."""
        if self._suspects.pop(delivery, self) is self:  # it was given back meanwhile
            return
        if not is_killer:
            self._backlog.append(delivery)
        elif self._in_hand == 1 and not self._claimed:
            text = "job %r may have ended its workers: its last attempt runs alone"
            self._log.say(logging.WARNING, text, delivery.job.id)
            self._killer = delivery
        else:
            self._isolate(delivery)

    def _isolate(self, delivery: Delivery) -> None:
        """Gives back a job that is to run alone, until nothing else is in hand."""
        now = time.monotonic()
        if not self._isolation.is_on(now):
            text = "job %r may have ended its workers: its last attempt waits until it can run alone"
            self._log.say(logging.WARNING, text, delivery.job.id)
        self._in_hand -= 1
        self._forget(delivery)
        delivery.owner.settle(delivery, _ends.returned, self._isolation.want(now))
        self._returning.append(delivery)
        delivery.owner.told_soon()

    def _has_next(self) -> bool:
        """Whether ``_take`` has a job to begin with. None begins that could take along one that is to run alone."""
        if self._returning:
            self._returning = [each for each in self._returning if each.owner.is_telling(each)]
        if self._suspects or self._returning:
            return False
        if self._backlog:
            return True
        return self._killer is not None and not any(link.is_telling() for link in self._links)

    def _finished(self, batch: Sequence[Delivery]) -> None:
        self._busy -= bool(batch)
        self._in_hand -= len(batch)
        if self._alone in batch:
            self._alone = None

    def _put_back(self, delivery: Delivery) -> None:
        """Gives back a delivery that was not begun."""
        self._forget(delivery)
        if delivery.owner.holds(delivery):
            self._left([delivery])
        delivery.owner.settle(delivery, _ends.returned)
        delivery.owner.told_soon()

    def _forget(self, delivery: Delivery) -> None:
        """Notes that no handler runs the delivery any more."""
        name = delivery.name
        if self._begun.get(name) is delivery:
            del self._begun[name]

    def _take(self) -> list[Delivery]:
        """Takes one job from the backlog, or as many as its handler takes at a time."""
        if not self._backlog:
            self._alone, self._killer = self._killer, None
            return [self._alone] if self._alone else []
        first = self._backlog.popleft()
        size = first.handler.size if first.handler else 1
        if size == 1:
            return [first]
        batch = [first, *[each for each in self._backlog if each.handler is first.handler][: size - 1]]
        taken = set(batch)
        self._backlog = deque(each for each in self._backlog if each not in taken)
        return batch

    def _return_backlog(self) -> None:
        waiting = [*self._backlog, *self._suspects]
        if self._killer is not None:
            waiting.append(self._killer)
            self._killer = None
        for delivery in waiting:
            self._put_back(delivery)
        self._in_hand -= len(waiting)
        self._backlog.clear()
        self._suspects.clear()
