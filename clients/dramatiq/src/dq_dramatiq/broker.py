"""The broker. Its queues are queues of dq, and each message is a job with the message's id."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dq
import dramatiq
from dq.codec import label_of
from dq.company import Company
from dramatiq.common import current_millis
from dramatiq.errors import ConnectionClosed, QueueJoinTimeout, QueueNotFound
from dramatiq.middleware import Middleware, Retries, SkipMessage
from redis.exceptions import ConnectionError, TimeoutError

from .consumer import Consumer, Delivered, retries_of

#: How long a message stays with a process that crashed. Renewed while the process lives.
LEASE_MS = 10_000
PRIORITIES = range(-(2**31), 2**31)


class SkipLost(Middleware):
    """Skips a message that was lost before its actor began: it was deleted, or another worker has it."""

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:
        if isinstance(message, Delivered) and not message.is_ours():
            raise SkipMessage("the message was deleted, or its lease ended")


class DqBroker(dramatiq.Broker):
    """Keeps messages in queues of dq.

    url: the server's, as redis-py takes it: ``redis://``, ``rediss://``, ``unix://``.
    client: instead of the URL, a client of redis-py: ``Redis``, ``RedisCluster``, or what a Sentinel gives.
    namespace: prefix of each queue's key, joined to the queue's name by a colon.
    lease: how many milliseconds a message stays with a process that crashed.
    """

    def __init__(
        self,
        *,
        url: str = "redis://127.0.0.1:6379/0",
        client: Any = None,
        middleware: list[Middleware] | None = None,
        namespace: str = "",
        lease: int = LEASE_MS,
    ) -> None:
        super().__init__(middleware=middleware)
        self.add_middleware(SkipLost())
        self.queues: dict[str, dq.Queue] = {}
        self.namespace = namespace
        self.lease = lease
        self.company = Company()
        self._server = dq.Queue(client or url, "").client

    @property
    def client(self) -> Any:
        return self._server

    def close(self) -> None:
        self._server.close()

    # --- Queues

    def declare_queue(self, queue_name: str) -> None:
        if queue_name in self.queues:
            return
        self.emit_before("declare_queue", queue_name)
        key = f"{self.namespace}:{queue_name}" if self.namespace else queue_name
        self.queues[queue_name] = dq.Queue(self._server, key, codec=dq.BytesCodec())
        self.emit_after("declare_queue", queue_name)

    def queue(self, queue_name: str) -> dq.Queue:
        """The queue, with everything that dq can do: ``broker.queue("default").delete(message.message_id)``."""
        try:
            return self.queues[queue_name]
        except KeyError:
            raise QueueNotFound(queue_name) from None

    def flush(self, queue_name: str) -> None:
        with _connected():
            self.queue(queue_name).purge("all")

    def flush_all(self) -> None:
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Waits until the queue has no messages, or only dead ones."""
        queue = self.queue(queue_name)
        deadline = None if timeout is None else time.monotonic() + timeout / 1000
        while queue.len():
            if deadline is not None and time.monotonic() >= deadline:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)

    # --- Messages

    def enqueue(self, message: dramatiq.Message[Any], *, delay: int | None = None) -> dramatiq.Message[Any]:
        """Adds a message, due in ``delay`` milliseconds."""
        queue = self.queue(message.queue_name)
        sent = message.copy()
        if delay is not None:
            sent = message.copy(options={"eta": current_millis() + max(0, delay)})
        self.emit_before("enqueue", sent, delay)
        job = {"data": sent.encode(), "priority": self._priority(sent), "delay": _wait_s(sent, delay)}
        job["label"] = label_of(sent.actor_name)
        if isinstance(message, Delivered) and message.again is None:
            # A retry replaces the message that is being processed: it is added when that is acknowledged.
            message.again = job
        else:
            self._add(queue, sent.message_id, job)
        self.emit_after("enqueue", sent, delay)
        return sent

    def _add(self, queue: dq.Queue, message_id: str, job: dict[str, Any]) -> None:
        with _connected():
            # A message that is sent twice, as constant messages and pipelines are, is added twice.
            if queue.add(id=message_id, **job) is None:
                queue.add(id=f"{message_id}:{uuid4()}", **job)

    def _priority(self, message: dramatiq.Message[Any]) -> int:
        """The message's own priority, or its actor's. Smaller is served first, as in Dramatiq."""
        actor = self.actors.get(message.actor_name)
        priority = message.options.get("priority", actor.priority if actor else 0)
        return max(PRIORITIES[0], min(PRIORITIES[-1], int(priority)))

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        return Consumer(self, self.queue(queue_name), prefetch, timeout)

    def allowed(self, message: dramatiq.Message[Any]) -> int:
        """How many deliveries the message may have by its ``max_retries``, those of killed workers among them.

        0: any number, as a predicate decides, or nothing is retried.
        """
        actor = self.actors.get(message.actor_name)
        retrying = next((each for each in self.middleware if isinstance(each, Retries)), None)
        if actor is None or retrying is None or actor.options.get("retry_when", retrying.retry_when) is not None:
            return 0
        limit = message.options.get("max_retries", actor.options.get("max_retries", retrying.max_retries))
        return 0 if limit is None else max(1, limit + 1 - retries_of(message))

    def dead_letters(self, queue_name: str, count: int = 100) -> Iterable[dramatiq.Message[Any]]:
        """The messages that failed for good; those that have been dead longest come first."""
        with _connected():
            return [dramatiq.Message.decode(job.payload) for job in self.queue(queue_name).peek("dead", count=count)]


def _wait_s(message: dramatiq.Message[Any], delay: int | None) -> float:
    """The delay in seconds. An ``eta`` among the message's options acts as a delay."""
    if delay is not None:
        return max(0, delay) / 1000
    eta = message.options.get("eta")
    return max(0, eta - current_millis()) / 1000 if isinstance(eta, (int, float)) else 0


@contextmanager
def _connected() -> Any:
    try:
        yield
    except (ConnectionError, TimeoutError) as error:
        raise ConnectionClosed(error) from None
