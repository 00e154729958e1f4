"""Where other code joins in: logging, metrics, tracing."""

from __future__ import annotations

from typing import Any

from .job import BaseJob


class Hooks:
    """Override what you need. With ``dq.asyncio`` they may be coroutine functions; plain ones must not block.

    What a hook raises is logged, and changes nothing.
    """

    def adding(self, queue: str, headers: dict[str, str]) -> Any:
        """A job is about to be added; headers may be set. For a ``Queue``."""

    def before(self, job: BaseJob) -> Any:
        """Its handler is about to run, in the same thread or task."""

    def after(self, job: BaseJob) -> Any:
        """Its handler ended without an error."""

    def failed(self, job: BaseJob, error: BaseException) -> Any:
        """Its handler ended with an error, or with what it may raise to say how the job goes on."""

    def suspended(self, job: BaseJob) -> Any:
        """The attempt is over, and not counted: the job sleeps, or waits for a signal or for other jobs."""

    def lost(self, job: BaseJob) -> Any:
        """The job was cancelled, or another worker may have it, as its lease expired before it was acknowledged."""
