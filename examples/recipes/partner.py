#!/usr/bin/env python3
"""Calls to a partner who allows 10 a second and 4 at a time, over all our workers together.

The queue keeps the limits, so workers need not know of each other, nor of the limits.
"""

import time

from commands import Queue, demo, in_background, work

CALLS, PER_MS, AT_A_TIME = 10, 1_000, 4


def allow(queue: Queue, calls: int = CALLS, per_ms: int = PER_MS, at_a_time: int = AT_A_TIME) -> None:
    """Holds from now on, until it is changed. A call that is tried again counts again."""
    queue.run("CFGSET", "RATE", calls, per_ms, "MAXRESERVED", at_a_time)


def told_to_wait(queue: Queue, ms: int) -> None:
    """The partner answered `429 Too Many Requests, Retry-After`: nobody calls for so long. The handler then
    raises Later()."""
    queue.run("PAUSE", ms)


if __name__ == "__main__":
    db, options = demo(__doc__, per=0.5)
    queue = Queue(db, "demo:partner")
    called: list[float] = []
    allow(queue, 5, int(options.per * 1000))
    for n in range(20):
        queue.add(f"call:{n}")
    begin = time.monotonic()
    call = lambda job: called.append(time.monotonic() - begin)
    with in_background(work, queue, call, wait_s=1), in_background(work, queue, call, wait_s=1):
        while queue.run("LEN"):
            time.sleep(0.05)
    print("called after", " ".join(f"{at:.2f}" for at in called), "s")
    db.delete(queue.key)
