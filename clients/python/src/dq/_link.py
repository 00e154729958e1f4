"""The queues that one pair of connections serves, for programs without asyncio.

Each link has a thread, the *ack batcher*: it sends what no fetch takes along within a millisecond, renews leases, asks
what handlers want to know, and withdraws the waiting fetch when its worker or consumer stops.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import deque
from typing import Any, Optional

from redis.exceptions import ResponseError

from . import _core, _trouble
from ._delivery import Command, Delivery
from ._errand import Errand, Part, packed, wait_s
from ._line import Line
from ._links import BaseLink, Members
from ._listener import Listener
from ._listening import Listening
from ._owner import Base
from ._watch import Watch


class Link(BaseLink):
    def __init__(self, worker: Base, members: Members, fetches: _core.Fetches) -> None:
        super().__init__(worker, members, fetches)
        self._worker = worker
        queue, key, _ = members[0]
        self._waiting = Line(queue.client, key, worker.wait_s + _core.SLACK_S)
        self._control = Line(queue.client, key, _core.ANSWER_S)
        self._reading = Line(queue.client, key, _core.ANSWER_S)
        """For the hook of dead jobs."""
        self._armed = False
        self._bell = threading.Event()
        self._pause = threading.Event()
        self._finish_by = math.inf
        self.is_finished = False
        self._patience = 0.0
        """When the waiting fetch of a worker that stops is cut, if nothing is heard of the server until then."""
        self.watch: Optional[Watch] = None
        self._listeners: dict[Listening, Listener] = {}
        self.batcher = threading.Thread(target=self._carry, name="dq-batcher", daemon=True)

    # --- Fetching, in a handler's thread or one of its own

    def open(self) -> bool:
        """Connects if necessary. Called before places are claimed, so that a server that is away holds none of them."""
        self._fetched_at = time.monotonic()
        self._fetching = True  # set before it looks: a stop cuts a connection that is being made
        try:
            if not self._worker.draining:
                self._waiting.open()
            return True
        except Exception as error:
            self._failed(error)
            return False
        finally:
            self._fetching = False

    def _failed(self, error: Exception) -> None:
        self.trouble = error
        self._is_heard = False
        self._waiting.close()
        self._beat_now()  # after a failover it may be another server
        self._worker._trouble(error)
        self._troubles += 1

    def rest(self) -> None:
        """Waits trouble out, after a fetch or a failed ``open``. No places may be claimed meanwhile."""
        if self._troubles:
            self._worker._rest(_trouble.trouble_s(self._troubles))

    def fetch(self, count: int, wait_s: float) -> list[Delivery]:
        """Sends the outcomes since the last fetch, and waits for jobs. Never raises; ``rest`` must follow."""
        self._is_recalled = False  # that recall was for the previous fetch
        self._fetched_at = time.monotonic()
        self._fetching = True  # set first: a stop in between must know that this fetch has outcomes
        told: deque[Part] = deque()
        try:
            if self._worker.draining:  # a stop does not wait for every fetch: it sends the outcomes itself
                return []
            told = self._take_outcomes()
            asked = self._idle.asks() if self._idle.is_waiting else b""
            self._waiting.send(packed(told) + asked + self._fetches.packed(count, wait_s, self._fetched_at))
            answer_by = time.monotonic() + wait_s
            trouble = self._hear(self._waiting, told)
            while self._idle.asked:
                self._idle.heard(self._waiting.read(), self._base)
            reply = self._waiting.read()
            # Whatever the other replies say, these jobs are ours now: at the latest since the reply was due.
            found = self._found(reply, min(time.monotonic(), answer_by + _core.LATE_S))
            if trouble is not None and not found:
                raise trouble
            self._troubles = 0
            self._is_heard = True
            if not found or self._idle.is_waiting:
                self._idle.fetched(bool(found), time.monotonic() - self._fetched_at)
                self._fetches.fetched(bool(found), time.monotonic())
            return found
        except Exception as error:
            self._failed(error)
            return []
        finally:
            if told:
                self._put_back(told)
                self._ring()
            self._fetching = False  # set last: a stop that waits for this fetch then finds the outcomes

    def _beat_now(self) -> None:
        if self._leases.held or self._leases.unanswered:
            self._leases.beat_at = 0.0
            self._bell.set()

    def _hear(self, line: Line, told: deque[Part]) -> Optional[ResponseError]:
        """Reads the replies to outcomes; returns one that is an error. Outcomes without a reply stay in ``told``."""
        trouble: Optional[ResponseError] = None
        while told:
            first = told[0][0]
            try:
                for _ in first.ahead:
                    self._ahead_answered(line.read())
                reply = line.read()
            except OSError as error:
                first.cuts += _trouble.is_cut(error)
                raise
            part = told.popleft()
            trouble = (self._part_answered(part, reply) if first.is_plain else self._answered(first, reply)) or trouble
        if self._outcomes:
            self._ring()
        return trouble

    def _ring(self) -> None:
        if not self._armed:
            self._armed = True
            self._bell.set()

    def _wake(self) -> None:
        self._bell.set()
        self._wake_ears()

    def _wake_courier(self) -> None:
        self._bell.set()

    def _wake_ears(self) -> None:
        if self.watch is not None:
            self.watch.bell.set()

    # --- The batcher

    def _carry(self) -> None:
        troubles, withdraw_at = 0, math.inf
        while self._finish_by == math.inf:
            try:
                # Before it is needed: a server that stands still connects nobody, but later reads what was written.
                self._control.open()
                self._bell.wait(wait_s(min(self._wake_at, withdraw_at)))
                self._bell.clear()
                if self._worker.draining:
                    withdraw_at = self._withdraw()
                self._let_gather()
                # Heartbeats first, so that a command that the server refuses does not keep leases from being renewed.
                self._beat()
                self._tell_some()  # before errands: a full server may refuse those, and ends free memory
                self._recall()
                self._run_errands()
                self._look_for_deaths()
                troubles = 0
            except Exception as error:
                self._control.leave(error)
                self._is_heard = False
                self._notes.unsent()
                self._worker._trouble(error)
                troubles += 1
                self._pause.wait(_trouble.trouble_s(troubles))
                self._pause.clear()
                self._beat_now()  # as soon as there is a connection again
                self._bell.set()
        self._finish()
        self.is_finished = True
        self._worker._carried()

    def _let_gather(self) -> None:
        """Waits until the oldest outcome is a millisecond old, so that fetches may take it along, or for more to do.

        Where fetches take all, it looks once a millisecond.
        """
        first_at = time.monotonic()
        while self._armed and len(self._outcomes) < _core.FLUSH_COUNT and not self._worker.draining:
            first_at = self._outcomes.first_at if self._outcomes else first_at
            left = min(first_at + _core.FLUSH_AFTER_S, self._wake_at) - time.monotonic()
            if left <= 0 or self._bell.wait(left):
                break
        self._armed = False

    def _tell_some(self) -> None:
        if self._outcomes:
            self._control.open()
        self._telling = told = self._take_outcomes(_core.TELL_AT_ONCE)
        if not told:
            return
        try:
            self._control.send(packed(told), self._answer_s)
            trouble = self._hear(self._control, told)
        finally:
            self._put_back(told)
        if trouble is not None:
            raise trouble

    def _beat(self) -> None:
        sent = time.monotonic()
        beats, notes = self._leases.beats(sent), self._notes.due(sent)
        if not beats and not notes:
            return
        replies = self._control.ask(
            [*(command for command, _ in beats), *(command for command, _, _ in notes)], self._answer_s
        )
        for (_, group), reply in zip(beats, replies):
            self._beaten(group, reply, sent)
        for (_, delivery, text), reply in zip(notes, replies[len(beats) :]):
            self._noted(delivery, text, reply)
        self._is_heard = True
        self._wake_ears()

    def _recall(self) -> None:
        if not self._is_unblocking:
            return
        self._control.open()
        unblock = self._unblock()
        if unblock is not None:
            self._unblocked(self._control.ask([unblock], self._answer_s)[0])

    def _run_errands(self) -> None:
        while (errand := self._errands.take()) is not None:
            try:
                errand.answered(self._control.ask(list(errand.commands), self._answer_s))
            except Exception as error:
                self._errands.put_off(errand, error)
                raise

    def _look_for_deaths(self) -> None:
        """One question for each queue at a time, so that many deaths hold up no heartbeat."""
        for deaths in self._deaths.values():
            if commands := deaths.asks(time.monotonic()):
                self._heard_of(deaths, commands, self._control.ask(list(commands), self._answer_s))

    def ask(self, delivery: Delivery, commands: list[Command]) -> list[Any]:
        """Sends a handler's commands and returns the replies. Called in the handler's thread."""
        if self.batcher.ident is None:  # in tests
            errand = Errand(commands)
            errand.answered(self._control.ask(commands))
            return errand.answers()
        answered = threading.Event()
        errand = Errand(commands, answered.set)
        delivery.job._listen(answered.set)
        self._errands.add(errand)
        self._bell.set()
        answered.wait()
        if errand.replies is None:
            delivery.job.check()
        return errand.answers()

    # --- Hearing of cancellations

    def _cover(self, listening: Listening) -> None:
        if self._finish_by < math.inf:
            return
        listener = self._listeners.get(listening)
        if listener is None:
            queue, key = self._queues[listening.key], listening.key
            listener = self._listeners[listening] = Listener(self, listening, Line(queue.client, key, _core.ANSWER_S))
            listener.start()
        listener.wanted.set()
        if listening.covered:
            self._wake_ear(listener.line)

    def _withdraw(self) -> float:
        """Ends the waiting fetch, which may be for the next call to do. Returns when that must come.

        A job that is handed out at that moment is read, and given back. Without that right, or where the connection is
        to another server than the command would be, the connection is closed.
        """
        if not self._fetching:
            return math.inf
        self._patience = self._patience or time.monotonic() + _core.TELLING_S
        try:
            self._control.open()
            unblock = self._unblock(self._waiting)
            if unblock is None:
                self._waiting.cut()
                return time.monotonic() + _core.UNBLOCK_EVERY_S
            ended = self._unblocked(self._control.ask([unblock], min(self._answer_s, _core.TELLING_S))[0])
        except Exception:
            if time.monotonic() >= self._patience:  # nothing is heard of the server
                self._waiting.cut()
            raise
        self._patience = time.monotonic() + _core.TELLING_S
        if not ended:
            return time.monotonic() + _core.UNBLOCK_EVERY_S  # perhaps CLIENT PAUSE holds it back
        return time.monotonic() + 0.005

    def _end_fetch(self) -> None:
        """Waits for the last fetch: it may return jobs, and puts back outcomes that got no reply."""
        patience = (time.monotonic() + self._finish_by) / 2
        try:
            while self._fetching and time.monotonic() < patience:
                time.sleep(max(0.0, min(self._withdraw(), patience, self._finish_by) - time.monotonic()))
        except Exception as error:
            self._control.leave(error)
        if self._fetching:
            self._waiting.cut()
        while self._fetching and time.monotonic() < self._finish_by:
            time.sleep(0.005)

    def _finish(self) -> None:
        """Sends all outcomes that are left, and gives back all jobs that are left."""
        self._end_fetch()
        for listener in list(self._listeners.values()):
            listener.end()
        self._leave()
        troubles = 0
        while self._has_more:
            try:
                if time.monotonic() >= self._finish_by:
                    raise socket.timeout
                if self._returns:
                    self._control.ask(self._returns, self._answer_s)
                    self._returns = []
                self._tell_some()
            except Exception as error:
                self._control.leave(error)
                troubles += 1
                pause_s = _trouble.trouble_s(troubles)
                if _trouble.fatal(error) is not None or time.monotonic() + pause_s >= self._finish_by:
                    return
                time.sleep(pause_s)

    @property
    def _answer_s(self) -> float:
        return max(min(super()._answer_s, self._finish_by - time.monotonic()), _core.NO_WAIT_S)

    # --- Called by the thread that watches, or stops the worker

    def stop(self) -> None:
        self._bell.set()
        self._pause.set()

    def tell(self) -> None:
        for delivery in list(self._leases.held):
            delivery.tell("stopping")

    def look(self, now: float) -> float:
        """Looks for expired leases, and for jobs that a listener should cover. Returns when to look again."""
        self._look(now)
        self._listen(now)
        return min(self._leases.look_at, self._listen_at)

    def finish(self, finish_by: float) -> None:
        self._finish_by = finish_by
        self.stop()

    def hurry(self) -> None:
        """Ends the wait for answers, as the time is over."""
        self._finish_by = 0.0
        if not self.is_finished:
            self._control.wake()

    def end(self, wait_s: float = _core.LAST_S) -> None:
        if self.batcher.is_alive():
            self.batcher.join(wait_s)
        if self._returns or self._telling or self._outcomes or self._leases.held:
            self._control.last(self._last_words())
        for line, is_free in (self._waiting, not self._fetching), (self._control, not self.batcher.is_alive()):
            line.close() if is_free else line.cut()

    def flush(self) -> None:
        """For tests, without a batcher."""
        while self._outcomes:
            self._tell_some()
        if self._deaths:
            self._worker._dead_hook.tell_all()
            while self._look_for_deaths_at <= time.monotonic():
                self._look_for_deaths()
                self._worker._dead_hook.tell_all()
