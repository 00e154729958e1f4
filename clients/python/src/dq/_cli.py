"""The command line: workers in processes of their own."""

from __future__ import annotations

import argparse
import asyncio as aio
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from . import _guard, asyncio
from ._trouble import trouble_s
from .errors import ConfigurationError, DqError
from .handler import Handler
from .queue import Queue
from .worker import Worker

FAILED = 1
CANNOT = 2
"""The exit code of an error that would recur: such a process is not started again."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m dq")
    command = made.add_subparsers(dest="command", required=True).add_parser("worker", help="runs handlers")
    command.add_argument(
        "target", help="module:name of a worker, of a function that makes one, or of one or several handlers"
    )
    command.add_argument("--url", default=os.environ.get("DQ_URL", "redis://localhost"), help="the server; DQ_URL")
    command.add_argument("--queue", action="append", default=[], help="its name; several in strict order")
    command.add_argument("--processes", type=int, default=1, help="how many workers; one that dies is started again")
    command.add_argument("--concurrency", type=int, default=10, help="how many handlers run at a time, in each process")
    command.add_argument("--health", help='"127.0.0.1:8081" or a file; with several processes %%d is their number')
    return made


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    if given.processes > 1:
        return Processes(words, given.processes).run()
    sys.path.insert(0, os.getcwd())
    try:
        worker = load(given)
        if isinstance(worker, asyncio.Worker):
            aio.run(worker.run())
        else:
            worker.run()
    except (ConfigurationError, ImportError, AttributeError, TypeError, ValueError) as error:
        print(f"dq: {type(error).__name__}: {error}", file=sys.stderr)
        return CANNOT
    except DqError as error:
        print(f"dq: {error}", file=sys.stderr)
        return FAILED
    return 0


def load(given: argparse.Namespace) -> Any:
    module, _, name = given.target.partition(":")
    if not module or not name:
        raise ValueError(f"name module and what is in it, as in shop.jobs:close, not {given.target!r}")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    is_many = isinstance(found, (list, tuple))
    if not is_many and not given.queue and callable(found) and not isinstance(found, Handler):
        found = found()
    if isinstance(found, (Worker, asyncio.Worker)):
        return found
    if not given.queue:
        raise ValueError(f"{given.target} is no worker: for handlers name their queue, --queue orders")
    handlers = list(found) if is_many else [found]
    functions = [each.function if isinstance(each, Handler) else each for each in handlers]
    health = given.health and given.health.replace("%d", os.environ.get("DQ_PROCESS", "0"))
    options: dict[str, Any] = {"concurrency": given.concurrency, "health": health}
    if any(map(_guard.is_coroutine_function, functions)):
        return asyncio.Worker([asyncio.Queue(given.url, each) for each in given.queue], *handlers, **options)
    return Worker([Queue(given.url, each) for each in given.queue], *handlers, **options)


class Processes:
    """Runs worker processes, and starts again those that die. SIGTERM or SIGINT stops all of them."""

    def __init__(self, words: Sequence[str], count: int) -> None:
        self._command = [sys.executable, "-m", "dq", *words, "--processes", "1"]
        self._count = count
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()
        self._code = 0

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        threads = [threading.Thread(target=self._keep, args=(n,)) for n in range(self._count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._code

    def _keep(self, number: int) -> None:
        deaths = 0
        while not self._stopping.is_set():
            # In its own session, so that Ctrl-C reaches it once: from this process.
            process = subprocess.Popen(
                self._command, env={**os.environ, "DQ_PROCESS": str(number)}, start_new_session=True
            )
            self._running[number] = process
            if self._stopping.is_set():
                process.terminate()
            code = process.wait()
            if code == 0:
                return
            if code == CANNOT:
                self._code = CANNOT
                return self._stop()
            deaths += 1
            print(f"dq: worker {number} ended with code {code}", file=sys.stderr)
            self._stopping.wait(trouble_s(deaths))

    def _stop(self, *_: Any) -> None:
        self._stopping.set()
        for process in list(self._running.values()):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
