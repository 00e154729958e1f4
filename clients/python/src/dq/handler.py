"""Handlers: a function, and how its jobs are treated."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any, Callable, Generic, Optional, TypeVar, Union, overload

from .times import Duration, seconds, waits

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_LEASE_S = 30.0
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 3600.0
JITTER = 0.25


class Handler(Generic[F]):
    """What ``@handler`` makes. It can still be called as the function that it was."""

    def __init__(
        self,
        function: F,
        *,
        kind: Optional[str] = None,
        attempts: int = 0,
        backoff: Optional[Sequence[Duration]] = None,
        lease: Optional[Duration] = None,
        batch: int = 0,
    ) -> None:
        if not callable(function):
            raise TypeError(f"a handler is a function, not {function!r}")
        self.function = function
        self.kind = kind
        self.attempts = whole(attempts, "attempts")
        self.backoff = [seconds(step, "a step of backoff") for step in waits([] if backoff is None else backoff)]
        self.lease = None if lease is None else lease_s(lease)
        self.batch = whole(batch, "batch")
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def size(self) -> int:
        """How many jobs it takes at a time."""
        return self.batch or 1

    def delay_s(self, attempt: int) -> float:
        """The wait after a failed attempt: its ladder's step, or exponential with jitter."""
        if self.backoff:
            return self.backoff[min(attempt, len(self.backoff)) - 1]
        return exponential_s(attempt, FIRST_DELAY_S, LONGEST_DELAY_S)


def whole(number: int, name: str, least: int = 0) -> int:
    if isinstance(number, int) and number >= least:
        return number
    raise (ValueError if isinstance(number, int) else TypeError)(
        f"{name} is a whole number, {least} or more, not {number!r}"
    )


def lease_s(lease: Duration) -> float:
    if found := seconds(lease, "lease"):
        return found
    raise ValueError("lease is more than 0 s: a handler that is slow needs no other, it is renewed")


def exponential_s(attempt: int, first_s: float, longest_s: float) -> float:
    """Doubles with each attempt; the jitter only adds, so nothing comes too early."""
    return min(longest_s, first_s * 2.0 ** min(attempt - 1, 62)) * (1 + JITTER * random.random())


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
) -> Callable[[F], Handler[F]]: ...


def handler(function: Optional[F] = None, **options: Any) -> Union[Handler[F], Callable[[F], Handler[F]]]:
    """Makes a handler of a function that takes a job.

    kind: the kind of jobs that it takes; without one, all that no other handler of the worker takes.
    attempts: after so many failed deliveries the job is dead (0: no limit). The job's own limit goes first.
    backoff: the waits after the 1st, 2nd, ... failure; the last one repeats. A ladder that the job has goes first.
        Without either: 1 s, doubling to 1 hour, with jitter.
    lease: for how long a job stays with a worker that crashed (30 s). Slow handlers need no longer one:
        the worker renews it.
    batch: the function takes a list of up to so many jobs.
    """
    if function is not None:
        return Handler(function, **options)
    return lambda function: Handler(function, **options)
