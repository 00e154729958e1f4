"""The backend: tasks are jobs of dq, and their results what the server keeps of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any, Optional

from django.conf import settings
from django.core import checks
from django.db import connections, transaction
from django.utils.crypto import get_random_string
from django.utils.module_loading import import_string
from django.utils.timezone import is_naive, make_aware, make_naive

from .. import Handler, Queue, Worker
from ..times import from_ms, instant_to_ms
from . import _framework as tasks
from ._running import ATTEMPT, ERROR, Running, kept

OPTIONS = {
    "url": "redis://localhost",
    "prefix": "",
    "keep": 86_400,
    "attempts": 1,
    "backoff": None,
    "timeout": None,
    "enqueue_on_commit": True,
    "database": "default",
}
LOSSES = 3
"""How often a task is begun, whose workers were lost."""

Status = tasks.base.TaskResultStatus
_STATUS = {"reserved": Status.RUNNING, "done": Status.SUCCESSFUL, "dead": Status.FAILED}


class DqBackend(tasks.backends.BaseTaskBackend):
    """OPTIONS:

    url: the server. prefix: of the queues' keys.
    keep: for how many seconds the result of a successful task stays. Failed ones stay until they are purged.
    attempts: how often a task runs that raises; once by default. backoff: how many seconds it waits in between, a list.
    timeout: after so many seconds it has failed.
    enqueue_on_commit: in a transaction of ``database``, a task is enqueued when that is committed.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._given = {**OPTIONS, **self.options}
        self._known: dict[str, Queue] = {}

    def check(self, **_: Any) -> Iterable[Any]:
        """For ``manage.py check``."""
        for name in self.options.keys() - OPTIONS.keys():
            known = ", ".join(OPTIONS)
            yield checks.Error(f"TASKS: {self.alias!r} has no option {name!r}", hint=f"It has: {known}", id="dq.E001")

    def queue(self, name: str) -> Queue:
        """The queue of dq, to see or change its jobs."""
        if name not in self._known:
            self._known[name] = Queue(self._given["url"], self._given["prefix"] + name)
        return self._known[name]

    # --- Enqueuing

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.validate_task(task)
        data = {"args": args, "kwargs": kwargs}
        result = self.result(task, f"{task.queue_name}:{get_random_string(32)}", data, Status.READY, {})
        add = partial(self._add, task, result)
        database = self._given["database"]
        if self._given["enqueue_on_commit"] and connections[database].in_atomic_block:
            transaction.on_commit(add, using=database)
        else:
            add()
        return result

    def _add(self, task: Any, result: Any) -> None:
        now_ms = self.now_ms()
        due = _aware(task.run_after)
        data = {
            "args": result.args,
            "kwargs": result.kwargs,
            "priority": task.priority,
            "enqueued": now_ms,
            "run_after": due and instant_to_ms(due),
        }
        self.queue(task.queue_name).add(
            data, id=result.id, at=due, priority=-task.priority, kind=task.module_path, keep=self._given["keep"]
        )
        object.__setattr__(result, "enqueued_at", _instant(now_ms))
        tasks.signals.task_enqueued.send(type(self), task_result=result)

    # --- Results

    def get_result(self, result_id: str) -> Any:
        """It is found as long as its job is there: see ``keep``."""
        name = _queue_of(result_id)
        # An id may come from anybody, and each queue that is asked has connections.
        known = name in self.queues if self.queues else bool(name)
        info = self.queue(name).get(result_id) if known else None
        if info is None or not info.kind or not isinstance(info.data, dict):
            raise tasks.exceptions.TaskResultDoesNotExist(result_id)
        told = json.loads(info.result or b"{}")
        if info.state != "done":
            told = {"attempts": kept(info.steps, ATTEMPT), "errors": kept(info.steps, ERROR)}
        if info.state == "dead":
            died_ms = info.failed and instant_to_ms(info.failed)
            told["errors"] = told["errors"] or [["dq.errors.JobFailed", info.reason or "", died_ms]]
            told["finished"] = told["errors"][-1][2]
        task = self.task(info.id, info.kind, info.data)
        return self.result(task, info.id, info.data, _STATUS.get(info.state, Status.READY), told)

    def task(self, id: str, kind: str, data: Mapping[str, Any]) -> Any:
        """The task of a job, as it was enqueued. Raises ImportError."""
        due = _instant(data.get("run_after"))
        return import_string(kind).using(
            priority=data["priority"], queue_name=_queue_of(id), run_after=due, backend=self.alias
        )

    def result(self, task: Any, id: str, data: Mapping[str, Any], status: Any, told: Mapping[str, Any]) -> Any:
        """told: the attempts (who began them, and when), the errors, the value, and when it was finished."""
        attempts = told.get("attempts") or []
        made = tasks.base.TaskResult(
            task=task,
            id=id,
            status=status,
            enqueued_at=_instant(data.get("enqueued")),
            started_at=_instant(attempts[0][1] if attempts else None),
            last_attempted_at=_instant(attempts[-1][1] if attempts else None),
            finished_at=_instant(told.get("finished")),
            args=data["args"],
            kwargs=data["kwargs"],
            backend=self.alias,
            errors=[
                tasks.base.TaskError(exception_class_path=path, traceback=said)
                for path, said, _ in told.get("errors") or ()
            ],
            worker_ids=[worker for worker, _ in attempts],
        )
        object.__setattr__(made, "_return_value", told.get("value"))
        return made

    def now_ms(self) -> int:
        return instant_to_ms(datetime.now(timezone.utc))

    # --- Running

    def worker(self, queues: Optional[Sequence[str]] = None, **options: Any) -> Worker:
        """A worker on these queues in strict order; by default on all that the settings name, in turn.

        options: those of ``dq.Worker``.
        """
        names = [*(queues or sorted(self.queues))]
        if not queues:
            options.setdefault("weights", [1.0] * len(names))
        if not names:
            raise ValueError(f"name the queues: TASKS[{self.alias!r}] has none")
        attempts = int(self._given["attempts"])
        handler = Handler(
            Running(self, attempts),
            # With a time limit a task that is begun again may have used it up.
            attempts=attempts if self._given["timeout"] else max(attempts, LOSSES),
            backoff=self._given["backoff"],
            timeout=self._given["timeout"],
        )
        return Worker([self.queue(name) for name in names], handler, **options)


def _queue_of(id: Any) -> str:
    return str(id).rpartition(":")[0]


def _aware(instant: Optional[datetime]) -> Optional[datetime]:
    return make_aware(instant) if instant is not None and is_naive(instant) else instant


def _instant(ms: Optional[int]) -> Optional[datetime]:
    if ms is None:
        return None
    return from_ms(ms) if settings.USE_TZ else make_naive(from_ms(ms))
