"""Replies to the wait for jobs and broadcasts, and how a wait is ended."""

from __future__ import annotations

from time import monotonic
from typing import Any, Optional

import redis
from kombu.log import get_logger
from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str
from redis import exceptions

from .errors import is_full, translate
from .leases import Delivery

logger = get_logger("dq_celery")

#: How often a wait is asked to end.
UNBLOCK_AGAIN_S = 0.05
#: How long the end of a wait, or a reply to the thread that renews leases, may take.
ANSWER_S = 5


class Waits(kombu_redis.Channel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: When to subscribe, if the server refused it.
        self._subscribe_at = 0.0
        #: The waiting connection's socket and its client id.
        self._waiting: tuple[Any, Optional[int]] = (None, None)
        super().__init__(*args, **kwargs)

    def _subscribe(self) -> None:
        if monotonic() >= self._subscribe_at:
            super()._subscribe()

    def _receive(self) -> Any:
        try:
            return super()._receive()
        except exceptions.ResponseError as error:
            if not is_full(error):
                raise
            logger.warning("remote control waits, as the server's memory is full: %s", error)
            self._in_listen, self._subscribe_at = False, monotonic() + ANSWER_S
            return None

    def _learn_id(self, connection: Any) -> None:
        if self._waiting[0] is connection._sock and self._waiting[0] is not None:
            return
        try:
            connection.send_command("CLIENT", "ID")
            id = connection.read_response()
        except exceptions.NoPermissionError:
            id = None
        self._waiting = (connection._sock, id)

    def _read_reply(self) -> Any:
        connection = self.client.connection
        try:
            return self.client.parse_response(connection, "DQ.BPOP")
        except self.connection_errors:
            connection.disconnect()
            raise
        except exceptions.ResponseError as error:
            told = translate(error, " ".join(self.active_queues))
            connection.disconnect()
            raise told from error
        finally:
            self._in_poll = None

    def _withdraw(self) -> None:
        """Ends the wait, as the queues to wait for change. A job that comes meanwhile returns to its place in line."""
        connection = self._in_poll
        if not connection:
            return
        try:
            self._unblock(connection)
            reply = self._read_reply()
        except (*self.connection_errors, exceptions.ResponseError) as error:
            if isinstance(error, exceptions.NoPermissionError):
                self._say_missing("waits are ended by closing their connections", error)
            # A job in a reply that was lost comes again when its lease ends.
            connection.disconnect()
            self._in_poll = None
            return
        if reply:
            self._return(reply)

    def _unblock(self, connection: Any) -> None:
        """Has the server end the wait. It holds the wait back while writes are paused; then it is asked again."""
        if self._waiting[1] is None:
            raise exceptions.ConnectionError("CLIENT ID is not permitted")
        client = redis.Redis(connection_pool=self.leases.client.connection_pool, single_connection_client=True)
        try:
            # After a failover the number is that of another client, on another server.
            if client.connection._sock.getpeername() != connection._sock.getpeername():
                raise exceptions.ConnectionError("the wait is on another server")
            end_by = monotonic() + ANSWER_S
            while monotonic() < end_by:
                client.execute_command("DQ.UNBLOCK", self._waiting[1])
                if connection.can_read(timeout=UNBLOCK_AGAIN_S):
                    return
        finally:
            client.close()
        raise exceptions.ConnectionError("no answer")

    def _say_missing(self, what: str, error: Exception) -> None:
        """Says once that a right is missing."""
        if what not in self.connection.missing:
            self.connection.missing.add(what)
            logger.warning("%s: %s", what, error)

    def _return(self, reply: list[Any]) -> None:
        key, id, _text, token, *_ = reply
        if token is not None:
            self.leases.nack_delivery(Delivery(bytes_to_str(key), id, token), "SILENT")
