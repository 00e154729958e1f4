#!/usr/bin/env python3
"""Reminders 15 minutes before a meeting, which may be moved or cancelled at any moment.

The job carries no time: the worker reads the calendar, so what it sends is what holds then.
"""

import threading, time
from collections.abc import Callable
from typing import Optional

from commands import Job, Later, Queue, demo, in_background, now_ms, work

BEFORE_MS = 15 * 60 * 1000


def schedule(queue: Queue, calendar: str, meeting: str, start_ms: int, before_ms: int = BEFORE_MS) -> None:
    """A new meeting, or another time for one that is there."""
    queue.db.hset(calendar, meeting, start_ms)
    due = start_ms - before_ms      # one in the past: at once
    if queue.run("RESCHEDULE", "AT", max(0, due), "IDS", 1, meeting) == 0:
        # No job waits: the meeting is new, or it was reminded of already, or a worker is just at it.
        # REPLACE is right for all of them: it ends that worker's token, so its ack leaves the new job alone.
        queue.add(meeting, "", "AT", max(0, due), "REPLACE")


def cancel(queue: Queue, calendar: str, meeting: str) -> None:
    queue.db.hdel(calendar, meeting)
    queue.run("DEL", "IDS", 1, meeting)


def remind(queue: Queue, calendar: str, job: Job, send: Callable[[str, int], None], before_ms: int = BEFORE_MS) -> None:
    """The handler."""
    start = queue.db.hget(calendar, job.id)
    if start is None:
        return                      # cancelled while the job was on its way to us
    early_ms = int(start) - before_ms - now_ms()
    if early_ms > 0:
        raise Later(early_ms)       # moved while the job was on its way to us
    send(job.id, int(start))


def reminder(queue: Queue, calendar: str, send: Callable[[str, int], None], stop: Optional[threading.Event] = None,
             before_ms: int = BEFORE_MS, **waits: float) -> None:
    """The worker."""
    work(queue, lambda job: remind(queue, calendar, job, send, before_ms), stop, **waits)


if __name__ == "__main__":
    db, options = demo(__doc__, before=1)
    queue, calendar = Queue(db, "demo:reminders"), "demo:calendar"
    before_ms, noon = int(options.before * 1000), now_ms() + 2 * int(options.before * 1000)
    schedule(queue, calendar, "standup", noon, before_ms)
    schedule(queue, calendar, "review", noon, before_ms)
    schedule(queue, calendar, "lunch", noon, before_ms)
    schedule(queue, calendar, "standup", noon + 1000, before_ms)
    cancel(queue, calendar, "lunch")
    send = lambda meeting, start: print(f"{meeting} begins in {(start - now_ms()) / 1000:.2f} s")
    with in_background(reminder, queue, calendar, send, before_ms=before_ms, wait_s=1):
        while queue.run("LEN"):
            time.sleep(0.05)
    db.delete(calendar)
