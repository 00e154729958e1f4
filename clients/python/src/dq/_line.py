"""A raw connection of redis-py: many commands in one write, replies read as they come."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Optional

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ._client import Client
from ._core import LONGEST_TIMEOUT_S, NOT_YET, READ_BYTES, need, pack, reader
from ._delivery import Command
from ._trouble import lacks_resp3


class Line:
    """Connects when it is first needed, and again after ``close``.

    Any thread may call ``cut``, ``wake`` and ``last``; all else belongs to one thread at a time.
    """

    def __init__(self, client: Client, key: bytes, timeout_s: float) -> None:
        self._client = client
        self._key = key
        self._timeout_s = timeout_s
        self._connection: Any = None
        self._socket: Any = None
        self._reader: Any = None
        self._is_cut = False
        self._is_torn = False
        """A command may have been sent in part: nothing can follow it."""
        self._sending = threading.Lock()
        self._is_woken = False
        self._left: Any = None
        """The connection before this one, if the server was late on it, until there is a new one."""
        self.client_id: Optional[int] = None
        self.peer: Any = None
        """The address of the server that said ``client_id``."""

    def open(self) -> None:
        if self._socket is None:
            self._connect()

    def send(self, packed: bytes, timeout_s: Optional[float] = None) -> None:
        """timeout_s: of this write and of the reads after it, instead of the line's own."""
        sock = self._socket or self._connect()
        if timeout_s is not None:
            sock.settimeout(min(timeout_s, LONGEST_TIMEOUT_S))
        with self._sending:
            if self._is_torn:
                raise ConnectionError("the last words were sent in part")
            try:
                sock.sendall(packed)
            except (ConnectionResetError, BrokenPipeError):
                pass  # the server's last words can still be read, as about a result that is too large
            except OSError:
                self._is_torn = True
                raise

    def read(self) -> Any:
        """The next reply; an error of the server is returned, not raised."""
        reply = self._reader.gets()
        while reply is NOT_YET or isinstance(reply, hiredis.PushNotification):
            if reply is NOT_YET:
                some = self._socket.recv(READ_BYTES)
                if not some:
                    raise socket.timeout if self._is_woken else ConnectionError("the server closed the connection")
                self._reader.feed(some)
            reply = self._reader.gets()
        return reply

    def ask(self, commands: list[Command], timeout_s: Optional[float] = None) -> list[Any]:
        self.send(pack(commands), timeout_s)
        return [self.read() for _ in commands]

    def _connect(self) -> Any:
        connection = self._made()
        need(connection, "_sock")
        self._drop_left()
        self._connection = connection
        self._is_torn = False
        self._reader = reader()
        self._socket = connection._sock
        if self._is_cut:  # cut while it connected
            self.cut()
        # If CLIENT ID is not permitted, a waiting fetch is withdrawn by closing its connection.
        (reply,) = self.ask([(b"CLIENT", b"ID")])
        self.client_id = reply if isinstance(reply, int) else None
        self.peer = self._socket.getpeername()
        return self._socket

    def _made(self) -> Any:
        """A connection, with TLS, AUTH, SELECT, Sentinel; from then on we read and write."""
        pool = self._pool()
        settings = {**pool.connection_kwargs, **self._overrides()}
        connection = pool.connection_class(**settings)
        try:
            connection.connect()
        except Exception as error:
            connection.disconnect()
            if not lacks_resp3(error):
                raise
            connection = pool.connection_class(**{**settings, "protocol": 2})
            connection.connect()
        return connection

    def _overrides(self) -> dict[str, Any]:
        return {
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": min(self._timeout_s, 5.0),
            "retry": Retry(NoBackoff(), 0),
            "health_check_interval": 0,
            "decode_responses": False,
        }

    def _pool(self) -> Any:
        if isinstance(self._client, redis.RedisCluster):
            # First a keyed command that workers may send: it follows a slot that moved, so the client knows the node.
            self._client.execute_command("DQ.TOUCH", self._key, "IDS", 1, "-", 0)
            node = self._client.get_node_from_key(self._key)
            return self._client.get_redis_connection(node).connection_pool
        return self._client.connection_pool

    def close(self) -> None:
        self._forget()
        self._drop_left()

    def leave(self, error: Exception) -> None:
        """Closes it after an error. If the server is late, it stays open until there is a new one, for ``last``."""
        is_late = isinstance(error, socket.timeout) and not self._is_torn
        left = self._forget(is_kept=is_late)
        if left is not None:
            self._drop_left()
            self._left = left

    def _forget(self, is_kept: bool = False) -> Any:
        connection, self._connection, self._socket = self._connection, None, None
        self.client_id = self.peer = None
        if connection is not None and not is_kept:
            connection.disconnect()
        return connection if is_kept else None

    def _drop_left(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left.disconnect()

    def wake(self) -> None:
        """Has a thread that waits for a reply go on as if the server were late. Commands can still be written."""
        self._is_woken = True
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RD)

    def last(self, packed: bytes) -> None:
        """Writes, without waiting, to the connection on which the server is late. A server that stands still reads this
        when it goes on. Its thread may not have left the connection yet, on a busy machine, but must not be sending."""
        left, self._left = self._left, None
        late = left or self._connection
        if late is None or not self._sending.acquire(blocking=False):
            return
        try:
            # Two threads must not use one TLS connection, and its thread may still read.
            if late is left or not (self._is_torn or isinstance(late, redis.SSLConnection)):
                late._sock.settimeout(0)
                is_whole = late._sock.send(packed) == len(packed)
                self._is_torn |= late is not left and not is_whole
        except Exception:
            pass
        finally:
            self._sending.release()
        if left is not None:
            left.disconnect()

    def cut(self) -> None:
        """Ends the connection for good: a thread that reads from it is woken by an error."""
        self._is_cut = True
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
