"""Exceptions: those that a handler may raise to say how its job goes on, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from .times import Duration, signed_seconds

MOST_NAMED = 10
"""How many ids a message names."""


def some_of(ids: Sequence[str]) -> str:
    left = len(ids) - MOST_NAMED
    return ", ".join(map(repr, ids[:MOST_NAMED])) + (f" and {left} more" if left > 0 else "")


class DqError(Exception):
    """The base of this package's errors."""


class ConfigurationError(DqError):
    """The worker cannot run as it is configured; waiting would not help. The message says what to do."""


class Refused(DqError):
    """The server refuses a command. What its answer does not tell is None."""

    code: str = "ERR"
    """The first word of the answer: "ERR", "NOPERM", "OOM", "WRONGTYPE", ..."""
    said: str = ""
    """The answer, without that word."""
    id: Optional[str] = None
    """The job's."""
    argument: Optional[str] = None
    """What is refused, such as "tz"."""
    value: Any = None
    """What that was."""


class QueueFull(Refused):
    """The queue has reached its MAXLEN or MAXBYTES; what the refused command was to add was not added.

    ``add_many``, ``chain`` and ``join`` may need several commands, of which others can have added jobs, even in one
    transaction: then the message says how many.
    """


class UnknownJob(DqError):
    """A job is to be ``after`` others that the queue does not hold; it was not added."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(
            f"after: the queue does not hold {some_of(ids)}: it has ended, or was never added. Add jobs and what comes "
            "after them in one add_many, or give the first ones keep, so that they are still known when they are done"
        )
        self.ids = ids


class PayloadError(DqError, ValueError):
    """The queue's codec cannot read the payload. ``job.payload`` still has its bytes."""

    job: Any = None
    """The job, if its data could not be read."""


class ControlError(DqError):
    """Base of what a handler raises (or gives to ``job.fail``) to say how its job goes on."""

    def __init__(self, reason: Optional[str] = None) -> None:
        super().__init__("" if reason is None else reason)
        self.reason = reason


class Retry(ControlError):
    """This attempt failed; try again after ``delay`` instead of the wait that the backoff says."""

    def __init__(self, delay: Duration, reason: Optional[str] = None) -> None:
        super().__init__(reason)
        self.delay = delay
        signed_seconds(delay, "delay")


class Snooze(ControlError):
    """Not now: try again after ``delay``; this attempt does not count."""

    def __init__(self, delay: Duration, reason: Optional[str] = None) -> None:
        super().__init__(reason)
        self.delay = delay
        signed_seconds(delay, "delay")


class GiveUp(ControlError):
    """This job cannot succeed: it is dead now, whatever attempts it has left."""


class Cancelled(ControlError):
    """Raised by ``job.check()`` once the job was lost, its time is over, or the worker stops.

    If a handler raises it after that, a worker that stops gives the job back, uncounted. Before, it is a failure.
    """


class JobFailed(DqError):
    """A job that was waited for has no result: it is dead, was deleted, has expired, or is unknown."""

    def __init__(self, id: str, outcome: str, reason: Optional[str] = None) -> None:
        why = reason
        if outcome == "unknown":
            why = (
                "the queue does not hold it: it ended before, or was never there. "
                "Add it with keep=60, or set DONETTL, so that its end is still known"
            )
        super().__init__(f"job {id!r}: {outcome}" + (f": {why}" if why else ""))
        self.id = id
        self.outcome = outcome
        """"dead", "deleted", "expired" or "unknown"."""
        self.reason = reason


class TimedOut(DqError, TimeoutError):
    """What was waited for did not come in time, or the handler took longer than its ``timeout``."""

    def __init__(self, text: str, id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        super().__init__(text)
        self.id = id
        """The job that was waited for, or whose handler it was."""
        self.timeout = timeout
        """How long, in seconds."""


class Suspended(BaseException):
    """Raised by ``job.sleep``, ``wait``, ``wait_for`` and ``spawn``: the attempt is over, and is not counted.

    It is not an Exception, so that ``except Exception`` lets it through. Swallowing it changes nothing: the job is
    given back when its handler ends.
    """
