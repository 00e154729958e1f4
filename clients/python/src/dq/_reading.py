"""Parts of replies, typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Optional

from ._delivery import as_map
from .codec import Codec, Envelope, decoded, id_from
from .times import from_ms


@dataclass(frozen=True)
class FailedAttempt:
    """An attempt of a job that failed."""

    attempts: int
    """Deliveries by then, with this one."""
    started: datetime
    ended: datetime
    how: str
    """``nacked``, ``fatal`` or ``timeout``."""
    reason: Optional[str]


class Said:
    """What a job's payload says."""

    payload: bytes
    _codec: Codec

    @property
    def data(self) -> Any:
        """The payload, decoded. Raises PayloadError if it cannot be."""
        envelope = Envelope.read(self.payload)
        return decoded(self._codec, self.payload, "payload") if envelope is None else envelope.data

    @property
    def kind(self) -> Optional[str]:
        envelope = Envelope.read(self.payload)
        return envelope.kind if envelope else None

    @property
    def headers(self) -> Mapping[str, str]:
        envelope = Envelope.read(self.payload)
        return envelope.headers if envelope else {}


def prose(raw: Optional[bytes]) -> Optional[str]:
    """Text for people: bytes that are not UTF-8 are replaced."""
    return None if raw is None else raw.decode("utf-8", "replace")


def maybe_id(raw: Optional[bytes]) -> Optional[str]:
    return None if raw is None else id_from(raw)


def ids_of(reply: Optional[Iterable[bytes]]) -> list[str]:
    return [id_from(id) for id in reply or ()]


def durations(reply: Iterable[int]) -> list[timedelta]:
    return [timedelta(milliseconds=ms) for ms in reply]


def history_of(reply: Optional[Iterable[Any]]) -> list[FailedAttempt]:
    return [
        FailedAttempt(attempts, from_ms(started), from_ms(ended), how.decode(), prose(reason))
        for attempts, started, ended, how, reason in reply or ()
    ]


def steps_of(reply: Any) -> Mapping[str, bytes]:
    return {id_from(name): value for name, value in (as_map(reply) or {}).items()}


def results_of(reply: Optional[Iterable[Any]]) -> list[tuple[str, Optional[str], Optional[bytes]]]:
    """Id, outcome, and result or reason of each."""
    return [(id_from(id), prose(outcome), value) for id, outcome, value in reply or ()]
