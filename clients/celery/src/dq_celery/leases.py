"""The deliveries in hand, and the thread that renews their leases.

A thread, as a pool of the worker may keep its event loop busy for the length of a task.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from multiprocessing.util import Finalize
from typing import Any, Optional

import redis
from kombu.log import get_logger

from .acks import UNREACHABLE, AckStream, Delivery

logger = get_logger("dq_celery")

#: Ids in one command.
BATCH = 500
RESEND_S = 0.5


def running_tags() -> set[str]:
    """The delivery tags of tasks that this process's Celery worker is running."""
    state = sys.modules.get("celery.worker.state")
    if state is None:
        return set()
    return {request.message.delivery_tag for request in tuple(state.active_requests)}


class Leases:
    """Of one connection to the broker. Outlives it for as long as tasks run that it delivered."""

    def __init__(self, client: redis.Redis, lease_ms: int) -> None:
        self.client = client
        self.lease_ms = lease_ms
        #: False in a worker with an event loop: nobody there looks at the queue after an acknowledgement.
        self.waits_for_acks = True
        self._acks = AckStream(client)
        self._lock = threading.Lock()
        self._held: dict[str, Delivery] = {}
        #: Of closed channels: given back as soon as no task runs for them any more.
        self._left: set[str] = set()
        self._unsent: list[Delivery] = []
        self._wake = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._closed = False
        self._at_exit: Optional[Finalize] = None

    # What channels say

    def hold(self, tag: str, delivery: Delivery) -> None:
        with self._lock:
            self._held[tag] = delivery
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dq-leases", daemon=True)
                self._thread.start()
                self._at_exit = Finalize(self, self._give_back_all, exitpriority=0)

    def is_leased(self, delivery: Delivery) -> bool:
        """Renews the lease, unless it has ended. If the server cannot be asked, the job is left to whoever gets it."""
        try:
            [deadline] = self._touch(delivery.key, [delivery])
        except UNREACHABLE as error:
            logger.warning("job %r is left to others: %r", delivery.id, error)
            return False
        if deadline is None:
            logger.warning("job %r of %r is not run: its lease ended before it was read", delivery.id, delivery.key)
        return deadline is not None

    def ack(self, tag: str) -> None:
        """Never fails: what cannot be sent now is sent again, and until then the job is leased."""
        delivery = self._drop(tag)
        if delivery is None:
            return
        if not self.waits_for_acks:
            self._send_later(self._acks.send(delivery))
        elif not self._send_ack(delivery):
            self._send_later([delivery])

    def nack(self, tag: str, *options: Any) -> None:
        delivery = self._drop(tag)
        if delivery is not None:
            self.nack_delivery(delivery, *options)

    def nack_delivery(self, delivery: Delivery, *options: Any) -> None:
        """Where it cannot be sent, the end of the lease does the same."""
        try:
            self.client.execute_command("DQ.NACK", delivery.key, delivery.id, "TOKEN", delivery.token, *options)
        except UNREACHABLE as error:
            logger.warning("job %r was not given back, its lease will end: %r", delivery.id, error)

    def give_back(self, tags: Iterable[str]) -> None:
        """As if they had not been delivered."""
        by_key: dict[str, list[Delivery]] = defaultdict(list)
        for tag in tags:
            delivery = self._drop(tag)
            if delivery is not None:
                by_key[delivery.key].append(delivery)
        try:
            for key, deliveries in by_key.items():
                for batch in _batches(deliveries):
                    self.client.execute_command("DQ.NACK", key, "IDS", len(batch), *_pairs(batch), "SILENT")
        except UNREACHABLE as error:
            logger.warning("jobs were not given back, their leases will end: %r", error)

    def leave(self, tags: Iterable[str]) -> None:
        """The channel is closed. What a worker still runs stays leased, so nobody else runs it too."""
        tags = set(tags)
        still = tags & running_tags()
        with self._lock:
            self._left |= still
        self.give_back(tags - still)

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    # The thread

    def _run(self) -> None:
        while not self._done():
            self._wake.wait(RESEND_S if self._unsent else self.lease_ms / 3000)
            self._wake.clear()
            try:
                self._send_later(self._acks.collect())
                self._resend()
                self._return_left()
                self._renew()
            except UNREACHABLE as error:
                logger.warning("leases were not renewed, trying again: %r", error)
                self._wake.wait(RESEND_S)
            except Exception:  # a thread that ended would let every lease end
                logger.exception("leases were not renewed, trying again")
                self._wake.wait(RESEND_S)

    def _done(self) -> bool:
        with self._lock:
            done = self._closed and not self._held and not self._unsent and not self._acks
            if done:
                self._thread = None
        if done:
            self._disconnect()
        return done

    def _renew(self) -> None:
        with self._lock:
            by_key: dict[str, list[tuple[str, Delivery]]] = defaultdict(list)
            for tag, delivery in self._held.items():
                by_key[delivery.key].append((tag, delivery))
        for key, held in by_key.items():
            for batch in _batches(held):
                replies = self._touch(key, [delivery for _, delivery in batch])
                for (tag, delivery), deadline in zip(batch, replies):
                    # A job that was acknowledged meanwhile has no lease either, but is held no more.
                    if deadline is None and self._drop(tag) is not None:
                        logger.warning("lost job %r of %r: its lease ended, or it was deleted", delivery.id, key)

    def _touch(self, key: str, batch: list[Delivery]) -> list[Optional[int]]:
        pairs = _pairs(batch)
        return self.client.execute_command("DQ.TOUCH", key, "IDS", len(batch), *pairs, "TTR", self.lease_ms)

    def _resend(self) -> None:
        while self._unsent:
            if not self._send_ack(self._unsent[0]):
                return
            with self._lock:
                self._unsent.pop(0)

    def _return_left(self) -> None:
        if self._left:
            with self._lock:
                ended = self._left - running_tags()
                self._left -= ended
            self.give_back(ended)

    # Below

    def _drop(self, tag: str) -> Optional[Delivery]:
        with self._lock:
            return self._held.pop(tag, None)

    def _send_ack(self, delivery: Delivery) -> bool:
        try:
            delivery.is_acked(self.client.execute_command(*delivery.ack()))
        except UNREACHABLE as error:
            logger.warning("job %r is not acknowledged yet: %r", delivery.id, error)
            return False
        return True

    def _send_later(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            with self._lock:
                self._unsent += deliveries
            self._wake.set()

    def _give_back_all(self) -> None:
        self._send_later(self._acks.collect())
        self._resend()
        self.give_back(list(self._held))

    def _disconnect(self) -> None:
        if self._at_exit is not None:
            self._at_exit.cancel()
        self.client.connection_pool.disconnect()


def _batches(items: list[Any]) -> Iterable[list[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _pairs(deliveries: Iterable[Delivery]) -> list[bytes]:
    return [part for delivery in deliveries for part in (delivery.id, delivery.token)]
