#!/usr/bin/env python3
"""A shop that lives: something to look at in dq board or dq top. Producers and workers on five queues, until Ctrl-C.

    orders      closed after a minute without payment; two of three are paid before, which cancels that
    webhooks    calls to partners that fail now and then, and are tried again; some never succeed
    exports     of some tenants, of whom one asks for too much: groups take turns, two at a time of each
    mails       an hour of them ahead, in two waves
    schedules   what comes every so often, and by cron

    make run, make board, and beside them: make shop [HOST= PORT=]
"""

import argparse
import logging
import random
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import dq
import redis

CHANCE = random.Random()


class Shop:
    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.orders, self.webhooks, self.exports, self.mails, self.schedules = (
            dq.Queue(client, name) for name in ["orders", "webhooks", "exports", "mails", "schedules"])
        self.unpaid: list[tuple[float, str]] = []
        self.number = int(time.time())

    def prepare(self) -> None:
        self.exports.configure(groupmax=2)
        self.webhooks.configure(deadlen=1000)
        self.schedules.every(15, {"task": "stock"}, id="stock")
        self.schedules.cron("*/5 * * * *", {"task": "sales"}, id="sales")
        self.schedules.cron("0 9 * * MON-FRI", {"task": "report"}, id="report", tz="Europe/Berlin")
        waves = [CHANCE.gauss(3600 * CHANCE.choice([0.3, 0.7]), 300) for _ in range(3000)]
        self.mails.add_many([{"data": {"mail": number}, "id": f"mail:{number}", "delay": max(wave, 1)}
                             for number, wave in enumerate(waves)])

    def sell(self) -> None:
        """What happens in a fifth of a second."""
        for _ in range(CHANCE.randrange(4)):
            self.number += 1
            order = f"order:{self.number}"
            self.orders.add({"order": self.number, "total": round(CHANCE.uniform(9, 400), 2)}, id=order, delay=60)
            if CHANCE.random() < 2 / 3:
                self.unpaid.append((time.time() + CHANCE.uniform(5, 59), order))
        paid = {order for at, order in self.unpaid if at <= time.time()}
        if paid:
            self.orders.delete(*paid, unreserved=True)
            self.unpaid = [(at, order) for at, order in self.unpaid if order not in paid]
            self.webhooks.add_many([{"data": {"paid": order}} for order in paid])
        tenant = CHANCE.choices(["acme", "globex", "initech", "hooli"], [90, 6, 3, 1])[0]
        if self.exports.len() < 5000:
            self.exports.add_many([{"data": {"page": page}, "group": tenant} for page in range(CHANCE.randrange(12))])

    def workers(self) -> Iterator[dq.Worker]:
        ladder = [timedelta(seconds=seconds) for seconds in (1, 5, 30)]

        @dq.handler(attempts=4, backoff=ladder)
        def call(job: dq.Job) -> None:
            time.sleep(CHANCE.uniform(0.02, 0.2))
            if CHANCE.random() < 0.15 or CHANCE.random() < 0.02 * job.attempt:
                raise ConnectionError("the partner answers 503")
            if CHANCE.random() < 0.005:
                raise dq.GiveUp("the partner answers 410: it is gone")

        def export(job: dq.Job) -> None:
            time.sleep(CHANCE.uniform(0.1, 0.5))

        def quick(job: dq.Job) -> None:
            time.sleep(CHANCE.uniform(0.001, 0.02))

        yield dq.Worker(self.webhooks, call, concurrency=4)
        yield dq.Worker(self.exports, export, concurrency=6)
        yield dq.Worker([self.orders, self.mails, self.schedules], quick, concurrency=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="redis://localhost")
    parser.add_argument("--seconds", type=float, help="ends after so many")
    options = parser.parse_args()
    # A failed call is what this shop is about, and no news.
    logging.getLogger("dq").setLevel(logging.CRITICAL)
    shop = Shop(redis.Redis.from_url(options.url))
    shop.prepare()
    workers = list(shop.workers())
    for worker in workers:
        worker.start()
    print("The shop is open. Look at it: make board, or make top. Ctrl-C closes it.", flush=True)
    end = time.monotonic() + options.seconds if options.seconds else float("inf")
    closing = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: closing.set())
    while time.monotonic() < end and not closing.wait(0.2):
        try:
            shop.sell()
        except redis.ConnectionError as error:
            print(f"No server for now: {error}", flush=True)
            closing.wait(1)
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.join()
    print("The shop is closed.")


if __name__ == "__main__":
    main()
