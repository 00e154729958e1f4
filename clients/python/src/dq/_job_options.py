"""What a job may have.

Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ._arguments import Ladder, ladder, ms, number, text

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from .times import Duration

    class JobOptions(TypedDict, total=False):
        priority: Optional[int]
        """The job's priority: smaller is delivered first."""
        ttr: Optional[Duration]
        """The length of the job's leases."""
        attempts: Optional[int]
        """How often the job may be delivered; 0: without limit, whatever the queue's settings say."""
        ttl: Optional[Duration]
        """The job expires this long after it was added."""
        group: Optional[str]
        """The group that the job belongs to, such as a tenant or a user. Groups take turns."""
        keep: Optional[Duration]
        """How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all."""
        cost: Optional[int]
        """What a delivery counts towards the rates of the queue and of its group; 1 by default."""
        backoff: Optional[Ladder]
        """The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits."""
        label: Optional[str]
        """What kind of job it is, for those who look; it changes nothing of how the job is served."""


R = TypeVar("R")

ABOUT = {
    "priority": "The job's priority: smaller is delivered first.",
    "ttr": "The length of the job's leases.",
    "attempts": "How often the job may be delivered; 0: without limit, whatever the queue's settings say.",
    "ttl": "The job expires this long after it was added.",
    "group": "The group that the job belongs to, such as a tenant or a user. Groups take turns.",
    "keep": "How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all.",
    "cost": "What a delivery counts towards the rates of the queue and of its group; 1 by default.",
    "backoff": "The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits.",
    "label": "What kind of job it is, for those who look; it changes nothing of how the job is served.",
}
"""The options, and what each of them says."""


def job_options(given: Mapping[str, Any]) -> list[Any]:
    get = given.get
    return [
        *number("PRIORITY", get("priority"), -2147483648, 2147483647),
        *ms("TTR", get("ttr"), 1),
        *number("ATTEMPTS", get("attempts"), 0, 4294967295),
        *ms("TTL", get("ttl"), 1),
        *text("GROUP", get("group"), 256),
        *ms("KEEP", get("keep"), 0),
        *number("COST", get("cost"), 1, 1000000),
        *ladder(get("backoff")),
        *text("LABEL", get("label"), 256),
    ]


class Corrections(Generic[R]):
    """What a handler sets anew for its delivery. R: None, or what is awaited."""

    __slots__ = ()

    def set_cost(self, cost: int) -> R:
        """Sets it for this delivery: what a delivery counts towards the rates of the queue and of its group."""
        return self._correct({"cost": cost})

    set_cost.__qualname__ = "Job.set_cost"  # Python's own errors begin with it

    def _correct(self, given: Mapping[str, Any]) -> R:
        raise NotImplementedError
