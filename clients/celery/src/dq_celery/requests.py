"""Celery's requests: one whose delivery is lost before its task begins is dropped.

It is asked for twice: when the request goes to the pool, and, as a pool may queue it, when the pool begins with it.
"""

from __future__ import annotations

import weakref
from typing import Any

from celery.exceptions import TaskRevokedError
from celery.worker import state
from kombu.log import get_logger

try:
    from greenlet import GreenletExit
except ImportError:

    class GreenletExit(BaseException):
        """No pool has greenlets."""


logger = get_logger("dq_celery")


class Lost(TaskRevokedError, GreenletExit):
    """Ends the pool's turn, of whatever kind the pool is, without a trace."""


def guard(sender: Any, request: Any, **_: Any) -> None:
    """When a task is received."""
    leases = getattr(request.message.channel, "leases", None)
    # Broadcasts have no lease.
    if leases is None or not leases.holds(request.message.delivery_tag):
        return
    # Of the class, as the request must not refer to itself.
    revoked, accepted, the = type(request).revoked, type(request).on_accepted, weakref.ref(request)

    def is_revoked() -> bool:
        return revoked(the()) or _is_lost(leases, the())

    def on_accepted(*args: Any) -> None:
        if _is_lost(leases, the()):
            raise Lost(the().id)
        accepted(the(), *args)

    request.revoked = is_revoked
    if not sender.pool.uses_semaphore:  # else it has begun, in another process
        request.on_accepted = on_accepted


def _is_lost(leases: Any, request: Any) -> bool:
    if leases.may_begin(request.message.delivery_tag):
        return False
    logger.warning("task %s[%s] is not run: its delivery was lost", request.name, request.id)
    # Only so that the worker no longer counts it among what it fetched.
    request.acknowledge()
    state.task_ready(request)
    return True
