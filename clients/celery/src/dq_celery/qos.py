"""Messages that were delivered to a channel and are not acknowledged."""

from __future__ import annotations

from typing import Any

from kombu.transport import virtual

from .limits import PROCESS_LOST


class QoS(virtual.QoS):
    """Counts messages of fanout exchanges, too, but does not keep them: they have no lease."""

    def ack(self, delivery_tag: str) -> None:
        self.channel.leases.ack(delivery_tag)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        leases = self.channel.leases
        is_lost = delivery_tag in leases.process_lost
        leases.process_lost.discard(delivery_tag)
        if requeue:
            leases.nack(delivery_tag, "DELAY", 0, *(("REASON", PROCESS_LOST) if is_lost else ()))
        elif self.channel.dead_letters:
            leases.nack(delivery_tag, "FATAL", "REASON", "rejected")
        else:
            leases.ack(delivery_tag)
        super().ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        self._flush()
        self.channel.leases.give_back(list(self._delivered))
        self._delivered.clear()
        return []

    def restore_unacked_once(self, stderr: Any = None) -> None:
        self._on_collect.cancel()
        self._flush()
        if self._delivered:
            self.channel.leases.leave(list(self._delivered))
            self._delivered.clear()

    def restore_visible(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: in the server, a lease that ends makes its job ready."""
