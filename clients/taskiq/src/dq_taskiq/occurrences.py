"""Jobs that are runs of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dq

if TYPE_CHECKING:
    from taskiq.abc.formatter import TaskiqFormatter
    from taskiq.message import TaskiqMessage

#: The prefix of the ids of jobs that are schedules.
PREFIX = "schedule:"


def is_scheduled(job: dq.Job) -> bool:
    return job.id.startswith(PREFIX)


def run_of(formatter: TaskiqFormatter, message: TaskiqMessage, job: dq.Job) -> bytes:
    """The message of this run. Its task id is its own, unless the schedule names one."""
    message.task_id = message.task_id or f"{job.id.removeprefix(PREFIX)}@{round(job.due.timestamp() * 1000)}"
    return formatter.dumps(message).message
