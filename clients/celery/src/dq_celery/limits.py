"""How often a task may be delivered, and which one runs alone: it may have ended the process of its worker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from time import monotonic
from typing import Any, Optional

USED_UP = "attempts used up; its workers were lost"
#: The server's reason for a delivery of which it heard nothing more.
LEASE_ENDED = b"lease ended"
#: The reason of a task that ended the process of the pool, and not the worker.
PROCESS_LOST = "the process of its task was lost"
UNKNOWN_ATTEMPTS = 14
UNKNOWN_MS, LONGEST_UNKNOWN_MS = 60_000, 3_600_000


def _app() -> Any:
    """The app of this program's worker; None if it is none, though it may have imported what workers are made of."""
    if "celery.worker" not in sys.modules:
        return None
    from celery import current_app

    return current_app if current_app.loader.worker_initialized else None


def allowed(headers: Mapping[str, Any], max_attempts: int) -> int:
    """The least limit that is said: the job's, or the task's ``max_retries`` if the program sets it; 0: none."""
    app = _app()
    task = app and app.tasks.get(headers.get("task"))
    own = next((each.__dict__ for each in type(task).__mro__ if "max_retries" in each.__dict__), {}) if task else {}
    is_said = bool(own) and own.get("__module__") != "celery.app.task"
    runs = 0
    if is_said and task.max_retries is not None:
        runs = max(1, task.max_retries + 1 - int(headers.get("retries") or 0))
    return min(filter(None, (max_attempts, runs)), default=0)


def is_unknown(headers: Mapping[str, Any]) -> bool:
    """Whether the worker has no such task: it would discard the message."""
    app, name = _app(), headers.get("task")
    return app is not None and name is not None and name not in app.tasks


def unknown(headers: Mapping[str, Any], attempts: int) -> tuple[Any, ...]:
    """How such a message is given back: another worker may know the task, at the latest after a deploy."""
    reason = f'unknown kind "{headers["task"]}"'.encode(errors="replace")[:1024].decode(errors="ignore")
    if attempts >= UNKNOWN_ATTEMPTS:
        return "FATAL", "REASON", reason
    return "DELAY", min(attempts * UNKNOWN_MS, LONGEST_UNKNOWN_MS), "REASON", reason


class Alone:
    """The task that is to run when its worker has nothing else in hand, and then for itself."""

    def __init__(self, leases: Any, tag: str, queue: str, message: dict[str, Any]) -> None:
        self.tag, self.queue = tag, queue
        self._leases = leases
        self._message: Optional[dict[str, Any]] = message
        self._quiet_since: Optional[float] = None

    def is_over(self) -> bool:
        return not self._leases.holds(self.tag) and self.tag not in self._leases.running()

    def take(self) -> Optional[dict[str, Any]]:
        """The message, once, as soon as it may begin."""
        if self._message is None or not self._is_alone():
            return None
        message, self._message = self._message, None
        return message

    @property
    def has_begun(self) -> bool:
        return self._message is None

    def _is_alone(self) -> bool:
        if self._leases.running() - {self.tag}:
            self._quiet_since = None
            return False
        others = self._leases.held() - {self.tag}
        if not others:
            return not self._leases.is_telling
        # Celery holds those that do not run: by an ETA or a rate limit, perhaps for long.
        self._quiet_since = self._quiet_since or monotonic()
        if monotonic() - self._quiet_since > self._leases.lease_ms / 1000:
            self._leases.give_back(others)
        return False
