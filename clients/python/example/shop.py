"""A shop: a reminder of a trial that ends, payments that are tried again, and exports that take long."""

import os
from collections.abc import Callable
from datetime import timedelta

import dq

QUEUE = "shop"


class Declined(Exception):
    """By the bank, for now."""


class Shop:
    """``mail`` and ``pay`` are how the shop reaches the world: tests give their own."""

    def __init__(self, url: str, mail: Callable[[str, str], object], pay: Callable[[int, float], object]) -> None:
        self.queue = dq.Queue(url, QUEUE)
        self.mail = mail
        self.pay = pay

    def start_trial(self, customer: str) -> None:
        self.queue.add({"customer": customer}, id=f"trial:{customer}", kind="remind", delay=timedelta(days=30))

    def subscribe(self, customer: str) -> None:
        self.queue.delete(f"trial:{customer}")

    def order(self, number: int, amount: float) -> None:
        self.queue.add({"order": number, "amount": amount}, id=f"charge:{number}", kind="charge")

    def export(self, pages: int) -> None:
        self.queue.add({"pages": pages}, id="export", kind="export")

    def worker(self, drain: float = 25) -> dq.Worker:
        worker = dq.Worker(self.queue, drain=drain)

        @worker.job("remind")
        def remind(job: dq.Job) -> None:
            self.mail(job.data["customer"], "Your trial ends tomorrow.")

        @worker.job("charge", attempts=4, backoff=[timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)])
        def charge(job: dq.Job) -> None:
            if job.data["amount"] <= 0:
                raise dq.GiveUp("nothing to pay")
            self.pay(job.data["order"], job.data["amount"])

        @worker.job("export")
        def export(job: dq.Job) -> None:
            for page in range(job.data["pages"]):
                job.check()  # whether the worker stops: then another one begins anew
                self.mail("accounting", f"page {page}")
                job.pause(0.01)

        return worker


if __name__ == "__main__":
    Shop(os.environ.get("REDIS_URL", "redis://localhost"), mail=print, pay=print).worker().run()
