"""Acknowledgements whose replies are read later, so that a task need not begin a round trip late."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, NamedTuple, Optional

import redis
from kombu.log import get_logger
from redis import exceptions

logger = get_logger("dq_celery")

UNREACHABLE = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ReadOnlyError, OSError)


class Delivery(NamedTuple):
    key: str
    id: bytes
    token: bytes

    def ack(self) -> tuple[Any, ...]:
        return ("DQ.ACK", self.key, "WITHTOKENS", "IDS", 1, self.id, self.token)

    def is_acked(self, reply: list[int]) -> None:
        if not reply[0]:
            logger.warning("job %r of %r was acknowledged too late: it is gone", self.id, self.key)


class AckStream:
    """Acknowledges on its own connection. Its methods return deliveries whose acknowledgement must be sent again."""

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._lock = threading.Lock()
        self._client: Optional[redis.Redis] = None
        #: The connection's socket when the commands below were sent.
        self._socket: Any = None
        self._sent: deque[Delivery] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, delivery: Delivery) -> list[Delivery]:
        with self._lock:
            failed = self._read(wait=False)
            try:
                self._connect()
                # No PING of the health check: its reply would come behind those of the acknowledgements sent before.
                self._connection.send_command(*delivery.ack(), check_health=False)
            except UNREACHABLE as error:
                return [*failed, *self._lost(error), delivery]
            self._sent.append(delivery)
            return failed

    def collect(self, wait: bool = True) -> list[Delivery]:
        """Reads all replies, and waits for them; otherwise those that have come."""
        with self._lock:
            return self._read(wait)

    def _connect(self) -> None:
        if self._client is None:
            self._client = redis.Redis(connection_pool=self._pool, single_connection_client=True)
        self._connection.connect()
        self._socket = self._connection._sock

    @property
    def _connection(self) -> Any:
        return self._client.connection

    def _read(self, wait: bool) -> list[Delivery]:
        failed: list[Delivery] = []
        try:
            while self._sent and (wait or self._has_answer()):
                self._answer(failed)
        except UNREACHABLE as error:
            failed += self._lost(error)
        return failed

    def _has_answer(self) -> bool:
        self._check()
        return self._connection.can_read(timeout=0)

    def _answer(self, failed: list[Delivery]) -> None:
        self._check()
        try:
            reply = self._connection.read_response()
        except exceptions.ReadOnlyError:
            raise
        except exceptions.ResponseError as error:
            delivery = self._sent.popleft()
            logger.error("job %r of %r is not acknowledged: %s", delivery.id, delivery.key, error)
        else:
            self._sent.popleft().is_acked(reply)

    def _check(self) -> None:
        """The replies come on the socket on which the commands were sent, or never."""
        if self._connection._sock is not self._socket:
            raise exceptions.ConnectionError("the connection was closed")

    def _lost(self, error: BaseException) -> list[Delivery]:
        if self._client is not None:
            self._connection.disconnect()
        lost = list(self._sent)
        self._sent.clear()
        for delivery in lost:
            logger.warning("job %r is not acknowledged yet: %r", delivery.id, error)
        return lost
