"""What the consumers with and without asyncio have in common."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from . import _core, _ends
from ._arguments import Mode
from ._base import BaseConsumer
from ._delivery import Delivery
from ._ends import Outcome
from ._links import BaseLink, Members
from ._options import near_misses
from ._texts import cut
from ._texts import reason as reason_of
from ._texts import text as text_of
from .company import Company
from .errors import ConfigurationError
from .hooks import Hooks
from .job import BaseJob
from .times import Duration, to_ms

Q = TypeVar("Q")
_MODES = {"fail": b"", "silent": b"SILENT", "fatal": b"FATAL"}


ALONE_EVERY_S = 0.05
"""How often a consumer looks whether it may fetch again, and whether a job has been given back."""


@near_misses("Consumer")
class JobConsumer(BaseConsumer[Q]):
    """Takes jobs for a program that runs them itself, such as a framework.

    The consumer waits for jobs, renews the leases of those that it handed out, and tells the server how they ended.
    It sends that again until the server has replied, so ``ack`` and ``nack`` return at once.

    queues: one, or several in strict order (in a cluster, of one slot).
    lease: how long a job without a TTR of its own stays with a program that crashed. It is renewed, so slow jobs need
        no longer lease.
    wait: the longest time that one fetch waits; 5 s by default.
    limits: how many deliveries a job may have besides its own limit (0: any number), for a framework that knows. With
        it, ``reason`` tells why the delivery before failed.
    company: the ``Company`` of the other consumers whose jobs run in this process.

    A job that was delivered more often than it may be is not handed out: it is dead. One whose worker was lost before
    its last delivery is handed out when no other job is in hand: it may end this process, too. Until then it waits in
    the server, and for up to 25 s nothing else is handed out.
    """

    _link: BaseLink

    def __init__(
        self,
        queues: Union[Q, Sequence[Q]],
        *,
        lease: Optional[Duration] = None,
        wait: Duration = _core.WAIT_S,
        hooks: Sequence[Hooks] = (),
        logger: Optional[logging.Logger] = None,
        limits: Optional[Callable[[Any], int]] = None,
        company: Optional[Company] = None,
    ) -> None:
        super().__init__(queues, lease=lease, wait=wait, hooks=hooks, logger=logger)
        self._limits = limits
        self._company = company or Company()
        self._failure: Optional[ConfigurationError] = None
        groups = self._groups()
        if len(groups) != 1:
            raise ConfigurationError("a consumer's queues must be on one server, in a cluster in one slot")
        self._members: Members = groups[0]
        self._by_key = {key: queue for queue, key, _ in self._members}
        self._prepare()

    def _prepare(self) -> None:
        """Sets up what differs with and without asyncio."""
        raise NotImplementedError

    # --- Which jobs are handed out

    def reason(self, job: BaseJob) -> Optional[bytes]:
        """Why the delivery before failed; None if that was not asked (see ``limits``)."""
        return job._delivery.reason

    def _limit(self, delivery: Delivery) -> int:
        return delivery.least_limit(self._limits(delivery.job) if self._limits else 0)

    def _doubtful(self, found: Iterable[Delivery]) -> list[Delivery]:
        """Those of which the server must say why the delivery before failed."""
        again = [each for each in found if each.attempt > 1]
        return again if self._limits else [each for each in again if 0 < self._limit(each) <= each.attempt]

    def _handed_out(self, found: Iterable[Delivery]) -> list[Any]:
        """The jobs that may run now."""
        return [each.job for each in found if self._may_run(each)]

    def _may_run(self, delivery: Delivery) -> bool:
        if delivery.attempt == 1 or not 0 < self._limit(delivery) <= delivery.attempt:
            return True
        if delivery.attempt > self._limit(delivery):
            self._used_up(delivery)
            return False
        if delivery.reason != _ends.LEASE_ENDED:
            return True
        wait_s = self._company.claim(delivery)
        when = "runs alone" if wait_s is None else "waits until it can run alone"
        text = "job %r may have ended its workers: its last attempt %s"
        self._log.say(logging.WARNING, text, delivery.job.id, when)
        if wait_s is None:
            return True
        self._settle(delivery.job, _ends.returned(delivery, wait_s))
        self._returning.append(delivery)
        return False

    def _is_returning(self) -> bool:
        """Whether others must wait, as they could take along a job that is to run alone."""
        self._returning = [each for each in self._returning if self._link.is_telling(each)]
        return bool(self._returning) and not self.draining

    # --- How jobs end

    def ack(
        self,
        job: BaseJob,
        *,
        result: Any = None,
        again: Optional[Mapping[str, Any]] = None,
        otherwise: str = "not added again",
    ) -> None:
        """The job is done. result: a value that the codec of its queue can encode.

        again: arguments of ``Queue.add``: the job runs once more with them, as if added now. It is added before the job
        is acknowledged, so it is not lost if the server is away. If the server refuses it, perhaps as its memory is
        full, this job comes again instead, after the same delay, with a reason that begins with ``otherwise``.
        """
        delivery = job._delivery
        end = _ends.done(delivery) if result is None else _ends.succeeded(delivery, bytes(job._codec.encode(result)))
        self._settle(job, self._followed(job, end, again, otherwise))

    def unknown(self, job: BaseJob, kind: str) -> None:
        """Gives back a job of a kind that this program does not know: another one may, at the latest after a deploy.

        It comes again after a minute, after two, up to an hour; the 14th time it is dead.
        """
        self._settle(job, _ends.unknown(job._delivery, kind))

    def nack(
        self,
        job: BaseJob,
        *,
        delay: Optional[Duration] = None,
        mode: Mode = "fail",
        reason: Union[str, BaseException, None] = None,
        again: Optional[Mapping[str, Any]] = None,
        otherwise: str = "not added again",
    ) -> None:
        """Gives a job back. mode: "fail", "silent" (not counted) or "fatal" (dead now). reason: a text, or the error.

        again, otherwise: as in ``ack``.
        """
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        is_error = isinstance(reason, BaseException)
        text = None if reason is None else reason_of(reason) if is_error else cut(text_of(reason))
        wait_ms = None if delay is None else to_ms(delay, "delay")
        back = _ends.Back(job._delivery, _MODES[mode], wait_ms, text)
        self._settle(job, self._followed(job, back.outcome(), again, otherwise))

    def release(self, jobs: Iterable[BaseJob]) -> None:
        """Gives jobs back as if they had not been delivered."""
        for job in jobs:
            self._settle(job, _ends.returned(job._delivery))

    def holds(self, job: BaseJob) -> bool:
        """Whether this consumer still has the job: it has not ended or been deleted, and its lease has not expired.

        Ask before beginning with a job that was fetched some time ago.
        """
        delivery = job._delivery
        if delivery.lease_until <= time.monotonic():
            self._link.lose([delivery])
        return self._link.holds(delivery)

    def _followed(self, job: BaseJob, end: Outcome, again: Optional[Mapping[str, Any]], otherwise: str) -> Outcome:
        if again is None:
            return end
        queue: Any = self._by_key[job._delivery.key]
        added = queue._added({**again, "id": job.id, "if_exists": "next"})
        wait_ms = to_ms(again["delay"], "delay") if again.get("delay") is not None else None
        return _ends.followed(job._delivery, queue._now(added.call), end, wait_ms, text_of(otherwise))

    def _settle(self, job: BaseJob, outcome: Outcome) -> None:
        self._link.settle(job._delivery, lambda _: outcome)
        self._link.told_soon()

    def _fail(self, error: ConfigurationError) -> None:
        self._failure = error

    def _check(self) -> None:
        """Raises, once, an error that waiting does not fix."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error
