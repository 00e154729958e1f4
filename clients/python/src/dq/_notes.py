"""Progress that handlers report: when it is written, without I/O, threads or a clock."""

from __future__ import annotations

import math
from typing import Optional

from ._delivery import Command, Delivery

PACE_S = 1.0
"""The shortest time between two reports of one job."""


class Notes:
    """The last progress of each job that reports some."""

    def __init__(self) -> None:
        self._texts: dict[Delivery, bytes] = {}
        """Reports that the server has not confirmed."""
        self._sent: dict[Delivery, tuple[float, bytes]] = {}
        """When each job's progress was last written, and its text."""
        self.next_at = math.inf
        self.is_used = False
        """Some job has reported progress. Until then, the end of a job need not look for a report."""

    def say(self, delivery: Delivery, text: bytes, now: float) -> bool:
        """Takes a report. Returns whether something is to be done earlier than before."""
        self.is_used = True
        self._texts[delivery] = text
        at = self._sent[delivery][0] + PACE_S if delivery in self._sent else now
        is_earlier = at < self.next_at
        self.next_at = min(at, self.next_at)
        return is_earlier

    def due(self, now: float) -> list[tuple[Command, Delivery, bytes]]:
        if now < self.next_at:
            return []
        found, self.next_at = [], math.inf
        for delivery, text in list(self._texts.items()):
            sent_at, sent = self._sent.get(delivery, (-math.inf, None))
            if text == sent:
                continue
            if sent_at + PACE_S > now:
                self.next_at = min(self.next_at, sent_at + PACE_S)
                continue
            self._sent[delivery] = now, text
            found.append((command(delivery, text), delivery, text))
        return found

    def confirmed(self, delivery: Delivery, text: bytes) -> None:
        if self._texts.get(delivery) == text:
            self._texts.pop(delivery, None)

    def unsent(self) -> None:
        """Reports were sent and got no reply: all are sent again."""
        for delivery in self._texts:
            self._sent.pop(delivery, None)
        self.next_at = 0.0 if self._texts else math.inf

    def end(self, delivery: Delivery) -> Optional[Command]:
        """The report to be written before the job ends, if any."""
        self._sent.pop(delivery, None)
        text = self._texts.pop(delivery, None)
        return None if text is None else command(delivery, text)


def command(delivery: Delivery, text: bytes) -> Command:
    return (b"DQ.TOUCH", delivery.key, delivery.id, b"TOKEN", delivery.token, b"PROGRESS", text)
