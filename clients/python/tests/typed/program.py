"""What mypy --strict takes, and what it must refuse (lines with # wrong)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import dq
import dq.asyncio

queue = dq.Queue("redis://localhost", "q")
worker = dq.Worker(queue, concurrency=10, prefetch=1, drain=5, wait=1, lease=30, weights=None)
dq.Worker(queue, concurrencyy=10)  # wrong
dq.Worker(queue, concurrency="10")  # wrong
dq.Consumer(queue, lease=30, wait=5)
dq.Consumer(queue, leese=30)  # wrong
dq.asyncio.Worker(dq.asyncio.Queue("redis://localhost", "q"), concurrencyy=10)  # wrong
dq.asyncio.Worker(queue)  # wrong
queue.add(1, dealy=5)  # wrong
queue.add(1, if_exists="replace", on_dead="run", after=["a"])
queue.add(1, if_exists="ignore")  # wrong
queue.len("deda")  # wrong
queue.purge("all")
queue.nack("a", mode="silnet")  # wrong


@worker.job("close", attempts=5, backoff=[60], lease=30)
def close(job: dq.Job) -> int:
    return job.attempt


@worker.job("open", attemptz=5)  # wrong
def opened(job: dq.Job) -> None: ...


@dq.handler(attempts=5)
async def later(job: dq.Job, /, n: int = 0) -> str:
    return str(n)


@dq.handler(attemptz=5)  # wrong
def never(job: dq.Job) -> None: ...


@dq.handler
def plain(job: dq.Job) -> float:
    return 0.5


@queue.kind(attempts=5, defaults={"keep": 60})
def send(job: dq.Job, order: int, at: datetime) -> Decimal:
    return Decimal(order)


@queue.kind(attemptz=5)  # wrong
def sent(job: dq.Job) -> None: ...


@dq.asyncio.Queue("redis://localhost", "q").kind("mail")
async def mail(job: dq.asyncio.Job, to: str) -> bool:
    return to == "ann"


def uses_kinds(job: dq.Job, at: datetime) -> None:
    id: str = send.add(17, at=at)
    id = send.options(delay=60, id="17").add(17, at=at)  # wrong
    send.add(order="17", at=at)  # wrong
    send.add(17)  # wrong
    send.options(dealy=60)  # wrong
    total: Decimal = send.wait(id, timeout=5)
    total = send(job, 17, at)
    queue.join([send.of(1, at), send.options(priority=1).of(2, at)], then={"data": None})
    dq.Worker(queue, send)
    print(total)


async def uses_async_kinds(id: str) -> bool:
    found: str = await mail.add("ann")
    await mail.add(5)  # wrong
    print(found)
    return await mail.wait(id)


def uses(job: dq.Job) -> None:
    number: int = close(job)
    text: str = close(job)  # wrong
    close()  # wrong
    close(job, 5)  # wrong
    half: float = plain(job)
    stats = queue.stats()
    if stats is not None:
        number = stats.blocked + stats.done + stats.bytes
    print(number, text, half)


async def uses_async(job: dq.Job) -> str:
    number: int = await later(job)  # wrong
    print(number)
    return await later(job, n=5)
