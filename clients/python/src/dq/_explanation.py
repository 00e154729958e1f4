"""Why a queue or a job is not delivered, as DQ.EXPLAIN says it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from .times import maybe_from_ms

#: In the server's order.
_OF_QUEUE = ("paused", "maxreserved", "delayed", "blocked", "reserved", "empty", "groups", "rate", "fill", "idle")


@dataclass(frozen=True)
class Explanation:
    """One reason why a queue or a job is not delivered."""

    code: str
    """As in the command reference: ``paused``, ``rate``, ``behind``, ..."""
    number: Optional[int]
    """How many, where the code counts something."""
    until: Optional[datetime]
    """When time alone ends it."""


def reasons(replies: Iterable[Optional[list[Any]]]) -> Optional[list[Explanation]]:
    """The reasons of all shards, each code once; None if no shard is there."""
    found = [reply for reply in replies if reply is not None]
    rows = [(code.decode(), number, until) for reply in found for code, number, until, *_ in reply]
    if len(found) < 2:
        return [Explanation(code, number, maybe_from_ms(until)) for code, number, until in rows] if found else None
    codes = {code for code, _, _ in rows}
    if not codes <= {"paused", "maxreserved", "empty"}:
        codes.discard("empty")
    return [_added_up(rows, code) for code in _OF_QUEUE if code in codes]


def _added_up(rows: list[tuple[str, Optional[int], Optional[int]]], code: str) -> Explanation:
    numbers = [number for each, number, _ in rows if each == code and number is not None]
    ends = [until for each, _, until in rows if each == code and until is not None]
    return Explanation(code, sum(numbers) if numbers else None, maybe_from_ms(min(ends, default=None)))
