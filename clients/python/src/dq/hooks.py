"""Hooks: where logging, metrics and tracing join in."""

from __future__ import annotations

from typing import Any

from ._job_info import JobInfo
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

    def dead(self, queue: str, job: JobInfo) -> Any:
        """The job died: its attempts are used up, its handler gave it up, or a job that it was after died.

        Called by the worker that the server told, for one job at a time; in a thread of its own, unless it is a
        coroutine function. If the job died with its lease or with another one, each worker that has this hook finds
        that, at the latest a lease later: a job may be told of more than once. Not found is what died before the
        worker's start, and what the queue's DEADLEN took before. A worker that stops waits for this hook as for
        handlers.
        """
