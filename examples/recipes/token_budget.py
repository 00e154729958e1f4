#!/usr/bin/env python3
"""Calls of a model with a budget of tokens for each customer: so many in any minute, by all workers together.

A call's job is added with an estimate of its tokens. When the model has said how many it really took, the worker
corrects what this delivery counts, before it acknowledges the job.

A limit of requests beside that of tokens holds by a least cost of each call (floor).
"""

import time
from collections.abc import Callable

from commands import Job, Queue, demo, in_background, work

TOKENS, PER_MS = 100_000, 60_000


def budget(queue: Queue, tokens: int = TOKENS, per_ms: int = PER_MS) -> None:
    """Of each customer. Holds from now on, until it is changed."""
    queue.run("CFGSET", "GROUPRATE", tokens, per_ms)


def floor(tokens: int, requests: int) -> int:
    """What a call counts at least, so that a budget of tokens allows no more than so many requests."""
    return -(-tokens // requests)


def ask(queue: Queue, id: str, customer: str, prompt: str, estimate: int, least: int = 1) -> bool:
    return queue.add(id, prompt, "GROUP", customer, "COST", max(least, estimate))


def answer(queue: Queue, job: Job, model: Callable[[str], int], least: int = 1) -> None:
    """model(prompt) returns the tokens that it took."""
    took = model(job.payload)
    queue.run("TOUCH", job.id, "TOKEN", job.token, "COST", max(least, took))


if __name__ == "__main__":
    db, options = demo(__doc__, per=2)
    queue = Queue(db, "demo:model")
    answered: list[str] = []
    budget(queue, 1000, int(options.per * 1000))
    for n in range(6):
        ask(queue, f"ada:{n}", "ada", "a long prompt", 300)
    ask(queue, "bob:0", "bob", "a short prompt", 300)

    def handle(job: Job) -> None:
        answer(queue, job, lambda prompt: 300)
        answered.append(job.id)

    with in_background(work, queue, handle, wait_s=1):
        while queue.run("LEN"):
            time.sleep(0.05)
    print("answered", " ".join(answered))
    db.delete(queue.key)
