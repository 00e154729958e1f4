"""The consumer of one queue, and the messages that it hands out."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Any

import dq
import dramatiq
from dramatiq.errors import ConnectionClosed, DecodeError
from dramatiq.logging import get_logger

#: The reason of a message that comes again as its retry was refused: so the retry counts.
REFUSED = re.compile(rb"retry (\d+) was not added")


def retries_of(message: Any) -> int:
    return int(message.options.get("retries") or 0)


class Delivered(dramatiq.MessageProxy):
    """A message that was delivered."""

    #: The retry that is added when the message is acknowledged.
    again: dict[str, Any] | None = None
    #: Why the message is dead, if not by its exception.
    reason: str | None = None

    def __init__(self, message: dramatiq.Message[Any], job: dq.Job, owner: Consumer) -> None:
        super().__init__(message)
        self.job = job
        self.owner = owner

    def _retry(self) -> dict[str, Any]:
        return {"again": self.again, "otherwise": f"retry {retries_of(self)} was not added"}

    def is_ours(self) -> bool:
        """Whether the message is still this worker's: its lease has not expired, and it was not deleted."""
        return self.owner._jobs.holds(self.job)


class Consumer(dramatiq.Consumer):
    """Holds at most ``prefetch`` messages, and renews their leases while it lives."""

    def __init__(self, broker: Any, queue: dq.Queue, prefetch: int, timeout_ms: int) -> None:
        self.logger = get_logger(__name__, type(self))
        self._broker = broker
        self._prefetch = prefetch
        self._timeout_s = timeout_ms / 1000
        self._jobs = dq.Consumer(
            queue,
            lease=broker.lease / 1000,
            wait=self._timeout_s,
            logger=self.logger,
            limits=self._allowed,
            company=broker.company,
        )
        self._fetched: list[dq.Job] = []
        self._in_hand = 0
        self._closed = False
        self._room = threading.Condition()
        self._said = ""

    def __next__(self) -> Delivered | None:
        if self._closed:
            raise ConnectionClosed("the consumer is closed")
        if not self._fetched:
            self._fetched = self._fetch()
        if not self._fetched:
            return None
        job = self._fetched.pop(0)
        try:
            message = dramatiq.Message.decode(job.payload)
        except DecodeError as error:  # delivered again, it would fail again
            self.logger.error("job %r of %r cannot be read as a message, and is dead", job.id, job.queue, exc_info=True)
            self._jobs.nack(job, mode="fatal", reason=f"unreadable: {error.error!r}")
            return None
        if message.actor_name not in self._broker.actors:
            self.logger.warning("no actor is called %r: gave back %r", message.actor_name, job.id)
            self._jobs.unknown(job, message.actor_name)
            return None
        message.options.pop("eta", None)  # it is due: the worker must not wait once more
        refused = REFUSED.match(self._jobs.reason(job) or b"")
        if refused:
            message.options["retries"] = max(retries_of(message), int(refused[1]))
        with self._room:
            self._in_hand += 1
        return Delivered(message, job, self)

    def _allowed(self, job: dq.Job) -> int:
        try:
            return self._broker.allowed(dramatiq.Message.decode(job.payload))
        except Exception:  # it cannot be read, or its options are not numbers
            return 0

    def _fetch(self) -> list[dq.Job]:
        with self._room:
            if not self._room.wait_for(lambda: self._in_hand < self._prefetch, self._timeout_s):
                return []
            free = self._prefetch - self._in_hand
        try:
            return self._jobs.fetch(free, self._timeout_s)
        except dq.ConfigurationError as error:
            # Dramatiq's workers never end by themselves, and messages in hand must stay leased.
            if str(error) != self._said:
                self.logger.critical("cannot fetch messages: %s", error)
                self._said = str(error)
            threading.Event().wait(self._timeout_s)
            return []

    # A message may end after its consumer was closed: Dramatiq makes another consumer after a pause.

    def ack(self, message: dramatiq.MessageProxy) -> None:
        if isinstance(message, Delivered):
            message.owner._jobs.ack(message.job, **message._retry())
            message.owner._left()

    def nack(self, message: dramatiq.MessageProxy) -> None:
        """Moves the message to the dead ones, with its error."""
        if isinstance(message, Delivered):
            reason = message.reason or message._exception
            message.owner._jobs.nack(message.job, mode="fatal", reason=reason, **message._retry())
            message.owner._left()

    def requeue(self, messages: Iterable[dramatiq.MessageProxy]) -> None:
        """Gives messages back to their places in line."""
        for message in messages:
            if isinstance(message, Delivered):
                message.owner._jobs.release([message.job])
                message.owner._left()

    def _left(self) -> None:
        with self._room:
            self._in_hand -= 1
            self._room.notify()
            ends = self._closed and self._in_hand == 0
        if ends:
            self._jobs.close()

    def close(self) -> None:
        """Ends fetching. Messages whose actors still run stay leased until they end."""
        self._jobs.release(self._fetched)
        self._fetched = []
        with self._room:
            ends = self._in_hand == 0 and not self._closed
            self._closed = True
        if ends:
            self._jobs.close()
