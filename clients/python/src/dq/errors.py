"""Exceptions: what a handler may say, and what can go wrong."""

from __future__ import annotations

from typing import Any, Optional

from .times import Duration, signed_seconds


class DqError(Exception):
    """The base of this package's errors."""


class ConfigurationError(DqError):
    """The worker cannot run as it is configured; waiting would not help. The message says what to do."""


class QueueFull(DqError):
    """The queue has reached its MAXLEN or MAXBYTES; nothing was added."""


class PayloadError(DqError, ValueError):
    """The payload is not what the queue's codec reads. ``job.payload`` still has its bytes."""

    job: Any = None
    """The job, where it was one's data."""


class Say(DqError):
    """The base of what a handler raises (or gives to ``job.fail``) to say how its job goes on."""

    def __init__(self, reason: Optional[str] = None) -> None:
        super().__init__("" if reason is None else reason)
        self.reason = reason


class Retry(Say):
    """This attempt failed; try again after ``delay``, instead of what the ladder says."""

    def __init__(self, delay: Duration, reason: Optional[str] = None) -> None:
        super().__init__(reason)
        self.delay = delay
        signed_seconds(delay, "delay")


class Snooze(Say):
    """Not now: try again after ``delay``; this attempt does not count."""

    def __init__(self, delay: Duration, reason: Optional[str] = None) -> None:
        super().__init__(reason)
        self.delay = delay
        signed_seconds(delay, "delay")


class GiveUp(Say):
    """This job cannot succeed: it is dead now, whatever attempts it has left."""


class Cancelled(Say):
    """Raised by ``job.check()`` once the job was lost or the worker stops.

    A job of a worker that stops is given back uncounted when its handler raises this; before, it is a failure.
    """
