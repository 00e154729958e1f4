"""A server for tests, whose clock stands still until the test moves it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Optional

import redis

from ..times import from_ms, instant_to_ms, to_ms

PATIENCE_S = 30


class Clock:
    """The server's clock. It stands still, begins at the real time, and never goes back."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def now(self) -> datetime:
        return self._ask("GET")

    def advance(self, duration: Optional[timedelta] = None, **parts: float) -> datetime:
        """Moves the clock, as ``advance(days=30)``. What becomes due on the way has happened when it returns."""
        return self._ask("ADVANCE", to_ms(duration if duration is not None else timedelta(**parts)))

    def set(self, instant: datetime) -> datetime:
        return self._ask("SET", instant_to_ms(instant))

    def next(self) -> Optional[datetime]:
        """Moves to the next instant at which anything happens; None if nothing will happen."""
        reply = self._client.execute_command("DQ.CLOCK", "NEXT")
        return None if reply is None else from_ms(reply)

    def _ask(self, *words: object) -> datetime:
        return from_ms(self._client.execute_command("DQ.CLOCK", *words))


class TestServer:
    """Redis or Valkey with the module and its test clock, on a socket in a folder of its own.

    program: by default the variable DQ_SERVER, or valkey-server or redis-server of the PATH.
    module: by default the file that the variable DQ_MODULE names. Without that, the program dq says both: that of the
        package dq-server, of the variable DQ_PROGRAM, or of the PATH.
    """

    __test__ = False  # not a test, whatever its name says

    def __init__(self, program: Optional[str] = None, module: Optional[str] = None) -> None:
        module = module or os.environ.get("DQ_MODULE")
        program = program or os.environ.get("DQ_SERVER")
        if not module:
            packed, module = _packed()
            program = program or packed
        self.program = program or _find_program()
        self.module = module
        if not Path(self.module).is_file():
            raise FileNotFoundError(f"the dq module, {self.module}: set DQ_MODULE to the path of libdq.so")
        self.folder = Path(tempfile.mkdtemp(prefix="dq-test-"))
        self.url = f"unix://{self.folder}/socket"
        self._process = self._start()
        self.client: redis.Redis = redis.Redis.from_url(self.url, socket_timeout=PATIENCE_S)
        self._await()
        self.clock = Clock(self.client)

    def _start(self) -> subprocess.Popen[bytes]:
        settings = ["--port", "0", "--unixsocket", f"{self.folder}/socket", "--dir", str(self.folder), "--save", ""]
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [self.program, *settings, "--loadmodule", str(Path(self.module).resolve()), "test-clock", "yes"],
                stdout=log,
                stderr=log,
            )

    def _await(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > end:
                    log = (self.folder / "log").read_text(errors="replace")
                    self.close()
                    raise RuntimeError(f"{self.program} does not start:\n{log[-2000:]}") from None
                time.sleep(0.01)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> TestServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _packed() -> tuple[str, str]:
    """The server and the module in the program dq."""
    said = "set DQ_MODULE to the path of libdq.so, or install the package dq-server"
    program = os.environ.get("DQ_PROGRAM")
    try:
        from dq_server import program as of_package  # type: ignore[import-not-found,unused-ignore]

        program = program or of_package()
    except ImportError:
        pass
    try:
        paths = subprocess.run([program or "dq", "dev", "--which"], capture_output=True, text=True)
    except OSError as error:
        raise FileNotFoundError(f"the dq module: {said}") from error
    lines = paths.stdout.splitlines()
    if paths.returncode or len(lines) != 2:
        raise FileNotFoundError(f"the dq module: {paths.stderr.strip() or said}")
    return lines[0], lines[1]


def _find_program() -> str:
    for name in ("valkey-server", "redis-server"):
        program = shutil.which(name)
        if program:
            return program
    raise FileNotFoundError("no valkey-server or redis-server in the PATH: set DQ_SERVER")
