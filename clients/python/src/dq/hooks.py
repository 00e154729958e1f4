"""Where other code joins in: logging, metrics, tracing."""

from __future__ import annotations

from .job import Job


class Hooks:
    """Override what you need. In asyncio, too, these are plain functions and must not block.

    What a hook raises is logged, and changes nothing.
    """

    def adding(self, queue: str, headers: dict[str, str]) -> None:
        """A job is about to be added; headers may be set. For a ``Queue``."""

    def before(self, job: Job) -> None:
        """Its handler is about to run, in the same thread or task."""

    def after(self, job: Job) -> None:
        """Its handler ended without an error."""

    def failed(self, job: Job, error: BaseException) -> None:
        """Its handler ended with an error, or with what it may raise to say how the job goes on."""

    def lost(self, job: Job) -> None:
        """Another worker may have the job, as its lease ended before it was acknowledged."""
