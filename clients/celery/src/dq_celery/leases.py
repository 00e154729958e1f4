"""Deliveries in hand, and the thread that renews their leases.

A thread, as a pool of the worker may block its event loop for as long as a task runs.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from time import monotonic, time
from typing import Any, Optional

import redis
from kombu.log import get_logger

from .acks import UNREACHABLE, AckStream, Delivery

logger = get_logger("dq_celery")

#: How many ids one command has.
BATCH = 500
RESEND_S = 0.5
LATER_MS = 1000
#: The TTR of jobs that were given none.
USUAL_TTR_MS = 60_000


def running_tags() -> set[str]:
    """The delivery tags of tasks that this process's Celery worker is running."""
    state = sys.modules.get("celery.worker.state")
    if state is None:
        return set()
    return {request.message.delivery_tag for request in tuple(state.active_requests)}


class Lease:
    """A delivery, the length of its lease, and when the lease ends as far as this process knows."""

    __slots__ = ("delivery", "length_s", "until")

    def __init__(self, delivery: Delivery, length_s: float, until: float) -> None:
        self.delivery = delivery
        self.length_s = length_s
        self.until = until


class Leases:
    """The leases of one connection to the broker. They outlive it while tasks run that it delivered."""

    def __init__(self, client: redis.Redis, lease_ms: int) -> None:
        self.client = client
        self.lease_ms = lease_ms
        #: False in a worker with an event loop: nothing there looks at the queue right after an acknowledgement.
        self.waits_for_acks = True
        self._acks = AckStream(client)
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        #: Tags of closed channels: given back as soon as no task runs for them.
        self._left: set[str] = set()
        #: Tags of tasks that ended a process of the pool.
        self.process_lost: set[str] = set()
        self._unsent: list[Delivery] = []
        #: How many ends of deliveries are being sent.
        self._sending = 0
        self._wake = threading.Event()
        #: When leases must be renewed next.
        self._beat_at = math.inf
        self._thread: Optional[threading.Thread] = None
        self._closed = False
        self._at_exit: Optional[Finalize] = None

    # --- Called by channels

    def take(self, tag: str, delivery: Delivery, deadline_ms: int, ttr_ms: int) -> bool:
        """Holds a delivery and renews its lease. Returns False if the lease ended before the reply was read."""
        # A job's own TTR holds. One that is longer may be this server's default; then the shorter lease is assumed.
        length_s = (self.lease_ms if ttr_ms == USUAL_TTR_MS else min(self.lease_ms, ttr_ms)) / 1000
        left_s = min(deadline_ms / 1000 - time(), length_s)
        lease = Lease(delivery, length_s, monotonic() + left_s)
        # The process was blocked, or its clock is ahead of the server's.
        if left_s <= 0 and not self._is_leased(lease):
            return False
        with self._lock:
            self._held[tag] = lease
            beat_at = monotonic() + length_s / 3
            is_next = beat_at < self._beat_at
            self._beat_at = min(self._beat_at, beat_at)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dq-leases", daemon=True)
                self._thread.start()
                self._at_exit = Finalize(self, self._give_back_all, exitpriority=0)
        if is_next:
            self._wake.set()
        return True

    def still_runs(self, tag: str, delivery: Delivery) -> bool:
        """Whether this process still runs the job, although its lease ended, as in a failover.

        If so, gives it back, to come again later.
        """
        _, name = tag.split(":", 1)
        if all(running.split(":", 1)[-1] != name for running in running_tags()):
            return False
        logger.warning("job %r of %r still runs here, and is given back", delivery.id, delivery.key)
        self.nack_delivery(delivery, "SILENT", "DELAY", LATER_MS)
        return True

    def holds(self, tag: str) -> bool:
        return tag in self._held

    def held(self) -> set[str]:
        with self._lock:
            return set(self._held)

    def running(self) -> set[str]:
        return running_tags()

    @property
    def is_telling(self) -> bool:
        """Whether the server has not answered yet how some task ended."""
        self._send_later(self._acks.collect(wait=False))
        return bool(self._sending or self._unsent or self._acks)

    def may_begin(self, tag: str) -> bool:
        """Whether this process still has the job: it may have gone to another worker, or have been deleted."""
        lease = self._held.get(tag)
        if lease is None:
            return False
        if monotonic() < lease.until or self._is_leased(lease):
            return True
        self._drop(tag)
        return False

    def _is_leased(self, lease: Lease) -> bool:
        """Renews a lease that has ended. If the server cannot be asked, the job is left to whoever gets it."""
        id, key = lease.delivery.id, lease.delivery.key
        try:
            [deadline] = self._touch(key, [lease])
        except UNREACHABLE as error:
            logger.warning("job %r is left to others: %r", id, error)
            return False
        if deadline is None:
            logger.warning("job %r of %r is not run: its lease expired before it began", id, key)
        return deadline is not None

    def ack(self, tag: str) -> None:
        """Never fails: an acknowledgement that cannot be sent is sent again, and the lease is renewed until then."""
        with self._ending(tag) as delivery:
            if delivery is None:
                return
            if not self.waits_for_acks:
                self._send_later(self._acks.send(delivery))
            elif not self._send_ack(delivery):
                self._send_later([delivery])

    def nack(self, tag: str, *options: Any) -> None:
        with self._ending(tag) as delivery:
            if delivery is not None:
                self.nack_delivery(delivery, *options)

    def nack_delivery(self, delivery: Delivery, *options: Any) -> None:
        """Gives a delivery back. If that cannot be sent, the end of the lease has the same effect."""
        try:
            self.client.execute_command("DQ.NACK", delivery.key, "IDS", 1, delivery.id, delivery.token, *options)
        except UNREACHABLE as error:
            logger.warning("job %r was not given back, its lease will end: %r", delivery.id, error)

    def give_back(self, tags: Iterable[str]) -> None:
        """Gives deliveries back as if they had not been delivered."""
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
        """The channel is closed. Tasks that still run here keep their leases, so that no other worker runs them."""
        tags = set(tags)
        still = tags & running_tags()
        with self._lock:
            self._left |= still
        self.give_back(tags - still)

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    # --- The thread

    def _run(self) -> None:
        while not self._done():
            self._wake.wait(RESEND_S if self._unsent else max(0, self._beat_at - monotonic()))
            self._wake.clear()
            try:
                self._send_later(self._acks.collect())
                self._resend()
                self._return_left()
                if monotonic() >= self._beat_at:
                    self._renew()
                continue
            except UNREACHABLE as error:
                logger.warning("leases were not renewed, trying again: %r", error)
            except Exception:  # if this thread ended, every lease would expire
                logger.exception("leases were not renewed, trying again")
            self._beat_at = monotonic()
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
            by_key: dict[str, list[tuple[str, Lease]]] = defaultdict(list)
            for tag, lease in self._held.items():
                by_key[lease.delivery.key].append((tag, lease))
            shortest_s = min([self.lease_ms / 1000, *(lease.length_s for lease in self._held.values())])
            self._beat_at = monotonic() + shortest_s / 3
        for key, held in by_key.items():
            for batch in _batches(held):
                replies = self._touch(key, [lease for _, lease in batch])
                for (tag, lease), deadline in zip(batch, replies):
                    # A job that was acknowledged meanwhile has no lease either, but it is not held any more.
                    if deadline is None and self._drop(tag) is not None:
                        lost = "lost job %r of %r: its lease expired, or it was deleted"
                        logger.warning(lost, lease.delivery.id, key)

    def _touch(self, key: str, leases: list[Lease]) -> list[Optional[int]]:
        pairs, sent = _pairs(lease.delivery for lease in leases), monotonic()
        replies = self.client.execute_command("DQ.TOUCH", key, "IDS", len(leases), *pairs)
        for lease, deadline in zip(leases, replies):
            if deadline is not None:
                lease.until = sent + lease.length_s
        return replies

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

    # --- Helpers

    @contextmanager
    def _ending(self, tag: str) -> Iterator[Optional[Delivery]]:
        with self._lock:
            lease = self._held.pop(tag, None)
            self._sending += 1
        try:
            yield lease and lease.delivery
        finally:
            with self._lock:
                self._sending -= 1

    def _drop(self, tag: str) -> Optional[Delivery]:
        with self._lock:
            lease = self._held.pop(tag, None)
        return lease and lease.delivery

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
