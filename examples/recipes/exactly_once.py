#!/usr/bin/env python3
"""Exactly one reaction to each job, though it may be delivered twice.

A worker that dies between its work and its DQ.ACK leaves a job that is done and will be delivered again;
no queue can know better. So the work and the note that it was done go into one transaction of the
database: either both are there or none.
"""

import os, sqlite3, tempfile, threading, time
from typing import Optional

from commands import Job, Queue, demo, in_background, work


def open_bank(path: str) -> sqlite3.Connection:
    bank = sqlite3.connect(path, timeout=30)
    bank.execute("CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)")
    bank.execute("CREATE TABLE IF NOT EXISTS done (job TEXT PRIMARY KEY)")
    return bank


def credit(bank: sqlite3.Connection, job: Job) -> bool:
    """Whether it was done just now. The payload is `account amount`; the job's id is the key of the work, so it
    must mean this very piece of work for ever: the id of the payment, not that of the account."""
    account, amount = job.payload.split()
    with bank:
        new = bank.execute("INSERT OR IGNORE INTO done VALUES (?)", (job.id,)).rowcount == 1
        if new:
            bank.execute("INSERT INTO accounts VALUES (?, ?) "
                         "ON CONFLICT (id) DO UPDATE SET balance = balance + excluded.balance", (account, int(amount)))
    return new


def teller(queue: Queue, path: str, stop: Optional[threading.Event] = None, **waits: float) -> None:
    """The worker."""
    bank = open_bank(path)
    work(queue, lambda job: credit(bank, job), stop, **waits)


if __name__ == "__main__":
    db, options = demo(__doc__, lease=0.5)
    queue = Queue(db, "demo:payments")
    with tempfile.TemporaryDirectory() as folder:
        bank = open_bank(os.path.join(folder, "bank"))
        queue.add("payment:17", "ada 100", "TTR", int(options.lease * 1000))
        print("done by a worker that dies before its ack:", credit(bank, queue.take_many(1)[0]))
        with in_background(teller, queue, os.path.join(folder, "bank"), wait_s=1):
            while queue.run("LEN"):
                time.sleep(0.05)
        print("after the second delivery:", dict(bank.execute("SELECT * FROM accounts")))
