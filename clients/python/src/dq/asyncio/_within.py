"""Tasks: a limit of time that never swallows a cancellation, and what keeps them alive.

``asyncio.wait_for`` does so before Python 3.12, where what it waits for ends in the same turn of the event loop: who
was cancelled goes on, and whoever waits for its end waits for ever.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Coroutine
from typing import Any, Optional, TypeVar

T = TypeVar("T")


async def with_task(awaitable: Awaitable[T], timeout_s: Optional[float]) -> T:
    """For Python before 3.11."""
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        if task.done():
            return task.result()
    except asyncio.CancelledError:
        await _cancelled(task)
        raise
    await _cancelled(task)
    raise asyncio.TimeoutError


async def _cancelled(task: asyncio.Future[T]) -> None:
    """Its end is waited for, so that nothing of it goes on beside what follows."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # nobody else asks for it


if sys.version_info >= (3, 11):

    async def within(awaitable: Awaitable[T], timeout_s: Optional[float]) -> T:
        """What the awaitable gives, or asyncio.TimeoutError after so many seconds; None: however long it takes."""
        async with asyncio.timeout(timeout_s):
            return await awaitable

else:
    within = with_task


def keep(tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None], needed: Any) -> None:
    """A task for it, which the event loop alone would not keep; where it is needed."""
    if needed is None:
        return coroutine.close()
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return None
