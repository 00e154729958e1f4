"""Many jobs in few commands, without I/O."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Callable, Optional

from redis.exceptions import ConnectionError, TimeoutError

from ._delivery import Command, as_map
from ._trouble import trouble_s
from .errors import Refused

MOST_JOBS = 1000
MOST_AFTER = 1000
"""How many jobs one may be after."""
TRIES = 5
MOST_BYTES = 1 << 20


ENDED = (b"done", b"dead")


class Unanswered(Exception):
    """The answer to a transaction was lost. After its cause, the client would send the transaction again itself."""


LOST = (ConnectionError, TimeoutError, Unanswered)
"""Errors after which nobody knows whether the server has carried out a command."""


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
        self.calls = [each.call for each in made]
        self.is_atomic = any(each.is_after for each in made)
        self.is_once = False
        """If the answer to the transaction is lost, the client must not send it again itself."""
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

    def partly(self, error: Exception, replies: Sequence[Any]) -> Exception:
        """The error of one command, which says how many jobs the others have added: not even EXEC takes those back."""
        pairs = [each for each in zip(self._places, replies) if not isinstance(each[1], Exception)]
        added = sum(id is not None for places, reply in pairs for id in (reply if len(places) > 1 else [reply]))
        if added:
            error.args = (f"{error}; {added} of {len(self._made)} jobs were added",)
        return error

    def replies(self, replies: Sequence[Any]) -> list[Any]:
        """One reply for each job."""
        found: list[Any] = [None] * len(self._made)
        for places, reply in zip(self._places, replies):
            for place, each in zip(places, reply if len(places) > 1 else [reply]):
                found[place] = each
        return found


def sent_once(
    grouped: Grouped, given: Optional[tuple[bytes, bytes]], kept_s: float, clock: Callable[[], float]
) -> Generator[Any, Any, list[Any]]:
    """Sends jobs of one transaction; returns a reply for each.

    If the answer is lost, it asks for the last job: if that is there, so are the others. They are sent again only if
    it is not, and none of the others ran. Yields what is to be sent, or how long to wait, and is thrown errors of the
    connection.

    given: key and id of the last job if the id is the program's: such a job may be there already.
    kept_s: how long the last job is there at least. Later on, that it is not there says nothing.
    """
    grouped.is_once = True
    before = as_map((yield [_look(*given)])[0]) if given else None
    # A job that is still to run is not replaced: what becomes of it tells nothing of this join.
    is_hidden = before is not None and before[b"state"] not in ENDED
    begun = clock()
    for tries in range(1, TRIES + 1):
        try:
            return (yield grouped)  # type: ignore[no-any-return]
        except LOST as error:
            lost = error
        found, *others = yield from _looked(grouped, tries, lost)
        if found is not None and found != before and not is_hidden:
            return [each[2] for each in grouped.calls]
        is_late = found is None and clock() - begun >= kept_s
        have_run = any(job is not None and (job[b"attempts"] or job[b"state"] in ENDED) for job in others)
        if is_late or is_hidden or have_run or (found is None and (yield from _is_bounded(grouped.calls[-1][1]))):
            break
    raise _unsure(lost) from lost


def _look(key: bytes, id: bytes) -> Command:
    return ("DQ.GET", key, id, "PREFIX", 0)


def _looked(grouped: Grouped, tries: int, lost: Exception) -> Generator[Any, Any, list[Any]]:
    """The jobs as they are now, the last one first."""
    looks = [_look(key, id) for _, key, id, *_ in reversed(grouped.calls)]
    for times in range(tries, TRIES + 1):
        yield trouble_s(times)
        try:
            return [*map(as_map, (yield looks))]
        except LOST as error:
            newest = error
        except Refused as error:
            raise _unsure(lost) from error
    raise _unsure(newest) from lost


def _is_bounded(key: bytes) -> Generator[Any, Any, bool]:
    """Whether a job that has ended may go before its ``keep`` is over, as others end."""
    try:
        settings = as_map((yield [("DQ.CFGGET", key)])[0]) or {}
    except (*LOST, Refused):
        return True
    return any(settings.get(limit) for limit in (b"donelen", b"donebytes", b"deadlen"))


def _unsure(lost: Exception) -> Exception:
    cause = lost.__cause__ if isinstance(lost, Unanswered) else lost
    kind = TimeoutError if isinstance(cause, TimeoutError) else ConnectionError
    return kind(f"{cause}: it is not known whether the jobs were added")


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
