"""Durations and instants: the language's types here, milliseconds on the wire."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Optional, Union

Duration = Union[timedelta, int, float]
"""A timedelta, or a number of seconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS = timedelta(milliseconds=1)


def seconds(duration: Duration) -> float:
    """The same in seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def to_ms(duration: Duration) -> int:
    """In whole milliseconds, rounded up: no wait is shorter than asked for."""
    if isinstance(duration, timedelta):
        return -(-duration // _MS)
    return math.ceil(round(duration * 1000, 3))


def instant_to_ms(instant: datetime) -> int:
    """Unix milliseconds, rounded up."""
    if instant.tzinfo is None:
        raise ValueError("the instant needs a time zone, as in datetime.now(timezone.utc)")
    return -(-(instant - _EPOCH) // _MS)


def from_ms(ms: int) -> datetime:
    """The instant of unix milliseconds, in UTC."""
    return _EPOCH + ms * _MS


def maybe_from_ms(ms: Optional[int]) -> Optional[datetime]:
    return None if ms is None else from_ms(ms)


def maybe_duration(ms: Optional[int]) -> Optional[timedelta]:
    return None if ms is None else ms * _MS
