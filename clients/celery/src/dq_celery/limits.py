"""How often a task may be delivered: it may have ended the process of its worker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

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
