"""A task that may have ended its workers: its last attempt runs when its worker has nothing else in hand."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any, Optional

from kombu.log import get_logger
from redis import exceptions

from .acks import UNREACHABLE

logger = get_logger("dq_celery")

#: What is said where the right to do so is missing.
OFF = "tasks that may have ended their workers do not run alone"
#: How long other workers do not get the task, unless that is said again.
HOLD_MS = 5000


class Alone:
    """Until it begins it is delayed in the server: in hand, it would lose its last attempt with a worker that ends."""

    #: Gives a delivery back, and does not count it.
    give_back = ("SILENT", "DELAY", HOLD_MS)

    def __init__(self, leases: Any, queue: str, key: str, id: bytes) -> None:
        self.queue = queue
        self._leases, self._key, self._id = leases, key, id
        self._tag: Optional[str] = None
        self._quiet_since: Optional[float] = None
        self._hold_at = monotonic()
        self._is_gone = False

    def is_over(self) -> bool:
        if self._tag is None:
            return self._is_gone
        return not self._leases.holds(self._tag) and self._tag not in self._leases.running()

    def begins(self, id: bytes, tag: str) -> bool:
        """Whether this delivery is the one that may run."""
        if id != self._id or not self._is_quiet(tag):
            return False
        self._tag = tag
        return True

    def take(self) -> Optional[list[Any]]:
        """The task's delivery, once, as soon as it may begin."""
        try:
            if self._tag is None and self._is_quiet():
                return self._pop()
            if self._tag is None and monotonic() >= self._hold_at:
                self._hold_at = monotonic() + HOLD_MS / 3000
                self._is_gone = not self._delay(HOLD_MS)
        except UNREACHABLE as error:
            logger.warning("task %r does not run yet: %r", self._id, error)
        return None

    def leave(self) -> None:
        """The channel is closed: others may have the task at once."""
        if self._tag is None:
            with suppress(exceptions.RedisError):
                self._delay(0)

    def _pop(self) -> Optional[list[Any]]:
        pipe = self._leases.client.pipeline()  # at once, as other workers wait for it, too
        pipe.execute_command("DQ.RESCHEDULE", self._key, "DELAY", 0, "IDS", 1, self._id)
        lease = ("LEASE", self._leases.lease_ms)
        pipe.execute_command("DQ.POP", self._key, "ID", self._id, *lease, "WITHDUE", "WITHTERMS")
        _, reply = pipe.execute()
        self._is_gone = True
        return reply

    def _delay(self, ms: int) -> int:
        return self._leases.client.execute_command("DQ.RESCHEDULE", self._key, "DELAY", ms, "IDS", 1, self._id)

    def _is_quiet(self, tag: str = "") -> bool:
        if self._leases.running():
            self._quiet_since = None
            return False
        others = self._leases.held() - {tag}
        if not others:
            return not self._leases.is_telling
        # Celery holds those that do not run: by an ETA or a rate limit, perhaps for long.
        self._quiet_since = self._quiet_since or monotonic()
        if monotonic() - self._quiet_since > self._leases.lease_ms / 1000:
            self._leases.give_back(others)
        return False
