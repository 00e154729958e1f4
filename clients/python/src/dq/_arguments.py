"""Builds the words of commands from arguments, and reads simple replies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Optional, Union

from .codec import id_from, id_to
from .times import Duration, from_ms, instant_to_ms, to_ms, waits

Ladder = Sequence[Duration]
Bytes = Union[str, bytes]


def bytes_of(text: Bytes) -> bytes:
    if isinstance(text, str):
        return id_to(text)
    if isinstance(text, bytes):
        return text
    raise TypeError(f"an id must be text or bytes, such as '17', not {text!r}")


def new(id: Bytes) -> bytes:
    """The id of a job to be added."""
    raw = bytes_of(id)
    if raw == b"*":
        raise ValueError('id: "*" is not an id; leave it out for a new one')
    return raw


def value(name: str, value: Any) -> list[Any]:
    return [] if value is None else [name, value]


def ms(name: str, duration: Optional[Duration]) -> list[Any]:
    return [] if duration is None else [name, to_ms(duration, name.lower())]


def instant(name: str, instant: Optional[datetime]) -> list[Any]:
    return [] if instant is None else [name, instant_to_ms(instant, name.lower())]


def flag(name: str, is_set: bool) -> list[Any]:
    return [name] if is_set else []


def due(delay: Optional[Duration], at: Optional[datetime]) -> list[Any]:
    if delay is not None and at is not None:
        raise ValueError("delay and at cannot be combined")
    return ms("DELAY", delay) + instant("AT", at)


def ladder(backoff: Optional[Ladder]) -> list[Any]:
    if backoff is None:
        return []
    return ["BACKOFF", len(waits(backoff)), *(to_ms(step, "a step of backoff") for step in backoff)]


def rate(name: str, rate: Optional[tuple[int, Duration]]) -> list[Any]:
    return [] if rate is None else [name, rate[0], to_ms(rate[1])]


_CONDITIONS = {"replace": "REPLACE", "only-replace": "XX", "next": "NEXT"}


def condition(if_exists: Optional[str]) -> list[Any]:
    if if_exists is None:
        return []
    if if_exists not in _CONDITIONS:
        raise ValueError(f"if_exists must be one of {', '.join(_CONDITIONS)}, not {if_exists!r}")
    return [_CONDITIONS[if_exists]]


def job_options(
    priority: Optional[int],
    ttr: Optional[Duration],
    attempts: Optional[int],
    backoff: Optional[Ladder],
    ttl: Optional[Duration],
    group: Optional[str],
    keep: Optional[Duration] = None,
    cost: Optional[int] = None,
) -> list[Any]:
    return [
        *value("PRIORITY", priority),
        *ms("TTR", ttr),
        *value("ATTEMPTS", attempts),
        *ladder(backoff),
        *ms("TTL", ttl),
        *value("GROUP", group),
        *ms("KEEP", keep),
        *value("COST", cost),
    ]


_ON_DEAD = {"wait": "WAIT", "run": "RUN", "die": "DIE"}


def after(ids: Optional[Sequence[Bytes]], group: Optional[str], on_dead: Optional[str]) -> list[Any]:
    if ids is not None and group is not None:
        raise ValueError("after and after_group cannot be combined")
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"after takes a list of ids, such as [{ids!r}]")
    if on_dead is not None and on_dead not in _ON_DEAD:
        raise ValueError(f"on_dead must be one of {', '.join(_ON_DEAD)}, not {on_dead!r}")
    if on_dead is not None and not ids:
        raise ValueError("on_dead says what a job does when one that it is after dies: it needs after")
    if group is not None:
        return ["AFTER", "GROUP", group]
    options = ["AFTER", len(ids), *map(bytes_of, ids)] if ids else []
    return [*options, *(["ONDEAD", _ON_DEAD[on_dead]] if on_dead is not None else [])]


def rule(
    until: Optional[datetime], times: Optional[int], grace: Optional[Duration], jitter: Optional[Duration]
) -> list[Any]:
    return [*instant("UNTIL", until), *value("TIMES", times), *ms("GRACE", grace), *ms("JITTER", jitter)]


_MODES = {"fail": "FAIL", "silent": "SILENT", "fatal": "FATAL"}


def nack_options(delay: Optional[Duration], priority: Optional[int], mode: str, reason: Optional[str]) -> list[Any]:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    return [*ms("DELAY", delay), *value("PRIORITY", priority), _MODES[mode], *value("REASON", reason)]


# --- Replies


def undecoded(reply: Any) -> Any:
    """Undoes the decoding of a transaction's reply, which redis-py does despite ``NEVER_DECODE``."""
    if isinstance(reply, list):
        return [*map(undecoded, reply)]
    return reply.encode("utf-8", "surrogateescape") if isinstance(reply, str) else reply


def nothing(replies: list[Any]) -> None:
    return None


def maybe_id(reply: Optional[bytes]) -> Optional[str]:
    return None if reply is None else id_from(reply)


def maybe_text(reply: Optional[bytes]) -> Optional[str]:
    return None if reply is None else reply.decode()


def maybe_instant(reply: Optional[int]) -> Optional[datetime]:
    return None if reply is None else from_ms(reply)
