"""Handlers: a function, and the terms on which it gets jobs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, Union, overload

from ._options import near_misses, unknown
from .times import Duration, between, seconds, to_ms, waits

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class HandlerOptions(TypedDict, total=False):
        """Options of a handler of single jobs."""

        attempts: int
        backoff: Sequence[Duration]
        lease: Duration
        timeout: Duration
        retry_on: Errors
        give_up_on: Errors


F = TypeVar("F", bound=Callable[..., Any])
Errors = Union[type[BaseException], Sequence[type[BaseException]]]
Fill = tuple[int, Duration]


@near_misses("Handler")
class Handler(Generic[F]):
    """What ``@handler`` makes of a function. It can still be called as that function."""

    def __init__(
        self,
        function: F,
        *,
        kind: Optional[str] = None,
        attempts: int = 0,
        backoff: Optional[Sequence[Duration]] = None,
        lease: Optional[Duration] = None,
        batch: int = 0,
        fill: Optional[Fill] = None,
        timeout: Optional[Duration] = None,
        retry_on: Errors = (),
        give_up_on: Errors = (),
    ) -> None:
        if not callable(function):
            raise TypeError(f"a handler must be a function, not {function!r}")
        self.function = function
        self.kind = kind
        self.attempts = whole(attempts, "attempts")
        self.backoff = [seconds(step, "a step of backoff") for step in waits([] if backoff is None else backoff)]
        self.lease = None if lease is None else lease_s(lease)
        self.batch = whole(batch, "batch")
        self.fill = None if fill is None else filling(fill, self.batch)
        self.timeout = None if timeout is None else lease_s(timeout, "timeout", "a handler needs some time")
        self.retry_on = errors(retry_on, "retry_on")
        self.give_up_on = errors(give_up_on, "give_up_on")
        functools.update_wrapper(self, function)

    if TYPE_CHECKING:

        @property
        def __call__(self) -> F: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.function(*args, **kwargs)

    @property
    def size(self) -> int:
        """How many jobs it takes at a time."""
        return self.batch or 1

    def delay_s(self, attempt: int) -> Optional[float]:
        """The step of its backoff after a failed attempt, in seconds; None if it has none."""
        return self.backoff[min(attempt, len(self.backoff)) - 1] if self.backoff else None


def whole(number: int, name: str, least: int = 0) -> int:
    if isinstance(number, int) and number >= least:
        return number
    raise (ValueError if isinstance(number, int) else TypeError)(
        f"{name} must be a whole number, {least} or more, not {number!r}"
    )


def filling(fill: Fill, batch: int) -> tuple[int, int]:
    """So many jobs, and so many milliseconds."""
    if batch < 2:
        raise ValueError("fill needs a batch of 2 or more, such as batch=100, fill=(50, 2.0)")
    if not isinstance(fill, (tuple, list)) or len(fill) != 2:
        raise TypeError(f"fill must be a number of jobs and a duration, such as (50, 2.0), not {fill!r}")
    return between("fill", whole(fill[0], "fill"), 2, batch, " jobs"), to_ms(fill[1], "the wait of fill", 1)


def lease_s(lease: Duration, name: str = "lease", why: str = "it is renewed while a handler runs") -> float:
    if found := seconds(lease, name):
        return found
    raise ValueError(f"{name} must be more than 0 s: {why}")


def errors(types: Errors, name: str) -> tuple[type[BaseException], ...]:
    """Accepts one type or several."""
    found = (types,) if isinstance(types, type) else tuple(types)
    for each in found:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(f"{name} takes types of errors, such as [ConnectionError], not {each!r}")
    return found


@overload
def handler(function: F) -> Handler[F]: ...


@overload
def handler(
    *,
    kind: Optional[str] = None,
    attempts: int = 0,
    backoff: Optional[Sequence[Duration]] = None,
    lease: Optional[Duration] = None,
    batch: int = 0,
    fill: Optional[Fill] = None,
    timeout: Optional[Duration] = None,
    retry_on: Errors = (),
    give_up_on: Errors = (),
) -> Callable[[F], Handler[F]]: ...


def handler(function: Optional[F] = None, **options: Any) -> Union[Handler[F], Callable[[F], Handler[F]]]:
    """Makes a handler of a function that takes a job.

    kind: the kind of jobs that it takes; without one, all jobs that no other handler of the worker takes.
    attempts: the job is dead after this many deliveries that failed or whose worker was lost (0: no limit). If the job
        or its queue has a limit, the least one holds. A job whose worker was lost has its last attempt alone. Workers
        that do not know the job's kind use up no attempt of its handler.
    backoff: the waits after the 1st, 2nd, ... failure; the last one repeats. The job's own backoff takes precedence.
        Without either, the server's `default-backoff` holds.
    lease: how long a job stays with a worker that crashed; by default as long as the job or its queue says (60 s).
        Slow handlers need no longer lease: the worker renews it.
    batch: the function takes a list of up to this many jobs.
    fill: as (50, 2.0): waits until 50 jobs are ready, or for 2 s since the first was. All handlers of the worker must
        take batches; of several the least number and the shortest wait hold.
    timeout: after it the handler is told to stop, like one that lost its job, and the job fails. By default no limit.
    retry_on: only errors of these types are tried again; all others end the job, as ``GiveUp`` does.
    give_up_on: errors of these types end the job.
    """
    for name in options.keys() - set(OPTIONS):  # now, and not when the decorator is applied
        raise unknown("handler", name, OPTIONS)
    if function is not None:
        return Handler(function, **options)
    Handler(_nothing, **options)
    return lambda function: Handler(function, **options)


OPTIONS = ("kind", "attempts", "backoff", "lease", "batch", "fill", "timeout", "retry_on", "give_up_on")


def _nothing(job: Any) -> None:
    """Stands for the function when only the options are checked."""
