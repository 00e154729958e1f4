"""Worker processes: several, started again when they die, or when the program's files change."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from ._trouble import trouble_s

CANNOT = 2
"""The exit code of an error that would recur: such a process is not started again."""

LOOK_S = 0.25
"""How often to look for files that have changed."""

_NOT_OURS = ("__pycache__", "node_modules", "site-packages")


class Processes:
    """Runs worker processes, and starts again those that die. SIGTERM or SIGINT stops all of them.

    is_reloading: each is stopped as by SIGTERM, and started again, when a .py file below the working directory changes.
    """

    def __init__(self, words: Sequence[str], count: int, is_reloading: bool = False) -> None:
        self._command = [sys.executable, "-m", "dq", *words, "--processes", "1", "--no-reload"]
        self._count = count
        self._is_reloading = is_reloading
        self._changes = 0
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()
        self._code = 0

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        threads = [threading.Thread(target=self._keep, args=(n,)) for n in range(self._count)]
        files = _files(os.getcwd()) if self._is_reloading else {}
        for thread in threads:
            thread.start()
        while self._is_reloading and not self._stopping.wait(LOOK_S):
            before, files = files, _files(os.getcwd())
            if files != before:
                print("dq: files have changed: starting again", file=sys.stderr)
                self._changes += 1
                self._end_all()
        for thread in threads:
            thread.join()
        return self._code

    def _keep(self, number: int) -> None:
        deaths = 0
        while not self._stopping.is_set():
            changes = self._changes
            # In its own session, so that Ctrl-C reaches it once: from this process.
            process = subprocess.Popen(
                self._command, env={**os.environ, "DQ_PROCESS": str(number)}, start_new_session=True
            )
            self._running[number] = process
            if self._stopping.is_set() or self._changes != changes:
                process.terminate()
            code = process.wait()
            if self._changes != changes:
                deaths = 0
                continue
            if self._is_reloading:
                self._await_change(changes, code)
                continue
            if code == 0:
                return
            if code == CANNOT:
                self._code = CANNOT
                return self._stop()
            deaths += 1
            print(f"dq: worker {number} ended with code {code}", file=sys.stderr)
            self._stopping.wait(trouble_s(deaths))

    def _await_change(self, changes: int, code: int) -> None:
        if not self._stopping.is_set():
            print(f"dq: the worker ended with code {code}: it is started again when a file changes", file=sys.stderr)
        while self._changes == changes and not self._stopping.wait(LOOK_S):
            pass

    def _stop(self, *_: Any) -> None:
        self._stopping.set()
        self._end_all()

    def _end_all(self) -> None:
        for process in list(self._running.values()):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()


def _files(folder: str) -> dict[str, int]:
    """The Python files below it, and when they were changed."""
    found = {}
    for path, folders, names in os.walk(folder):
        folders[:] = [
            each
            for each in folders
            if each not in _NOT_OURS
            and not each.startswith(".")
            and not os.path.exists(os.path.join(path, each, "pyvenv.cfg"))
        ]
        for name in names:
            if name.endswith(".py"):
                with contextlib.suppress(OSError):  # it is being replaced
                    file = os.path.join(path, name)
                    found[file] = os.stat(file).st_mtime_ns
    return found
