"""The broker. Its queue is a queue of dq, and each task is a job with the task's id."""

from __future__ import annotations

import asyncio
import logging
import random
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any

import dq.asyncio
from dq.handler import exponential_s
from taskiq import AckableMessage
from taskiq.abc.broker import AsyncBroker
from taskiq.message import BrokerMessage

from . import occurrences

logger = logging.getLogger("taskiq.dq")

#: How long a task stays with a process that crashed. Renewed while the process lives.
LEASE_S = 10.0
#: How long one fetch waits. taskiq's workers notice SIGTERM only when something wakes their event loop.
WAIT_S = 1.0
#: The waits before a task comes again that was not acknowledged.
FIRST_RETURN_S = 5.0
LONGEST_RETURN_S = 3600.0


class DqBroker(AsyncBroker):
    """Keeps tasks in a queue of dq.

    url: the server's, as redis-py takes it, or a client of redis.asyncio.
    queue_name: the queue; the label ``queue_name`` sends a task to another one.
    lease: how many seconds a task stays with a process that crashed.
    """

    def __init__(self, url: Any, queue_name: str = "taskiq", *, lease: float = LEASE_S) -> None:
        super().__init__()
        self.queue_name = queue_name
        self._url = url
        self._lease = lease
        self._queues: dict[str, dq.asyncio.Queue] = {}
        self._consumers: set[dq.asyncio.Consumer] = set()

    def queue(self, name: str | None = None) -> dq.asyncio.Queue:
        """The queue, with everything that dq can do: ``await broker.queue().delete(task.task_id)``."""
        name = name or self.queue_name
        if name not in self._queues:
            client = next((queue.client for queue in self._queues.values()), self._url)
            self._queues[name] = dq.asyncio.Queue(client, name, codec=dq.BytesCodec())
        return self._queues[name]

    async def kick(self, message: BrokerMessage) -> None:
        """Adds a task. Labels: ``delay`` in seconds, ``priority`` (smaller is served first), ``queue_name``.

        If a task with that id is running, this one follows it. If one is waiting, nothing changes.
        """
        labels = message.labels
        added = await self.queue(labels.get("queue_name")).add(
            message.message,
            id=message.task_id,
            if_exists="next",
            delay=max(0.0, float(labels.get("delay") or 0)),
            priority=int(labels.get("priority") or 0),
        )
        if added is None:
            logger.info("task %s is already waiting", message.task_id)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yields tasks, and renews their leases until they are acknowledged."""
        consumer = dq.asyncio.Consumer(self.queue(), lease=self._lease, wait=WAIT_S, logger=logger)
        self._consumers.add(consumer)
        while True:
            for job in await consumer.fetch():
                payload = self._fit(consumer, job)
                if payload is not None:
                    yield _Message(_End(consumer, job), payload)

    def _fit(self, consumer: dq.asyncio.Consumer, job: dq.Job) -> bytes | None:
        """The payload that taskiq is to run. It would acknowledge a task that it cannot run, which would be lost."""
        try:
            message = self.formatter.loads(job.payload)
        except Exception as error:
            logger.error("task %s cannot be read, and is dead", job.id, exc_info=True)
            consumer.nack(job, mode="fatal", reason=f"unreadable: {error!r}")
            return None
        if self.find_task(message.task_name) is None:
            logger.warning("no task is called %s: gave back %s for another worker", message.task_name, job.id)
            consumer.nack(job, mode="silent", delay=FIRST_RETURN_S * (1 + random.random()))
            return None
        if occurrences.is_scheduled(job):
            return occurrences.run_of(self.formatter, message, job)
        return job.payload

    async def shutdown(self) -> None:
        await super().shutdown()
        consumers, self._consumers = self._consumers, set()
        await asyncio.gather(*(consumer.aclose() for consumer in consumers))
        queues, self._queues = self._queues, {}
        if isinstance(self._url, str):
            for queue in list(queues.values())[:1]:  # they share a client
                await queue.aclose()


class _Message(AckableMessage):
    """A task in hand. If taskiq drops it without an acknowledgement, it is given back.

    taskiq takes ``ack`` when it begins with a task, and releases it in the end. It drops tasks that should have
    acknowledged themselves, and tasks of a middleware that fails: their leases would be renewed for ever.
    When it begins it also takes ``data``, which it gets only if the task is still this worker's.
    """

    def __init__(self, end: _End, payload: bytes) -> None:
        super().__init__(data=payload, ack=end.taken)
        end.when_gone(self, end.release)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name == "data":
            super().__getattribute__("ack").__self__.check()
        return found() if name == "ack" else found


class _End:
    """How a task ends: acknowledged, dropped, or never begun. The first of these counts."""

    def __init__(self, consumer: dq.asyncio.Consumer, job: dq.Job) -> None:
        self._consumer = consumer
        self._job = job
        self._loop = asyncio.get_running_loop()
        self._begun = False

    def taken(self) -> Callable[[], None]:
        self._begun = True

        def ack() -> None:
            self.ack()

        self.when_gone(ack, self.drop)
        return ack

    def when_gone(self, what: Any, then: Callable[[], None]) -> None:
        """Calls ``then`` when the object is collected, which may be in another thread."""
        weakref.finalize(what, _in_loop, self._loop, then).atexit = False

    def check(self) -> None:
        if not self._consumer.holds(self._job):
            logger.warning("task %s is not run: its lease expired, or it was deleted", self._job.id)
            raise asyncio.CancelledError

    # The consumer ignores an end of a task that has ended before.

    def ack(self) -> None:
        self._consumer.ack(self._job)

    def release(self) -> None:
        """Gives the task back, as the worker stopped before it began."""
        if not self._begun:
            self._consumer.release([self._job])

    def drop(self) -> None:
        if not self._consumer.holds(self._job):
            return
        delay = exponential_s(self._job.attempt, FIRST_RETURN_S, LONGEST_RETURN_S)
        logger.warning("task %s was not acknowledged, and will be delivered again in %.0f s", self._job.id, delay)
        self._consumer.nack(self._job, delay=delay, reason="it ended without being acknowledged")


def _in_loop(loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(then)
