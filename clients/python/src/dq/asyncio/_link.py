"""The queues that one pair of connections serves, for programs with asyncio.

Each link has a task, the *ack batcher*: it sends what no fetch takes along within a millisecond, renews leases, and
asks what handlers want to know.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Optional

from redis.exceptions import ResponseError

from .. import _core, _trouble
from .._core import Fetches
from .._delivery import Command, Delivery
from .._errand import Errand, Part, packed, wait_s
from .._links import BaseLink, Members
from .._listening import Listening
from .._owner import Base
from ._line import Line
from ._within import within


class Link(BaseLink):
    def __init__(self, worker: Base, members: Members, fetches: Fetches) -> None:
        super().__init__(worker, members, fetches)
        self._worker = worker
        queue, key, _ = members[0]
        self._waiting = Line(queue.client, key, _core.ANSWER_S)
        self._control = Line(queue.client, key, _core.ANSWER_S)
        self._reading = Line(queue.client, key, _core.ANSWER_S)
        """For the hook of dead jobs."""
        self._one_at_a_time = asyncio.Lock()
        self._bell = asyncio.Event()
        self._armed = False
        self._timer: Optional[asyncio.TimerHandle] = None
        self._ear_timer: Optional[asyncio.TimerHandle] = None
        self._listeners: dict[Listening, Listener] = {}

    async def open(self) -> bool:
        """Connects if necessary. Called before places are claimed, so that a server that is away holds none of them."""
        try:
            await self._waiting.open()
            return True
        except Exception as error:
            await self._failed(error)
            return False

    async def _failed(self, error: Exception) -> None:
        self.trouble = error
        self._is_heard = False
        await self._waiting.close()
        self._beat_now()  # after a failover it may be another server
        self._worker._trouble(error)
        self._troubles += 1

    async def rest(self) -> None:
        """Waits trouble out, after a fetch or a failed ``open``. No places may be claimed meanwhile."""
        if self._troubles:
            await self._worker._rest(_trouble.trouble_s(self._troubles))

    async def fetch(self, count: int, wait_s: float) -> list[Delivery]:
        """Sends the outcomes since the last fetch, and waits for jobs. Never raises; ``rest`` must follow."""
        self._is_recalled = False  # that recall was for the previous fetch
        told = self._take_outcomes()
        self._fetched_at = time.monotonic()
        self._fetching = True
        try:
            asked = self._idle.asks() if self._idle.is_waiting else b""
            words = packed(told) + asked + self._fetches.packed(count, wait_s, self._fetched_at)
            answer_by = time.monotonic() + wait_s
            try:
                found, trouble = await within(self._exchange(told, words, answer_by), wait_s + _core.SLACK_S)
            except asyncio.TimeoutError:  # if the process was blocked, the reply may be there
                found, trouble = await within(self._answers(told, answer_by), _core.LATE_S)
            if trouble is not None and not found:
                raise trouble
            self._troubles = 0
            self._is_heard = True
            if not found or self._idle.is_waiting:
                self._idle.fetched(bool(found), time.monotonic() - self._fetched_at)
                self._fetches.fetched(bool(found), time.monotonic())
            return found
        except Exception as error:
            await self._failed(error)
            return []
        finally:
            self._fetching = False
            if told:
                self._put_back(told)
                self._ring()

    async def _exchange(
        self, told: deque[Part], words: bytes, answer_by: float
    ) -> tuple[list[Delivery], Optional[ResponseError]]:
        await self._waiting.send(words)
        return await self._answers(told, answer_by)

    async def _answers(self, told: deque[Part], answer_by: float) -> tuple[list[Delivery], Optional[ResponseError]]:
        trouble = await self._hear(self._waiting, told)
        while self._idle.asked:
            self._idle.heard(await self._waiting.read(), self._base)
        reply = await self._waiting.read()
        # The jobs are ours at the latest since the reply was due: the event loop may have been blocked since.
        return self._found(reply, min(time.monotonic(), answer_by + _core.LATE_S)), trouble

    def _beat_now(self) -> None:
        if self._leases.held or self._leases.unanswered:
            self._leases.beat_at = 0.0
            self._bell.set()

    def _wake(self) -> None:
        self._bell.set()
        self._look_later()

    def _wake_ears(self) -> None:
        if self._ear_timer is not None:
            self._ear_timer.cancel()
        wait_s = self._listen_at - time.monotonic()
        self._ear_timer = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._listen_now)

    def _listen_now(self) -> None:
        self._ear_timer = None
        self._listen(time.monotonic())
        if self._listen_at < math.inf:
            self._wake_ears()

    def _look_later(self) -> None:
        """Sets a timer for the next expiry, so that handlers are told whatever the batcher waits for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait_s = self._leases.look_at - time.monotonic()
        if wait_s < math.inf:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._look_now)

    def _look_now(self) -> None:
        self._timer = None
        self._look(time.monotonic())
        self._look_later()

    async def _hear(self, line: Line, told: deque[Part]) -> Optional[ResponseError]:
        """Reads the replies to outcomes; returns one that is an error. Outcomes without a reply stay in ``told``."""
        trouble: Optional[ResponseError] = None
        while told:
            first = told[0][0]
            try:
                for _ in first.ahead:
                    self._ahead_answered(await line.read())
                reply = await line.read()
            except OSError as error:
                first.cuts += _trouble.is_cut(error)
                raise
            part = told.popleft()
            trouble = (self._part_answered(part, reply) if first.is_plain else self._answered(first, reply)) or trouble
        if self._outcomes:
            self._ring()
        return trouble

    def _wake_courier(self) -> None:
        self._bell.set()

    def _ring(self) -> None:
        """Wakes the batcher: at once if there are many outcomes, else in a millisecond, for a fetch to take along."""
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_later(_core.FLUSH_AFTER_S, self._bell.set)
        if len(self._outcomes) >= _core.FLUSH_COUNT:
            self._bell.set()

    async def carry(self) -> None:
        """The batcher."""
        self.is_kept = True
        troubles = 0
        while True:
            try:
                # Before it is needed: a server that stands still connects nobody, but later reads what was written.
                await self._open()
                with contextlib.suppress(asyncio.TimeoutError):
                    await within(self._bell.wait(), wait_s(self._wake_at))
                self._bell.clear()
                self._armed = False
                # Heartbeats first, so that a command that the server refuses does not keep leases from being renewed.
                await self._beat()
                await self._tell_some()  # before errands: a full server may refuse those, and ends free memory
                await self._recall()
                await self._run_errands()
                await self._look_for_deaths()
                troubles = 0
            except asyncio.CancelledError as stopped:
                await self._control.leave(stopped)  # it may hold unread replies
                raise
            except Exception as error:
                await self._control.leave(error)
                self._is_heard = False
                self._notes.unsent()
                self._worker._trouble(error)
                troubles += 1
                await asyncio.sleep(_trouble.trouble_s(troubles))
                self._beat_now()  # as soon as there is a connection again
                self._bell.set()

    async def _open(self) -> None:
        async with self._one_at_a_time:
            await self._control.open()

    async def _recall(self) -> None:
        if self._is_unblocking:
            await self._unblocking()

    async def _tell_some(self) -> None:
        told = self._take_outcomes(_core.TELL_AT_ONCE)
        if not told:
            return
        try:
            trouble = await within(self._tell(told), self._answer_s)
        finally:
            self._put_back(told)
        if trouble is not None:
            raise trouble

    async def _tell(self, told: deque[Part]) -> Optional[ResponseError]:
        async with self._one_at_a_time:
            await self._control.send(packed(told))
            return await self._hear(self._control, told)

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        async with self._one_at_a_time:
            return await within(self._control.ask(list(commands)), self._answer_s)

    async def _beat(self) -> None:
        sent = time.monotonic()
        beats, notes = self._leases.beats(sent), self._notes.due(sent)
        if not beats and not notes:
            return
        replies = await self._ask([*(command for command, _ in beats), *(command for command, _, _ in notes)])
        for (_, group), reply in zip(beats, replies):
            self._beaten(group, reply, sent)
        for (_, delivery, text), reply in zip(notes, replies[len(beats) :]):
            self._noted(delivery, text, reply)
        self._is_heard = True

    async def _run_errands(self) -> None:
        while (errand := self._errands.take()) is not None:
            try:
                errand.answered(await self._ask(errand.commands))
            except BaseException as error:
                self._errands.put_off(errand, error)
                raise

    async def _look_for_deaths(self) -> None:
        """One question for each queue at a time, so that many deaths hold up no heartbeat."""
        for deaths in self._deaths.values():
            if commands := deaths.asks(time.monotonic()):
                self._heard_of(deaths, commands, await self._ask(commands))

    async def ask(self, delivery: Delivery, commands: Sequence[Command]) -> list[Any]:
        """Sends a handler's commands, and returns the replies."""
        if not self.is_kept:  # in tests
            errand = Errand(commands)
            errand.answered(await self._ask(commands))
            return errand.answers()
        answered = asyncio.Event()
        errand = Errand(commands, answered.set)
        delivery.job._listen(answered.set)
        self._errands.add(errand)
        self._bell.set()
        await answered.wait()
        if errand.replies is None:
            delivery.job.check()
        return errand.answers()

    async def ready(self, key: bytes, call: Any) -> Command:
        """The command, once the hooks of its queue were awaited."""
        return await self._queues[key]._ready(call)  # type: ignore[no-any-return]

    # --- Hearing of cancellations

    def _cover(self, listening: Listening) -> None:
        listener = self._listeners.get(listening)
        if listener is None:
            queue, key = self._queues[listening.key], listening.key
            listener = self._listeners[listening] = Listener(self, listening, Line(queue.client, key, _core.ANSWER_S))
        listener.wanted.set()
        if listening.covered:
            self._wake_ear(listener.line)

    async def withdraw(self) -> None:
        """Ends the waiting fetch. A job that is handed out at that moment is read, and given back.

        Without that right, or where the connection is to another server than the command would be, the connection is
        closed.
        """
        troubles, patience = 0, time.monotonic() + _core.TELLING_S
        while self._fetching:
            try:
                reply = await self._unblocking(self._waiting)
                if reply is None:
                    await self._waiting.close()
                # At 0, perhaps CLIENT PAUSE holds the fetch back.
                await asyncio.sleep(_core.UNBLOCK_EVERY_S if reply == 0 else 0.005)
                troubles, patience = 0, time.monotonic() + _core.TELLING_S
            except Exception as error:
                await self._control.leave(error)
                if time.monotonic() >= patience:  # nothing is heard of the server
                    await self._waiting.close()
                troubles += 1
                await asyncio.sleep(_trouble.trouble_s(troubles))

    async def _unblocking(self, *lines: Line) -> Optional[int]:
        """Ends the waits of these connections, and returns how many were ended; None if that cannot be asked for."""
        async with self._one_at_a_time:
            await self._control.open()
            command = self._unblock(*lines)
            if command is None:
                return None
            answer_s = min(self._answer_s, _core.TELLING_S)
            return self._unblocked((await within(self._control.ask([command]), answer_s))[0])

    async def finish(self) -> None:
        """Sends all outcomes that are left, and gives back all jobs that are left."""
        for listener in self._listeners.values():
            listener.task.cancel()
        self._leave()
        troubles = 0
        while self._has_more:
            try:
                if self._returns:
                    await self._ask(self._returns)
                    self._returns = []
                await self._tell_some()
            except Exception as error:
                await self._control.leave(error)
                if _trouble.fatal(error) is not None:
                    return
                troubles += 1
                await asyncio.sleep(_trouble.trouble_s(troubles))

    async def close(self) -> None:
        for timer in (self._timer, self._ear_timer):
            if timer is not None:
                timer.cancel()
        for listener in self._listeners.values():
            await listener.end()
        await self._waiting.close()
        if self._returns or self._outcomes or self._leases.held:
            self._control.last(self._last_words())
        await self._control.close()

    async def flush(self) -> None:
        """For tests, without a batcher."""
        while self._outcomes:
            await self._tell_some()
        if self._deaths:
            await self._worker._dead_hook.tell_all()
            while self._look_for_deaths_at <= time.monotonic():
                await self._look_for_deaths()
                await self._worker._dead_hook.tell_all()


class Listener:
    """Waits at the server, on its own connection, for the loss of jobs of one queue."""

    def __init__(self, link: Link, listening: Listening, line: Line) -> None:
        self.line = line
        self.wanted = asyncio.Event()
        self._link = link
        self._listening = listening
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        troubles = 0
        while not self._listening.is_off:
            self.wanted.clear()
            command = self._link._begin_to_hear(self._listening)
            if command is None:
                await self.wanted.wait()
                continue
            try:
                sent = time.monotonic()
                (reply,) = await within(self.line.ask([command]), self._listening.wait_s + _core.SLACK_S)
                self._link._heard(self._listening, reply, sent)
                troubles = 0
            except Exception as error:
                await self.line.close()
                self._link._listening_failed(self._listening, error)
                troubles += 1
                await asyncio.sleep(_trouble.trouble_s(troubles))
        await self.line.close()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.line.close()
