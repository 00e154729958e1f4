from collections.abc import Callable
from typing import Any

import dq
from django.conf import settings
from django.db import close_old_connections

from .models import Order

queue = dq.Queue(settings.DQ_URL, "orders")


@dq.handler(attempts=5, backoff=[60, 300, 600])
def close_order(job: dq.Job) -> None:
    if Order.objects.filter(id=job.data["order"], state="open").update(state="closed"):
        print("closed order", job.data["order"], flush=True)


def fresh_connections(job: dq.Job, next: Callable[[], Any]) -> Any:
    close_old_connections()
    try:
        return next()
    finally:
        close_old_connections()


def worker() -> dq.Worker:
    return dq.Worker(queue, close_order, concurrency=10, around=[fresh_connections])
