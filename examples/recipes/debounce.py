#!/usr/bin/env python3
"""Debounce: a document is indexed when it has not been edited for 2 seconds, but not later than 30
seconds after the first edit. Many edits, one job.
"""

import time

from commands import Queue, demo, in_background, work

QUIET_MS, AT_MOST_MS = 2_000, 30_000

# The payload is the instant of the first edit that is not indexed yet. A job that a worker has is about
# edits before this one: it is replaced by a fresh one, so no edit is missed.
EDITED = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local job, first = redis.call('DQ.GET', KEYS[1], ARGV[1]), now
if job and (job[6] == 'delayed' or job[6] == 'ready') then first = tonumber(job[4]) end
local due = math.min(now + tonumber(ARGV[2]), first + tonumber(ARGV[3]))
redis.call('DQ.ADD', KEYS[1], ARGV[1], first, 'AT', due, 'REPLACE')
"""


def edited(queue: Queue, document: str, quiet_ms: int = QUIET_MS) -> None:
    """The simple form: each edit puts the job off, for as long as edits come."""
    queue.add(document, "", "DELAY", quiet_ms, "REPLACE")


def edited_bounded(queue: Queue, document: str, quiet_ms: int = QUIET_MS, at_most_ms: int = AT_MOST_MS) -> None:
    queue.db.register_script(EDITED)(keys=[queue.key], args=[document, quiet_ms, at_most_ms])


if __name__ == "__main__":
    db, options = demo(__doc__, quiet=0.5)
    queue = Queue(db, "demo:index")
    indexed: list[str] = []
    with in_background(work, queue, lambda job: indexed.append(job.id), wait_s=1):
        for _ in range(20):
            edited_bounded(queue, "novel", int(options.quiet * 1000))
            time.sleep(0.02)
        while queue.run("LEN"):
            time.sleep(0.05)
    print("20 edits, indexed:", indexed)
