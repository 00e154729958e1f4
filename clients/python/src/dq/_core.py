"""What a worker decides, without I/O, threads or a clock: both faces, sync and asyncio, carry it out.

A delivery that ended becomes an ``Outcome``: a command, then, by its answer, either another command or a verdict.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional, Union

import hiredis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from .errors import Cancelled, ConfigurationError, GiveUp, QueueFull, Retry, Say, Snooze
from .handler import DEFAULT_LEASE_S, Handler, exponential_s
from .job import ENVELOPE_VERSION, Job
from .times import signed_seconds, to_ms

Command = tuple[Any, ...]

DRAIN_S = 25.0
WAIT_S = 5.0
"""How long one BPOP waits; then it is sent again. So a connection that hangs is noticed."""

SLACK_S = 5.0
"""How much longer than its wait a BPOP may take, on a slow network."""

LATE_S = 0.02
"""How long to look for an answer that came in time while the event loop stood still."""

ANSWER_S = 5.0
"""How long other answers may take."""

SHORTEST_ANSWER_S = 0.2
SHORTEST_BEAT_S = 0.005
TURN_S = 0.25
"""How long a fetch waits where more connections wait than jobs may be in hand, so that they take turns."""

NO_WAIT_S = 0.001
FLUSH_AFTER_S = 0.001
FLUSH_COUNT = 100
TELL_AT_ONCE = 500
"""Then a heartbeat may be due."""

SHORTEST_DELAY_S = 0.1
"""No handler can make its job come back faster than that."""

UNKNOWN_KIND_DELAY_S = 5.0
FIRST_TROUBLE_S = 0.05
LONGEST_TROUBLE_S = 5.0
REASON_BYTES = 1024
TELLING_S = 1.0
"""From the end of drain on: half of it for handlers that were told, half for the server."""


NOT_YET: Any = object()
READ_BYTES = 1 << 16


def pack(commands: Iterable[Command]) -> bytes:
    """Of bytes, texts and numbers only, which redis-py need not look at again."""
    return b"".join(map(hiredis.pack_command, commands))


def reader() -> hiredis.Reader:
    """Its replies are bytes, numbers and lists; an error of the server is a ResponseError."""
    return hiredis.Reader(replyError=ResponseError, notEnoughData=NOT_YET)


class Delivery:
    """One job in hand."""

    id: bytes
    payload: bytes
    token: bytes
    attempt: int
    deadline_ms: int
    due_ms: int

    __slots__ = (
        "attempt",
        "deadline_ms",
        "due_ms",
        "error",
        "handler",
        "id",
        "job",
        "key",
        "owner",
        "payload",
        "token",
    )

    def __init__(self, key: bytes, row: Sequence[Any], owner: Any = None) -> None:
        self.key = key
        self.id, self.payload, self.token, self.attempt, self.deadline_ms, self.due_ms = row
        self.owner = owner
        self.error: Optional[BaseException] = None
        self.handler: Optional[Handler[Any]] = None
        self.job: Job


class Outcome:
    """What the server is still to be told of a delivery that ended."""

    __slots__ = ("_next", "command", "delivery", "verdict")

    def __init__(
        self, delivery: Delivery, command: Command, next: Callable[[Any], Union[Outcome, Command, str]]
    ) -> None:
        self.delivery = delivery
        self.command = command
        self.verdict: Optional[str] = None
        self._next = next

    def answered(self, reply: Any) -> bool:
        """Whether that was the last one; else ``command`` is the next."""
        then = self._next(reply)
        if isinstance(then, str):
            self.verdict = then
            return True
        if isinstance(then, Outcome):
            self.command, self._next = then.command, then._next
            return False
        self.command, self._next = then, _state
        return False


def _state(reply: Any) -> str:
    """The verdict of a NACK."""
    return "lost" if reply is None else reply.decode()


def done(delivery: Delivery) -> Outcome:
    return Outcome(delivery, (b"DQ.ACK", delivery.key, b"WITHTOKENS", delivery.id, delivery.token), _acked)


def followed(delivery: Delivery, add: Command, end: Outcome) -> Outcome:
    """Before it ends, another job is added."""
    return Outcome(delivery, add, lambda _: end)


def _acked(reply: Any) -> str:
    return "done" if reply else "lost"


def nack(delivery: Delivery, *options: Any) -> Command:
    return (b"DQ.NACK", delivery.key, delivery.id, b"TOKEN", delivery.token, *options)


def given_back(delivery: Delivery, *options: Any) -> Outcome:
    return Outcome(delivery, nack(delivery, *options), _state)


def returned(delivery: Delivery, *options: Any) -> Outcome:
    """Given back, as if it had not been delivered."""
    return given_back(delivery, b"SILENT", *options)


def unknown(delivery: Delivery) -> Outcome:
    """Of a kind that this worker does not know: for another one, a little later."""
    delay_s = UNKNOWN_KIND_DELAY_S * (1 + random.random())
    return returned(delivery, b"DELAY", to_ms(delay_s))


def ended(delivery: Delivery, error: Optional[BaseException]) -> Outcome:
    """What follows from how its handler ended."""
    if error is None:
        return done(delivery)
    if isinstance(error, Cancelled):
        return returned(delivery)
    if isinstance(error, GiveUp):
        return given_back(delivery, b"FATAL", b"REASON", reason(error))
    if isinstance(error, Snooze):
        said = (b"REASON", error.reason) if error.reason else ()
        return returned(delivery, b"DELAY", _wait_ms(signed_seconds(error.delay)), *said)
    return failed(delivery, error)


def failed(delivery: Delivery, error: BaseException) -> Outcome:
    """Whether the job has a ladder and a limit of its own only its queue knows."""
    get = (b"DQ.GET", delivery.key, delivery.id)

    def decide(reply: Any) -> Union[Command, str]:
        job = as_map(reply)
        if not job or job[b"token"] != delivery.token:
            return "lost"
        handler = delivery.handler
        said = (b"REASON", reason(error))
        if not job[b"max-attempts"] and handler and 0 < handler.attempts <= delivery.attempt:
            return nack(delivery, b"FATAL", *said)
        if isinstance(error, Retry):
            return nack(delivery, b"DELAY", _wait_ms(signed_seconds(error.delay)), *said)
        if job[b"backoff"] or handler is None:
            return nack(delivery, *said)
        return nack(delivery, b"DELAY", _wait_ms(handler.delay_s(delivery.attempt)), *said)

    return Outcome(delivery, get, decide)


def _wait_ms(delay_s: float) -> int:
    return to_ms(max(delay_s, SHORTEST_DELAY_S))


def reason(error: BaseException) -> bytes:
    """The error's type and message."""
    if isinstance(error, Say):
        text = error.reason or type(error).__name__
    else:
        message = str(error)
        text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text.encode("utf-8", "replace")[:REASON_BYTES]


def as_map(reply: Any) -> Optional[dict[bytes, Any]]:
    """A map of RESP3, or what stands for it in RESP2."""
    if isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2]))
    return reply  # type: ignore[no-any-return]


# --- Heartbeats, and what is given back in the end


def _by_key(deliveries: Iterable[Delivery]) -> dict[bytes, list[Delivery]]:
    groups: dict[bytes, list[Delivery]] = {}
    for delivery in deliveries:
        groups.setdefault(delivery.key, []).append(delivery)
    return groups


def _ids(deliveries: Sequence[Delivery]) -> list[Any]:
    words: list[Any] = [b"IDS", len(deliveries)]
    for delivery in deliveries:
        words += (delivery.id, delivery.token)
    return words


def heartbeats(deliveries: Iterable[Delivery], lease_ms: int) -> list[tuple[Command, list[Delivery]]]:
    """One TOUCH for each queue. Where its answer is nil, the job is lost."""
    return [((b"DQ.TOUCH", key, *_ids(group), b"TTR", lease_ms), group) for key, group in _by_key(deliveries).items()]


def give_back(deliveries: Iterable[Delivery]) -> list[Command]:
    """One NACK for each queue."""
    return [(b"DQ.NACK", key, *_ids(group), b"SILENT") for key, group in _by_key(deliveries).items()]


# --- Fetching


class Fetches:
    """The fetch commands of one waiting connection."""

    def __init__(self, keys: Sequence[bytes], weights: Optional[Sequence[float]], lease_ms: int) -> None:
        self._keys = tuple(keys)
        self._weights = weights
        self._lease_ms = lease_ms
        self._packed: dict[tuple[int, float], bytes] = {}

    def packed(self, count: int, wait_s: float) -> bytes:
        """Where the order is always the same, packed once: a fetch follows each job."""
        if self._weights is not None:
            return pack([self.command(count, wait_s)])
        kept = self._packed.get((count, wait_s))
        if kept is None:
            kept = self._packed[count, wait_s] = pack([self.command(count, wait_s)])
        return kept

    def command(self, count: int, wait_s: float) -> Command:
        return (b"DQ.BPOP", *self._order(), wait_s, b"COUNT", count, b"TTR", self._lease_ms, b"WITHDUE")

    def _order(self) -> Sequence[bytes]:
        """Strict order is BPOP's own. With weights each queue comes first in its share of the fetches."""
        if self._weights is None:
            return self._keys
        draws = [random.random() ** (1 / weight) for weight in self._weights]
        return [key for _, key in sorted(zip(draws, self._keys), reverse=True)]


# --- Which handler


class Handlers:
    """The handlers of a worker, by kind."""

    def __init__(self, handlers: Iterable[Handler[Any]]) -> None:
        self.default: Optional[Handler[Any]] = None
        self.kinds: dict[str, Handler[Any]] = {}
        self.size = 1
        """How many jobs the largest batch has."""
        for handler in handlers:
            self.add(handler)

    def add(self, handler: Handler[Any]) -> None:
        if handler.kind is not None:
            if handler.kind in self.kinds:
                raise ConfigurationError(f"two handlers for jobs of kind {handler.kind!r}")
            self.kinds[handler.kind] = handler
        elif self.default is not None:
            raise ConfigurationError("two handlers without a kind: name the kind of all but one")
        else:
            self.default = handler
        self.size = max(self.size, handler.size)

    def all(self) -> list[Handler[Any]]:
        return [*self.kinds.values(), *([self.default] if self.default else [])]

    def choose(self, job: Job) -> Optional[Handler[Any]]:
        """None where no handler takes it."""
        if not self.kinds:
            return self.default
        envelope = job.envelope
        if envelope is None:
            return self.default
        if envelope.version != ENVELOPE_VERSION:
            return None
        return self.kinds.get(envelope.kind or "", self.default)

    def lease_s(self) -> float:
        """The longest: renewed from a third of it on."""
        return max((each.lease or DEFAULT_LEASE_S for each in self.all()), default=DEFAULT_LEASE_S)


# --- Trouble


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


def fatal(error: BaseException) -> Optional[ConfigurationError]:
    """What cannot become right by waiting, in words that say what to do; None for all else."""
    text = str(error)
    text = text[4:] if text.startswith("ERR ") else text
    if isinstance(error, ConfigurationError):
        return error
    if isinstance(error, NoPermissionError) or text.startswith("NOPERM"):
        what = "the server's ACL forbids this user what a worker does: permit the queue's keys and the dq.* commands"
    elif isinstance(error, (AuthenticationError, AuthorizationError)) or text.startswith(("NOAUTH", "WRONGPASS")):
        what = "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"
    elif not isinstance(error, ResponseError):
        return None if isinstance(error, (RedisError, OSError)) else ConfigurationError(repr(error))
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
