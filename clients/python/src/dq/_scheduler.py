"""Which link fetches next, if several share the places for jobs, and when none does, without I/O, threads or a clock.

A fetch that waits holds places that ready jobs of another link may need, so it can be recalled.
"""

from __future__ import annotations

import math
from typing import Any, Optional

TURN_S = 0.25
"""How long a link waits for its next turn if its fetch was recalled and found nothing. Also how long a fetch waits that
cannot be recalled."""

HOLD_S = 0.025
"""How long a fetch may wait before it can be recalled. With many links it is less, so that a link with jobs has half of
the time."""

SHORTEST_ISOLATION_S = 1.0
LONGEST_ISOLATION_S = 86_400.0
NEVER = -math.inf


def hold_s(links: int) -> float:
    return min(HOLD_S, TURN_S / (2 * links))


class LinkScheduler:
    def __init__(self, links: int) -> None:
        self._hold_s = hold_s(links)
        self._due: dict[Any, float] = {}
        """When each link that wants to fetch has its turn."""
        self._out: dict[Any, float] = {}
        """When each link that fetches began, or was last recalled."""
        self._recalled: set[Any] = set()
        self._later: dict[Any, float] = {}
        """The earliest next turn of links whose fetch was recalled and found nothing."""

    def want(self, link: Any, now: float) -> None:
        self._due[link] = max(now, self._later.get(link, now))

    def is_first(self, link: Any, now: float) -> bool:
        """Whether it is the link's turn."""
        due = self._due[link]
        return due <= now and due == min(self._due.values())

    def begin(self, link: Any, now: float) -> None:
        del self._due[link]
        self._later.pop(link, None)
        self._out[link] = now

    def end(self, link: Any, now: float, is_empty: bool) -> None:
        del self._out[link]
        if link in self._recalled and is_empty:
            self._later[link] = now + TURN_S
        self._recalled.discard(link)

    def recall(self, now: float) -> Optional[Any]:
        """The link whose fetch must end because another link has its turn and no place is free; None if none must."""
        if now < self._recall_at():
            return None
        late = min(self._out, key=self._out.__getitem__)
        self._recalled.add(late)
        self._out[late] = now
        return late

    def look_at(self, link: Any, now: float) -> float:
        """When the link, which may not fetch now, should try again at the latest."""
        if self.is_first(link, now):
            return self._recall_at()
        return due if (due := self._due[link]) > now else math.inf

    def _recall_at(self) -> float:
        """When a fetch may be recalled. One at a time: a link that was recalled has time to return."""
        waiting = min(self._out.values(), default=math.inf)
        return max([waiting, *(self._out[link] for link in self._recalled)]) + self._hold_s


class Isolation:
    """When nothing is fetched until nothing is in hand, and then one job, as one may have ended its workers.

    In hand, that job would lose its last attempt with the next one that ends the worker. So it waits in the server,
    where an idle worker finds it at once. No worker holds it, so no two can wait for each other.

    It lasts for ``patience_s`` at most, for a handler that takes longer must not keep all the others idle. For as long
    other jobs are fetched then, and that one is delayed: it has the next try.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = min(max(patience_s, SHORTEST_ISOLATION_S), LONGEST_ISOLATION_S)
        self.until = NEVER
        """When it ends, or ended."""

    def want(self, now: float) -> float:
        """A job that is to run alone is given back, as others are in hand. Returns by how much it is delayed."""
        if now >= self.until + self._patience_s:
            self.until = now + self._patience_s
        return 0.0 if self.is_on(now) else self.until + self._patience_s - now

    def is_on(self, now: float) -> bool:
        return now < self.until

    def look_at(self, now: float) -> float:
        """When it ends, if it is on."""
        return self.until if self.is_on(now) else math.inf

    def end(self) -> None:
        self.until = NEVER


BRIEF_S = 50e-6
"""A handler that takes less, this library's part included, is over before another thread has begun."""

MOST_BRIEF_S = 0.001
"""How long others wait at most for a thread that was to run all."""


class Brevity:
    """Whether handlers took so little time last that one thread is to run all: to wake another would take longer."""

    def __init__(self) -> None:
        self.is_on = self.is_watched = False
        self._found, self._found_at = 0, 0.0
        """How many jobs the last fetch brought, and when."""

    def found(self, count: int, now: float) -> None:
        self._found, self._found_at = count, now

    def goes_on(self, busy: int, now: float) -> None:
        """The thread that fetched them fetches again, while so many handlers run."""
        self.is_on = self._found > 1 and not busy and now - self._found_at < BRIEF_S * self._found

    def look_at(self, now: float) -> float:
        """When the thread takes longer than that, so that others must be woken; infinity if it does."""
        look_at = self._found_at + MOST_BRIEF_S
        self.is_watched = self.is_on and now < look_at
        return look_at if self.is_watched else math.inf
