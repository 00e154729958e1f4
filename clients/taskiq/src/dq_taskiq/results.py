"""The result backend: a client that asks for a result waits in the server until it is there."""

from __future__ import annotations

from typing import Any

import dq
import dq.asyncio
import redis.asyncio as redis
from dq import kept
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from taskiq import AsyncResultBackend, TaskiqResult

KEEP_S = 86_400.0
WAIT_S = 1.0
#: How often a command is tried while the server is away; each command here is safe to send twice.
RETRIES = 10
ANSWER_S = 5.0


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
        retry = Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), RETRIES)
        client = redis.Redis.from_url(url, socket_timeout=ANSWER_S, retry=retry) if isinstance(url, str) else url
        self._is_own = isinstance(url, str)
        self.queue = dq.asyncio.Queue(client, queue_name, codec=dq.BytesCodec())
        self.keep = keep
        self.wait = wait

    async def set_result(self, task_id: str, result: TaskiqResult[Any]) -> None:
        try:
            text = result.model_dump_json()
        except ValueError as error:
            why = ValueError(f"result cannot be encoded: {error}")
            result = TaskiqResult(is_err=True, return_value=None, error=why, execution_time=result.execution_time)
            text = result.model_dump_json()
        await self._run(kept.store(self.queue.keys[0], task_id, text.encode(), int(self.keep * 1000)))

    async def is_result_ready(self, task_id: str) -> bool:
        if await self.queue.result(task_id) is not None:
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
        value = await self.queue.result(task_id)
        if value is None:
            raise dq.DqError(f"task {task_id!r} has no result, or it is not kept any more")
        result: TaskiqResult[Any] = TaskiqResult.model_validate_json(value)
        if not with_logs:
            result.log = None
        return result

    async def _run(self, command: tuple[Any, ...]) -> None:
        await self.queue.client.execute_command(*command)

    async def shutdown(self) -> None:
        await super().shutdown()
        if self._is_own:
            await self.queue.aclose()
