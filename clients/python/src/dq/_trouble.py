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
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from ._delivery import Command
from ._fatalities import FATALITIES
from ._texts import show
from .codec import id_from
from .errors import ConfigurationError, QueueFull, Refused

FIRST_TROUBLE_S = 0.05
LONGEST_TROUBLE_S = 5.0
JITTER = 0.25
LONGEST_WORD = 1100
"""How many bytes of a command's word an error shows."""


def trouble_s(times: int) -> float:
    """How many seconds to wait when the server is away for the first, second, ... time. Jitter only adds."""
    return min(LONGEST_TROUBLE_S, FIRST_TROUBLE_S * 2.0 ** min(times - 1, 62)) * (1 + JITTER * random.random())


def refused(error: ResponseError, command: Command, id: Optional[bytes] = None) -> Exception:
    """The exception that a queue raises for a server's error.

    id: the job's, where the command does not have it at its usual place.
    """
    answer = _said(error)
    if answer.startswith("unknown command") or lacks_resp3(error):
        return fatal(error) or error
    code, _, said = answer.partition(" ")
    if code.upper() != code or code in _WORDS:  # the client has removed "ERR"
        code, said = "ERR", answer
    what, key, *options = [_word(word) for word in command]
    if what == "EVAL":
        key, *options = options[1:]
    elif what in _OF_A_JOB and not (command[2] in ("IDS", b"IDS") and isinstance(command[3], int)):
        id, *options = command[2], *options[1:]
    found = QueueFull() if code in ("MAXLEN", "MAXBYTES") else Refused()
    for word, value in zip(options, options[1:]):
        if isinstance(word, str) and word.isupper() and word in said.split():
            found.argument, found.value = word.lower(), value
            what = f"{found.argument}={show(value)}"
            break
    found.id = None if id is None else id_from(id)
    of = f"queue {key!r}" if id is None else f"job {found.id!r} of queue {key!r}"
    found.code, found.said = code, said
    found.args = (f"{of}: the server refused {what}: {code} {said}",)
    return found


_OF_A_JOB = {f"DQ.{word}" for word in ("ADD", "GET", "NACK", "TOUCH", "STEP", "SIGNAL", "EXPLAIN", "NEXT")}
"""Commands that name a job after the key. Those that may name many say so by IDS."""

_WORDS = {"AFTER", "BACKOFF", "CRON", "EVERY", "GROUP", "NEXT", "ONDEAD", "TO", "TZ", "UNTIL"}
"""With these begin answers of the server whose code is ERR."""


def _word(word: Any) -> Any:
    return id_from(word[:LONGEST_WORD]) if isinstance(word, bytes) else word


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


_CODES = {NoPermissionError: "NOPERM", OutOfMemoryError: "OOM", ReadOnlyError: "READONLY"}


def _said(error: BaseException) -> str:
    """The server's words, with the error code that redis-py removes."""
    text = str(error)
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return f"{code} {text}"
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
