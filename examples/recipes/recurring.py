#!/usr/bin/env python3
"""A job that comes again and again, every 5 minutes on the clock: the ack and the next run are one atomic step.

So there is always exactly one job of that id, whoever dies when. `DQ.DEL` ends it, also while a worker has it.
"""

import logging, time

from dq import SETTLED, WAIT_S, Queue, demo, in_background, now_ms, work

EVERY_MS, RETRY_MS = 5 * 60 * 1000, 10_000

# Only who still has the job arranges the next run: a job that was deleted meanwhile does not come back, and
# one that another worker got is his. The new job is fresh: failures of this run do not count for the next.
AGAIN = """
if redis.call('DQ.ACK', KEYS[1], 'WITHTOKENS', ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('DQ.ADD', KEYS[1], ARGV[1], ARGV[3], 'AT', ARGV[4], 'REPLACE')
return 1
"""


def next_run(every_ms, after_ms):
    """On the grid, so runs do not drift; runs that were missed while nobody worked are left out. For crontab
    lines take a library, as croniter."""
    return (after_ms // every_ms + 1) * every_ms


def start(queue, name, payload="", every_ms=EVERY_MS):
    """To be called by every process that starts: the job is there once."""
    queue.run("CFGSET", "BACKOFF", 1, RETRY_MS)     # for all its jobs: when a run fails, again so much later
    return queue.add(name, payload, "AT", next_run(every_ms, now_ms()))


def again(queue, job, every_ms=EVERY_MS):
    """Whether there will be a next run."""
    script = queue.db.register_script(AGAIN)
    return script(keys=[queue.key], args=[job.id, job.token, job.payload, next_run(every_ms, now_ms())]) == 1


def clockwork(queue, handle, stop, every_ms=EVERY_MS, wait_s=WAIT_S):
    """The worker."""

    def run(job):
        handle(job)
        if not again(queue, job, every_ms):     # the ack, too
            logging.warning("%s was deleted while it ran, or another worker has it", job.id)
        return SETTLED

    work(queue, run, stop, wait_s)


if __name__ == "__main__":
    db, options = demo(__doc__, every=0.5)
    queue, every_ms, ran = Queue(db, "demo:clock"), int(options.every * 1000), []
    start(queue, "report", every_ms=every_ms)
    with in_background(clockwork, queue, lambda job: ran.append(now_ms()), every_ms=every_ms, wait_s=1):
        while len(ran) < 3:
            time.sleep(0.05)
        queue.run("DEL", "report")
    print("ran", *(f"{at % every_ms} ms" for at in ran), "after its instants; left:", queue.run("LEN"))
    db.delete(queue.key)
