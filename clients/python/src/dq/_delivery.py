"""One job in hand, as the server delivered it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

from .handler import Handler

Command = tuple[Any, ...]

UNKNOWN_KIND = b"dq:unknown"
"""The step that counts the deliveries to workers that did not know the job's kind."""


class Delivery:
    """One job in hand."""

    id: bytes
    payload: bytes
    token: bytes
    attempt: int
    deadline_ms: int
    due_ms: int
    results: Sequence[Sequence[Any]]
    """Id, outcome and value of the jobs that it was after."""
    steps: Any
    """A map in RESP3, a flat list in RESP2."""
    ttr_ms: int
    max_attempts: int
    ladder_ms: Optional[int]
    """The wait of the job's own ladder, if it has one."""

    __slots__ = (
        "attempt",
        "deadline_ms",
        "due_ms",
        "error",
        "handler",
        "id",
        "job",
        "key",
        "ladder_ms",
        "lease_s",
        "lease_until",
        "max_attempts",
        "name",
        "owner",
        "payload",
        "reason",
        "results",
        "since",
        "steps",
        "suspension",
        "token",
        "ttr_ms",
        "value",
    )

    def __init__(self, key: bytes, row: Sequence[Any], owner: Any = None, since: float = 0.0) -> None:
        self.key = key
        self.id, self.payload, self.token, self.attempt, self.deadline_ms, self.due_ms, *rest = row
        self.results, self.steps, (self.ttr_ms, self.max_attempts, self.ladder_ms) = rest
        self.owner = owner
        """The link that fetched it."""
        self.name: tuple[str, bytes, bytes] = (owner.place if owner else "", key, self.id)
        """Identifies the job among those of all servers."""
        self.reason: Optional[bytes] = None
        """Why the delivery before failed, where a consumer asked the server."""
        self.since = since
        """The earliest time at which it may have been delivered."""
        self.lease_s: float
        self.lease_until = math.inf
        """When the lease ends, by our own clock; later with each renewal."""
        self.error: Any = None
        self.value: Any = None
        """In a batch: the error or result that the handler gave for this job alone."""
        self.suspension: Optional[tuple[str, Sequence[Command], Command]] = None
        """What suspends the job. It is sent when the handler has ended: otherwise the job could be delivered here again
        while its handler still runs."""
        self.handler: Optional[Handler[Any]] = None
        self.job: Any = None
        """Until the server has confirmed that it is done: the two hold each other, and are freed at once without."""

    def tell(self, why: str) -> None:
        """Has the handler stop, unless it has ended and the server has confirmed that."""
        job = self.job
        if job is not None:
            job._tell(why)

    @property
    def limit(self) -> int:
        """The deliveries that the job may have: the least number that is said; 0: no limit."""
        return self.least_limit(self.handler.attempts if self.handler else 0)

    def least_limit(self, attempts: int) -> int:
        """The least limit: the job's own, or that of its handler, which has so many attempts (0: any number)."""
        return least(self.max_attempts, attempts and attempts + self.unknown)

    @property
    def unknown(self) -> int:
        """How many deliveries went to workers that did not know the kind: they are no attempts of the handler."""
        kept = (as_map(self.steps) or {}).get(UNKNOWN_KIND, b"")
        return min(int(kept), self.attempt - 1) if kept.isdigit() and len(kept) < 10 else 0


def least(*limits: int) -> int:
    """The least limit that is said; 0: no limit."""
    return min(filter(None, limits), default=0)


def as_map(reply: Any) -> Optional[dict[bytes, Any]]:
    """A map of RESP3, or the flat list that RESP2 has for it, as a dict."""
    if isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2]))
    return reply  # type: ignore[no-any-return]
