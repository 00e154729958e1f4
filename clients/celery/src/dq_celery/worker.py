"""What a worker of Celery does on dq beyond kombu's transports. Programs without Celery do none of it."""

from __future__ import annotations

import sys

from . import control


def attach() -> None:
    """Attaches to Celery, if this program has loaded its worker."""
    if "celery.worker" not in sys.modules:
        return
    from celery import signals

    from . import deaths, requests

    control.show_delayed()
    # Celery keeps a receiver only once, and calls it for any broker.
    signals.task_received.connect(requests.guard)
    signals.worker_ready.connect(deaths.watch)
