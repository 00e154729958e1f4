"""Servers and workers of the tests' own."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import redis

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "suite"))

from brokers import PATIENCE_S, until  # noqa: E402

__all__ = ["Server", "Worker", "until"]


class Server:
    def __init__(self, module=True, *settings):
        self.folder = tempfile.mkdtemp(prefix="dq-celery-")
        self.socket = f"{self.folder}/socket"
        self._command = [os.environ["DQ_SERVER"], "--port", "0", "--unixsocket", self.socket, "--dir", self.folder]
        self._command += ["--save", "", *settings, *(["--loadmodule", os.environ["DQ_MODULE"]] if module else [])]
        self.db = redis.Redis(unix_socket_path=self.socket, protocol=3)
        self.trace = redis.Redis(unix_socket_path=self.socket, db=2, decode_responses=True)
        self.start()

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(self._answers, "the server's start")

    def _answers(self):
        try:
            return self.db.ping()
        except redis.ConnectionError:
            assert self._process.poll() is None, Path(f"{self.folder}/log").read_text()
            return False

    def kill(self):
        self._process.kill()
        self._process.wait()

    def url(self, transport="dq"):
        return f"{transport}+socket://{self.socket}"

    def environment(self, transport="dq", **settings):
        given = {
            "TEST_SOCKET": self.socket,
            "TEST_BROKER": self.url(transport),
            "TEST_BACKEND": f"redis+socket://{self.socket}?virtual_host=1",
            "PYTHONPATH": str(HERE),
        }
        return {**os.environ, **given, **{f"TEST_{name}": str(value) for name, value in settings.items()}}

    def dq(self, command, *args):
        return self.db.execute_command(f"DQ.{command}", *args)

    def suspect(self, id):
        """As if the task had ended two workers; it is due in an hour."""
        for _ in range(2):
            self.dq("POP", "celery", "ID", id, "TTR", 1)
            until(lambda: self.dq("GET", "celery", id)[b"state"] == b"ready", "the end of the lease")
        self.dq("RESCHEDULE", "celery", "DELAY", 3_600_000, id)

    def ran(self, name):
        return self.trace.lrange("ran", 0, -1).count(name)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Worker:
    """A worker in a process of its own, with the options of its command line."""

    count = 0

    def __init__(self, server, *options, transport="dq", pool="solo", **settings):
        Worker.count += 1
        self.log = Path(f"{server.folder}/worker{Worker.count}.log")
        self.name = f"w{Worker.count}@test"
        command = [sys.executable, "-m", "celery", "-A", "program", "worker", "-P", pool, "-n", self.name, "-l", "INFO"]
        # In its own session, so that its children end with it.
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                env=server.environment(transport, **settings),
                cwd=server.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._ready, "the worker's start")

    def _ready(self):
        assert self.process.poll() is None, self.log.read_text()
        return " ready." in self.log.read_text()

    def connected(self):
        """How often the worker has connected."""
        return self.log.read_text().count("Connected to")

    def says(self, text):
        return text in self.log.read_text()

    def rss_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stop(self, how=signal.SIGTERM):
        """Warm shutdown; waits until the worker has ended."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the worker does not stop:\n" + self.log.read_text()) from None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def durable():
    """A server that has all its data again after a restart."""
    made = Server(True, "--appendonly", "yes", "--appendfsync", "always")
    yield made
    made.close()


@pytest.fixture
def worker(server):
    """Starts workers: ``worker("-c", "2", pool="prefork", LEASE=5)``."""
    started = []

    def start(*options, at=server, **settings):
        started.append(Worker(at, *options, **settings))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        print(each.log.read_text())


@pytest.fixture
def program(server, monkeypatch):
    """The program's module as a producer loads it; ``program("redis")`` with kombu's own transport."""

    def load(transport="dq", at=server, **settings):
        for name, value in at.environment(transport, **settings).items():
            if name.startswith("TEST_"):
                monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(HERE))
        monkeypatch.delitem(sys.modules, "program", raising=False)
        import program as module

        opened.append(module)
        return module

    opened = []
    yield load
    # Celery before 5.7 connects again, for minutes, for a result that is collected when its server has gone.
    gc.collect()
    for module in opened:
        module.app.close()
        module.TRACE.close()
