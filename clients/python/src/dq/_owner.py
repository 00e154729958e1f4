"""What a link needs of its worker or consumer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Protocol

from ._delivery import Delivery
from ._ends import Outcome
from ._leases import Choice


class Base(Protocol):
    _lease: Choice
    _log: Any
    _jobs: Any
    """The class of its jobs."""
    wait_s: float
    draining: bool
    _dead_hook: Any
    """Calls the hook of dead jobs; None if there is none."""
    _killer: Optional[Delivery]
    _returning: list[Delivery]

    def _lost(self, delivery: Delivery) -> None: ...
    def _left(self, deliveries: Iterable[Delivery]) -> None: ...
    def _refused(self, outcome: Outcome, why: str) -> None: ...
    def _off(self, feature: str, why: Any) -> None: ...
    def _told(self) -> None: ...
    def _carried(self) -> None: ...
    def _trouble(self, error: Exception) -> None: ...
    def _rest(self, duration_s: float) -> Any: ...
