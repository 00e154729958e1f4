"""What an inline queue has instead of a server: jobs that were run and jobs that wait, without I/O."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Callable, NamedTuple, Optional

from .. import _guard
from .._arguments import after_of
from .._core import Handlers
from .._delivery import Command, Delivery
from .._texts import reason
from ..codec import Codec
from ..errors import DqError
from ..job import BaseJob

TTR_MS = 60_000


class Run(NamedTuple):
    """A handler to be called. Its result is sent back; its error is thrown in."""

    function: Callable[..., Any]
    argument: Any


SUSPENDED: Any = object()
"""Sent back in place of a result."""

Runs = Generator[Run, Any, Any]


class Kept:
    """A job."""

    def __init__(self, id: bytes, payload: bytes) -> None:
        self.id = id
        self.payload = payload
        self.state = "ready"
        self.value: Optional[bytes] = None
        """The result, or the reason."""
        self.steps: dict[bytes, bytes] = {}
        self.after: list[bytes] = []
        self.results: list[list[Any]] = []
        self.awaits: Optional[bytes] = None
        self.has_limit = False
        """Its wait for a signal has a timeout."""
        self.delivery: Optional[Delivery] = None
        """Its last delivery."""


class Memory:
    """Takes the place of the link of its deliveries."""

    place = "inline"

    def __init__(self, key: bytes, codec: Codec, handlers: Handlers, made: type[BaseJob], child: Any) -> None:
        self.key = key
        self.jobs: list[Any] = []
        self.kept: dict[bytes, Kept] = {}
        self.child = child
        self._codec = codec
        self._handlers = handlers
        self._made = made

    # --- What a job asks of its link

    def holds(self, delivery: Delivery) -> bool:
        return True

    def lose(self, deliveries: Iterable[Delivery]) -> None:
        pass

    def show_progress(self, delivery: Delivery, text: bytes) -> None:
        pass

    def answer(self, commands: Sequence[Command]) -> list[Any]:
        return [self._step(command) for command in commands]

    def _step(self, command: Command) -> int:
        if command[0] == b"DQ.TOUCH":  # sets a cost, but an inline queue has no rates
            return 1
        if command[0] != b"DQ.STEP":
            raise DqError(f"{command[0].decode()} needs a server: see dq.testing.TestServer")
        _, _, id, _, name, value = command
        self.kept[id].steps[name] = value
        return 1

    # --- Commands of the queue

    def command(self, command: Command) -> Runs:
        """Carries out a command, and returns its reply."""
        name, _, id, *rest = command
        found = self.kept.get(id)
        if name == "DQ.ADD":
            yield from self._run(self._added(command))
            return id
        if name == "DQ.SIGNAL":
            return (yield from self._signalled(found, *rest)) if found else None
        if name == "DQ.GET":
            return found and {b"state": found.state.encode(), b"result": found.value, b"reason": found.value}
        if name == "DQ.DEL":
            return int(self.kept.pop(command[4], None) is not None)  # IDS 1 id
        raise DqError(f"{name} needs a server: see dq.testing.TestServer")

    def _added(self, command: Command) -> Kept:
        _, _, id, payload, *options = command
        kept = self.kept[id] = Kept(id, payload)
        kept.after = list(after_of(options))
        return kept

    def _signalled(self, kept: Kept, name: bytes, value: bytes = b"") -> Runs:
        if kept.state not in ("ready", "waiting"):
            return None
        if name in kept.steps:
            return 0
        kept.steps[name] = value
        if kept.awaits == name:
            yield from self._run(kept)
        return 1

    def pass_time(self) -> Runs:
        """Ends all waits that have a timeout, as if it was over."""
        for kept in list(self.kept.values()):
            if kept.state == "waiting" and kept.has_limit:
                yield from self._run(kept)

    # --- Running

    def _run(self, kept: Kept) -> Runs:
        """Runs attempts of a job until it ends or waits."""
        kept.state, kept.awaits = "ready", None
        while self._is_free(kept):
            run = self._delivered(kept)
            try:
                value = yield run
                is_done = value is not SUSPENDED and value is not None
                result, trouble = _guard.encoded(self._codec, value) if is_done else (None, None)
                if trouble is not None:
                    raise DqError((_guard.unencodable(reason(trouble)).reason or b"").decode())
            except Exception as error:
                yield from self._ended(kept, "dead", reason(error))
                raise
            if value is not SUSPENDED:
                yield from self._ended(kept, "done", result)
                return
            if not (yield from self._goes_on(kept)):
                return

    def _is_free(self, kept: Kept) -> bool:
        if not kept.after:
            return True
        others = [self.kept.get(id) for id in kept.after]
        if not all(other is None or other.state in ("done", "dead") for other in others):
            kept.state = "waiting"
            return False
        kept.results = [
            [id, other.state.encode() if other else b"deleted", other and other.value]
            for id, other in zip(kept.after, others)
        ]
        kept.after = []
        return True

    def _delivered(self, kept: Kept) -> Run:
        now = int(time.time() * 1000)
        terms = (TTR_MS, 0, None)
        row = (kept.id, kept.payload, b"1", 1, now + TTR_MS, now, kept.results, dict(kept.steps), terms)
        delivery = kept.delivery = Delivery(self.key, row, self)
        job = delivery.job = self._made(delivery, self._codec)
        handler = delivery.handler = self._handlers.choose(job)
        if handler is None:
            raise DqError(f"no handler for jobs of kind {job.kind!r}")
        self.jobs.append(job)
        return Run(handler.function, [job] if handler.batch else job)

    def _goes_on(self, kept: Kept) -> Runs:
        """Carries out what suspended the attempt. Returns whether the next attempt begins at once."""
        if kept.delivery is None or kept.delivery.suspension is None:
            return True
        _, ahead, nack = kept.delivery.suspension
        children = []
        for command in ahead:
            if command[0] == b"DQ.STEP":
                self._step(command)
            elif command[2] not in self.kept:
                children.append(self._added(command))
        for child in children:
            try:
                yield from self._run(child)
            except Exception:  # the child is dead: its parent is told
                continue
        options = nack[6:]
        if options[0] == b"AWAIT" and options[1] not in kept.steps:
            kept.state, kept.awaits, kept.has_limit = "waiting", options[1], b"DELAY" in options
            return False
        if options[0] == b"AFTER":
            kept.after = list(options[2 : 2 + options[1]])
        return True

    def _ended(self, kept: Kept, state: str, value: Optional[bytes]) -> Runs:
        kept.state, kept.value = state, value
        for other in list(self.kept.values()):
            if kept.id in other.after and other.state == "waiting":
                yield from self._run(other)
