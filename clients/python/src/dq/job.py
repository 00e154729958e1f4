"""A job as a handler sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Callable, Optional, TypeVar

from . import _steps
from ._arguments import OnDead
from ._delivery import Delivery
from ._job_options import Corrections
from ._options import near_misses
from ._texts import cut, text
from .codec import Codec, Envelope, decoded, id_from
from .errors import Cancelled, PayloadError
from .times import Duration, from_ms, maybe_from_ms, seconds

T = TypeVar("T")
_UNREAD: Any = object()


@dataclass(frozen=True)
class JobResult:
    """How a job ended that this job was ``after``, or waited for."""

    id: str
    outcome: Optional[str]
    """"done", "dead", "deleted" or "expired"; None if this job was unblocked before the other ended."""
    raw: Optional[bytes]
    """The encoded result of a done job, the reason of a dead one."""
    codec: Codec

    @property
    def value(self) -> Any:
        """The result of a done job, or the reason of a dead one as text; otherwise None."""
        if self.raw is None:
            return None
        if self.outcome != "done":
            return self.raw.decode("utf-8", "replace")
        return decoded(self.codec, self.raw, "result")

    @staticmethod
    def read(rows: Iterable[Sequence[Any]], codec: Codec) -> list[JobResult]:
        return [JobResult(id_from(id), outcome and outcome.decode(), value, codec) for id, outcome, value in rows]


@near_misses("Job")
class BaseJob:
    """One delivery of a job: what ``dq.Job`` and ``dq.asyncio.Job`` have in common."""

    __slots__ = ("_codec", "_delivery", "_envelope", "_listeners", "_told", "_why", "_work")

    def __init__(self, delivery: Delivery, codec: Codec) -> None:
        self._delivery = delivery
        self._codec = codec
        self._envelope: Optional[Envelope] = _UNREAD
        self._told: Optional[threading.Event] = None
        self._why: Optional[str] = None
        self._work: Optional[_steps.Work] = None
        self._listeners: Optional[list[Callable[[], Any]]] = None

    def __repr__(self) -> str:
        return f"<Job {self.id!r} of {self.queue!r}, attempt {self.attempt}>"

    @property
    def id(self) -> str:
        """The job's id. Bytes that are not UTF-8 are surrogates, as ``os.fsdecode`` makes them."""
        return id_from(self._delivery.id)

    @property
    def queue(self) -> str:
        """The key that the job came from; of a sharded queue, the shard's."""
        return id_from(self._delivery.key)

    @property
    def payload(self) -> bytes:
        """The payload's bytes, envelope included."""
        return self._delivery.payload

    @property
    def token(self) -> str:
        """Identifies this delivery."""
        return self._delivery.token.decode()

    @property
    def attempt(self) -> int:
        """How often the job was delivered, including this time."""
        return self._delivery.attempt

    @property
    def max_attempts(self) -> int:
        """The job is dead after this many deliveries: the least limit of the job, its queue, its handler; 0: none."""
        return self._delivery.limit

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job is dead if this attempt fails."""
        return 0 < self.max_attempts <= self.attempt

    @property
    def deadline(self) -> datetime:
        """When the lease ends, as of the delivery. The worker keeps renewing it while the handler runs."""
        return from_ms(self._delivery.deadline_ms)

    @property
    def due(self) -> Optional[datetime]:
        """When the job was due."""
        return maybe_from_ms(self._delivery.due_ms)

    @property
    def occurrence(self) -> Optional[datetime]:
        """The instant of a recurring job's occurrence, which is equal in all attempts."""
        return self.due

    @property
    def envelope(self) -> Optional[Envelope]:
        """The envelope, if the payload is one."""
        if self._envelope is _UNREAD:
            self._envelope = Envelope.read(self._delivery.payload)
        return self._envelope

    @property
    def kind(self) -> Optional[str]:
        return self.envelope.kind if self.envelope else None

    @property
    def headers(self) -> Mapping[str, str]:
        return self.envelope.headers if self.envelope else {}

    @property
    def data(self) -> Any:
        """What was added, decoded by the queue's codec. Raises PayloadError if it cannot be read."""
        if self.envelope:
            return self.envelope.data
        try:
            return decoded(self._codec, self._delivery.payload, "payload")
        except PayloadError as undecodable:
            undecodable.job = self
            raise

    @property
    def results(self) -> list[JobResult]:
        """How the jobs ended that this one was added ``after``, in that order."""
        return JobResult.read(self._delivery.results, self._codec)

    @property
    def steps(self) -> Mapping[str, bytes]:
        """What earlier attempts and this one have kept, by name, as bytes; includes signals."""
        return _steps.shown(self._steps)

    # --- Between the handler and its worker

    @property
    def lost(self) -> bool:
        """Another worker may have the job, or it was cancelled. Stop: the end of this handler will not count."""
        return self._why == "lost"

    @property
    def cancelled(self) -> bool:
        """The handler must stop: the job was lost, its time is over, or the worker stops and its drain is over."""
        return self._why is not None

    @property
    def cancel_reason(self) -> Optional[str]:
        """``lost``, ``timeout`` or ``stopping``; None if the job is not cancelled."""
        return self._why

    def check(self) -> None:
        """Raises ``Cancelled`` if the job is ``cancelled``. Call it in long handlers, between two steps."""
        if self._why is not None:
            raise Cancelled(self._why)

    def fail(self, error: BaseException) -> None:
        """In a batch: this job alone failed (or is retried, snoozed or given up)."""
        self._delivery.error = RuntimeError("failed without an error") if error is None else error

    def succeed(self, value: Any) -> None:
        """In a batch: the result of this job alone."""
        self._delivery.value = value

    def progress(self, fraction: float, text: str = "") -> None:
        """Reports how far the handler is, from 0 to 1. Written at most once a second; the last report always is.

        Returns at once, and never fails because of the server.
        """
        self._delivery.owner.show_progress(self._delivery, _progress(fraction, text))

    @property
    def _steps(self) -> _steps.Work:
        if self._work is None:
            self._work = _steps.Work(self._delivery, self._codec)
        return self._work

    @property
    def _is_suspended(self) -> bool:
        return self._work is not None and self._work.is_over

    def _tell(self, why: str) -> None:
        self._why = why
        if self._told is not None:
            self._told.set()
        for listener in self._listeners or ():
            listener()

    def _listen(self, listener: Callable[[], Any]) -> None:
        """Registers a function to be called when the job is told to end."""
        self._listeners = [*(self._listeners or ()), listener]
        if self._why is not None:
            listener()


def _progress(fraction: float, said: str) -> bytes:
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise ValueError(f"progress is a number from 0 to 1, such as 0.4, not {fraction!r}")
    if not isinstance(said, str):
        raise TypeError(f"the text of progress is text, not {said!r}")
    shown = f"{float(fraction):.3f}".rstrip("0").rstrip(".")
    return cut(shown.encode() + (b" " + text(said) if said else b""))


class Job(BaseJob, Corrections[None]):
    """One delivery of a job, for handlers without asyncio."""

    __slots__ = ()

    def pause(self, duration: Duration) -> None:
        """Sleeps for ``duration`` within this attempt. Raises ``Cancelled`` as soon as the job is ``cancelled``."""
        if self._told is None:
            self._told = threading.Event()
        if self._why is None:
            self._told.wait(seconds(duration))
        self.check()

    def step(self, name: str, function: Callable[[], T]) -> T:
        """Runs the function once in the life of the job, and keeps what it returns, encoded by the codec.

        Later attempts return the kept value. Code outside steps runs again in each attempt.
        """
        return self._do(_steps.step(self._steps, name, function))  # type: ignore[no-any-return]

    def sleep(self, name: str, duration: Duration) -> None:
        """Ends the attempt, uncounted. After ``duration`` the handler begins again, and then goes on here at once."""
        self._do(_steps.sleep(self._steps, name, duration))

    def wait(self, name: str, timeout: Optional[Duration] = None) -> Any:
        """Returns the value of the signal ``name``.

        If it has not come, ends the attempt, uncounted: the handler begins again when it comes.

        Raises ``TimedOut`` if it does not come within ``timeout``.
        """
        return self._do(_steps.wait(self._steps, name, timeout))

    def wait_for(self, ids: Iterable[str], name: Optional[str] = None, *, on_dead: OnDead = "run") -> list[JobResult]:
        """Returns how these jobs of the queue ended.

        If some have not, ends the attempt, uncounted: the handler begins again when all have.

        on_dead: what to do if one of them dies: "wait" (it may be kicked), "run" or "die".
        """
        return JobResult.read(self._do(_steps.wait_for(self._steps, ids, name, on_dead)), self._codec)

    def spawn(
        self, jobs: Iterable[Mapping[str, Any]], name: Optional[str] = None, *, on_dead: OnDead = "run"
    ) -> list[JobResult]:
        """Adds jobs, each a mapping of ``Queue.add``'s arguments, and waits for their ends, in one atomic step.

        A job without an ``id`` gets ``<id of this job>/<name>/<number>``, so later attempts find the same jobs.
        """
        return JobResult.read(self._do(_steps.spawn(self._steps, jobs, name, on_dead)), self._codec)

    def once(self, name: str, script: str, keys: Sequence[Any] = (), args: Sequence[Any] = ()) -> bool:
        """Runs a Lua script that takes effect once in the life of the job, on this server. Returns whether it ran now.

        ``keys`` and ``args`` are the script's KEYS and ARGV; in a cluster the keys must be in the queue's slot. The
        script and what keeps the step run as one, and not at all once the job is lost. A script that fails raises, and
        runs again in the next attempt; what it wrote before is not undone.
        """
        return self._do(_steps.once(self._steps, name, script, keys, args))  # type: ignore[no-any-return]

    def _correct(self, given: Mapping[str, Any]) -> None:
        self._do(_steps.correct(self._steps, given))

    def _do(self, steps: _steps.Steps) -> Any:
        """Carries out steps, in this thread."""
        answer: Any = None
        while True:
            try:
                order = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(order, _steps.Call):
                answer = order.function()
            elif isinstance(order, _steps.Children):
                owner, key = self._delivery.owner, self._delivery.key
                answer = [owner.child(key, job, like) for job, like in zip(order.jobs, order.like)]
            else:
                answer = self._delivery.owner.ask(self._delivery, order.commands)
