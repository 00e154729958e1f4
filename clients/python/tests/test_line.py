"""What the library reads of redis-py that is not promised."""

import asyncio
import socket
import subprocess
import time

import pytest
import redis
import redis.asyncio

import dq
import dq.asyncio
from dq._line import Line

SENTENCE = r"^redis-py .* is newer than this library: its connections have no _\w+\. Install"


def test_a_redis_py_without_what_is_needed_is_named(dq_url, monkeypatch):
    def hidden(self, name):
        raise AttributeError(name)

    class Bare(redis.UnixDomainSocketConnection):
        _sock = property(lambda self: hidden(self, "_sock"), lambda self, value: None)

    client = redis.Redis.from_url(dq_url)
    client.connection_pool.connection_class = Bare
    with pytest.raises(dq.ConfigurationError):
        dq.Worker(dq.Queue(client, "q"), lambda job: None).run(signals=False)

    from dq._core import need

    with pytest.raises(dq.ConfigurationError, match=SENTENCE):
        need(object(), "_sock")


def test_what_is_needed_is_there(dq_url):
    with redis.Redis.from_url(dq_url) as client:
        connection = client.connection_pool.get_connection("PING")
        assert connection._sock
        client.connection_pool.release(connection)

    async def look():
        client = redis.asyncio.Redis.from_url(dq_url)
        connection = await client.connection_pool.get_connection("PING")
        assert connection._reader and connection._writer
        await client.connection_pool.release(connection)
        await client.aclose()

    asyncio.run(look())


def test_a_server_without_resp3_is_spoken_to_in_resp2(dq_server, tmp_path):
    (tmp_path / "conf").write_text('rename-command HELLO ""\n')
    socket = tmp_path / "socket"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--loadmodule", dq_server.module]
    server = subprocess.Popen([dq_server.program, str(tmp_path / "conf"), *options], stdout=subprocess.DEVNULL)
    url = f"unix://{socket}?protocol=3"

    async def add():
        async with dq.asyncio.Queue(url, "q") as queue:
            await queue.add(1)

    try:
        while not socket.exists():
            assert server.poll() is None
            time.sleep(0.01)
        asyncio.run(add())
        with dq.Queue(url, "q") as queue:
            queue.add(1)
            assert dq.Worker(queue, lambda job: None).drain() == 2
        with pytest.raises(dq.ConfigurationError, match=r"^the server does not speak RESP3: give its client p"):
            dq.Queue(redis.Redis.from_url(url), "q").add(1)
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("kind, is_sent", [(redis.Connection, True), (redis.SSLConnection, False)])
def test_last_words_sent_in_part_are_the_last_and_tls_is_left_to_its_thread(kind, is_sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(None, b"q", 1.0)
        line._connection, line._socket = kind(), ours
        line._connection._sock = ours
        line.last(b"x" * 100_000_000)
        theirs.setblocking(False)
        if is_sent:
            assert theirs.recv(9)
            with pytest.raises(ConnectionError, match="in part"):
                line.send(b"more")
        else:
            with pytest.raises(BlockingIOError):
                theirs.recv(9)
            line.send(b"more")
            assert theirs.recv(9) == b"more"
