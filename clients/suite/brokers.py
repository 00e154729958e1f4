"""Shared by the tests of the brokers for frameworks: a server for each test, and workers in processes of their own."""

import os
import signal
import subprocess
import sys
import time

import pytest
from servers import Server

PATIENCE_S = 60


def until(condition, what):
    """Waits for the condition, and returns its value as soon as it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} did not come true in {PATIENCE_S} s"
        time.sleep(0.01)
    return value


@pytest.fixture
def server():
    """A server for each test: a killed worker may still get a task of the next test."""
    made = Server("--appendonly", "no").start()
    yield made
    made.close()


class Process:
    """A process with the framework's own command line; its program is in ``sources``."""

    def __init__(self, words, sources, server, folder, **settings):
        self.log = folder / f"worker{len(list(folder.iterdir()))}.log"
        environment = {**os.environ, "TEST_URL": server.url, "PYTHONPATH": str(sources)}
        environment.update({f"TEST_{name}": str(value) for name, value in settings.items()})
        command = [sys.executable, "-m", *words]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self):
        """Kills the process and its children, as if the machine had failed."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stand_still(self):
        os.killpg(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


def processes(words, sources):
    """A fixture that starts such processes: ``process(server, LEASE=3000)``."""

    @pytest.fixture
    def process(tmp_path):
        started = []

        def start(server, **settings):
            started.append(Process(words, sources, server, tmp_path, **settings))
            return started[-1]

        yield start
        for each in started:
            each.kill()
            print(each.log.read_text())

    return process
