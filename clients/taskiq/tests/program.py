"""A program with tasks, as taskiq's command line runs it."""

import asyncio
import os
from typing import Any

import redis.asyncio as redis
from taskiq import Context, SimpleRetryMiddleware, TaskiqDepends, TaskiqMiddleware

from dq_taskiq import DqBroker, DqResultBackend

broker = DqBroker(os.environ["TEST_URL"], lease=float(os.environ.get("TEST_LEASE", "60")))
if "TEST_RESULTS" in os.environ:
    broker.with_result_backend(DqResultBackend(os.environ["TEST_URL"]))
broker.add_middlewares(SimpleRetryMiddleware())


class Broken(TaskiqMiddleware):
    def on_error(self, message, result, exception):
        raise RuntimeError("the middleware fails, too")


if "TEST_BROKEN" in os.environ:
    broker.add_middlewares(Broken())


def trace():
    return redis.Redis.from_url(os.environ["TEST_URL"], db=2)


@broker.task(task_name="hold")
async def hold(name):
    """Runs until it is told to go on."""
    async with trace() as db:
        await db.rpush("ran", name)
        while not await db.get(f"go:{name}"):
            await asyncio.sleep(0.01)
        await db.rpush("done", name)


@broker.task(task_name="again", retry_on_error=True, max_retries=3)
async def again(name):
    """Succeeds the second time."""
    async with trace() as db:
        if await db.rpush("ran", name) < 2:
            raise RuntimeError("once")
        await db.rpush("done", name)


@broker.task(task_name="never")
async def never(name, context: Context = TaskiqDepends()):  # noqa: B008
    """Fails as soon as it may, and notes how often it was retried."""
    async with trace() as db:
        await db.rpush("retries", int(context.message.labels.get("_retries", 0)))
        while await db.exists(f"hold:{name}"):
            await asyncio.sleep(0.01)
        raise RuntimeError("always")


@broker.task(task_name="kill")
async def kill(name):
    """Ends its worker, as the system does when memory is short."""
    async with trace() as db:
        await db.rpush("killed", await broker.queue().len("reserved"))
    os._exit(1)


@broker.task(task_name="good")
async def good(name):
    await asyncio.sleep(0.01)
    async with trace() as db:
        await db.incr("good")


@broker.task(task_name="returns")
async def returns(what) -> Any:
    async with trace() as db:
        await db.rpush("ran", what)
        while await db.exists(f"hold:{what}"):
            await asyncio.sleep(0.01)
    return object() if what == "object" else "x" * (2 << 20)


@broker.task(task_name="double")
async def double(n: int) -> int:
    return 2 * n


@broker.task(task_name="fail")
async def fail() -> None:
    raise ValueError("no")
