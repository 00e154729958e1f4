"""A server with dq, for the tests of the tools in Python.

DQ_SERVER, DQ_MODULE: as in the module's own tests.
"""

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time

import redis

PATIENCE_S = 60


def wait_until(what, is_so):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = is_so()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


def free_port():
    """A port outside the range of outgoing connections, so that it is still free when a server is restarted."""
    while True:
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            except OSError:
                continue
            return sock.getsockname()[1]


class Server:
    def __init__(self, *options, module=True):
        self.options = options
        self.module = module
        self.folder = tempfile.mkdtemp(prefix="dq-tool-")
        # Another process may have taken the free port before the server does.
        for again in [True, True, True, False]:
            self.port = free_port()
            try:
                return self.start()
            except AssertionError:
                if not again:
                    raise

    def start(self):
        words = [os.environ["DQ_SERVER"], "--port", str(self.port), "--save", "", "--dir", self.folder]
        if self.module:
            words += ["--loadmodule", os.environ["DQ_MODULE"]]
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([*words, *self.options], stdout=log, stderr=log)
        log.close()
        self.client = redis.Redis(port=self.port)
        wait_until("the server answers", self.answers)

    def answers(self):
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.client.ping()
        except redis.exceptions.RedisError:
            return False

    def stop(self):
        self.client.close()
        self.process.kill()
        self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
