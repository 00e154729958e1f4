"""The broker. Its queue is a queue of dq, and each task is a job with the task's id."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from typing import Any

import dq.asyncio
from dq.codec import label_of
from dq.company import Company
from taskiq import AckableMessage
from taskiq.abc.broker import AsyncBroker
from taskiq.message import BrokerMessage, TaskiqMessage

from . import occurrences

logger = logging.getLogger("taskiq.dq")

#: How long a task stays with a process that crashed. Renewed while the process lives.
LEASE_S = 10.0
#: How long one fetch waits. taskiq's workers notice SIGTERM only when something wakes their event loop.
WAIT_S = 1.0
#: The labels in which taskiq's middleware counts retries, and finds how often a task may run.
RETRIES, MOST_RUNS = "_retries", "max_retries"
REFUSED = re.compile(rb"retry (\d+) was not added")


#: The task that runs in this task of asyncio.
running: ContextVar[_End | None] = ContextVar("running", default=None)


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
        #: The tasks that run here, by their task ids.
        self._begun: dict[str, _End] = {}
        self._company = Company(is_busy=lambda: bool(self._begun))

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
        delay = max(0.0, float(labels.get("delay") or 0))
        try:
            added = await self.queue(labels.get("queue_name")).add(
                message.message,
                id=message.task_id,
                if_exists="next",
                delay=delay,
                priority=int(labels.get("priority") or 0),
                label=label_of(message.task_name),
            )
        except Exception as error:
            end, retries = self._begun.get(message.task_id), int(labels.get(RETRIES) or 0)
            if end is not None and retries:
                end.refused(retries, delay, error)
            raise
        if added is None:
            logger.info("task %s is already waiting", message.task_id)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yields tasks, and renews their leases until they are acknowledged."""
        consumer = dq.asyncio.Consumer(
            self.queue(), lease=self._lease, wait=WAIT_S, logger=logger, limits=self._allowed, company=self._company
        )
        self._consumers.add(consumer)
        while True:
            for job in await consumer.fetch():
                message = self._fit(consumer, job)
                if message is not None:
                    payload = job.payload
                    refused = REFUSED.match(consumer.reason(job) or b"")
                    if refused:  # the retry that could not be added counts
                        message.labels[RETRIES] = str(max(_number(message, RETRIES), int(refused[1])))
                    if occurrences.is_scheduled(job) or refused:
                        payload = self.formatter.dumps(message).message
                    yield _Message(_End(consumer, job, message.task_id, self._begun), payload)

    def _fit(self, consumer: dq.asyncio.Consumer, job: dq.Job) -> TaskiqMessage | None:
        """The message that taskiq is to run. It would acknowledge a task that it cannot run, which would be lost."""
        try:
            message = self.formatter.loads(job.payload)
        except Exception as error:
            logger.error("task %s cannot be read, and is dead", job.id, exc_info=True)
            consumer.nack(job, mode="fatal", reason=f"unreadable: {error!r}")
            return None
        if self.find_task(message.task_name) is None:
            logger.warning("no task is called %s: gave back %s for another worker", message.task_name, job.id)
            consumer.unknown(job, message.task_name)
            return None
        if occurrences.is_scheduled(job):
            message.task_id = occurrences.id_of(message, job)
        return message

    def _allowed(self, job: dq.Job) -> int:
        """How many deliveries the task may have by its label ``max_retries``; 0 if that does not say."""
        try:
            message = self.formatter.loads(job.payload)
            runs = message.labels.get(MOST_RUNS)
            return 0 if runs is None else max(1, int(runs) - _number(message, RETRIES))
        except Exception:  # it cannot be read, or the labels are not numbers
            return 0

    async def shutdown(self) -> None:
        await super().shutdown()
        consumers, self._consumers = self._consumers, set()
        await asyncio.gather(*(consumer.close() for consumer in consumers))
        queues, self._queues = self._queues, {}
        if isinstance(self._url, str):
            for queue in list(queues.values())[:1]:  # they share a client
                await queue.close()


def _number(message: TaskiqMessage, label: str) -> int:
    return int(message.labels.get(label) or 0)


class _Message(AckableMessage):
    """A task in hand.

    taskiq takes ``ack`` when it begins with a task, in a task of asyncio that ends with it. It drops tasks that should
    have acknowledged themselves, and tasks of a middleware that fails: those are given back when that task ends.
    When it begins it also takes ``data``, which it gets only if the task is still this worker's.
    """

    def __init__(self, end: _End, payload: bytes) -> None:
        super().__init__(data=payload, ack=end.taken)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name == "data":
            super().__getattribute__("ack").__self__.check()
        return found() if name == "ack" else found


class _End:
    """How a task ends: acknowledged, or dropped. The first of these counts. The rest is given back at the shutdown."""

    def __init__(self, consumer: dq.asyncio.Consumer, job: dq.Job, task_id: str, begun: dict[str, _End]) -> None:
        self._consumer = consumer
        self._job = job
        self._task_id = task_id
        self._begun = begun
        self._dead: str | None = None
        self._reason = "it ended without being acknowledged"
        self._delay: float | None = None

    def taken(self) -> Callable[[], None]:
        self._begun[self._task_id] = self
        running.set(self)
        runs = asyncio.current_task()
        if runs is not None:
            runs.add_done_callback(self._ended)
        return self.ack

    def check(self) -> None:
        if not self._consumer.holds(self._job):
            logger.warning("task %s is not run: its lease expired, or it was deleted", self._job.id)
            raise asyncio.CancelledError

    def refused(self, retries: int, delay: float, error: Exception) -> None:
        """The message of its retry could not be added: if this ends the task, it is given back instead."""
        self._reason = f"retry {retries} was not added: {error}"
        self._delay = delay or None

    def unstorable(self, why: str) -> None:
        """Its result can never be stored: the task is dead, as it has done its work and would do it again."""
        self._dead = why

    def ack(self) -> None:
        if self._dead is None:
            self._consumer.ack(self._job)
        else:
            logger.error("task %s is dead: %s", self._job.id, self._dead)
            self._consumer.nack(self._job, mode="fatal", reason=self._dead)

    def _ended(self, _: Any) -> None:
        if self._begun.get(self._task_id) is self:
            del self._begun[self._task_id]
        if self._consumer.holds(self._job):
            logger.warning("task %s is given back: %s", self._job.id, self._reason)
            self._consumer.nack(self._job, delay=self._delay, reason=self._reason)
