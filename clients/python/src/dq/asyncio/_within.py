"""Tasks: a time limit that never swallows a cancellation, what keeps tasks alive, and what runs beside them.

Before Python 3.12 ``asyncio.wait_for`` swallows a cancellation if what it waits for ends in the same turn of the event
loop. The cancelled task then goes on, and whoever waits for its end waits for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, Callable, Optional, TypeVar

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
    """Waits for the end of a cancelled task, so that it does not run beside what follows."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # nothing else retrieves it


if sys.version_info >= (3, 11):

    async def within(awaitable: Awaitable[T], timeout_s: Optional[float]) -> T:
        """The awaitable's result. Raises asyncio.TimeoutError after ``timeout_s`` seconds; None: no limit."""
        async with asyncio.timeout(timeout_s):
            return await awaitable

else:
    within = with_task


def keep(tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None], needed: Any) -> None:
    """Runs the coroutine as a task, unless ``needed`` is None. The event loop alone would not keep the task alive."""
    if needed is None:
        return coroutine.close()
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return None


async def beside(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function that raises nothing in a thread. It may hang: unlike those of asyncio, it keeps no process."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[T] = loop.create_future()

    def answer(result: T) -> None:
        if not answered.done():
            answered.set_result(result)

    def call() -> None:
        result = function(*arguments)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(answer, result)

    threading.Thread(target=call, name="dq-beside", daemon=True).start()
    return await answered
