"""Harmful receivers: nothing is acknowledged without a complete 2xx, nothing is lost, and memory stays bounded."""

import asyncio
import gzip
import itertools
import pathlib
import threading
import unittest

import h2.errors
import h2.exceptions
from http2 import Http2Receiver, Protocol
from standardwebhooks import Webhook, WebhookVerificationError
from support import PushTest, add, config, job, length, wait_until

JOBS = 8
MEMORY_KB = 100_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

BOMB = gzip.compress(bytes(50_000_000))
ZIPPED = f"content-encoding: gzip\r\ncontent-length: {len(BOMB)}\r\n\r\n".encode() + BOMB


def endless(first, part):
    return itertools.chain([first], itertools.repeat(part * (65_536 // len(part))))


# What the receiver sends instead of a valid answer, and the reason that results.
NEVER_DONE = {
    "headers": (lambda: endless(b"HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n"), b""),
    "one header": (lambda: endless(b"HTTP/1.1 200 OK\r\nx: ", b"x"), b""),
    "early hints": (lambda: endless(b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"), b"no answer within"),
    "continue": (lambda: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), b"no answer within"),
    "switching": (lambda: [b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], b""),
    "a cut status": (lambda: [b"HTTP/1.1 200"], b""),
    "cut headers": (lambda: [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"], b""),
    "no http": (lambda: [b"ICY 200 OK\r\n\r\n"], b""),
    "body": (lambda: endless(b"HTTP/1.1 500 x\r\n\r\nfull\n", b"x"), b"HTTP 500: full"),
    "chunks": (lambda: endless(b"HTTP/1.1 500 x\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), b"HTTP 500: x"),
    "bomb": (lambda: [b"HTTP/1.1 500 x\r\n" + ZIPPED], b"HTTP 500"),
}
# Answers that never end: only the timeout ends the call.
FLOODS = ["early hints", "continue"]
# The status counts, whatever follows it.
DONE = {
    "done body": lambda: endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
    "done bomb": lambda: [b"HTTP/1.1 200 OK\r\n" + ZIPPED],
    "done trailers": lambda: endless(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
}


class Raw:
    """A receiver that sends these bytes after each request, as long as they are read."""

    def __init__(self, parts):
        self.parts = parts
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        started = asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.server = asyncio.run_coroutine_threadsafe(started, self.loop).result(60)
        self.url = f"http://localhost:{self.server.sockets[0].getsockname()[1]}/"

    async def answer(self, reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            for part in self.parts():
                writer.write(part)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def end(self):
        self.server.close()
        answering = asyncio.all_tasks() - {asyncio.current_task()}
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)

    def close(self):
        asyncio.run_coroutine_threadsafe(self.end(), self.loop).result(60)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Flood(Protocol):
    """The first request of each connection is answered with a flood."""

    def data_received(self, data):
        try:
            super().data_received(data)
        except h2.exceptions.ProtocolError:
            self.transport.close()

    def answer(self, stream):
        kind = self.receiver.kind
        if kind == "go away":
            self.h2.close_connection()
        for _ in range(1000):
            if kind == "ping":
                self.h2.ping(b"12345678")
            elif kind == "settings":
                self.h2.update_settings({4: 65_535})
        if kind != "go away":
            self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
        self.transport.write(self.h2.data_to_send())


def most_memory_kb(push):
    status = pathlib.Path(f"/proc/{push.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


class Hostile(PushTest):
    def raw(self, parts):
        raw = Raw(parts)
        self.addCleanup(raw.close)
        return raw

    def queues(self, receivers, *lines, floods=()):
        tops = ['http.allow = ["localhost"]', *[""] * len(receivers)]
        timeout = {name: f"timeout = {2 if name in floods else 50}" for name in receivers}
        return "".join(
            config(raw.url, *lines, timeout[name], "backoff = [60_000]", name=name, top=top)
            for (name, raw), top in zip(receivers.items(), tops)
        )

    def failed(self, server, name):
        jobs = [job(server, f"a{number}", name) for number in range(JOBS)]
        self.assertTrue(all(jobs), f"{name}: acknowledged, or lost")
        return jobs if all(it["failed"] is not None for it in jobs) else None

    def test_answers_without_end_or_sense(self):
        server = self.server()
        receivers = {name: self.raw(parts) for name, (parts, _) in NEVER_DONE.items()}
        receivers |= {name: self.raw(parts) for name, parts in DONE.items()}
        receivers["good"] = self.receiver()
        for name in receivers:
            for number in range(JOBS):
                add(server, f"a{number}", name=name)
        push = self.push(server, self.queues(receivers, floods=FLOODS))
        for name, (_, reason) in NEVER_DONE.items():
            for it in wait_until(name, lambda: self.failed(server, name)):
                self.assertEqual((it["state"], it["attempts"]), (b"delayed", 1), name)
                self.assertIn(reason, it["reason"], name)
        for name in [*DONE, "good"]:
            wait_until(f"{name}: acknowledged", lambda: length(server, name=name) == 0)
        self.assertLess(most_memory_kb(push), MEMORY_KB)

    def test_a_redirect_leads_nowhere(self):
        server, inner = self.server(), self.receiver()
        for status in [301, 302, 303, 307, 308]:
            place = inner.url.replace("localhost", "127.0.0.1")
            receiver = self.receiver(lambda _: (status, {"location": place}, b""))
            add(server, f"a{status}", name=str(status))
            self.push(server, config(receiver.url, "backoff = [3333]", name=str(status)))
            wait_until("told", lambda: job(server, f"a{status}", str(status))["failed"] is not None)
            self.assertEqual(job(server, f"a{status}", str(status))["state"], b"delayed")
        self.assertEqual(inner.connections, 0)

    def test_floods_of_http2(self):
        server = self.server()
        receivers = {}
        for kind in ["go away", "reset", "ping", "settings"]:
            receivers[kind] = receiver = Http2Receiver(protocol=Flood)
            receiver.kind = kind
            self.addCleanup(receiver.close)
        receivers["good"] = good = Http2Receiver()
        self.addCleanup(good.close)
        for name in receivers:
            for number in range(JOBS):
                add(server, f"a{number}", name=name)
        push = self.push(server, self.queues(receivers, "http2 = true", floods=["go away", "reset", "ping", "settings"]))
        for name in receivers:
            if name != "good":
                wait_until(name, lambda: self.failed(server, name))
        wait_until("acknowledged", lambda: length(server, name="good") == 0)
        self.assertLess(most_memory_kb(push), MEMORY_KB)

    def test_names_with_control_characters(self):
        server, receiver = self.server(), self.receiver()
        name = "a\n\x1b[31m\\"
        add(server, "x", name=name)
        push = self.push(server, config(receiver.url, name=r"a\n\u001b[31m\\"))
        self.assertIn("the jobs of 1 queue of ", push.said)
        self.assertEqual(receiver.next().id, "x")
        shown = r'{queue="a\\n\\x1b[31m\\\\"}'
        wait_until("counted", lambda: push.metrics()["dq_push_in_flight" + shown] == "0")
        server.stop()
        wait_until("it knows", lambda: push.health() == 503)
        push.terminate()
        said = push.ended()[1]
        self.assertIn(r"queue a\n\x1b[31m\\: ", said)
        self.assertNotIn("\x1b", said)


class Secrets(PushTest):
    def test_a_rotation_as_the_docs_describe_it(self):
        server, receiver = self.server(), self.receiver()
        for secrets, verifying in [([SECRET], {SECRET}), ([SECRET, OTHER], {SECRET, OTHER}), ([OTHER], {OTHER})]:
            listed = ", ".join(f'"{secret}"' for secret in secrets)
            push = self.push(server, config(receiver.url, f"secrets = [{listed}]"))
            add(server, "a")
            request = receiver.next()
            self.assertEqual({secret for secret in [SECRET, OTHER] if self.verifies(secret, request)}, verifying)
            push.terminate()
            self.assertEqual((push.ended(), length(server)), ((0, ""), 0))

    def verifies(self, secret, request):
        try:
            return Webhook(secret).verify(request.body, request.headers) is not None
        except WebhookVerificationError:
            return False


if __name__ == "__main__":
    unittest.main()
