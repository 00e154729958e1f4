"""What the server answers that is no answer: what passes, and what waiting cannot mend."""

from __future__ import annotations

import asyncio
from typing import Optional

import hiredis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from .errors import ConfigurationError, QueueFull
from .handler import exponential_s

FIRST_TROUBLE_S = 0.05
LONGEST_TROUBLE_S = 5.0


def trouble_s(times: int) -> float:
    """How long to wait when the server is away, the first, second, ... time."""
    return exponential_s(times, FIRST_TROUBLE_S, LONGEST_TROUBLE_S)


NO_MODULE = "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"


def refused(error: ResponseError) -> Exception:
    """What a queue raises."""
    text = str(error)
    if text.startswith(("MAXLEN", "MAXBYTES")):
        return QueueFull(text)
    if text.startswith("unknown command"):
        return ConfigurationError(f"{NO_MODULE} ({text})")
    return error


PASSES = (RedisError, OSError, hiredis.HiredisError, asyncio.TimeoutError)
"""Unless the text says otherwise. The last one is an OSError from Python 3.11 on."""


def fatal(error: BaseException) -> Optional[ConfigurationError]:
    """What cannot become right by waiting, in words that say what to do; None for all else."""
    text = str(error)
    text = text[4:] if text.startswith("ERR ") else text
    if isinstance(error, ConfigurationError):
        return error
    if isinstance(error, NoPermissionError) or text.startswith("NOPERM"):
        what = "the server's ACL denies this user what a worker needs: permit what docs/operations.md lists under Users"
    elif "called without any password" in text or "no password is set" in text:
        what = "the server has no password, and the URL has one: leave it out"
    elif text.startswith(("NOAUTH", "HELLO must be called")) or "Authentication required" in text:
        what = "the server requires a password, and got none: set it in the URL, redis://user:password@host"
    elif isinstance(error, (AuthenticationError, AuthorizationError)) or text.startswith("WRONGPASS"):
        what = "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"
    elif not isinstance(error, ResponseError):
        return None if isinstance(error, PASSES) else ConfigurationError(repr(error))
    elif "unknown command" in text:
        what = NO_MODULE
    elif text.startswith("WRONGTYPE"):
        what = "a queue's key holds a value of another type: choose another name for the queue, or delete that key"
    elif text.startswith(("syntax error", "wrong number of arguments", "timeout is not a float")):
        what = "the server's dq module is older than this library: upgrade the module"
    elif "DB index" in text or "invalid DB" in text.lower():
        what = "the server does not have this database: choose another number in the URL"
    else:
        return None
    return ConfigurationError(f"{what} ({text})")


def is_refusal(error: ResponseError) -> bool:
    """The server will never do it, as it was said."""
    text = str(error)
    return text.startswith(("ERR ", "MAXLEN ", "MAXBYTES ")) and "unknown command" not in text


def is_final(error: ResponseError) -> bool:
    """Asking again would not help."""
    return str(error).startswith(("ERR ", "NOPERM", "WRONGTYPE"))
