"""Many jobs in few commands, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from ._delivery import Command

MOST_JOBS = 1000
MOST_BYTES = 1 << 20


class Added(NamedTuple):
    """A job that is to be added."""

    call: Any
    """The command, or the steps to it."""
    known: Optional[bytes]
    """Its id, where nil means that it is there already."""
    is_after: bool
    is_plain: bool
    """It can go along with others of equal options."""


class Grouped:
    """DQ.MADD for jobs of one key whose options are equal, in chunks; the order of each key's jobs stays."""

    def __init__(self, made: Sequence[Added]) -> None:
        self._made = made
        self.is_atomic = any(each.is_after for each in made)
        self._places: list[list[int]] = []
        """Which jobs each command adds."""

    def commands(self, calls: Sequence[Command]) -> list[Command]:
        groups: list[list[Command]] = []
        latest: dict[bytes, int] = {}
        sizes: list[int] = []
        for at, (call, added) in enumerate(zip(calls, self._made)):
            key, size = call[1], len(call[2]) + len(call[3])
            found = latest.get(key) if added.is_plain else None
            if found is not None and self._fits(groups[found], call, sizes[found] + size):
                groups[found].append(call)
                sizes[found] += size
                self._places[found].append(at)
                continue
            if added.is_plain:
                latest[key] = len(groups)
            else:
                latest.pop(key, None)
            groups.append([call])
            sizes.append(size)
            self._places.append([at])
        return [_joined(group) for group in groups]

    def _fits(self, group: list[Command], call: Command, size: int) -> bool:
        return len(group) < MOST_JOBS and size <= MOST_BYTES and group[0][4:] == call[4:]

    def replies(self, replies: Sequence[Any]) -> list[Any]:
        """One for each job."""
        found: list[Any] = [None] * len(self._made)
        for places, reply in zip(self._places, replies):
            for place, each in zip(places, reply if len(places) > 1 else [reply]):
                found[place] = each
        return found


def _joined(group: list[Command]) -> Command:
    if len(group) == 1:
        return group[0]
    rows = [word for call in group for word in call[2:4]]
    return ("DQ.MADD", group[0][1], len(group), *rows, *group[0][4:])
