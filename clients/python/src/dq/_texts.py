"""Texts of what users give: errors, reasons, whatever is shown in a log. The only place where they are made.

Each is bounded in depth and length. Code of the user's, such as ``__str__``, runs in a thread of its own, for a bounded
time: meanwhile leases are renewed.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import os
import reprlib
import threading
import time
import traceback
from datetime import datetime, timedelta
from types import TracebackType, WrapperDescriptorType
from typing import Any, Callable, NamedTuple, Optional

from .errors import Cancelled, ControlError, GiveUp, PayloadError, Retry, Snooze

REASON_BYTES = 1024
TEXT_S = 5.0
"""How long a text may take."""

QUICK_S = 0.05
"""How long the texts of an error take that a logger may make once more."""

MOST_FRAMES = 50
_HERE = os.path.dirname(__file__) + os.sep

MOST_LINKS = 10
"""How many errors that led to one another, or are in a group, are looked at."""

_CAUSE, _CONTEXT, _ARGS, _TRACE = (
    BaseException.__dict__[each].__get__ for each in ("__cause__", "__context__", "args", "__traceback__")
)
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", None)
_GROUPED: Any = None if _GROUP is None else _GROUP.__dict__["exceptions"].__get__
_ATOMS = (str, bytes, int, float, bool, type(None))
_LONGEST = 1 << 16
_SHOWN = (*_ATOMS, complex, type, timedelta, datetime)
_CONTAINERS = {list: "list", tuple: "tuple", dict: "dict", set: "set", frozenset: "frozenset"}


def name(kind: type) -> bytes:
    """The name of a type, whatever its metaclass does."""
    made: str = type.__dict__["__name__"].__get__(kind)
    return str.encode(made, "utf-8", "replace")


def cut(text: bytes) -> bytes:
    """Cuts a reason to what the server keeps, in whole characters."""
    return text if len(text) <= REASON_BYTES else text[:REASON_BYTES].decode("utf-8", "ignore").encode()


def _resolved(kind: type, method: str) -> Any:
    """The method of a type, whatever its metaclass does."""
    for each in type.__dict__["__mro__"].__get__(kind):
        found = type.__dict__["__dict__"].__get__(each).get(method)
        if found is not None:
            return found
    return None


def _own(kind: type, method: str) -> bool:
    """Whether the method is Python's own, and not the user's code."""
    return type(_resolved(kind, method)) is WrapperDescriptorType


class _Bounded(reprlib.Repr):
    """``repr`` of bounded depth and length. Runs no code of the user's if ``is_safe``."""

    def __init__(self, is_safe: bool) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 6, REASON_BYTES, REASON_BYTES, REASON_BYTES
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 20
        self._is_safe = is_safe
        self._left = 200
        """How many things are shown, in all."""

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        self._left -= 1
        if self._left < 0:
            return "..."
        for base, said in _CONTAINERS.items() if _own(kind, "__repr__") else ():
            if issubclass(kind, base):
                made: str = getattr(self, f"repr_{said}")(x, level)
                return made
        if issubclass(kind, BaseException) and _own(kind, "__repr__"):
            args = _ARGS(x)
            shown = ", ".join(self.repr1(each, level - 1) for each in args[:20]) if level > 0 else "..."
            return f"{name(kind).decode()}({shown})"
        if self._is_safe and kind not in _SHOWN and _resolved(kind, "__repr__") is not object.__dict__["__repr__"]:
            return f"<{name(kind).decode()}>"
        return super().repr1(x, level)


def show(thing: Any) -> str:
    """A text for the log. Runs no code of the user's."""
    try:
        return str.encode(_Bounded(True).repr(thing), "utf-8", "replace")[:200].decode("utf-8", "ignore")
    except BaseException:
        return f"<{name(type(thing)).decode()}>"


def _is_atom(thing: Any) -> bool:
    kind = type(thing)
    if kind not in _ATOMS or (kind is bytes and len(thing) > _LONGEST):
        return False
    return kind is not int or int.bit_length(thing) < 4096


def _is_plain(thing: Any) -> bool:
    """Whether its text is made at once, without code of the user's."""
    kind = type(thing)
    if kind in (Retry, Snooze, GiveUp, Cancelled):
        return _is_atom(thing.__dict__.get("reason"))
    if issubclass(kind, BaseException):
        return _own(kind, "__str__") and all(map(_is_atom, _ARGS(thing)))
    return _is_atom(thing)


def _encoded(text: str) -> bytes:
    return str.encode(str.__getitem__(text, slice(REASON_BYTES)), "utf-8", "replace")


def _text(thing: Any) -> tuple[bytes, bytes]:
    """The thing as UTF-8, or the reason why there is no text."""
    try:
        if type(thing) is bytes:
            return thing[:REASON_BYTES].decode("utf-8", "replace").encode(), b""
        if issubclass(type(thing), BaseException):
            args = _ARGS(thing)
            if not _own(type(thing), "__str__") or all(map(_is_atom, args)):
                return _encoded(str(thing)), b""
            thing = args[0] if len(args) == 1 else args
        if issubclass(type(thing), (*_CONTAINERS, BaseException)) and _own(type(thing), "__repr__"):
            return _encoded(_Bounded(False).repr(thing)), b""
        return _encoded(str(thing)), b""
    except BaseException as error:
        return b"", b" (no text: " + name(type(error)) + b")"


def text(thing: Any) -> bytes:
    said, trouble = _text(thing)
    return name(type(thing)) + trouble if trouble else said


def attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except BaseException as error:
        return error


def _reason(error: Any) -> bytes:
    kind = type(error)
    if issubclass(kind, ControlError):
        said = attribute(error, "reason")
        if said is None:
            return cut(name(kind))
        return cut(text(said) or name(kind))
    if not issubclass(kind, BaseException) or issubclass(kind, PayloadError):
        return cut(text(error) or name(kind))
    message, trouble = _text(error)
    if trouble:
        return cut(name(kind) + trouble)
    return cut(name(kind) + b": " + message if message else name(kind))


class Said(NamedTuple):
    """What an error says."""

    reason: bytes
    """Its type and message, or the reason that the handler gave."""
    is_quick: bool = True
    """A logger may make the texts of the error, and of those that led to it, once more."""


NOTHING = Said(b"")


class _Making(threading.Thread):
    """Makes the texts of an error and of those that led to it."""

    def __init__(self, error: Any, made: Callable[[], Any]) -> None:
        super().__init__(name="dq-text", daemon=True)
        self.said = Said(cut(name(type(error)) + b" (no text within %d s)" % TEXT_S), False)
        self._error = error
        self._made = made

    def run(self) -> None:
        begun = time.monotonic()
        reason = _reason(self._error)
        self.said = Said(reason, False)
        links = _links(self._error)
        is_whole = len(links) <= MOST_LINKS and all(len(text(each)) < REASON_BYTES for each in links)
        self.said = Said(reason, is_whole and time.monotonic() - begun < QUICK_S)
        with contextlib.suppress(RuntimeError):  # the event loop was closed
            self._made()


def _links(error: Any) -> list[BaseException]:
    """The error, and those that led to it or are in it; one more than allowed if there are too many."""
    found: dict[int, BaseException] = {}
    left = [error]
    while left and len(found) <= MOST_LINKS:
        each = left.pop()
        if issubclass(type(each), BaseException) and id(each) not in found:
            found[id(each)] = each
            left += [_CAUSE(each), _CONTEXT(each)]
            left += _GROUPED(each)[: MOST_LINKS + 1] if _GROUP is not None and issubclass(type(each), _GROUP) else []
    return list(found.values())


def _at_once(error: Any) -> Optional[Said]:
    """What the error says, if no code of the user's is needed for it."""
    if error is None:
        return NOTHING
    links = _links(error)
    if not _is_plain(error) or len(links) > MOST_LINKS or not all(map(_is_plain, links)):
        return None
    return Said(_reason(error))


def said(error: Any) -> Said:
    found = _at_once(error)
    if found is None:
        making = _Making(error, lambda: None)
        making.start()
        making.join(TEXT_S)
        found = making.said
    return found


async def asaid(error: Any) -> Said:
    """As ``said``, while the event loop goes on."""
    found = _at_once(error)
    if found is None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        making = _Making(error, lambda: loop.call_soon_threadsafe(ready.set))
        making.start()
        await asyncio.wait([asyncio.ensure_future(ready.wait())], timeout=TEXT_S)
        ready.set()
        found = making.said
    return found


def reason(error: Any) -> bytes:
    return said(error).reason


def brief(error: Any) -> bytes:
    """What the error says; its type only, if code of the user's would be needed for it."""
    found = _at_once(error)
    return found.reason if found is not None else name(type(error))


def traced(error: Any) -> str:
    """Where the error was raised, without its text."""
    try:
        return "".join(traceback.format_tb(trimmed(error)))
    except BaseException:
        return ""


def trimmed(error: Any) -> Optional[TracebackType]:
    """Where the error was raised: the last frames, with one of this library at most."""
    frames: list[TracebackType] = []
    trace, has_own = _TRACE(error), False
    while trace is not None:
        is_own = trace.tb_frame.f_code.co_filename.startswith(_HERE)
        if not (is_own and has_own):
            frames.append(trace)
        has_own |= is_own
        trace = trace.tb_next
    made = None
    for each in reversed(frames[-MOST_FRAMES:]):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return made
