"""The broker behind a Sentinel, in a cluster, with TLS, with a user of few rights."""

import asyncio

from places import Place, place
from redis.exceptions import RedisError
from taskiq.exceptions import SendTaskError
from taskiq.receiver import Receiver

from dq_taskiq import DqBroker

__all__ = ["place"]


async def tried(ask):
    """Asks as a program does that tries again while the server is away."""
    while True:
        try:
            return await ask()
        except (RedisError, OSError, SendTaskError):
            await asyncio.sleep(0.05)


async def when(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def survives(place: Place) -> None:
    broker, ran, go = DqBroker(place.way("redis.asyncio")), [], asyncio.Event()

    @broker.task(task_name="hold")
    async def hold(name: str) -> None:
        ran.append(name)
        await go.wait()

    await broker.startup()
    if place.kind == "rights":
        first = await hold.kiq("first")
        place.fail_once("taskiq", first.task_id)
    finish = asyncio.Event()
    worker = asyncio.create_task(Receiver(broker).listen(finish))
    far = await hold.kicker().with_labels(delay=3600).kiq("far")
    await hold.kicker().with_labels(delay=0.2).kiq("near")
    await when(lambda: ran)
    await asyncio.to_thread(place.disturb, "taskiq")
    go.set()
    await tried(lambda: hold.kiq("later"))
    await when(lambda: "later" in ran)
    while await tried(broker.queue().len) != 1:
        await asyncio.sleep(0.05)
    assert await broker.queue().delete(far.task_id)
    assert "far" not in ran
    assert not place.denied()
    finish.set()
    await worker
    await broker.shutdown()


def test_a_worker_survives_what_happens_at_this_place(place):
    asyncio.run(asyncio.wait_for(survives(place), 60))
