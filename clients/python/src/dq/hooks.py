"""Hooks: where logging, metrics and tracing join in."""

from __future__ import annotations

from typing import Any

from .job import BaseJob


class Hooks:
    """Override what you need. With ``dq.asyncio`` they may be coroutine functions; plain ones must not block.

    What a hook raises is logged, and changes nothing.
    """

    def adding(self, queue: str, headers: dict[str, str]) -> Any:
        """A job is about to be added; the hook may set headers. For hooks of a ``Queue``."""

    def before(self, job: BaseJob) -> Any:
        """The handler is about to run, in the same thread or task."""

    def after(self, job: BaseJob) -> Any:
        """The handler ended without an error."""

    def failed(self, job: BaseJob, error: BaseException) -> Any:
        """The handler ended with an error, or raised how its job goes on, such as ``Retry``."""

    def suspended(self, job: BaseJob) -> Any:
        """The attempt is over, uncounted: the job sleeps, or waits for a signal or for other jobs."""

    def lost(self, job: BaseJob) -> Any:
        """The job was cancelled, or its lease expired before it was acknowledged, so another worker may have it."""
