#!/usr/bin/env python3
"""Everything that is due at one instant, in batches: a thousand jobs per round trip and per transaction of
the database instead of one.
"""

import logging, os, sqlite3, tempfile, threading, time

from commands import WAIT_S, Job, Queue, demo, in_background, keep_on

BATCH, RETRY_MS = 1_000, 1_000


def open_ledger(path: str) -> sqlite3.Connection:
    ledger = sqlite3.connect(path, timeout=30)
    ledger.execute("CREATE TABLE IF NOT EXISTS settled (trade TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
    return ledger


def settle_batch(queue: Queue, ledger: sqlite3.Connection, jobs: list[Job]) -> int:
    """Returns how many of them were still ours when they were done. The lease must last for a whole batch."""
    good = []
    with ledger:
        for job in jobs:
            try:
                amount = int(job.payload)
            except ValueError:
                queue.nack(job, "FATAL")    # a bad one does not hold up the others
                continue
            # A trade that was settled already, in a batch whose ack was lost, stays as it is.
            ledger.execute("INSERT OR IGNORE INTO settled VALUES (?, ?)", (job.id, amount))
            good.append(job)
    return queue.ack(*good) if good else 0


def settler(queue: Queue, path: str, stop: threading.Event, batch: int = BATCH, wait_s: float = WAIT_S) -> None:
    """The worker. DQ.BPOP gives what is ready, at most a batch: it does not wait until a batch is full."""
    ledger = open_ledger(path)

    def next_batch() -> None:
        jobs = queue.take_many(batch, wait_s)
        try:
            if jobs and (ours := settle_batch(queue, ledger, jobs)) < len(jobs):
                logging.warning("of %d jobs %d were settled, and ours until then", len(jobs), ours)
        except sqlite3.Error as error:      # all of the batch again, not at once
            logging.warning("a batch of %d: %r", len(jobs), error)
            for job in jobs:
                queue.nack(job, "DELAY", RETRY_MS)

    keep_on(queue, next_batch, stop)


if __name__ == "__main__":
    db, options = demo(__doc__, due=1)
    queue = Queue(db, "demo:trades")
    midnight = int((time.time() + options.due) * 1000)
    pipe = db.pipeline(transaction=False)
    for n in range(10_000):
        pipe.execute_command("DQ.ADD", queue.key, f"trade:{n}", n, "AT", midnight)
    pipe.execute()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger")
        with in_background(settler, queue, path, wait_s=1):
            while queue.run("LEN"):
                time.sleep(0.01)
            late_ms = time.time() * 1000 - midnight
        count, total = open_ledger(path).execute("SELECT COUNT(*), SUM(amount) FROM settled").fetchone()
    print(f"{count} trades, {total} in all, settled {late_ms:.0f} ms after their instant")
