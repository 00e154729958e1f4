"""What the consumers with and without asyncio have in common."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

from . import _core, _ends
from ._base import BaseConsumer
from ._ends import Outcome
from ._links import BaseLink, Members
from ._options import near_misses
from ._texts import cut
from ._texts import text as text_of
from .errors import ConfigurationError
from .hooks import Hooks
from .job import BaseJob
from .times import Duration, to_ms

Q = TypeVar("Q")
_MODES = {"fail": b"", "silent": b"SILENT", "fatal": b"FATAL"}


@near_misses("Consumer")
class JobConsumer(BaseConsumer[Q]):
    """Takes jobs for a program that runs them itself, such as a framework.

    The consumer waits for jobs, renews the leases of those that it handed out, and tells the server how they ended.
    It sends that again until the server has replied, so ``ack`` and ``nack`` return at once.

    queues: one, or several in strict order (in a cluster, of one slot).
    lease: how long a job without a TTR of its own stays with a program that crashed. It is renewed, so slow jobs need
        no longer lease.
    wait: the longest time that one fetch waits; 5 s by default.
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
    ) -> None:
        super().__init__(queues, lease=lease, wait=wait, hooks=hooks, logger=logger)
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

    def ack(self, job: BaseJob, *, result: Any = None, again: Optional[Mapping[str, Any]] = None) -> None:
        """The job is done. result: a value that the codec of its queue can encode.

        again: arguments of ``Queue.add``: the job runs once more with them, as if added now. It is added before the job
        is acknowledged, so it is not lost if the server is away.
        """
        delivery = job._delivery
        end = _ends.done(delivery) if result is None else _ends.succeeded(delivery, bytes(job._codec.encode(result)))
        self._settle(job, self._followed(job, end, again))

    def nack(
        self,
        job: BaseJob,
        *,
        delay: Optional[Duration] = None,
        mode: str = "fail",
        reason: Optional[str] = None,
        again: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Gives a job back. mode: "fail", "silent" (not counted) or "fatal" (dead now).

        again: as in ``ack``.
        """
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        text = None if reason is None else cut(text_of(reason))
        wait_ms = None if delay is None else to_ms(delay, "delay")
        back = _ends.Back(job._delivery, _MODES[mode], wait_ms, text)
        self._settle(job, self._followed(job, back.outcome(), again))

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

    def _followed(self, job: BaseJob, end: Outcome, again: Optional[Mapping[str, Any]]) -> Outcome:
        if again is None:
            return end
        queue: Any = self._by_key[job._delivery.key]
        added = queue._added({**again, "id": job.id, "if_exists": "next"})
        return _ends.followed(job._delivery, queue._now(added.call), end)

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
