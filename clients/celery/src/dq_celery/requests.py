"""Requests of Celery: one whose delivery is lost before its task begins is dropped.

The lease is checked twice: when the request goes to the pool, and when the pool begins with it, as a pool may queue it.
"""

from __future__ import annotations

import weakref
from typing import Any

from celery.exceptions import TaskRevokedError, WorkerLostError
from celery.worker import state
from kombu.log import get_logger

from . import retries

try:
    from greenlet import GreenletExit
except ImportError:

    class GreenletExit(BaseException):
        """Stands for greenlet's, which is not installed: no pool has greenlets."""


logger = get_logger("dq_celery")

#: What Celery is told of a task whose process of the pool ended.
PROCESS_ENDS = (WorkerLostError, SystemExit, KeyboardInterrupt)


class Lost(TaskRevokedError, GreenletExit):
    """Ends the pool's work on a request without a trace, whatever kind the pool is."""


def guard(sender: Any, request: Any, **_: Any) -> None:
    """Called when a task is received."""
    leases = getattr(request.message.channel, "leases", None)
    # Broadcasts have no lease.
    if leases is None or not leases.holds(request.message.delivery_tag):
        return
    # Methods of the class, and a weak reference: the request must not refer to itself.
    made, the = type(request), weakref.ref(request)
    revoked, accepted, failed = made.revoked, made.on_accepted, made.on_failure

    def is_revoked() -> bool:
        return revoked(the()) or _is_lost(leases, the())

    def on_accepted(*args: Any) -> None:
        if _is_lost(leases, the()):
            raise Lost(the().id)
        accepted(the(), *args)

    def on_failure(exc_info: Any, *args: Any, **kwargs: Any) -> Any:
        retries.give_back(leases, the(), exc_info.exception)
        if isinstance(retries.plain(exc_info.exception), PROCESS_ENDS):
            leases.process_lost.add(the().message.delivery_tag)
        return failed(the(), exc_info, *args, **kwargs)

    request.revoked, request.on_failure = is_revoked, on_failure
    if not sender.pool.uses_semaphore:  # otherwise another process has begun with it
        request.on_accepted = on_accepted


def _is_lost(leases: Any, request: Any) -> bool:
    if leases.may_begin(request.message.delivery_tag):
        return False
    logger.warning("task %s[%s] is not run: its delivery was lost", request.name, request.id)
    # This only makes the worker stop counting it among the tasks that it fetched.
    request.acknowledge()
    state.task_ready(request)
    return True
