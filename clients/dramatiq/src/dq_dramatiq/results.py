"""The result backend: a client that asks for a result waits in the server until it is there."""

from __future__ import annotations

import time
from typing import Any

import dq
import redis
from dq import kept
from dramatiq.results import ResultBackend, ResultMissing, ResultTimeout
from dramatiq.results.backend import DEFAULT_TIMEOUT
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from .consumer import Delivered

#: How often a command is tried while the server is away; each command here is safe to send twice.
RETRIES = 10
ANSWER_S = 5.0


class DqResultBackend(ResultBackend):
    """Keeps results as done jobs of one queue.

    url, client: as with the broker.
    namespace: the queue's name.
    """

    def __init__(
        self,
        *,
        url: str = "redis://127.0.0.1:6379/0",
        client: Any = None,
        namespace: str = "dramatiq-results",
        encoder: Any = None,
    ) -> None:
        super().__init__(namespace=namespace, encoder=encoder)
        retry = Retry(ExponentialWithJitterBackoff(cap=1, base=0.05), RETRIES)
        client = client or redis.Redis.from_url(url, socket_timeout=ANSWER_S, retry=retry)
        self.queue = dq.Queue(client, namespace, codec=dq.BytesCodec())

    def build_message_key(self, message: Any) -> str:
        return message.message_id

    def store_result(self, message: Any, result: Any, ttl: int) -> None:
        """Does nothing if the message has gone to another worker, whose result counts."""
        if not isinstance(message, Delivered) or message.is_ours():
            super().store_result(message, result, ttl)

    def store_exception(self, message: Any, exception: Exception, ttl: int) -> None:
        if not isinstance(message, Delivered) or not message.job.lost:
            super().store_exception(message, exception, ttl)

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        self._run(kept.store(self.queue.keys[0], message_key, self.encoder.encode(result), ttl))

    def get_result(self, message: Any, *, block: bool = False, timeout: int | None = None) -> Any:
        end_by = time.monotonic() + (DEFAULT_TIMEOUT if timeout is None else timeout) / 1000
        id = self.build_message_key(message)
        value = self.queue.result(id)
        if value is None and not block:
            raise ResultMissing(message)
        while value is None:
            if time.monotonic() >= end_by:
                raise ResultTimeout(message)
            value = self._wait(id, end_by)
        return self.unwrap_result(self.encoder.decode(value))

    def _wait(self, id: str, end_by: float) -> bytes | None:
        self._run(kept.expect(self.queue.keys[0], id))
        try:
            return self.queue.wait(id, max(0.0, end_by - time.monotonic()))
        except (dq.TimedOut, dq.JobFailed):  # too late, or the awaited job has been removed
            return None

    def _run(self, command: tuple[Any, ...]) -> None:
        self.queue.client.execute_command(*command)
