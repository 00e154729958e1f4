"""Records tasks as failed that died in the server, their attempts used up: no worker saw their end.

The workers of a queue share the work: a sorted set beside the queue holds the latest deaths that one of them recorded.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from time import time
from typing import Any

from kombu.log import get_logger

from . import jobs, results

logger = get_logger("dq_celery")

KEY = "_kombu.dq.dead"
#: How old a death may be to be recorded: results, too, expire after a day unless set otherwise.
OLDEST_MS = 86_400_000
#: A death may be seen after a later one, as its time is the end of the lease.
OVERLAP_MS = 60_000
#: How long a worker has to record a death before another one does: it may be ended meanwhile, by what killed the task.
CLAIM_MS = 10_000
PAGE = 500


def watch(sender: Any, **_: Any) -> None:
    """Called when a worker is ready."""
    from celery.backends.base import DisabledBackend

    app, channel = sender.app, sender.task_consumer.channel
    if hasattr(channel, "leases") and not isinstance(app.backend, DisabledBackend):
        wait_s = channel.visibility_timeout / 2
        threading.Thread(target=_watch, args=(weakref.ref(sender), wait_s), name="dq-deaths", daemon=True).start()


def _watch(consumer: Any, wait_s: float) -> None:
    said, resting = "", threading.Event()
    while (worker := consumer()) is not None:
        try:
            with worker.app.connection_for_read() as connection:
                del worker
                while consumer() is not None:
                    record(consumer().app, connection.default_channel)
                    said = ""
                    resting.wait(wait_s)
        except Exception as error:  # the server is away, or the result backend
            if repr(error) != said:
                said = repr(error)
                logger.warning("dead tasks are not recorded as failed, trying again: %s", said)
            resting.wait(wait_s)


def record(app: Any, channel: Any) -> None:
    for queue in tuple(app.amqp.queues.consume_from):
        for id, attempts in take(channel, queue):
            dead = channel.show(queue, id)
            text = jobs.field(dead, b"payload")
            if text is None:  # it was deleted since
                continue
            reason = jobs.field(dead, b"reason") or b""
            deliveries = "1 delivery" if attempts == 1 else f"{attempts} deliveries"
            results.failed(channel, text, f"dead after {deliveries}: {reason.decode(errors='replace')}")


def take(channel: Any, queue: str) -> Iterator[tuple[bytes, int]]:
    """Dead jobs that no worker has recorded yet: id and attempts. Who asks for the next one has recorded the last."""
    client, told = channel.leases.client, channel.key(f"{KEY}.{queue}")
    since = int(time() * 1000) - OLDEST_MS
    for _member, latest_ms in client.zrange(told, -1, -1, withscores=True):
        since = max(since, int(latest_ms) - OVERLAP_MS)
    client.zremrangebyscore(told, "-inf", f"({since}")
    count = PAGE
    while True:
        known = set(client.zrange(told, 0, -1))
        page = channel.peek(queue, "DEAD", "FROM", since, "COUNT", count, "PREFIX", 0)
        for id, _text, at_ms, attempts, *_ in page:
            death = b"%b@%d" % (id, at_ms)
            turn = int(time() * 1000) // CLAIM_MS
            before, claim = (b"%b?%d" % (death, each) for each in (turn - 1, turn))
            if known.isdisjoint((death, before)) and client.zadd(told, {claim: at_ms}, nx=True):
                yield id, attempts
                client.zadd(told, {death: at_ms})
        if len(page) < count:
            return
        # More jobs than a page holds may have died at one instant.
        since, count = (page[-1][2], PAGE) if page[-1][2] > since else (since, 2 * count)
