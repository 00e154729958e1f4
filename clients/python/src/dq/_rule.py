"""The rule of a recurring job, as DQ.GET shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Optional

from ._reading import prose
from .times import maybe_duration, maybe_from_ms


@dataclass(frozen=True)
class Rule:
    """When a recurring job is due: by ``every`` or by ``cron``."""

    every: Optional[timedelta]
    cron: Optional[str]
    tz: Optional[str]
    until: Optional[datetime]
    times: Optional[int]
    grace: Optional[timedelta]
    jitter: Optional[timedelta]
    occurrence: Optional[datetime]
    """The instant of the occurrence that comes next or is running."""
    runs: int
    """How many occurrences have ended."""

    @staticmethod
    def read(fields: Mapping[str, Any]) -> Optional[Rule]:
        """None for a job that comes once."""
        if fields.get("every") is None and fields.get("cron") is None:
            return None
        return Rule(
            every=maybe_duration(fields.get("every")),
            cron=prose(fields.get("cron")),
            tz=prose(fields.get("tz")),
            until=maybe_from_ms(fields.get("until")),
            times=fields.get("times"),
            grace=maybe_duration(fields.get("grace")),
            jitter=maybe_duration(fields.get("jitter")),
            occurrence=maybe_from_ms(fields.get("occurrence")),
            runs=fields.get("runs") or 0,
        )


@dataclass(frozen=True)
class RuleChanges:
    """What ``Queue.rules`` did, or would do: names of rules, in order."""

    added: list[str]
    changed: list[str]
    kept: list[str]
    removed: list[str]
    unknown: list[str]
    """Rules of the program that the set does not have, and that stay."""
