"""Fetch commands, and which handler gets a job, without I/O, threads or a clock."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import hiredis
import redis
from redis.exceptions import ResponseError

from ._delivery import Command
from ._leases import Choice
from .codec import ENVELOPE_VERSION
from .errors import ConfigurationError
from .handler import Handler
from .job import BaseJob

DRAIN_S = 25.0
WAIT_S = 5.0
"""How long one BPOP waits; then it is sent again, so a connection that hangs is noticed."""

SLACK_S = 5.0
"""How much longer than its wait a BPOP may take on a slow network."""

LATE_S = 0.02
"""How long to look for a reply that came in time while the event loop was blocked."""

ANSWER_S = 5.0
"""How long all other replies may take."""

SHORTEST_ANSWER_S = 0.2
LONGEST_TIMEOUT_S = 2_000_000.0
"""Of a socket: the system counts its milliseconds in 31 bits."""

UNBLOCK_EVERY_S = 0.05
"""How often a worker that stops asks the server to end a wait that it does not find."""

NO_WAIT_S = 0.001
FLUSH_AFTER_S = 0.001
FLUSH_COUNT = 100
TELL_AT_ONCE = 500
"""How many outcomes the batcher sends at a time: a heartbeat may be due afterwards."""

LAST_BYTES = 1 << 20
LAST_S = 0.2
"""How long and how much a worker that stops writes to a server that does not answer."""

HOOK_S = 0.25
"""How long a worker that has stopped waits for its hooks, at least."""

TELLING_S = 1.0
"""The time after the drain: half of it for handlers that were told to stop, half for the server."""


NOT_YET: Any = object()
READ_BYTES = 1 << 16


def pack(commands: Iterable[Command]) -> bytes:
    """Packs commands without redis-py's checks: they hold bytes, texts and numbers only."""
    return b"".join(map(hiredis.pack_command, commands))


def reader() -> hiredis.Reader:
    """Its replies are bytes, numbers and lists; an error of the server is a ResponseError."""
    return hiredis.Reader(replyError=ResponseError, notEnoughData=NOT_YET)


def need(connection: Any, *names: str) -> None:
    """Checks for attributes that are private to redis-py: a new version may lack them."""
    for name in names:
        if not hasattr(connection, name):
            raise ConfigurationError(
                f"redis-py {redis.__version__} is newer than this library: its connections have no {name}. "
                "Install redis-py older than version 9, or a newer dq-redis"
            )


# --- Fetching


_WITH = (b"WITHDUE", b"WITHRESULTS", b"WITHSTEPS", b"WITHTERMS")


class Fetches:
    """The fetch commands of one waiting connection."""

    def __init__(
        self,
        keys: Sequence[bytes],
        weights: Optional[Sequence[float]],
        lease: Choice,
        fill: Optional[tuple[int, int]] = None,
    ) -> None:
        self._keys = tuple(keys)
        self._weights = weights
        self._lease = lease.words()
        self._packed: dict[tuple[int, float], bytes] = {}
        self._fill = fill
        self._since: Optional[float] = None
        """When the first of the calls began that had to give way while they waited for a batch."""
        self._began = self._over_at = 0.0
        """Of the current call."""

    def packed(self, count: int, wait_s: float, now: float) -> bytes:
        """A packed fetch command. If the order of keys never changes it is packed once, as a fetch follows each job."""
        self._began, self._over_at = now, now + wait_s
        if self._weights is not None or self._since is not None:
            return pack([self.command(count, wait_s, now)])
        kept = self._packed.get((count, wait_s))
        if kept is None:
            kept = self._packed[count, wait_s] = pack([self.command(count, wait_s, now)])
        return kept

    def command(self, count: int, wait_s: float, now: float) -> Command:
        return (b"DQ.BPOP", *self._order(), wait_s, b"COUNT", count, *self._filling(count, now), *self._lease, *_WITH)

    def _filling(self, count: int, now: float) -> Command:
        if self._fill is None or count < 2:
            return ()
        jobs, ms = self._fill
        waited_ms = 0 if self._since is None else int((now - self._since) * 1000)
        return (b"FILL", min(jobs, count), max(1, ms - waited_ms))

    def fetched(self, is_any: bool, now: float) -> None:
        """If the call neither got jobs nor lasted as long as it could, the next one goes on with its wait."""
        is_over = is_any or now >= self._over_at
        self._since = None if is_over or self._fill is None else self._since or self._began

    def _order(self) -> Sequence[bytes]:
        """BPOP itself serves keys in strict order. With weights each queue comes first in its share of the fetches."""
        if self._weights is None:
            return self._keys
        draws = [random.random() ** (1 / weight) for weight in self._weights]
        return [key for _, key in sorted(zip(draws, self._keys), reverse=True)]


# --- Which handler


class Handlers:
    """The handlers of a worker, by kind."""

    def __init__(self, handlers: Iterable[Handler[Any]]) -> None:
        self.default: Optional[Handler[Any]] = None
        self.kinds: dict[str, Handler[Any]] = {}
        self.size = 1
        """How many jobs the largest batch has."""
        self.mixed = False
        """Some handlers take batches and some do not."""
        for handler in handlers:
            self.add(handler)

    def add(self, handler: Handler[Any]) -> None:
        if handler.kind is not None:
            if handler.kind in self.kinds:
                raise ConfigurationError(f"two handlers for jobs of kind {handler.kind!r}")
            self.kinds[handler.kind] = handler
        elif self.default is not None:
            raise ConfigurationError("two handlers without a kind: name the kind of all but one")
        else:
            self.default = handler
        self.size = max(self.size, handler.size)
        self.mixed = len({bool(each.batch) for each in self.all()}) > 1

    def fill(self) -> Optional[tuple[int, int]]:
        """For how many jobs a fetch waits, and for how many ms."""
        fills = [each.fill for each in self.all() if each.fill]
        if fills and self.mixed:
            raise ConfigurationError(
                "fill needs handlers that all take batches: another one of this worker takes single jobs"
            )
        return (min(jobs for jobs, _ in fills), min(ms for _, ms in fills)) if fills else None

    def all(self) -> list[Handler[Any]]:
        return [*self.kinds.values(), *([self.default] if self.default else [])]

    def choose(self, job: BaseJob) -> Optional[Handler[Any]]:
        """The job's handler; None if no handler takes it."""
        if not self.kinds:
            return self.default
        envelope = job.envelope
        if envelope is None:
            return self.default
        if envelope.version != ENVELOPE_VERSION:
            return None
        return self.kinds.get(envelope.kind or "", self.default)
