"""What tests wait for, and workers of both faces."""

import asyncio
import contextlib
import threading
import time

import dq
import dq.asyncio

PATIENCE_S = 60


def until(condition, what):
    """The condition's value, as soon as it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.01)
    return value


@contextlib.contextmanager
def running(module, url, *handlers, **options):
    """A worker of dq; or of dq.asyncio, in a thread with a loop of its own. It has stopped at the end."""
    if module is dq:
        with dq.Worker(dq.Queue(url, "q"), *handlers, **options) as worker:
            yield worker
        return
    hold, is_there = {}, threading.Event()

    async def main():
        async with dq.asyncio.Queue(url, "q") as queue:
            hold.update(worker=dq.asyncio.Worker(queue, *handlers, **options), loop=asyncio.get_running_loop())
            await hold["worker"].start()
            is_there.set()
            await hold["worker"].join()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert is_there.wait(PATIENCE_S)
    try:
        yield hold["worker"]
    finally:
        hold["loop"].call_soon_threadsafe(hold["worker"].stop)
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it stops"
