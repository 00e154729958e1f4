#!/usr/bin/env python3
"""Money moved between two hashes of the same server exactly once, whoever is killed.

The job's lease is the fence and one of its steps is the note that it was done, so one script checks the first, and sets
the second together with the balances.
"""

import threading, time
from typing import Optional

from commands import Job, Queue, demo, in_background, work

# KEYS: queue, from, to. ARGV: the job's id, its token, the account, the amount. Nil: the job is no longer ours.
MOVE = """
if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return nil end
if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], 'moved', ARGV[4]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[2], ARGV[3], -ARGV[4])
redis.call('HINCRBY', KEYS[3], ARGV[3], ARGV[4])
return 1
"""


def move(queue: Queue, source: str, target: str, job: Job, script: str = MOVE) -> bool:
    """Whether it was done just now, not before. Safe to call again. An error where the lease is over: an ack would still
    count, as long as no other worker has the job."""
    account, amount = job.payload.split()
    moved = queue.db.eval(script, 3, queue.key, source, target, job.id, job.token, account, amount)
    if moved is None:
        raise TimeoutError("the lease is over, and nothing was moved")
    return bool(moved == 1)


def mover(queue: Queue, source: str, target: str, stop: Optional[threading.Event] = None, **waits: float) -> None:
    """The worker."""
    work(queue, lambda job: move(queue, source, target, job), stop, **waits)


if __name__ == "__main__":
    db, options = demo(__doc__, lease=0.5)
    queue, hashes = Queue(db, "{demo}:transfers"), ("{demo}:checking", "{demo}:savings")
    db.hset(hashes[0], "ada", 100)
    queue.add("transfer:17", "ada 30", "TTR", int(options.lease * 1000))
    print("moved by a worker that dies before its ack:", move(queue, *hashes, queue.take_many(1)[0]))
    with in_background(mover, queue, *hashes, wait_s=1):
        while queue.run("LEN"):
            time.sleep(0.05)
    print("after the second delivery:", [db.hget(each, "ada") for each in hashes])
    db.delete(queue.key, *hashes)
