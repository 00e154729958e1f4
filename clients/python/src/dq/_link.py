"""The queues that are reached by one pair of connections, for programs without asyncio.

A link has a thread of its own, the *courier*: it tells the server what no fetch took along within a millisecond, renews
leases, and withdraws the fetch that waits when its worker or consumer stops.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Optional

from redis.exceptions import ResponseError

from . import _core
from ._base import BaseConsumer, BaseLink, Members
from ._core import Delivery, Fetches, Outcome
from ._line import Line
from .queue import Queue


class Link(BaseLink):
    def __init__(self, worker: BaseConsumer[Queue], members: Members, fetches: Fetches) -> None:
        super().__init__(worker, members, fetches)
        self._worker = worker
        queue, key, _ = members[0]
        self._waiting = Line(queue.client, key, worker.wait_s + _core.SLACK_S)
        self._control = Line(queue.client, key, worker.answer_s)
        self._armed = False
        self._bell = threading.Event()
        self._pause = threading.Event()
        self._finish_by: Optional[float] = None
        self.courier = threading.Thread(target=self._carry, name="dq-courier", daemon=True)

    # --- Fetching, in a handler's thread or one of its own

    def fetch(self, count: int, wait_s: float) -> list[Delivery]:
        """Tells what happened since, and waits for jobs. Never raises: trouble is waited out."""
        self._fetching = True  # before: who ends in between must know that some outcomes are here
        told = self._take_outcomes()
        try:
            if self._worker.draining:
                return []
            self._waiting.send(_core.pack([each.command for each in told]) + self._fetches.packed(count, wait_s))
            trouble = self._hear(self._waiting, told)
            found = self._found(self._waiting.read())  # whatever became of the rest: they are ours now
            if trouble is not None and not found:
                raise trouble
            self._troubles = 0
            return found
        except Exception as error:
            self.trouble = error
            self._waiting.close()
            self._worker._trouble(error)
            self._troubles += 1
            self._worker._rest(_core.trouble_s(self._troubles))
            return []
        finally:
            self._fetching = False
            if told:
                self._outcomes.extendleft(reversed(told))
                self._ring()

    def _hear(self, line: Line, told: deque[Outcome]) -> Optional[ResponseError]:
        """Takes the answers in, and returns one that is an error. What has none yet stays in ``told``."""
        trouble: Optional[ResponseError] = None
        while told:
            reply = line.read()
            trouble = self._answered(told.popleft(), reply) or trouble
        if self._outcomes:
            self._ring()
        return trouble

    def _ring(self) -> None:
        if not self._armed:
            self._armed = True
            self._bell.set()

    # --- The courier

    def _carry(self) -> None:
        beat_s = max(self._worker.lease_s / 3, _core.SHORTEST_BEAT_S)
        next_beat = time.monotonic() + beat_s
        troubles = 0
        while self._finish_by is None:
            try:
                self._bell.wait(max(0.0, next_beat - time.monotonic()))
                self._bell.clear()
                if self._worker.draining:
                    self._withdraw()
                self._let_gather()
                # First, so that nothing that the server refuses keeps leases from being renewed.
                if time.monotonic() >= next_beat:
                    self._beat()
                    next_beat = time.monotonic() + beat_s
                self._tell_some()
                troubles = 0
            except Exception as error:
                self._control.close()
                self._worker._trouble(error)
                troubles += 1
                self._pause.wait(min(_core.trouble_s(troubles), beat_s))
                self._pause.clear()
                self._bell.set()
        self._finish(self._finish_by)

    def _let_gather(self) -> None:
        """For a millisecond, so that a fetch may take them along."""
        if self._outcomes and len(self._outcomes) < _core.FLUSH_COUNT and not self._worker.draining:
            time.sleep(_core.FLUSH_AFTER_S)
        self._armed = False

    def _tell_some(self) -> None:
        told = self._take_outcomes(_core.TELL_AT_ONCE)
        if not told:
            return
        try:
            self._control.send(_core.pack([each.command for each in told]))
            trouble = self._hear(self._control, told)
        finally:
            self._outcomes.extendleft(reversed(told))
        if trouble is not None:
            raise trouble

    def _beat(self) -> None:
        beats = self._beats()
        if beats:
            replies = self._control.ask([command for command, _ in beats])
            for (_, group), reply in zip(beats, replies):
                self._beaten(group, reply)

    def _withdraw(self) -> None:
        """Ends the fetch that waits. A job that was handed out in that instant is read, and given back."""
        patience = time.monotonic() + _core.TELLING_S
        while self._fetching and time.monotonic() < patience:
            waiting = self._waiting.client_id
            if waiting is None or not isinstance(self._control.ask([(b"CLIENT", b"UNBLOCK", waiting)])[0], int):
                break
            time.sleep(0.005)
        if self._fetching:
            self._waiting.cut()

    def _end_fetch(self, finish_by: float) -> None:
        """What a fetch took along and got no answer to comes back from it; and so may jobs."""
        try:
            self._withdraw()
        except Exception:
            self._control.close()
            self._waiting.cut()
        while self._fetching and time.monotonic() < finish_by:
            time.sleep(0.005)

    def _finish(self, finish_by: float) -> None:
        """What the server has still to hear; and all that is left goes back to it."""
        self._end_fetch(finish_by)
        commands = self._leave()
        troubles = 0
        while commands or self._outcomes:
            try:
                if commands:
                    self._control.ask(commands)
                    commands = []
                self._tell_some()
            except Exception:
                self._control.close()
                troubles += 1
                pause_s = _core.trouble_s(troubles)
                if time.monotonic() + pause_s >= finish_by:
                    return
                time.sleep(pause_s)

    # --- Orders of the one that watches

    def stop(self) -> None:
        self._bell.set()
        self._pause.set()

    def tell(self) -> None:
        for delivery in list(self._held):
            delivery.job._tell("stopping")

    def finish(self, finish_by: float) -> None:
        self._finish_by = finish_by
        self.stop()

    def end(self) -> None:
        for line, is_free in (self._waiting, not self._fetching), (self._control, not self.courier.is_alive()):
            line.close() if is_free else line.cut()

    def flush(self) -> None:
        """For tests, without a courier."""
        while self._outcomes:
            self._tell_some()
