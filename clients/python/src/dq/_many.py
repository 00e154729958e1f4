"""Many jobs in few commands, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ._delivery import Command

MOST_JOBS = 1000
MOST_BYTES = 1 << 20


class Added:
    """A job to be added."""

    __slots__ = ("call", "is_after", "is_plain", "known")

    def __init__(self, call: Any, known: Optional[bytes], is_after: bool, is_plain: bool) -> None:
        self.call = call
        """The command, or the steps to it."""
        self.known = known
        """The id to return if the reply is nil: an earlier sending added the job."""
        self.is_after = is_after
        self.is_plain = is_plain
        """It can share a command with jobs of equal options."""


class Grouped:
    """Packs jobs of one key with equal options into DQ.MADD commands. The order of each key's jobs is kept."""

    def __init__(self, made: Sequence[Added]) -> None:
        self._made = made
        self.is_atomic = any(each.is_after for each in made)
        self._places: list[list[int]] = []
        """The jobs that each command adds, by index."""

    def commands(self, calls: Sequence[Command]) -> list[Command]:
        chunks: list[_Chunk] = []
        latest: dict[bytes, _Chunk] = {}
        for at, (call, added) in enumerate(zip(calls, self._made)):
            key = call[1]
            chunk = latest.get(key) if added.is_plain else None
            if chunk is not None and chunk.takes(at, call):
                continue
            chunk = _Chunk(at, call)
            chunks.append(chunk)
            if added.is_plain:
                latest[key] = chunk
            else:
                latest.pop(key, None)
        self._places = [chunk.places for chunk in chunks]
        return [chunk.command() for chunk in chunks]

    def replies(self, replies: Sequence[Any]) -> list[Any]:
        """One reply for each job."""
        found: list[Any] = [None] * len(self._made)
        for places, reply in zip(self._places, replies):
            for place, each in zip(places, reply if len(places) > 1 else [reply]):
                found[place] = each
        return found


class _Chunk:
    """Jobs that one command adds."""

    __slots__ = ("_first", "_options", "_rows", "_size", "places")

    def __init__(self, at: int, call: Command) -> None:
        self.places = [at]
        self._first, self._options = call, call[4:]
        self._rows = [*call[2:4]]
        self._size = len(call[2]) + len(call[3])

    def takes(self, at: int, call: Command) -> bool:
        size = self._size + len(call[2]) + len(call[3])
        if size > MOST_BYTES or len(self.places) >= MOST_JOBS or call[4:] != self._options:
            return False
        self._size = size
        self._rows += call[2:4]
        self.places.append(at)
        return True

    def command(self) -> Command:
        if len(self.places) == 1:
            return self._first
        return ("DQ.MADD", self._first[1], len(self.places), *self._rows, *self._options)
