"""Time limits: a cancelled task never goes on, whatever else happens in the same turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from dq.asyncio._within import with_task, within

BOTH = pytest.mark.parametrize("limit", [within, with_task])


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def cancelled_after(limit, rung: int, cancelled: int) -> bool:
    """Rings and cancels in these turns of the event loop. Returns whether the cancellation was swallowed."""
    bell = asyncio.Event()

    async def waits() -> None:
        await limit(bell.wait(), 60)
        await asyncio.sleep(60)

    task = asyncio.create_task(waits())
    ringing = asyncio.create_task(turns(rung))
    ringing.add_done_callback(lambda _: bell.set())
    await turns(cancelled)
    task.cancel()
    await asyncio.wait({task}, timeout=0.2)
    swallowed = not task.done()
    task.cancel()
    await asyncio.wait({task, ringing})
    return swallowed


@BOTH
def test_a_cancellation_is_never_swallowed(limit):
    async def all_orders():
        return [
            (rung, cancelled)
            for rung in range(8)
            for cancelled in range(8)
            if await cancelled_after(limit, rung, cancelled)
        ]

    assert asyncio.run(all_orders()) == []


@BOTH
def test_what_takes_too_long_is_ended_before_it_goes_on(limit):
    ended = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    async def limited():
        with pytest.raises(asyncio.TimeoutError):
            await limit(long(), 0.01)
        return list(ended)

    assert asyncio.run(limited()) == [True]


@BOTH
def test_results_and_errors_come_through(limit):
    async def fails() -> None:
        raise ValueError("wrong")

    async def both():
        with pytest.raises(ValueError, match="wrong"):
            await limit(fails(), 60)
        return await limit(asyncio.sleep(0, "there"), 60)

    assert asyncio.run(both()) == "there"
