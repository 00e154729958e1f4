"""Where other code joins in: logging, metrics, tracing."""

from __future__ import annotations

from typing import Any

from .job import Job


class Hooks:
    """Override what you need. With ``dq.asyncio`` they may be coroutine functions; plain ones must not block.

    What a hook raises is logged, and changes nothing.
    """

    def adding(self, queue: str, headers: dict[str, str]) -> Any:
        """A job is about to be added; headers may be set. For a ``Queue``."""

    def before(self, job: Job) -> Any:
        """Its handler is about to run, in the same thread or task."""

    def after(self, job: Job) -> Any:
        """Its handler ended without an error."""

    def failed(self, job: Job, error: BaseException) -> Any:
        """Its handler ended with an error, or with what it may raise to say how the job goes on."""

    def lost(self, job: Job) -> Any:
        """Another worker may have the job, as its lease expired before it was acknowledged."""
