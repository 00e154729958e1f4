"""Retries whose new message the server refuses, as its memory is full, or that could not be sent.

Celery would reject the task, which deletes it. Here its delivery is given back with the delay of the retry. Its message
cannot change, so the reason that stays with the job holds the count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from kombu.exceptions import OperationalError
from kombu.log import get_logger

from .errors import NotRetried

logger = get_logger("dq_celery")

LONGEST_REASON = 1024
REFUSED = re.compile(rb"retry (\d+) was not added")


def is_retry(message: Mapping[str, Any]) -> bool:
    """Whether the task that runs here publishes itself anew."""
    state = sys.modules.get("celery._state")
    task = state and state.get_current_task()
    if not task:
        return False
    headers = message.get("headers") or {}
    return headers.get("id") == task.request.id and (headers.get("retries") or 0) > (task.request.retries or 0)


def plain(raised: BaseException) -> BaseException:
    """The error that a task raised, as pools hand it over with its traceback."""
    from billiard.einfo import ExceptionWithTraceback

    return raised.exc if isinstance(raised, ExceptionWithTraceback) else raised


def give_back(leases: Any, request: Any, raised: BaseException) -> None:
    """Gives a delivery back if its task ends because its retry was not added; Celery is told to requeue it."""
    from celery.exceptions import Reject

    rejected = plain(raised)
    if not isinstance(rejected, Reject) or not isinstance(rejected.reason, (NotRetried, OperationalError)):
        return
    tag, error = request.message.delivery_tag, rejected.reason
    if not leases.holds(tag):  # acknowledged before it ran
        return
    if isinstance(error, NotRetried):
        text, retries, wait_ms = error.args[0], error.retries, error.wait_ms
    else:  # the server was away; the delay of this retry is not known here
        text, retries = str(error), (request.request_dict.get("retries") or 0) + 1
        wait_ms = int(request.task.default_retry_delay * 1000)
    reason = f"retry {retries} was not added: {text}".encode(errors="replace")[:LONGEST_REASON]
    logger.warning("task %s[%s] is given back: %s", request.name, request.id, reason.decode(errors="replace"))
    leases.nack(tag, "DELAY", wait_ms, "REASON", reason.decode(errors="ignore"))
    rejected.requeue = True


def count(headers: dict[str, Any], reason: bytes) -> None:
    """Raises the retries of a message to those of the retry that was not added."""
    refused = REFUSED.match(reason)
    if refused:
        headers["retries"] = max(int(headers.get("retries") or 0), int(refused[1]))
