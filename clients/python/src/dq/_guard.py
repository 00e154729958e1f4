"""The only place where the library touches what users give it.

Handlers, hooks and loggers are called here, and what they raise, return or attach is read here (its texts are made in
``_texts``): no other code looks at it. The result is a plain ``Verdict``. Nothing is raised, whatever they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import sys
from collections.abc import Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Callable, NamedTuple, Optional

from ._texts import attribute, cut, name, reason, show, trimmed
from .errors import Cancelled, ControlError, GiveUp, PayloadError, Retry, Snooze
from .times import seconds, to_ms

SHORTEST_DELAY_S = 0.1
"""The shortest delay after which a handler can have its job back."""


class Verdict(NamedTuple):
    """How a delivery ends: "done", "fail", "snooze", "give up", or "back" (as if it had not been delivered)."""

    what: str
    reason: Optional[bytes] = None
    wait_ms: Optional[int] = None
    trouble: Optional[str] = None
    """What the handler asked for and cannot have, for the log."""
    result: Optional[bytes] = None


DONE = Verdict("done")
BACK = Verdict("back")


# --- Calling


Around = Sequence[Callable[..., Any]]


def run(function: Callable[[Any], Any], argument: Any, around: Around = ()) -> tuple[Any, Any]:
    """Runs the handler. Returns its error (None if it is done), and what it returned."""
    try:
        result = function(argument) if not around else _inner(function, argument, around, 0)()
        return (None, None) if result is None else _unrun(result)
    except BaseException as error:
        return error, None


def _inner(function: Callable[[Any], Any], argument: Any, around: Around, at: int) -> Callable[[], Any]:
    """What the middleware before ``at`` calls as ``next``."""
    if at == len(around):
        return lambda: function(argument)
    return lambda: around[at](argument, _inner(function, argument, around, at + 1))


async def arun(function: Callable[[Any], Any], argument: Any, around: Around = ()) -> tuple[Any, Any]:
    try:
        result = function(argument) if not around else _inner(function, argument, around, 0)()
        if is_awaitable(result):
            result = await result
        return (None, None) if result is None else _unrun(result)
    except BaseException as error:
        return error, None


def _unrun(result: Any) -> tuple[Any, Any]:
    """A handler may return the exception that it meant to raise, or work of which nothing ran, such as a coroutine."""
    kind = type(result)
    if issubclass(kind, ControlError):
        return result, None
    for made, what in _NOTHING_RAN.items():
        if issubclass(kind, made):
            with contextlib.suppress(BaseException):
                getattr(result, "close", _nothing)()
            return TypeError(f"the handler returned {what}: nothing of it ran"), None
    if is_awaitable(result):
        said = "the handler returned an awaitable that nobody awaits: give the worker of dq.asyncio async def"
        return TypeError(said), None
    return None, result


_NOTHING_RAN = {
    CoroutineType: "a coroutine; dq.asyncio.Worker runs coroutine functions",
    GeneratorType: "a generator; a handler must not yield",
    AsyncGeneratorType: "an async generator; a handler must not yield",
}


def _nothing() -> None:
    pass


def is_awaitable(result: Any) -> bool:
    try:
        return result is not None and inspect.isawaitable(result)
    except BaseException:
        return False


def is_coroutine_function(function: Any) -> bool:
    """Also true of an object whose ``__call__`` is a coroutine function."""
    called = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def hook(log: Log, hooks: Any, name: str, *arguments: Any) -> Any:
    """Calls a hook, and returns what it returned. An error is logged."""
    try:
        return getattr(hooks, name)(*arguments)
    except BaseException:
        log.failed("the hook %s of %s failed", name, show(hooks))
        return None


def hears_of_deaths(hooks: Any, nothing: Any) -> bool:
    """Whether it has the hook of dead jobs. nothing: the one that does nothing."""
    try:
        method = getattr(hooks, "dead", None)
        return method is not None and getattr(method, "__func__", method) is not nothing
    except BaseException:
        return False


def is_coroutine_hook(hooks: Any, name: str) -> bool:
    try:
        return is_coroutine_function(getattr(hooks, name))
    except BaseException:
        return False


async def ahook(log: Log, hooks: Any, name: str, *arguments: Any) -> None:
    await awaited(log, hooks, name, hook(log, hooks, name, *arguments))


async def awaited(log: Log, hooks: Any, name: str, result: Any) -> None:
    try:
        if is_awaitable(result):
            await result
    except BaseException as error:
        if not (log.is_over and issubclass(type(error), asyncio.CancelledError)):
            log.failed("the hook %s of %s failed", name, show(hooks))


def unawaited(log: Log, hooks: Any, name: str, result: Any) -> None:
    """Logs that a hook returned an awaitable: without asyncio no hook can be awaited."""
    if is_awaitable(result):
        with contextlib.suppress(BaseException):
            getattr(result, "close", _nothing)()
        log.say(
            logging.ERROR, "the hook %s of %s is a coroutine function: only dq.asyncio awaits it", name, show(hooks)
        )


class Adding:
    """The headers of a job as the hook ``adding`` leaves them. A hook that fails changes nothing."""

    def __init__(self, log: Log, hooks: Any, queue: str, headers: dict[str, str]) -> None:
        self._log = log
        self.hooks = hooks
        self._before = headers
        self._after = dict(headers)
        self.waits: Any = None
        """What must be awaited before ``headers`` is read, if anything."""
        with self:
            result = hooks.adding(queue, self._after)
            self.waits = result if is_awaitable(result) else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Optional[type[BaseException]], error: Any, _: Any) -> bool:
        if kind is None or issubclass(kind, (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)):
            return False  # these end the caller
        self._after = self._before
        self._log.failed("the hook adding of %s failed: the job is added as it was", show(self.hooks))
        return True

    @property
    def headers(self) -> dict[str, str]:
        with self:
            for name, value in self._after.items():
                if type(name) is not str or type(value) is not str:
                    raise TypeError(f"a header is text, not {show(name)}: {show(value)}")
            json.dumps(self._after, ensure_ascii=False).encode()
        return self._after


async def joined(adding: Adding) -> None:
    with adding:
        await adding.waits


# --- Reading


def verdict(error: Any, said: Optional[bytes] = None, *, is_told: bool = False, job: Any = None) -> Verdict:
    """What follows from what a handler raised, or gave to ``job.fail``.

    said: its text. is_told: the job was cancelled before.
    """
    if error is None:
        return DONE
    kind = type(error)
    if is_told and issubclass(kind, (Cancelled, asyncio.CancelledError)):
        return BACK
    said = reason(error) if said is None else said
    if issubclass(kind, GiveUp):
        return Verdict("give up", said)
    if issubclass(kind, PayloadError):
        unread = attribute(error, "job")
        if unread is None or unread is job:  # if it is another job of the batch, this one may be readable
            return Verdict("give up", said)
    if not issubclass(kind, (Retry, Snooze)):
        return Verdict("fail", said)
    delay = attribute(error, "delay")
    wait = wait_ms(delay)
    if wait is None:
        return Verdict("fail", said, None, f"{show(delay)} is not a delay")
    if issubclass(kind, Retry):
        return Verdict("fail", said, wait)
    return Verdict("snooze", said if attribute(error, "reason") is not None else None, wait)


def encoded(codec: Any, value: Any) -> tuple[Optional[bytes], Any]:
    """A result, encoded; or the error of the codec."""
    try:
        raw = codec.encode(value)
        if not issubclass(type(raw), (bytes, bytearray)):
            raise TypeError(f"the codec made {name(type(raw)).decode()} of it, not bytes")
        return bytes(raw), None
    except BaseException as error:
        return None, error


def unencodable(said: bytes) -> Verdict:
    """The handler has done its work, and no other attempt would help."""
    return Verdict("give up", cut(b"result cannot be encoded: " + said))


def is_final(error: Any, retry_on: tuple[type, ...], give_up_on: tuple[type, ...]) -> bool:
    """Whether the handler does not want errors of this type to be tried again."""
    try:
        kind = type(error)
        return issubclass(kind, give_up_on) or (bool(retry_on) and not issubclass(kind, retry_on))
    except BaseException:  # the type's check of subclasses is the user's code
        return False


def is_said(error: Any) -> bool:
    """Whether a handler raised it to say how its job goes on, such as ``Retry``."""
    return issubclass(type(error), ControlError)


def wait_ms(delay: Any) -> Optional[int]:
    """The delay in milliseconds; None if it is not a valid delay."""
    try:
        return to_ms(max(seconds(delay), SHORTEST_DELAY_S))
    except BaseException:
        return None


# --- The log


class Log:
    """The logger, which may be the user's own: what it raises is caught."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self.is_over = False
        """The worker has stopped: hooks that it left behind are cancelled, at the latest as the event loop ends."""

    def say(self, level: int, text: str, *values: Any, error: Any = None) -> None:
        exception = error if issubclass(type(error), BaseException) else None
        try:
            told = None if exception is None else (type(exception), exception, trimmed(exception))
            self._logger.log(level, text, *values, exc_info=told)
        except BaseException as trouble:
            with contextlib.suppress(BaseException):
                print(f"dq: the logger failed ({show(trouble)}): {text % values}", file=sys.stderr)

    def failed(self, text: str, *values: Any) -> None:
        """Logs with the error that is being handled."""
        self.say(logging.ERROR, text, *values, error=sys.exc_info()[1])
