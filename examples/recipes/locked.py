#!/usr/bin/env python3
"""Jobs of one account must not run at the same time: who finds the account locked puts its job aside for
a moment, which costs the job none of its attempts, and does other accounts' jobs meanwhile.
"""

import time

import redis
from redis.exceptions import LockNotOwnedError

from commands import Handler, Job, Later, Queue, demo, in_background, work

ASIDE_MS = 200
LOCK_S = 60     # as long as the job's lease: who has lost the one has lost the other


def one_at_a_time(db: redis.Redis, handle: Handler, aside_ms: int = ASIDE_MS) -> Handler:
    """Makes of a handler one that runs only while it holds its account's lock; the payload names the account."""

    def guarded(job: Job) -> None:
        lock = db.lock(f"lock:{job.payload}", timeout=LOCK_S, blocking=False)
        if not lock.acquire():
            raise Later(aside_ms)
        try:
            handle(job)
        finally:
            try:
                lock.release()
            except LockNotOwnedError:       # it took too long
                pass

    return guarded


if __name__ == "__main__":
    db, options = demo(__doc__, each=0.2)
    queue = Queue(db, "demo:bookings")

    def handle(job: Job) -> None:
        print(f"{job.id} of {job.payload} at attempt {job.attempts}")
        time.sleep(options.each)

    for n, account in enumerate(["ada", "ada", "ada", "bob", "bob"]):
        queue.add(f"booking:{n}", account, "ATTEMPTS", 3)
    handler = one_at_a_time(db, handle, 50)
    with in_background(work, queue, handler, wait_s=1), in_background(work, queue, handler, wait_s=1):
        while queue.run("LEN"):
            time.sleep(0.05)
