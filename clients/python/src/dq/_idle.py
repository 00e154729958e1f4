"""Asks why a link gets no jobs, where it has got none for a minute."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import Any, Optional

from redis.exceptions import ResponseError

from ._core import pack
from ._trouble import may_not
from .codec import id_from

IDLE_S = 60.0
MOST_KEYS = 100
_NONE_READY = {b"delayed", b"blocked", b"reserved", b"empty"}


class Idle:
    """How long a link's fetches have waited in vain. The next fetch then takes DQ.EXPLAIN along, and delays nothing."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = keys[:MOST_KEYS]
        self.asked: list[bytes] = []
        """The keys whose replies are not read yet."""
        self.is_waiting = False
        """The last fetch got nothing. A busy link looks at nothing else."""
        self._waited_s = 0.0
        self._is_said = False
        """In this time without jobs."""

    def fetched(self, is_any: bool, waited_s: float) -> None:
        self.is_waiting = not is_any
        if is_any:
            self._waited_s, self._is_said = 0.0, False
        else:
            self._waited_s += waited_s

    def asks(self) -> bytes:
        """What the next fetch takes along."""
        self.asked = []
        if self._waited_s >= IDLE_S and not self._is_said:
            self._waited_s = 0.0
            self.asked = [*self._keys]
        return pack((b"DQ.EXPLAIN", key) for key in self.asked)

    def heard(self, reply: Any, base: Any) -> None:
        """Takes the next reply."""
        key = self.asked.pop(0)
        if isinstance(reply, ResponseError):
            if may_not(reply):
                self._keys = ()
                base._off("the server refuses DQ.EXPLAIN: an idle worker cannot say why it gets no jobs", reply)
            return
        why = held_back(reply or ())
        if why is not None:
            self._is_said = True
            text = "queue %r: no job for a minute, although some are ready: %s"
            base._log.say(logging.WARNING, text, id_from(key), why)


def held_back(rows: Sequence[Any]) -> Optional[str]:
    """Why ready jobs are not delivered; None if none is ready, or nothing holds them: this fetch gets them."""
    if any(code in _NONE_READY for code, _, _ in rows):
        return None
    return ", ".join(map(_shown, (row for row in rows if row[0] != b"idle"))) or None


def _shown(row: Any) -> str:
    code, number, until = row
    text = code.decode() if number is None else f"{code.decode()} {number}"
    return text if until is None else f"{text} for {max(0, math.ceil(until / 1000 - time.time()))} s"
