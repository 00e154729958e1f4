"""A raw connection of redis.asyncio: many commands in one write, replies read as they come."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Optional

import hiredis
import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from .._core import NOT_YET, READ_BYTES, need, pack, reader
from .._delivery import Command
from .._trouble import lacks_resp3
from ._client import Client
from ._within import within


class Line:
    """Connects when it is first needed, and again after ``close``. Its user sets the timeouts."""

    def __init__(self, client: Client, key: bytes, connect_s: float) -> None:
        self._client = client
        self._key = key
        self._connect_s = connect_s
        self._connection: Any = None
        self._left: Any = None
        """The connection before this one, if the server was late on it, until there is a new one."""
        self._reader: Any = reader()
        self.client_id: Optional[int] = None
        self.peer: Any = None
        """The address of the server that said ``client_id``."""

    async def open(self) -> None:
        if self._connection is None:
            await within(self._connect(), self._connect_s)

    async def send(self, packed: bytes) -> None:
        connection = self._connection or await within(self._connect(), self._connect_s)
        connection._writer.write(packed)
        # The server's last words before it closed can still be read, as about a result that is too large.
        with contextlib.suppress(ConnectionError):
            await connection._writer.drain()

    async def read(self) -> Any:
        """The next reply; an error of the server is returned, not raised."""
        reply = self._reader.gets()
        while reply is NOT_YET or isinstance(reply, hiredis.PushNotification):
            if reply is NOT_YET:
                if self._connection is None:
                    raise ConnectionError("not connected")
                some = await self._some(self._connection._reader)
                if not some:
                    raise ConnectionError("the server closed the connection")
                self._reader.feed(some)
            reply = self._reader.gets()
        return reply

    async def _some(self, stream: Any) -> bytes:
        try:
            some: bytes = await stream.read(READ_BYTES)
        except ConnectionError:
            came: Any = getattr(stream, "_buffer", bytearray())  # read before the error, but no longer handed out
            some = bytes(came)
            if not some:
                raise
            del came[:]
        return some

    async def ask(self, commands: list[Command]) -> list[Any]:
        await self.send(pack(commands))
        return [await self.read() for _ in commands]

    async def _connect(self) -> Any:
        made, settings = await self._reach()
        overrides = {
            "socket_timeout": None,
            "socket_connect_timeout": self._connect_s,
            "retry": Retry(NoBackoff(), 0),
            "health_check_interval": 0,
            "decode_responses": False,
        }
        connection = made(**{**settings, **overrides})
        try:
            await connection.connect()  # with TLS, AUTH, SELECT, Sentinel; from then on we read and write
        except Exception as error:
            await connection.disconnect(nowait=True)
            if not lacks_resp3(error):
                raise
            connection = made(**{**settings, **overrides, "protocol": 2})
            await connection.connect()
        need(connection, "_reader", "_writer")
        await self._drop_left()
        self._connection = connection
        self._reader = reader()
        # If CLIENT ID is not permitted, a waiting fetch is withdrawn by closing its connection.
        (reply,) = await self.ask([(b"CLIENT", b"ID")])
        self.client_id = reply if isinstance(reply, int) else None
        self.peer = connection._writer.get_extra_info("peername")
        return connection

    async def _reach(self) -> tuple[Any, dict[str, Any]]:
        client: Any = self._client
        if isinstance(client, redis.RedisCluster):
            # First a keyed command that workers may send: it follows a slot that moved, so the client knows the node.
            await client.execute_command("DQ.TOUCH", self._key, "IDS", 1, "-", 0)
            node: Any = client.get_node_from_key(self._key)  # type: ignore[arg-type]
            return node.connection_class, node.connection_kwargs
        return client.connection_pool.connection_class, client.connection_pool.connection_kwargs

    async def close(self) -> None:
        await self.leave()
        await self._drop_left()

    async def leave(self, error: Optional[BaseException] = None) -> None:
        """Closes it after an error. If the server is late, it stays open until there is a new one, for ``last``."""
        connection, self._connection = self._connection, None
        self.client_id = self.peer = None
        if connection is None:
            return
        if isinstance(error, (asyncio.TimeoutError, asyncio.CancelledError)):
            await self._drop_left()
            self._left = connection
        else:
            await connection.disconnect(nowait=True)

    def last(self, packed: bytes) -> None:
        """Writes, without waiting, to the connection on which the server is late: it reads this when it goes on."""
        connection = self._left or self._connection
        if connection is not None:
            with contextlib.suppress(Exception):
                connection._writer.write(packed)

    async def _drop_left(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            await left.disconnect(nowait=True)
