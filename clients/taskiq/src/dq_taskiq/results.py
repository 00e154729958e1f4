"""The result backend: a client that asks for a result waits in the server until it is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import dq
import dq.asyncio
from dq import _texts, kept
from redis.exceptions import ConnectionError, ResponseError, TimeoutError
from taskiq import AsyncResultBackend, TaskiqResult

from .broker import running

logger = logging.getLogger("taskiq.dq")

KEEP_S = 86_400.0
WAIT_S = 1.0


class DqResultBackend(AsyncResultBackend[Any]):
    """Keeps results as done jobs of one queue, in JSON.

    url: the server's, as redis-py takes it, or a client of redis.asyncio.
    keep: how many seconds results are kept.
    wait: how many seconds ``is_result_ready`` waits before it answers that there is no result. taskiq waits for a
        result by calling it again and again. With 0 it answers at once.
    """

    def __init__(
        self, url: Any, queue_name: str = "taskiq-results", *, keep: float = KEEP_S, wait: float = WAIT_S
    ) -> None:
        self._is_own = isinstance(url, str)
        self.queue = dq.asyncio.Queue(url, queue_name, codec=dq.BytesCodec())
        self.keep = keep
        self.wait = wait

    async def set_result(self, task_id: str, result: TaskiqResult[Any]) -> None:
        """Stores a result. In the place of one that can never be stored it stores the error, and the task is dead."""
        try:
            await self._store(task_id, result)
        except kept.Unstorable as error:
            if (end := running.get()) is not None:
                end.unstorable(str(error))
            why = ValueError(str(error))
            failed = TaskiqResult(is_err=True, return_value=None, error=why, execution_time=result.execution_time)
            await self._store(task_id, failed)

    async def _store(self, task_id: str, result: TaskiqResult[Any]) -> None:
        try:
            value = result.model_dump_json().encode()
        except Exception as error:
            raise kept.unencodable((await _texts.asaid(error)).reason) from error
        try:
            await self._run(kept.store(self.queue.keys[0], task_id, value, int(self.keep * 1000)), value)
        except (ResponseError, dq.DqError) as error:  # its memory is full: the work is done all the same
            logger.error("the result of task %s is not stored: %s", task_id, error)

    async def is_result_ready(self, task_id: str) -> bool:
        if await self._tried(lambda: self.queue.result(task_id)) is not None:
            return True
        if self.wait <= 0:
            return False
        await self._run(kept.expect(self.queue.keys[0], task_id))
        try:
            await self.queue.wait(task_id, self.wait)
        except (dq.TimedOut, dq.JobFailed):  # too late, or the awaited job has been removed
            return False
        return True

    async def get_result(self, task_id: str, with_logs: bool = False) -> TaskiqResult[Any]:
        value = await self._tried(lambda: self.queue.result(task_id))
        if value is None:
            raise dq.DqError(f"task {task_id!r} has no result, or it is not kept any more")
        result: TaskiqResult[Any] = TaskiqResult.model_validate_json(value)
        if not with_logs:
            result.log = None
        return result

    async def _run(self, command: tuple[Any, ...], value: bytes = b"") -> None:
        await self._tried(lambda: self.queue.client.execute_command(*command), value)

    async def _tried(self, send: Callable[[], Awaitable[Any]], value: bytes = b"") -> Any:
        tries = kept.Tries(value)
        while True:
            try:
                return await send()
            except (ConnectionError, TimeoutError, ResponseError) as error:
                await asyncio.sleep(tries.pause_s(error))

    async def shutdown(self) -> None:
        await super().shutdown()
        if self._is_own:
            await self.queue.close()
