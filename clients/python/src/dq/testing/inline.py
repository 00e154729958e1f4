"""Queues without a server: ``add`` runs the handler at once, whatever the delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from .. import _arguments as words
from .. import asyncio
from .._arguments import Bytes
from .._commands import Commands
from .._core import Handlers
from .._delivery import Command, Delivery
from .._many import Grouped
from ..codec import Codec
from ..errors import Suspended, TimedOut
from ..handler import Handler
from ..job import BaseJob, Job
from ..times import Duration
from ._memory import SUSPENDED, Memory, Runs

T = TypeVar("T")


class _Link(Memory):
    def ask(self, delivery: Delivery, commands: Sequence[Command]) -> Any:
        return self.answer(commands)


class _AsyncLink(Memory):
    async def ask(self, delivery: Delivery, commands: Sequence[Command]) -> Any:
        return self.answer(commands)

    async def ready(self, key: bytes, call: Any) -> Any:
        return call


class _Inline(Commands):
    _links: type[Memory]
    _jobs: type[BaseJob]

    def __init__(
        self, *handlers: Union[Handler[Any], Callable[..., Any]], name: str = "inline", codec: Optional[Codec] = None
    ) -> None:
        self._init(name, 0, codec, ())
        made = Handlers(each if isinstance(each, Handler) else Handler(each) for each in handlers)
        self._memory = self._links(self.keys[0], self.codec, made, self._jobs, self._child)
        self.jobs: list[Any] = self._memory.jobs
        """The jobs that were run: one for each attempt."""

    def _ended(self, id: Bytes) -> None:
        kept = self._memory.kept.get(words.bytes_of(id))
        if kept is not None and kept.state == "waiting":
            raise TimedOut(f"job {id!r} waits for a signal, or for other jobs")


class InlineQueue(_Inline):
    """Takes the place of ``dq.Queue``: ``add`` runs the handler, and raises what the handler raises.

    ``job.sleep`` returns at once. ``job.wait`` ends with ``signal``, or with ``pass_time`` if it has a timeout.
    """

    _links = _Link
    _jobs = Job

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        return combine([self._play(self._memory.command(call)) for call in calls])

    def _play(self, runs: Runs) -> Any:
        try:
            run = next(runs)
            while True:
                try:
                    value = run.function(run.argument)
                except Suspended:
                    value = SUSPENDED
                except Exception as error:
                    run = runs.throw(error)
                    continue
                run = runs.send(value)
        except StopIteration as end:
            return end.value

    def pass_time(self) -> None:
        """Ends all waits for signals that have a timeout, without the signal."""
        self._play(self._memory.pass_time())

    def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        self._ended(id)
        return self.result(id)


class AsyncInlineQueue(_Inline):
    """Takes the place of ``dq.asyncio.Queue``."""

    _links = _AsyncLink
    _jobs = asyncio.Job

    async def _run(  # type: ignore[override]
        self, calls: Sequence[Command], combine: Callable[[list[Any]], Any], grouped: Optional[Grouped] = None
    ) -> Any:
        return combine([await self._play(self._memory.command(call)) for call in calls])

    async def _play(self, runs: Runs) -> Any:
        try:
            run = next(runs)
            while True:
                try:
                    value = await run.function(run.argument)
                except Suspended:
                    value = SUSPENDED
                except Exception as error:
                    run = runs.throw(error)
                    continue
                run = runs.send(value)
        except StopIteration as end:
            return end.value

    async def pass_time(self) -> None:
        """Ends all waits for signals that have a timeout, without the signal."""
        await self._play(self._memory.pass_time())

    async def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        self._ended(id)
        return await self.result(id)
