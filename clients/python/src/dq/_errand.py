"""What a link sends: commands of handlers that wait, and ends of jobs; and to which server."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional

from redis.exceptions import ResponseError

from . import _trouble
from ._core import LAST_BYTES, pack
from ._delivery import Command
from ._ends import MOST_CUTS, STILL_RUNS_DELAY_S, Outcome, acks
from .errors import Cancelled
from .times import to_ms


class Errand:
    """Commands for the batcher: those of a handler that waits, or (with ``done``) some that may be repeated."""

    def __init__(self, commands: Sequence[Command], done: Optional[Callable[[], Any]] = None, bears: str = "-") -> None:
        """bears: what a reply begins with that passes, but that the errand does not wait for."""
        self.commands = commands
        self._bears = bears
        self.cuts = 0
        self.replies: Optional[list[Any]] = None
        self.is_repeatable = done is not None
        self._done = done

    def answered(self, replies: list[Any]) -> None:
        """Takes the replies. Raises an error that passes: the errand is sent again."""
        for reply in replies:
            if not isinstance(reply, ResponseError) or str(reply).startswith(self._bears):
                continue
            if not _trouble.is_final(reply) and not _trouble.is_refusal(reply):
                raise reply
        self.end(replies)

    def end(self, replies: Optional[list[Any]]) -> None:
        self.replies = replies
        if self._done is not None:
            self._done()

    def answers(self) -> list[Any]:
        """The replies. Raises the server's error."""
        if self.replies is None:
            raise Cancelled("stopping")
        for command, reply in zip(self.commands, self.replies):
            if isinstance(reply, ResponseError):
                raise _trouble.refused(reply, command)
        return self.replies


class Errands:
    """Those that are to be sent."""

    def __init__(self) -> None:
        self._waiting: deque[Errand] = deque()

    def add(self, errand: Errand) -> None:
        self._waiting.append(errand)

    def take(self) -> Optional[Errand]:
        return self._waiting.popleft() if self._waiting else None

    def put_off(self, errand: Errand, error: BaseException) -> None:
        """Keeps an errand whose connection was lost, if it may be sent again and did not cut the connection twice."""
        errand.cuts += _trouble.is_cut(error)
        if errand.cuts >= MOST_CUTS:
            errand.end([ResponseError("ERR the commands cut the connection twice: they may be too large")])
        elif errand.is_repeatable:
            self._waiting.appendleft(errand)

    def end(self) -> None:
        while (errand := self.take()) is not None:
            errand.end(None)


def reach(client: Any, key: bytes) -> str:
    """Equal for keys that one connection can wait for. It is part of each job's name, so it is a text: hashed only
    once."""
    if hasattr(client, "keyslot"):
        return repr((id(client), client.keyslot(key)))
    settings = client.connection_pool.connection_kwargs
    user = settings.get("username") or getattr(settings.get("credential_provider"), "username", None)
    place = (*(settings.get(name) for name in ("host", "port", "path", "db")), user)
    return repr(place if settings.get("host") or settings.get("path") else id(client))


Part = list[Outcome]
"""What has one reply."""


class Outcomes(deque[Outcome]):
    """Those that the server must still be told."""

    first_at = 0.0
    """When the first of them came."""

    def take(self, count: float = math.inf) -> deque[Part]:
        """All jobs of a queue that are done without a result share one ACK."""
        parts: deque[Part] = deque()
        done: dict[bytes, Part] = {}
        while count > 0:
            count -= 1
            try:
                outcome = self.popleft()
            except IndexError:  # two threads take: another may have had the last
                break
            others = done.get(outcome.delivery.key) if outcome.is_plain else None
            if others is not None:
                others.append(outcome)
                continue
            parts.append([outcome])
            if outcome.is_plain:
                done[outcome.delivery.key] = parts[-1]
        return parts


def packed(told: Iterable[Part]) -> bytes:
    commands: list[Command] = []
    for part in told:
        if len(part) > 1:
            commands.append(acks(part))
        else:
            commands += part[0].ahead
            commands.append(part[0].command)
    return pack(commands)


def wait_s(until: float) -> Optional[float]:
    return None if until == math.inf else max(0.0, until - time.monotonic())


def parting(command: Command) -> Command:
    """What is given back waits for a while, as the server may read the last fetch after this, and before it knows that
    the connection is closed."""
    is_back = command[0] == b"DQ.NACK" and command[-1] == b"SILENT" and command[-2] != b"REASON"
    return (*command, b"DELAY", to_ms(STILL_RUNS_DELAY_S)) if is_back else command


def last_words(returns: Iterable[Command], outcomes: Iterable[Outcome]) -> bytes:
    words = pack([parting(each) for each in returns])
    for outcome in sorted(outcomes, key=lambda each: each.size):
        if len(words) + outcome.size > LAST_BYTES:
            break
        words += pack([*outcome.ahead, parting(outcome.command)])
    return words
