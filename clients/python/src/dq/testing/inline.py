"""One job without a server: made for a unit test, or run by its handler until it ends."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Callable, Optional, TypeVar, Union

from .. import _guard, asyncio
from .._delivery import Command, Delivery
from .._ends import failure
from .._options import near_misses
from .._running import BaseWorker
from .._texts import reason
from ..codec import Codec, Envelope, JsonCodec, decoded, id_from, id_to
from ..errors import DqError
from ..handler import Handler
from ..job import BaseJob, Job
from ..times import Duration, to_ms, waits

TTR_MS = 60_000
SERVERS = -1
"""A wait that only the server knows."""
MOST = 100
NEEDS_A_SERVER = "needs a server: see dq.testing.TestServer"


J = TypeVar("J", bound=BaseJob)
Walk = Generator[Any, Any, "Run"]
Runs = Union[Handler[Any], BaseWorker[Any], Callable[..., Any]]


class Desk:
    """Takes the place of the link of its deliveries."""

    place = "inline"

    def __init__(self, steps: Mapping[str, bytes]) -> None:
        self.steps = {id_to(name): value for name, value in steps.items()}
        self.lacking: Optional[DqError] = None

    def holds(self, delivery: Delivery) -> bool:
        return True

    def lose(self, deliveries: Iterable[Delivery]) -> None:
        pass

    def show_progress(self, delivery: Delivery, text: bytes) -> None:
        pass

    def child(self, key: bytes, job: Mapping[str, Any], like: str) -> Any:
        self.lack("job.spawn")

    def lack(self, what: str) -> None:
        self.lacking = DqError(f"{what} {NEEDS_A_SERVER}")
        raise self.lacking

    def ask(self, delivery: Delivery, commands: Sequence[Command]) -> Any:
        for command in commands:
            if command[0] not in (b"DQ.STEP", b"DQ.TOUCH"):  # a cost: here are no rates
                self.lack("job.once")
            self.keep(command)
        return [1] * len(commands)

    def keep(self, command: Command) -> None:
        if command[0] == b"DQ.STEP":
            self.steps[command[4]] = command[5]


class AsyncDesk(Desk):
    async def ask(self, delivery: Delivery, commands: Sequence[Command]) -> Any:
        return super().ask(delivery, commands)

    async def ready(self, key: bytes, call: Any) -> Any:
        return call


@dataclass
class Run:
    """What became of a job."""

    state: str = "ready"
    """"done", "dead", "blocked" (it waits for a signal), or "delayed" (it was tried 100 times)."""
    result: Any = None
    """What the handler returned, as whoever waits for it gets it."""
    reason: Optional[str] = None
    """Why it failed last."""
    attempts: int = 0
    waits: list[Optional[timedelta]] = field(default_factory=list)
    """How long it waited each time: after failures (None: as the server says), in sleeps, for signals that did not
    come."""
    jobs: list[Any] = field(default_factory=list)
    """The job of each delivery."""


@near_misses("testing.job")
class _Inline:
    def __init__(
        self,
        data: Any = None,
        *,
        id: str = "1",
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        attempt: int = 1,
        attempts: int = 0,
        backoff: Sequence[Duration] = (),
        results: Iterable[tuple[str, str, Any]] = (),
        signals: Optional[Mapping[str, Any]] = None,
        codec: Optional[Codec] = None,
        queue: str = "test",
    ) -> None:
        self.codec = codec or JsonCodec()
        self.signals = {name: self.codec.encode(value) for name, value in (signals or {}).items()}
        self.payload = self.codec.encode(data) if kind is None and not headers else Envelope.write(data, kind, headers)
        self.key, self.id, self.attempt = id_to(queue), id_to(id), attempt
        self.terms = (TTR_MS, attempts, [to_ms(step, "a step of backoff") for step in waits(backoff)] or None)
        self.results = [
            [id_to(other), outcome.encode(), self.codec.encode(value) if outcome == "done" else id_to(value)]
            for other, outcome, value in results
        ]

    def delivered(self, desk: Desk, made: type[BaseJob], handler: Optional[Handler[Any]] = None) -> Delivery:
        now = time.time_ns() // 1_000_000
        row = (self.id, self.payload, b"1", self.attempt, now + TTR_MS, now, self.results, dict(desk.steps), self.terms)
        delivery = Delivery(self.key, row, desk)
        delivery.handler = handler
        delivery.job = made(delivery, self.codec)
        return delivery

    def walk(self, handler: Handler[Any], desk: Desk, made: type[BaseJob]) -> Walk:
        """Yields what is to be called with what; is sent its error and what it returned."""
        run = Run()
        envelope = Envelope.read(self.payload)
        kind = None if envelope is None else envelope.kind
        if handler.kind not in (None, kind):
            raise DqError(f"the handler of kind {handler.kind!r} gets no job of kind {kind!r}")
        while len(run.jobs) < MOST:
            delivery = self.delivered(desk, made, handler)
            run.jobs.append(delivery.job)
            error, value = yield handler.function, [delivery.job] if handler.batch else delivery.job
            if desk.lacking is not None:
                raise desk.lacking
            run.attempts = self.attempt - (delivery.suspension is not None)
            if delivery.suspension is not None:
                wait_ms = self.suspended(run, delivery, desk)
            else:
                wait_ms = self.ended(run, delivery, error, value)
            if wait_ms is None:
                return run
            if wait_ms:
                run.waits.append(None if wait_ms == SERVERS else timedelta(milliseconds=wait_ms))
        run.state = "delayed"
        return run

    def suspended(self, run: Run, delivery: Delivery, desk: Desk) -> Optional[int]:
        """How long the job waits, in ms; None if nothing ends its wait."""
        assert delivery.suspension is not None
        what, ahead, nack = delivery.suspension
        word, value, *rest = nack[6:]
        if word == b"AFTER":
            desk.lack(what)
        for command in ahead:
            desk.keep(command)
        if word == b"DELAY":
            return int(value)
        signal = self.signals.get(id_from(value))
        if signal is None and not rest:
            run.state = "blocked"
            return None
        if signal is not None:
            desk.steps[value] = signal
        return 0 if signal is not None else int(rest[1])

    def ended(self, run: Run, delivery: Delivery, error: Any, value: Any) -> Optional[int]:
        handler = delivery.handler
        assert handler is not None
        error = delivery.error if delivery.error is not None else error
        value = delivery.value if handler.batch else value
        raw, trouble = (None, None) if error is not None or value is None else _guard.encoded(self.codec, value)
        verdict = (
            _guard.unencodable(reason(trouble)) if trouble is not None else _guard.verdict(error, job=delivery.job)
        )
        if verdict.what == "fail" and _guard.is_final(error, handler.retry_on, handler.give_up_on):
            verdict = verdict._replace(what="give up")
        run.reason = None if verdict.reason is None else verdict.reason.decode("utf-8", "replace")
        if verdict.what == "done":
            run.state, run.result = "done", None if raw is None else decoded(self.codec, raw, "result")
            return None
        if verdict.what == "snooze":
            run.attempts -= 1
            return verdict.wait_ms
        back = failure(delivery, verdict.reason, verdict.wait_ms)
        if verdict.what == "give up" or back.mode or 0 < self.terms[1] <= self.attempt:
            run.state = "dead"
            return None
        self.attempt += 1
        ladder = self.terms[2]
        if back.wait_ms is not None:
            return back.wait_ms
        return ladder[min(self.attempt - 1, len(ladder)) - 1] if ladder else SERVERS


def job(data: Any = None, **options: Any) -> Job:
    """A job for the unit test of a handler: ``close(dq.testing.job({"order": 17}, attempt=3))``.

    ``step`` runs what it is given, ``sleep`` and ``wait`` end the attempt as always, and what needs a server says so.

    id, kind, headers, attempt, attempts, backoff, codec: as of the job. queue: its queue's name.
    results: of the jobs that it is after, as (id, outcome, value or reason).
    signals: those that have come, by name.
    """
    return _job(Desk, Job, data, options)


def async_job(data: Any = None, **options: Any) -> asyncio.Job:
    """``job`` for handlers that are coroutine functions."""
    return _job(AsyncDesk, asyncio.Job, data, options)


def _job(desk: type[Desk], made: type[J], data: Any, options: Any) -> J:
    inline = _Inline(data, **options)
    found: J = inline.delivered(desk(inline.signals), made).job
    return found


def run(handler: Runs, data: Any = None, **options: Any) -> Run:
    """Runs a handler, or that of a worker, on a job until that is done, dead, or waits for a signal, without a server.

    After a failure it is tried again, as its ladder and limits say, but at once. So is a sleep over, and a wait for a
    signal, if that is among ``signals`` or the wait has a timeout. A handler's own ``timeout`` does not hold. It takes
    the options of ``job``.
    """
    walk = _walk(Desk, Job, handler, data, options)
    ended: Any = None
    while True:
        try:
            ended = _guard.run(*walk.send(ended))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def async_run(handler: Runs, data: Any = None, **options: Any) -> Run:
    """``run`` for handlers that are coroutine functions."""
    walk = _walk(AsyncDesk, asyncio.Job, handler, data, options)
    ended: Any = None
    while True:
        try:
            called = walk.send(ended)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        ended = await _guard.arun(*called)


def _walk(desk: type[Desk], made: type[BaseJob], handler: Any, data: Any, options: Any) -> Walk:
    if isinstance(handler, BaseWorker):
        inline = _Inline(data, **options)
        found = handler._handlers.choose(inline.delivered(desk({}), made).job)
        if found is None:
            raise DqError(f"the worker has no handler of kind {options.get('kind')!r}")
    else:
        found = handler if isinstance(handler, Handler) else Handler(handler)
        inline = _Inline(data, **{"kind": found.kind, **options})
    return inline.walk(found, desk({}), made)
