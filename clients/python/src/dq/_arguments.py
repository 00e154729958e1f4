"""Builds the words of commands from arguments, and reads simple replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Optional, TypedDict, Union

from redis.exceptions import ResponseError

from ._delivery import Command
from ._options import unknown
from .codec import id_from, id_to
from .times import LARGEST_BYTES, Duration, between, from_ms, instant_to_ms, to_ms, waits

Ladder = Sequence[Duration]
Bytes = Union[str, bytes]
State = Literal["blocked", "delayed", "ready", "reserved", "done", "dead"]
IfExists = Literal["replace", "only-replace", "next"]
OnDead = Literal["wait", "run", "die"]
Mode = Literal["fail", "silent", "fatal"]
Rate = Union[tuple[int, Duration], Literal[0]]
PRIORITIES = (-(1 << 31), (1 << 31) - 1)
RATE_MOST = (1 << 32) - 1
MOST = (1 << 63) - 1
DEFAULT = "default"


class Filters(TypedDict, total=False):
    """Which ids a scan shows."""

    state: State
    match: Bytes
    group: Bytes
    payload: Bytes
    label: Bytes
    awaits: Bytes
    reason: Bytes
    recurring: bool


_FILTERS = ("state", "match", "group", "payload", "label", "awaits", "reason", "recurring")


def filters(given: Mapping[str, Any]) -> list[Any]:
    """The words of a scan's filters."""
    options: list[Any] = []
    for name, said in given.items():
        if name not in _FILTERS:
            raise unknown("Queue.scan", name, ("shard", "count", *_FILTERS))
        if name == "recurring":
            options += flag("RECURRING", said)
        elif said is not None:
            options += [name.upper(), bytes_of(said)]
    return options


def bytes_of(text: Bytes) -> bytes:
    if isinstance(text, str):
        return id_to(text)
    if isinstance(text, bytes):
        return text
    raise TypeError(f"an id must be text or bytes, such as '17', not {text!r}")


def new(id: Bytes) -> bytes:
    """The id of a job to be added."""
    raw = bytes_of(id)
    between("id", len(raw), 1, 1024, " bytes")
    if raw == b"*":
        raise ValueError('id: "*" is not an id; leave it out for a new one')
    return raw


def value(name: str, value: Any) -> list[Any]:
    return [] if value is None else [name, value]


def number(name: str, value: Optional[int], least: int, most: int = MOST) -> list[Any]:
    if value is None:
        return []
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name.lower()}: {value!r} is not a whole number between {least} and {most}")
    return [name, between(name.lower(), value, least, most)]


def payload(raw: bytes) -> bytes:
    if len(raw) > LARGEST_BYTES:
        between("data", len(raw), 0, LARGEST_BYTES, " bytes")
    return raw


def ms(name: str, duration: Optional[Duration], least: int = 0) -> list[Any]:
    return [] if duration is None else [name, to_ms(duration, name.lower(), least)]


def instant(name: str, instant: Optional[datetime]) -> list[Any]:
    return [] if instant is None else [name, instant_to_ms(instant, name.lower())]


def flag(name: str, is_set: bool) -> list[Any]:
    return [name] if is_set else []


def due(delay: Optional[Duration], at: Optional[datetime]) -> list[Any]:
    if delay is not None and at is not None:
        raise ValueError("delay and at cannot be combined")
    return ms("DELAY", delay) + instant("AT", at)


def ladder(backoff: Union[Ladder, str, None]) -> list[Any]:
    if backoff is None:
        return []
    steps = waits(backoff)
    between("backoff", len(steps), 0, 1024, " steps")
    return ["BACKOFF", len(steps), *(to_ms(step, "a step of backoff", 1) for step in steps)]


def rate(name: str, rate: Optional[Rate]) -> list[Any]:
    if rate is None:
        return []
    if rate == 0:
        return [name, 0, 0]
    if not isinstance(rate, (tuple, list)) or len(rate) != 2:
        raise TypeError(f"{name.lower()} must be a number of jobs and a window, such as (100, 60), or 0, not {rate!r}")
    least = 1 if any(rate) else 0
    return [*number(name, rate[0], least, RATE_MOST), to_ms(rate[1], f"the window of {name.lower()}", least)]


_CONDITIONS = {"replace": "REPLACE", "only-replace": "XX", "next": "NEXT"}


def condition(if_exists: Optional[IfExists]) -> list[Any]:
    if if_exists is None:
        return []
    if if_exists not in _CONDITIONS:
        raise ValueError(f"if_exists must be one of {', '.join(_CONDITIONS)}, not {if_exists!r}")
    return [_CONDITIONS[if_exists]]


def text(name: str, value: Optional[str], most: int) -> list[Any]:
    if value is None:
        return []
    between(name.lower(), len(bytes_of(value)), 1, most, " bytes")
    return [name, value]


_ON_DEAD = {"wait": "WAIT", "run": "RUN", "die": "DIE"}


def after(ids: Optional[Sequence[Bytes]], group: Optional[str], on_dead: Optional[OnDead]) -> list[Any]:
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


def is_unheld(said: str) -> bool:
    return "AFTER names a job that the queue does not hold" in said


def after_unknown(error: ResponseError, commands: Sequence[Command]) -> list[tuple[bytes, bytes]]:
    """Key and id of what AFTER names, without what the same commands add, if the error is that some is not there."""
    return named_after(commands) if is_unheld(str(error)) else []


def after_of(options: Sequence[Any]) -> Sequence[Any]:
    """The ids of AFTER among these words. A label may read AFTER, too."""
    for at, (word, count) in enumerate(zip(options, options[1:])):
        if word == "AFTER" and isinstance(count, int):
            return options[at + 2 : at + 2 + count]
    return ()


def named_after(commands: Sequence[Command]) -> list[tuple[bytes, bytes]]:
    named: dict[tuple[bytes, bytes], None] = {}
    for command in commands:
        named.update(dict.fromkeys((command[1], id) for id in after_of(command[4:])))
    added = {(command[1], command[2]) for command in commands}
    return [each for each in named if each not in added]


def rule(
    until: Optional[datetime], times: Optional[int], grace: Optional[Duration], jitter: Optional[Duration]
) -> list[Any]:
    return [*instant("UNTIL", until), *number("TIMES", times, 1), *ms("GRACE", grace), *ms("JITTER", jitter)]


_MODES = {"fail": "FAIL", "silent": "SILENT", "fatal": "FATAL"}


def nack_options(delay: Optional[Duration], priority: Optional[int], mode: Mode, reason: Optional[str]) -> list[Any]:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    return [*ms("DELAY", delay), *number("PRIORITY", priority, *PRIORITIES), _MODES[mode], *value("REASON", reason)]


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
