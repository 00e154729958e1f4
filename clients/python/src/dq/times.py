"""Durations and instants: the language's types here, milliseconds on the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

Duration = Union[timedelta, int, float]
"""A timedelta, or a number of seconds."""

LAST_MS = (1 << 42) - 1
"""The longest duration, and the last instant in unix milliseconds, that servers know."""

LARGEST_BYTES = 512 * 1024 * 1024
"""The longest argument of a command, as servers are set up."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS = timedelta(milliseconds=1)


def between(name: str, value: Any, least: int, most: int, unit: str = "") -> Any:
    """The value. Raises ValueError if it is out of bounds."""
    if least <= value <= most:
        return value
    raise ValueError(f"{name}: {value}{unit} is not between {least} and {most}")


def signed_seconds(duration: Duration, name: str = "a duration") -> float:
    """The duration in seconds; may be negative."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        return float(duration)
    example = "timedelta(minutes=30)"
    raise TypeError(f"{name} must be a number of seconds or a timedelta, such as {example}, not {duration!r}")


def seconds(duration: Duration, name: str = "a duration") -> float:
    """The duration in seconds. Raises ValueError if it is negative, infinite or longer than servers know."""
    found = signed_seconds(duration, name)
    if 0 <= found < math.inf:
        if found * 1000 > LAST_MS:
            between(name, math.ceil(found * 1000), 0, LAST_MS, " ms")
        return found
    raise ValueError(f"{name} must be 0 or more seconds, not {duration!r}")


def to_ms(duration: Duration, name: str = "a duration", least: int = 0) -> int:
    """The duration in whole milliseconds, rounded up: no wait is shorter than asked for."""
    found = seconds(duration, name)
    ms = -(-duration // _MS) if isinstance(duration, timedelta) else math.ceil(round(found * 1000, 3))
    return between(name, ms, least, LAST_MS, " ms") if ms < least else ms


def waits(backoff: Any) -> Sequence[Duration]:
    """Checks that a backoff is a list, even for one wait that repeats."""
    if isinstance(backoff, Sequence) and not isinstance(backoff, (str, bytes)):
        return backoff
    raise TypeError(f"backoff must be a list of waits, such as [60], not {backoff!r}")


def instant_to_ms(instant: datetime, name: str = "an instant") -> int:
    """Unix milliseconds, rounded up."""
    if not isinstance(instant, datetime):
        example = "datetime.now(timezone.utc) + timedelta(hours=1)"
        raise TypeError(f"{name} must be a datetime, such as {example}, not {instant!r}")
    if instant.tzinfo is None:
        raise ValueError(f"{name} needs a time zone, as in datetime.now(timezone.utc)")
    return between(name, -(-(instant - _EPOCH) // _MS), 0, LAST_MS, " ms")  # type: ignore[no-any-return]


def from_ms(ms: int) -> datetime:
    """The instant of unix milliseconds, in UTC."""
    return _EPOCH + ms * _MS


def maybe_from_ms(ms: Optional[int]) -> Optional[datetime]:
    return None if ms is None else from_ms(ms)


def maybe_duration(ms: Optional[int]) -> Optional[timedelta]:
    return None if ms is None else ms * _MS
