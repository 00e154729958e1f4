"""What a worker does with a task."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

from django.db import close_old_connections

from .. import DqError, GiveUp, Retry
from .._texts import reason
from ..errors import Cancelled, ControlError
from . import _framework as tasks

ATTEMPT = "attempt:"
"""Steps of a job: who began it, and when."""

ERROR = "error:"
"""Steps of a job: the type of an error, its traceback, and when it was raised."""

LONGEST_TRACEBACK = 65_536
UNKNOWN_S = 60.0
"""How long a task that this worker cannot import waits for another worker; then twice that."""


def kept(steps: Mapping[str, bytes], kind: str) -> list[Any]:
    return [json.loads(value) for name, value in steps.items() if name.startswith(kind)]


class Running:
    """The handler of a backend's jobs."""

    def __init__(self, backend: Any, attempts: int) -> None:
        self._backend = backend
        self._attempts = attempts
        self._worker_id = f"{socket.gethostname()}:{os.getpid()}"

    def __call__(self, job: Any) -> Any:
        close_old_connections()
        try:
            return self._run(job)
        finally:
            close_old_connections()

    def _run(self, job: Any) -> Any:
        backend, status = self._backend, tasks.base.TaskResultStatus
        try:
            task = backend.task(job.id, job.kind or "", job.data)
        except ImportError as error:
            raise Retry(UNKNOWN_S * job.attempt, f"unknown task: {error}") from None
        attempts, errors = kept(job.steps, ATTEMPT), kept(job.steps, ERROR)
        now_ms = backend.now_ms()
        attempts.append(job.step(f"{ATTEMPT}{len(attempts)}", lambda: [self._worker_id, now_ms]))
        told = {"attempts": attempts, "errors": errors}
        result = backend.result(task, job.id, job.data, status.RUNNING, told)
        tasks.signals.task_started.send_robust(type(backend), task_result=result)
        context = [tasks.base.TaskContext(task_result=result)] if task.takes_context else []
        try:
            told["value"] = tasks.base.normalize_json(task.call(*context, *result.args, **result.kwargs))
        except ControlError:
            raise
        except BaseException as error:
            self._keep(job, errors, error)
            if job.attempt < self._attempts or job.cancelled:
                raise
            self._end(job, task, status.FAILED, told)
            raise GiveUp(reason(error).decode("utf-8", "replace")) from error
        job.check()  # too late, it has not succeeded
        self._end(job, task, status.SUCCESSFUL, told)
        return told

    def _keep(self, job: Any, errors: list[Any], error: BaseException) -> None:
        kind = type(error)
        said = "".join(format_exception(kind, error, error.__traceback__))[-LONGEST_TRACEBACK:]
        errors.append([f"{kind.__module__}.{kind.__qualname__}", said, self._backend.now_ms()])
        try:
            job.step(f"{ERROR}{len(errors)}", lambda: errors[-1])
        except Cancelled:
            raise
        except DqError as refused:
            errors[-1][1] += f"\n(not kept: {refused})"

    def _end(self, job: Any, task: Any, status: Any, told: dict[str, Any]) -> None:
        """Tells the receivers. Nothing that they do changes the end."""
        told["finished"] = self._backend.now_ms()
        result = self._backend.result(task, job.id, job.data, status, told)
        tasks.signals.task_finished.send_robust(type(self._backend), task_result=result)
