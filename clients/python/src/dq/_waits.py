"""Waits for the ends of jobs: one DQ.AWAIT for all of them, without I/O, threads or a clock."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Callable, Generic, NamedTuple, Optional, TypeVar

from redis.exceptions import ResponseError

from ._core import WAIT_S
from ._delivery import Command
from ._guard import Log
from ._scheduler import TURN_S
from ._trouble import is_final, refused
from .codec import Codec, decoded, id_from
from .errors import JobFailed

W = TypeVar("W")
_log = Log(logging.getLogger("dq"))
AGAIN_S = 0.02
"""How soon to check on a wait that the server's command does not cover yet."""


class End(NamedTuple):
    """How a job ended."""

    id: bytes
    outcome: str
    value: Optional[bytes]

    def result(self, codec: Codec) -> Any:
        """The result of the handler. Raises JobFailed if the job is not done."""
        if self.outcome == "done":
            return None if self.value is None else decoded(codec, self.value, f"result of job {id_from(self.id)!r}")
        reason = None if self.value is None else self.value.decode("utf-8", "replace")
        raise JobFailed(id_from(self.id), self.outcome, reason)


class Waits(Generic[W]):
    """The waits for jobs of one key. ``tell`` passes a waiter its ``End`` or an error."""

    def __init__(self, key: bytes, tell: Callable[[W, Any], None]) -> None:
        self.key = key
        self.covered: frozenset[bytes] = frozenset()
        """The ids of the command that waits now."""
        self._tell = tell
        self._wait_s = WAIT_S
        self._waiters: dict[bytes, list[W]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def add(self, id: bytes, waiter: W) -> None:
        self._waiters.setdefault(id, []).append(waiter)

    def remove(self, id: bytes, waiter: W) -> None:
        left = [each for each in self._waiters.get(id, ()) if each is not waiter]
        if left:
            self._waiters[id] = left
        else:
            self._waiters.pop(id, None)

    def left(self, id: bytes, left_s: float) -> float:
        """How long to sleep: to the end of the wait, but only briefly until the server's command covers this id."""
        return left_s if id in self.covered else min(left_s, AGAIN_S)

    def command(self) -> Command:
        ids = list(self._waiters)
        self.covered = frozenset(ids)
        return (b"DQ.AWAIT", self.key, self._wait_s, b"IDS", len(ids), *ids)

    def unblock(self, line: Any, control: Any) -> Optional[Command]:
        """The command that ends the wait of ``line``, unless that is to another server than ``control``."""
        if line.client_id is None or line.peer != control.peer or not self.covered or self._wait_s < WAIT_S:
            return None
        return (b"DQ.UNBLOCK", line.client_id)

    def unblocked(self, reply: Any) -> None:
        if isinstance(reply, ResponseError):
            self._wait_s = TURN_S
            text = "the server refuses DQ.UNBLOCK (%s): a new wait for a job begins up to %g s late"
            _log.say(logging.WARNING, text, reply, TURN_S)

    def answered(self, reply: Any) -> None:
        """Takes the reply of DQ.AWAIT. Raises an error that passes."""
        self.covered = frozenset()
        if isinstance(reply, ResponseError):
            if not is_final(reply):
                raise reply
            return self.failed(refused(reply, ("DQ.AWAIT", self.key)))
        rows: Sequence[Sequence[Any]] = reply or ()
        for id, outcome, value, *_ in rows:
            for waiter in self._waiters.pop(id, ()):
                self._tell(waiter, End(id, outcome.decode(), value))
        return None

    def failed(self, error: Exception) -> None:
        """Passes an error to all waiters."""
        waiters, self._waiters = self._waiters, {}
        self.covered = frozenset()
        for each in waiters.values():
            for waiter in each:
                self._tell(waiter, error)
