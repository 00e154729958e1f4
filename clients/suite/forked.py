"""Python's probe, forked from a process that has loaded it already: loading takes longer than most scenarios."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__).resolve().parents[1] / "python" / "probe"
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["faces"])
# Where the fork server finds the modules that it preloads.
os.environ["PYTHONPATH"] = os.pathsep.join([str(PROBE), *filter(None, [os.environ.get("PYTHONPATH")])])


def run(face, orders, events, log):
    """The start of the fork, as that of a program of its own."""
    from faces import main

    os.setsid()
    with open(log, "ab") as errors:
        for number, file in enumerate((orders, events, errors)):
            os.dup2(file.fileno(), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    main(face)


class Fork:
    """The part of the interface of ``subprocess.Popen`` that scenarios need."""

    def __init__(self, face, log):
        orders, self._orders = FORKS.Pipe(duplex=False)
        self._events, events = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=run, args=(face, orders, events, log), daemon=True)
        self._process.start()
        orders.close()
        events.close()
        self.stdin = open(self._orders.fileno(), "wb", closefd=False)  # noqa: SIM115
        self.stdout = self._events

    def send_signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def kill(self):
        self._process.kill()

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(PROBE, timeout)
        return self._process.exitcode
