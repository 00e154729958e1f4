"""Hears of the loss of jobs, for programs without asyncio."""

from __future__ import annotations

import threading
import time

from . import _core, _trouble
from ._line import Line
from ._links import BaseLink
from ._listening import Listening


class Listener(threading.Thread):
    """Waits at the server, on its own connection, for the loss of jobs of one queue."""

    def __init__(self, link: BaseLink, listening: Listening, line: Line) -> None:
        super().__init__(name="dq-listener", daemon=True)
        self.line = line
        self.wanted = threading.Event()
        self._link = link
        self._listening = listening
        self._ended = threading.Event()

    def run(self) -> None:
        troubles = 0
        while not self._ended.is_set() and not self._listening.is_off:
            self.wanted.clear()
            command = self._link._begin_to_hear(self._listening)
            if command is None:
                self.wanted.wait()
                continue
            try:
                sent = time.monotonic()
                self.line.send(_core.pack([command]), self._listening.wait_s + _core.SLACK_S)
                self._link._heard(self._listening, self.line.read(), sent)
                troubles = 0
            except Exception as error:
                self.line.close()
                self._link._listening_failed(self._listening, error)
                troubles += 1
                self._ended.wait(_trouble.trouble_s(troubles))
        self.line.close()

    def end(self) -> None:
        self._ended.set()
        self.wanted.set()
        self.line.cut()
