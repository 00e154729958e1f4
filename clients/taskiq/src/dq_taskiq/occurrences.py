"""Jobs that are runs of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dq

if TYPE_CHECKING:
    from taskiq.message import TaskiqMessage

#: The prefix of the ids of jobs that are schedules.
PREFIX = "schedule:"


def is_scheduled(job: dq.Job) -> bool:
    return job.id.startswith(PREFIX)


def id_of(message: TaskiqMessage, job: dq.Job) -> str:
    """The task id of this run: its own, unless the schedule names one."""
    return message.task_id or f"{job.id.removeprefix(PREFIX)}@{round(job.due.timestamp() * 1000)}"
