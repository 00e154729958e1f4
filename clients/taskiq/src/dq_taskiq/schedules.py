"""Schedules that the server keeps: no scheduler process is needed."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any

import dq
from dq.codec import label_of
from taskiq import ScheduledTask, ScheduleSource
from taskiq.kicker import AsyncKicker

from .occurrences import PREFIX

if TYPE_CHECKING:
    from .broker import DqBroker

#: How many schedules one reply of the server has.
PAGE = 1000


class DqScheduleSource(ScheduleSource):
    """Keeps schedules as jobs of the broker's queue: recurring ones by cron or interval, delayed ones by time.

    The server makes them due, and workers run them like any task, so no ``taskiq scheduler`` is needed. One that runs
    for other sources sends nothing for this one: ``get_schedules`` is empty, ``schedules`` lists them.
    """

    def __init__(self, broker: DqBroker) -> None:
        self._broker = broker

    async def get_schedules(self) -> list[ScheduledTask]:
        """Empty: the server makes schedules due."""
        return []

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Adds a schedule, or replaces the one with that id. An unchanged rule goes on as it was."""
        queue = self._queue(schedule)
        job = {"id": PREFIX + schedule.schedule_id, "data": self._message(schedule)}
        job["label"] = label_of(schedule.task_name)
        if schedule.cron is not None:
            if isinstance(schedule.cron_offset, timedelta):
                raise ValueError(
                    "a cron_offset must be the name of a time zone, as 'Europe/Berlin': zones have no fixed offset"
                )
            await queue.cron(schedule.cron, **job, tz=schedule.cron_offset)
        elif schedule.interval is not None:
            await queue.every(schedule.interval, **job)
        else:
            at = schedule.time if schedule.time.tzinfo else schedule.time.replace(tzinfo=timezone.utc)
            await queue.add(**job, at=at, if_exists="replace")

    async def delete_schedule(self, schedule_id: str) -> None:
        for queue in list(self._broker._queues.values()) or [self._broker.queue()]:
            await queue.delete(PREFIX + schedule_id)

    async def schedules(self) -> list[ScheduledTask]:
        """The schedules in the broker's queue."""
        queue, found = self._broker.queue(), []
        async for id in queue.ids(match=f"{PREFIX}*", count=PAGE):
            job = await queue.get(id)
            if job is not None:
                found.append(self._schedule(job))
        return found

    def _queue(self, schedule: ScheduledTask) -> Any:
        return self._broker.queue(schedule.labels.get("queue_name"))

    def _message(self, schedule: ScheduledTask) -> bytes:
        """The message as a scheduler sends it."""
        kicker = AsyncKicker(schedule.task_name, self._broker, {**schedule.labels, "schedule_id": schedule.schedule_id})
        message = kicker.with_task_id(schedule.task_id or "")._prepare_message(*schedule.args, **schedule.kwargs)
        return self._broker.formatter.dumps(message).message

    def _schedule(self, job: dq.JobInfo) -> ScheduledTask:
        message = self._broker.formatter.loads(job.payload)
        message.parse_labels()
        schedule_id = message.labels.pop("schedule_id", job.id.removeprefix(PREFIX))
        every, cron, tz = (job.fields.get(name) for name in ("every", "cron", "tz"))
        return ScheduledTask(
            task_name=message.task_name,
            labels=message.labels,
            args=message.args,
            kwargs=message.kwargs,
            task_id=message.task_id or None,
            schedule_id=schedule_id,
            cron=cron.decode() if cron else None,
            cron_offset=tz.decode() if cron and tz else None,
            interval=timedelta(milliseconds=every) if every else None,
            time=None if cron or every else job.due,
        )
