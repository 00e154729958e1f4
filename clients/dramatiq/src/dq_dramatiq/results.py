"""The result backend: a client that asks for a result waits in the server until it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dq
from dq import _texts, kept
from dramatiq.logging import get_logger
from dramatiq.results import ResultBackend, ResultMissing, ResultTimeout
from dramatiq.results.backend import DEFAULT_TIMEOUT
from redis.exceptions import ConnectionError, ResponseError, TimeoutError

from .consumer import Delivered


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
        self.logger = get_logger(__name__, type(self))
        self.queue = dq.Queue(client or url, namespace, codec=dq.BytesCodec())

    def build_message_key(self, message: Any) -> str:
        return message.message_id

    def store_result(self, message: Any, result: Any, ttl: int) -> None:
        """Does nothing if the message has gone to another worker, whose result counts.

        A message whose result can never be stored is dead: its actor has done its work, and would do it again.
        """
        if not isinstance(message, Delivered):
            return super().store_result(message, result, ttl)
        if not message.is_ours():
            return None
        try:
            return super().store_result(message, result, ttl)
        except kept.Unstorable as error:
            self.logger.error("message %s is dead: %s", message.message_id, error)
            message.reason = str(error)
            message.stuff_exception(error)
            message.fail()

    def store_exception(self, message: Any, exception: Exception, ttl: int) -> None:
        if not isinstance(message, Delivered) or not message.job.lost:
            super().store_exception(message, exception, ttl)

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        try:
            value = self.encoder.encode(result)
        except Exception as error:
            raise kept.unencodable(_texts.reason(error)) from error
        try:
            self._run(kept.store(self.queue.keys[0], message_key, value, ttl), value)
        except (ResponseError, dq.DqError) as error:  # its memory is full: the work is done all the same
            self.logger.error("the result of message %s is not stored: %s", message_key, error)

    def get_result(self, message: Any, *, block: bool = False, timeout: int | None = None) -> Any:
        end_by = time.monotonic() + (DEFAULT_TIMEOUT if timeout is None else timeout) / 1000
        id = self.build_message_key(message)
        value = self._tried(lambda: self.queue.result(id))
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

    def _run(self, command: tuple[Any, ...], value: bytes = b"") -> None:
        self._tried(lambda: self.queue.client.execute_command(*command), value)

    def _tried(self, send: Callable[[], Any], value: bytes = b"") -> Any:
        tries = kept.Tries(value)
        while True:
            try:
                return send()
            except (ConnectionError, TimeoutError, ResponseError) as error:
                time.sleep(tries.pause_s(error))
