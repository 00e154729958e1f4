"""Errors of the server: those that pass, and those that waiting does not fix."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any, Optional

import hiredis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from ._fatalities import FATALITIES
from .errors import ConfigurationError, QueueFull

FIRST_TROUBLE_S = 0.05
LONGEST_TROUBLE_S = 5.0
JITTER = 0.25


def trouble_s(times: int) -> float:
    """How many seconds to wait when the server is away for the first, second, ... time. Jitter only adds."""
    return min(LONGEST_TROUBLE_S, FIRST_TROUBLE_S * 2.0 ** min(times - 1, 62)) * (1 + JITTER * random.random())


def refused(error: ResponseError) -> Exception:
    """The exception that a queue raises for a server's error."""
    text = str(error)
    if text.startswith(("MAXLEN", "MAXBYTES")):
        return QueueFull(text)
    if text.startswith("unknown command") or lacks_resp3(error):
        return fatal(error) or error
    return error


PASSES = (RedisError, OSError, hiredis.HiredisError, asyncio.TimeoutError)
"""Errors that pass, unless their text says otherwise. The last one is an OSError from Python 3.11 on."""


def lacks_resp3(error: BaseException) -> bool:
    """The server, or a proxy before it, refuses HELLO or its version 3."""
    text = str(error).lower()
    return "noproto" in text or ("hello" in text and ("unknown" in text or "unsupported" in text))


def may_not(error: ResponseError) -> bool:
    """The ACL denies this user the command."""
    return isinstance(error, NoPermissionError) or str(error).startswith("NOPERM")


def is_cut(error: BaseException) -> bool:
    """The connection was closed, perhaps because of what was sent."""
    return isinstance(error, OSError) and not isinstance(error, (socket.timeout, asyncio.TimeoutError))


def _said(error: BaseException) -> str:
    """The server's words, with the error code that redis-py removes."""
    text = str(error)
    if isinstance(error, NoPermissionError):
        return f"NOPERM {text}"
    if isinstance(error, (AuthenticationError, AuthorizationError)):
        is_missing = "Authentication required" in text or text.startswith("HELLO must be called")
        return f"{'NOAUTH' if is_missing else 'WRONGPASS'} {text}"
    return text[4:] if text.startswith("ERR ") else text


def fatal(error: BaseException) -> Optional[ConfigurationError]:
    """An error that waiting does not fix, with words that say what to do; None if the error may pass."""
    if isinstance(error, ConfigurationError):
        return error
    if not isinstance(error, PASSES):
        return ConfigurationError(repr(error))
    if lacks_resp3(error):
        return ConfigurationError(f"the server does not speak RESP3: give its client protocol=2 ({error})")
    said = _said(error) if isinstance(error, RedisError) else ""
    for words, is_first, what in FATALITIES:
        if said.startswith(words) if is_first else words in said:
            return ConfigurationError(f"{what} ({error})")
    return None


_NEEDED = {b"DQ.BPOP", b"DQ.ACK", b"DQ.NACK", b"DQ.TOUCH"}
"""A worker without these cannot work. Without any other command, what needs it fails alone."""


def is_refusal(error: ResponseError, command: Any = b"") -> bool:
    """The server will never carry out this command as it was sent."""
    text = str(error)
    if may_not(error):
        return command not in _NEEDED
    return text.startswith(("ERR ", "MAXLEN ", "MAXBYTES ")) and "unknown command" not in text


_PASSING = {"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH", "NOREPLICAS", "OOM"}
_PASSING |= {"READONLY", "TRYAGAIN", "UNBLOCKED", "WRONGPASS"}


def is_final(error: ResponseError) -> bool:
    """Sending the command again would not help. A script may fail with an error code of its own."""
    return str(error).partition(" ")[0] not in _PASSING
