#!/usr/bin/env python3
"""Measures calls per second of dq http's own processor time, against a receiver on this machine.

    DQ_SERVER=... DQ_MODULE=... DQ_PROGRAM=... speed.py [jobs]
"""

import asyncio
import os
import sys
import threading

from support import Push, Server, config, length, wait_until

ANSWER = b"HTTP/1.1 204 x\r\n\r\n"


class Sink(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.seen = b""

    def data_received(self, data):
        """The payloads are empty objects: each request ends with one."""
        self.seen += data
        if self.seen.endswith(b"\r\n\r\n{}"):
            self.seen = b""
            self.transport.write(ANSWER)


def listen():
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Sink, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return server.sockets[0].getsockname()[1]


def spent(process):
    with open(f"/proc/{process.pid}/stat") as file:
        user, system = file.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(server, url, jobs, *lines):
    pipe = server.client.pipeline(transaction=False)
    for number in range(jobs):
        pipe.execute_command("DQ.ADD", "q", f"job-{number}", "{}")
    pipe.execute()
    push = Push(server, config(url, "concurrency = 100", *lines))
    try:
        wait_until("all called", lambda: length(server) == 0)
        return jobs / spent(push.process)
    finally:
        push.close()


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    server = Server()
    try:
        url = f"http://localhost:{listen()}/"
        secret = 'secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]'
        for what, lines in [("plain", ()), ("signed", (secret,))]:
            print(f"{what}: {measure(server, url, jobs, *lines):.0f} calls for a second of processor time", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
