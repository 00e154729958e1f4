"""How jobs end: their results, cancellation, and signals to jobs that wait for one."""

from __future__ import annotations

import time
from typing import Any, Optional

from . import _arguments as words
from ._adds import Adds
from ._arguments import Bytes
from ._core import WAIT_S
from ._delivery import as_map
from ._options import near_misses
from ._waits import End
from .codec import Codec, id_from
from .errors import TimedOut
from .times import Duration, seconds


@near_misses("Queue")
class Outcomes(Adds):
    codec: Codec

    def result(self, id: Bytes) -> Any:
        """The result of a job that is done and kept (by ``keep``, DONELEN or DONETTL).

        Raises JobFailed if the job is dead. Returns None in all other cases.
        """

        def read(replies: list[Any]) -> Any:
            fields = as_map(replies[0]) or {}
            state = (fields.get(b"state") or b"").decode()
            if state not in ("done", "dead"):
                return None
            value = fields[b"result"] if state == "done" else fields[b"reason"]
            return End(words.bytes_of(id), state, value).result(self.codec)

        return self._run([("DQ.GET", self._key(id), words.bytes_of(id))], read)

    def cancel(self, id: Bytes) -> bool:
        """Deletes the job; a handler that runs it is told at once. Returns False if there was no such job."""
        return self._run([("DQ.DEL", self._key(id), "IDS", 1, words.bytes_of(id))], lambda replies: bool(replies[0]))

    def signal(self, id: Bytes, name: str, value: Any = None) -> Optional[bool]:
        """Wakes the job that waits for the signal ``name``, or will.

        Returns False if the signal was set before, None if there is no such job.
        """
        if not isinstance(name, str) or not name or name.startswith("dq:"):
            raise ValueError(f"a signal has a name, such as 'signed', which does not begin with 'dq:', not {name!r}")
        raw = [] if value is None else [self.codec.encode(value)]
        call = ("DQ.SIGNAL", self._key(id), words.bytes_of(id), words.bytes_of(name), *raw)
        return self._run([call], lambda replies: None if replies[0] is None else bool(replies[0]))


class Deadline:
    """The end of a wait, by the clock of ``time.monotonic``."""

    def __init__(self, timeout: Optional[Duration]) -> None:
        self.timeout = None if timeout is None else seconds(timeout, "timeout")
        self.at = None if self.timeout is None else time.monotonic() + self.timeout

    def left(self) -> float:
        """How many seconds are left; a long time where there is no end."""
        return WAIT_S if self.at is None else max(0.0, self.at - time.monotonic())

    def check(self, id: bytes) -> None:
        """Raises TimedOut if it is over."""
        if self.at is not None and time.monotonic() >= self.at:
            raise TimedOut(f"job {id_from(id)!r} did not end within {self.timeout:g} s", id_from(id), self.timeout)
