"""Waits for jobs to end, without asyncio: one thread and one connection for all waits of a queue's key."""

from __future__ import annotations

import threading
import time
from typing import Any, Optional

from . import _core, _trouble
from ._client import Client
from ._line import Line
from ._outcomes import Deadline
from ._waits import End, Waits
from .errors import DqError


class Waiter:
    def __init__(self) -> None:
        self.end: Any = None
        self._ended = threading.Event()

    def tell(self, end: Any) -> None:
        self.end = end
        self._ended.set()

    def wait(self, duration_s: float) -> bool:
        return self._ended.wait(duration_s)


class Awaiting:
    def __init__(self, client: Client, key: bytes) -> None:
        self._waits: Waits[Waiter] = Waits(key, Waiter.tell)
        self._line = Line(client, key, _core.WAIT_S + _core.SLACK_S)
        self._control = Line(client, key, _core.ANSWER_S)
        self._withdrawing = threading.Lock()
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._thread: Optional[threading.Thread] = None
        self._is_closed = False

    def wait(self, id: bytes, deadline: Deadline) -> End:
        waiter = Waiter()
        with self._lock:
            if self._is_closed:
                raise DqError("the queue is closed")
            self._waits.add(id, waiter)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dq-await", daemon=True)
                self._thread.start()
            self._news.notify()
        try:
            while not waiter.wait(self._waits.left(id, deadline.left())):
                if waiter.end is None:
                    deadline.check(id)
                if id not in self._waits.covered:
                    self._withdraw()
        finally:
            with self._lock:
                self._waits.remove(id, waiter)
        if isinstance(waiter.end, Exception):
            raise waiter.end
        return waiter.end  # type: ignore[no-any-return]

    def _withdraw(self) -> None:
        """Ends the waiting command, so that it is sent again with all ids. If that fails, it ends by itself."""
        with self._withdrawing:
            try:
                self._control.open()
                unblock = self._waits.unblock(self._line, self._control)
                if unblock is not None:
                    self._waits.unblocked(*self._control.ask([unblock]))
            except Exception:
                self._control.close()

    def _run(self) -> None:
        troubles = 0
        while True:
            with self._lock:
                while not self._waits and not self._is_closed:
                    self._news.wait()
                if self._is_closed:
                    return self._line.close()
                command = self._waits.command()
            try:
                (reply,) = self._line.ask([command])
                with self._lock:
                    self._waits.answered(reply)
                troubles = 0
            except Exception as error:
                self._line.close()
                fatal = _trouble.fatal(error)
                with self._lock:
                    self._waits.covered = frozenset()
                    if fatal is not None:
                        self._waits.failed(fatal)
                troubles += 1
                time.sleep(_trouble.trouble_s(troubles))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._waits.failed(DqError("the queue was closed"))
            self._news.notify()
        self._line.cut()
        with self._withdrawing:
            self._control.close()
