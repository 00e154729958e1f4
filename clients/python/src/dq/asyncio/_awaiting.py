"""Waits for jobs to end, with asyncio: one task and one connection for all waits of a queue's key."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from .. import _core, _trouble
from .._outcomes import Deadline
from .._waits import End, Waits
from ..errors import DqError
from ._client import Client
from ._line import Line
from ._within import within


def tell(waiter: asyncio.Future[End], end: Any) -> None:
    if waiter.done():
        return
    if isinstance(end, Exception):
        waiter.set_exception(end)
    else:
        waiter.set_result(end)


class Awaiting:
    def __init__(self, client: Client, key: bytes) -> None:
        self._waits: Waits[asyncio.Future[End]] = Waits(key, tell)
        self._line = Line(client, key, _core.ANSWER_S)
        self._control = Line(client, key, _core.ANSWER_S)
        self._withdrawing: Optional[asyncio.Lock] = None
        self._task: Optional[asyncio.Task[None]] = None

    async def wait(self, id: bytes, deadline: Deadline) -> End:
        waiter: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._waits.add(id, waiter)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            while True:
                await asyncio.wait([waiter], timeout=self._waits.left(id, deadline.left()))
                if waiter.done():
                    return waiter.result()
                deadline.check(id)
                if id not in self._waits.covered:
                    await self._withdraw()
        finally:
            self._waits.remove(id, waiter)

    async def _withdraw(self) -> None:
        """Ends the waiting command, so that it is sent again with all ids. If that fails, it ends by itself."""
        self._withdrawing = self._withdrawing or asyncio.Lock()
        async with self._withdrawing:
            try:
                await self._control.open()
                unblock = self._waits.unblock(self._line, self._control)
                if unblock is not None:
                    self._waits.unblocked(*await within(self._control.ask([unblock]), _core.ANSWER_S))
            except BaseException as error:  # also where the waiter is cancelled: the reply is unread
                await self._control.close()
                if not isinstance(error, Exception):
                    raise

    async def _run(self) -> None:
        """Runs as long as something waits. Then the connection is kept for the next wait."""
        troubles = 0
        while self._waits:
            try:
                command = self._waits.command()
                (reply,) = await within(self._line.ask([command]), _core.WAIT_S + _core.SLACK_S)
                self._waits.answered(reply)
                troubles = 0
            except Exception as error:
                self._waits.covered = frozenset()
                await self._line.close()
                fatal = _trouble.fatal(error)
                if fatal is not None:
                    self._waits.failed(fatal)
                troubles += 1
                await asyncio.sleep(_trouble.trouble_s(troubles))

    async def close(self) -> None:
        self._waits.failed(DqError("the queue was closed"))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._line.close()
        await self._control.close()
