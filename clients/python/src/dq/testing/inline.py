"""Queues without a server: ``add`` runs the handler at once, whatever the delay."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from .._commands import Commands
from .._core import Command, Delivery, Handlers
from ..errors import DqError
from ..handler import Handler
from ..job import Codec, Job

T = TypeVar("T")


class _Inline(Commands):
    def __init__(
        self, *handlers: Union[Handler[Any], Callable[..., Any]], name: str = "inline", codec: Optional[Codec] = None
    ) -> None:
        self._init(name, 0, codec, ())
        self.jobs: list[Job] = []
        """The jobs that were run."""
        self._handlers = Handlers(each if isinstance(each, Handler) else Handler(each) for each in handlers)

    def _prepare(self, call: Command) -> tuple[Callable[..., Any], Any]:
        command, key, id, payload, *_ = call
        if command != "DQ.ADD":
            raise DqError(f"{command} needs a server: see dq.testing.TestServer")
        now = int(time.time() * 1000)
        row = (uuid.uuid4().hex.encode() if id == b"*" else id, payload, b"1", 1, now + 60_000, now, (60_000, 0, None))
        delivery = Delivery(key, row)
        job = delivery.job = Job(delivery, self.codec)
        handler = self._handlers.choose(job)
        if handler is None:
            raise DqError(f"no handler for jobs of kind {job.kind!r}")
        self.jobs.append(job)
        return handler.function, [job] if handler.batch else job


class InlineQueue(_Inline):
    """Takes the place of ``dq.Queue``. What the handler raises, ``add`` raises."""

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T]) -> T:
        ids = []
        for call in calls:
            function, argument = self._prepare(call)
            function(argument)
            ids.append(self.jobs[-1]._delivery.id)
        return combine(ids)


class AsyncInlineQueue(_Inline):
    """Takes the place of ``dq.asyncio.Queue``."""

    async def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], Any]) -> Any:  # type: ignore[override]
        ids = []
        for call in calls:
            function, argument = self._prepare(call)
            await function(argument)
            ids.append(self.jobs[-1]._delivery.id)
        return combine(ids)
