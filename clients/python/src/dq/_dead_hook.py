"""Calls the hook of dead jobs: in a thread of its own, so that all else goes on whatever the hook does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Sequence
from typing import Any, Optional

from redis.exceptions import ResponseError

from . import _guard
from ._deaths import MOST, PAGE, USUAL_S, Death, Deaths
from ._delivery import Command
from ._errand import Errand
from ._job_info import JobInfo
from ._trouble import trouble_s


class BaseDeadHook:
    """The deaths that wait for the hook."""

    def __init__(self, base: Any, died: Any) -> None:
        self._base = base
        self._died = died
        """Those, and None at the end."""
        self.links: list[Any] = []
        self._is_ending = False

    def joined_by(self, link: Any) -> dict[bytes, Deaths]:
        """What to ask about each of its queues."""
        self.links.append(link)
        every_s = self._base._lease.said_s or USUAL_S
        return {key: Deaths(link, key, every_s, self) for key in link._queues}

    @property
    def room(self) -> int:
        return MOST - int(self._died.qsize())

    def tell(self, death: Death) -> bool:
        try:
            self._died.put_nowait(death)
            return True
        except (queue.Full, asyncio.QueueFull):
            return False

    def finish(self) -> None:
        """Has it end once the hook was called for all."""
        self._is_ending = True
        with contextlib.suppress(queue.Full, asyncio.QueueFull):
            self._died.put_nowait(None)

    def _has_more(self) -> bool:
        return not (self._is_ending and self._died.empty())

    def _took(self) -> None:
        """Has the links look for more, as soon as there is room."""
        if self.room == PAGE:
            for link in self.links:
                link._wake_courier()

    def _shown(self, death: Death, job: dict[bytes, Any]) -> tuple[str, JobInfo]:
        of = death.of.link._queues[death.of.key]
        return of.name, JobInfo.read(job, of.codec)  # type: ignore[return-value]

    def refused(self, error: ResponseError) -> None:
        self._base._off("the server does not tell of dead jobs: their hook misses some", error)

    def _failed(self, error: Exception) -> None:
        self._base._log.say(logging.ERROR, "the worker failed, and goes on", error=error)

    def _say_left(self) -> None:
        text = "stopped without the hook dead: it has not ended, and is called no more"
        self._base._log.say(logging.WARNING, text)


class DeadHook(BaseDeadHook, threading.Thread):
    def __init__(self, base: Any) -> None:
        BaseDeadHook.__init__(self, base, queue.Queue(MOST))
        threading.Thread.__init__(self, name="dq-dead", daemon=True)
        self._left = threading.Event()
        self.is_over = False

    def run(self) -> None:
        while not self._left.is_set() and self._has_more():
            death = self._died.get()
            self._took()
            try:
                self._tell_hook(death)
            except Exception as error:
                self._failed(error)
        self.is_over = True
        self._base._carried()

    def _tell_hook(self, death: Optional[Death]) -> None:
        if death is None:
            return
        steps, replies, job = death.of.record(death), None, None
        try:
            while True:
                replies = self._ask(death.of.link, steps.send(replies))
        except ResponseError as error:
            return self.refused(error)
        except StopIteration as ended:
            job = ended.value
        if job is not None:
            told = self._shown(death, job)
            for hooks in self._base._dead_hooks:
                self._base._later(hooks, "dead", _guard.hook(self._base._log, hooks, "dead", *told))

    def _ask(self, link: Any, commands: Sequence[Command]) -> list[Any]:
        troubles = 0
        while not self._left.is_set():
            try:
                errand = Errand(commands)
                errand.answered(link._reading.ask(list(commands)))
                return errand.replies or []
            except Exception as error:
                link._reading.close()
                if self.ident is None:  # in tests
                    raise
                self._base._trouble(error)
                troubles += 1
                self._left.wait(trouble_s(troubles))
        return [None for _ in commands]

    def leave(self) -> None:
        """Goes on without it, if it has not ended."""
        self._left.set()
        if not self.is_over:
            self._say_left()
        for link in self.links:
            link._reading.close() if self.is_over else link._reading.cut()

    def tell_all(self) -> None:
        """For tests, without a thread."""
        while not self._died.empty():
            self._tell_hook(self._died.get())
