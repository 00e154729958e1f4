"""Calls the hook of dead jobs: in a task of its own, and a plain function in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Optional

from redis.exceptions import ResponseError

from .. import _guard
from .._core import ANSWER_S
from .._dead_hook import BaseDeadHook
from .._deaths import MOST, Death
from .._delivery import Command
from .._errand import Errand
from .._trouble import trouble_s
from ._within import beside, within


class DeadHook(BaseDeadHook):
    def __init__(self, base: Any) -> None:
        super().__init__(base, asyncio.Queue(MOST))
        self.task: Any = None
        self._is_left = False

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while not self._is_left and self._has_more():
            death = await self._died.get()
            self._took()
            try:
                await self._tell_hook(death)
            except Exception as error:
                self._failed(error)

    async def _tell_hook(self, death: Optional[Death]) -> None:
        if death is None:
            return
        steps, replies, job = death.of.record(death), None, None
        try:
            while True:
                replies = await self._ask(death.of.link, steps.send(replies))
        except ResponseError as error:
            return self.refused(error)
        except StopIteration as ended:
            job = ended.value
        if job is not None:
            for hooks in self._base._dead_hooks:
                await self._call(hooks, *self._shown(death, job))

    async def _call(self, hooks: Any, *told: Any) -> None:
        called = self._base._log, hooks, "dead", *told
        if _guard.is_coroutine_hook(hooks, "dead"):
            # In a task of its own: what a hook raises may not be told from an end of this one.
            calling = asyncio.ensure_future(_guard.ahook(*called))
            try:
                await asyncio.wait([calling])
            finally:
                calling.cancel()
            return
        await _guard.awaited(self._base._log, hooks, "dead", await beside(_guard.hook, *called))

    async def _ask(self, link: Any, commands: Sequence[Command]) -> list[Any]:
        troubles = 0
        while not self._is_left:
            try:
                errand = Errand(commands)
                errand.answered(await within(link._reading.ask(list(commands)), ANSWER_S))
                return errand.replies or []
            except Exception as error:
                await link._reading.close()
                if self.task is None:  # in tests
                    raise
                self._base._trouble(error)
                troubles += 1
                await asyncio.sleep(trouble_s(troubles))
        return [None for _ in commands]

    async def leave(self) -> None:
        """Goes on without it, if it has not ended."""
        self._is_left = True
        self._base._log.is_over = True
        if self.task is not None and not self.task.done():
            self._say_left()
            self.task.cancel()
        for link in self.links:
            await link._reading.close()

    async def tell_all(self) -> None:
        """For tests, without a task."""
        while not self._died.empty():
            await self._tell_hook(self._died.get_nowait())
