"""What both faces of the consumer have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

from . import _core
from ._base import BaseConsumer, BaseLink, Members
from ._commands import nack_options
from ._core import Outcome
from .errors import ConfigurationError
from .job import Job
from .times import Duration

Q = TypeVar("Q")


class JobConsumer(BaseConsumer[Q]):
    """Takes jobs for a program that runs them itself; frameworks are built on it.

    The consumer waits for jobs, renews the leases of those that it handed out, and tells the server what became of
    them. What it is told is sent again until the server has answered, so ``ack`` and ``nack`` return at once.

    queues: one, or several in strict order (in a cluster, of one slot).
    lease: for how long a job stays with a program that crashed. It is renewed, so slow jobs need no longer one.
    wait: the longest time that one fetch waits.
    """

    _link: BaseLink

    def __init__(self, queues: Union[Q, Sequence[Q]], **options: Any) -> None:
        super().__init__(queues, **options)
        self._failure: Optional[ConfigurationError] = None
        groups = self._groups()
        if len(groups) != 1:
            raise ConfigurationError("a consumer's queues must be on one server, in a cluster in one slot")
        self._members: Members = groups[0]
        self._by_key = {key: queue for queue, key, _ in self._members}

    def ack(self, job: Job, *, again: Optional[Mapping[str, Any]] = None) -> None:
        """The job is done. again: what ``Queue.add`` takes; the job runs once more with that, as if added now.

        That is not lost where the server is away: it is added before the job is acknowledged.
        """
        delivery = job._delivery
        self._settle(job, self._followed(job, _core.done(delivery), again))

    def nack(
        self,
        job: Job,
        *,
        delay: Optional[Duration] = None,
        mode: str = "fail",
        reason: Optional[str] = None,
        again: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Gives a job back; ``mode`` "fail", "silent" (not counted) or "fatal" (dead now)."""
        said = None if reason is None else reason.encode("utf-8", "replace").decode()
        options = nack_options(delay, None, mode, said)
        self._settle(job, self._followed(job, _core.given_back(job._delivery, *options), again))

    def release(self, jobs: Iterable[Job]) -> None:
        """Gives jobs back, as if they had not been delivered."""
        for job in jobs:
            self._settle(job, _core.returned(job._delivery))

    def holds(self, job: Job) -> bool:
        """Whether the job was handed out, and has not ended since, nor was it lost."""
        return job._delivery in self._link._held

    def _followed(self, job: Job, end: Outcome, again: Optional[Mapping[str, Any]]) -> Outcome:
        if again is None:
            return end
        queue: Any = self._by_key[job._delivery.key]
        return _core.followed(job._delivery, queue._added({**again, "id": job.id, "if_exists": "next"}), end)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        self._link.settle(job._delivery, lambda _: outcome)
        self._link.told_soon()

    def _fail(self, error: ConfigurationError) -> None:
        self._failure = error

    def _check(self) -> None:
        """Raises what waiting cannot mend, once."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error
