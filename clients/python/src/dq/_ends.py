"""How deliveries end, without I/O: each end is an ``Outcome``, a command for the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

from ._arguments import is_unheld, named_after
from ._delivery import UNKNOWN_KIND, Command, Delivery
from ._guard import SHORTEST_DELAY_S, Verdict
from ._texts import cut
from .codec import id_from
from .errors import some_of
from .times import LARGEST_BYTES, to_ms

UNKNOWN_KIND_DELAY_S = 60.0
"""After the first delivery; twice that after the second, ..."""
UNKNOWN_KIND_LONGEST_S = 3600.0

UNKNOWN_KIND_ATTEMPTS = 14
"""After so many deliveries no worker is expected any more that knows the kind."""

MOST_CUTS = 2
"""What has cut the connection this often is not sent again."""

USED_UP = b"attempts used up; its workers were lost"
LEASE_ENDED = b"lease ended"
"""The server's reason for a delivery of which it heard nothing more."""
STILL_RUNS_DELAY_S = 1.0


class Outcome:
    """What the server must still be told of a delivery that ended: a command, and perhaps another one after it.

    ahead: commands before it in the same write, whose replies do not matter. what: the user's word for the command.
    """

    __slots__ = (
        "_cut",
        "_next",
        "_refused",
        "ahead",
        "command",
        "cuts",
        "delivery",
        "is_plain",
        "is_repeated",
        "verdict",
        "what",
    )

    def __init__(
        self,
        delivery: Delivery,
        command: Command,
        next: Callable[[Any], Union[Outcome, str]],
        refused: Callable[[bytes], Optional[Outcome]] = lambda _: None,
        what: Optional[str] = None,
        cut: Optional[Callable[[], Outcome]] = None,
    ) -> None:
        self.delivery = delivery
        self.command = command
        self.ahead: Sequence[Command] = ()
        self.what = what
        self.is_plain = False
        """An ACK that others may share."""
        self.is_repeated = False
        """It was sent before, and the reply was lost."""
        self.verdict: Optional[str] = None
        self.cuts = 0
        """How often the connection was closed while this was the first command without a reply."""
        self._next = next
        self._refused = refused
        self._cut = cut

    def prepend(self, commands: Sequence[Command]) -> None:
        """Adds commands whose effect must be seen before the end."""
        self.ahead, self.is_plain = (*commands, *self.ahead), False

    def answered(self, reply: Any) -> bool:
        """Takes a reply. Returns whether that was the last one; if not, ``command`` is the next."""
        then = self._next(reply)
        if isinstance(then, str):
            # The job may be gone because the first sending ended it.
            self.verdict = "answer lost" if then == "lost" and self.is_repeated else then
            return True
        self._become(then)
        return False

    def refused(self, why: bytes) -> bool:
        """Takes a refusal. Returns whether nothing is left to send; if not, ``command`` asks for less."""
        then = self._refused(why)
        if then is None:
            self.verdict = "refused"
            return True
        self._become(then)
        return False

    @property
    def size(self) -> int:
        return sum(len(word) for word in self.command if isinstance(word, bytes))

    def again(self) -> bool:
        """Prepares to be sent again. Returns whether something else is sent now, as this has cut the connection."""
        self.is_repeated = True
        if self.cuts < MOST_CUTS:
            return False
        then = self._cut() if self._cut is not None else self._refused(b"%d bytes cut the connection" % self.size)
        if then is None:  # nothing smaller can be sent
            return False
        self._become(then)
        self.is_repeated = True
        return True

    def _become(self, other: Outcome) -> None:
        self.command, self._next, self._refused, self._cut = other.command, other._next, other._refused, other._cut
        self.ahead, self.what, self.is_repeated, self.cuts = other.ahead, other.what, False, 0
        self.is_plain = other.is_plain


def done(delivery: Delivery) -> Outcome:
    command = (b"DQ.ACK", delivery.key, b"WITHTOKENS", b"IDS", 1, delivery.id, delivery.token)
    outcome = Outcome(delivery, command, _acked)
    outcome.is_plain = True
    return outcome


def acks(of: Iterable[Outcome]) -> Command:
    """One ACK for all of these, which are plain ones of one queue."""
    words: list[Any] = []
    for outcome in of:
        words += outcome.command[5:]
    return (*outcome.command[:4], len(words) // 2, *words)


def succeeded(delivery: Delivery, result: bytes) -> Outcome:
    """Done, with a result; without it if the server does not take it. Dead if it is too large to be sent."""
    command = (b"DQ.ACK", delivery.key, b"RESULTS", b"IDS", 1, delivery.id, delivery.token, result)
    too_large = Back(delivery, b"FATAL", reason=unstorable(len(result))).outcome
    if len(result) > LARGEST_BYTES:
        return too_large()
    return Outcome(delivery, command, _acked, lambda _: done(delivery), cut=too_large)


def unstorable(size: int) -> bytes:
    return b"result cannot be stored: %d bytes" % size


_ALL = """
local at, reply = 1, nil
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then return reply end
  at = last + 1
end
return reply
"""
"""Stops at the first command that is refused. A MULTI would go on: it would give a job back although there was no room
for its step."""


def all_or_refused(key: bytes, commands: Sequence[Command]) -> Command:
    """An EVAL of these commands. Its reply is the last one's, or the error of the first one that is refused."""
    return (b"EVAL", _ALL, 1, key, *(word for each in commands for word in (len(each), *each)))


def suspended(delivery: Delivery, what: str, ahead: Sequence[Command], nack: Command) -> Outcome:
    """The attempt is over, uncounted. If the server refuses that, the attempt failed."""
    command = all_or_refused(delivery.key, [*ahead, nack]) if ahead else nack

    def refused(why: bytes) -> Outcome:
        is_unknown = is_unheld(why.decode("utf-8", "replace"))
        return failure(delivery, cut(why + _way_out(ahead, nack)) if is_unknown else why).outcome()

    return Outcome(delivery, command, _state, refused, what)


def _way_out(ahead: Sequence[Command], nack: Command) -> bytes:
    """What to do where the server does not hold a job that is waited for, by this job or by those that it spawns."""
    at = nack.index(b"AFTER", 5)
    named = [id for _, id in named_after(ahead)] if ahead else nack[at + 2 : at + 2 + nack[at + 1]]
    ids = some_of([*dict.fromkeys(map(id_from, named))])
    said = f": it has ended, or was never added. Add it with keep, or by spawn (waited for: {ids})"
    return said.encode("utf-8", "replace")


def timed_out(delivery: Delivery, reason: bytes) -> Outcome:
    return failure(delivery, reason).outcome()


def _acked(reply: Any) -> str:
    return "done" if reply[0] else "lost"


def _state(reply: Any) -> str:
    """The verdict of a NACK."""
    return "lost" if reply is None else reply.decode()


def followed(delivery: Delivery, add: Command, end: Outcome, wait_ms: Optional[int], otherwise: bytes) -> Outcome:
    """Adds a job before this one ends. If that job is refused, this one comes again: it failed, for that reason."""

    def kept(why: bytes) -> Outcome:
        return failure(delivery, cut(otherwise + b": " + why), wait_ms).outcome()

    return Outcome(delivery, add, lambda _: end, kept)


class Back(NamedTuple):
    """A NACK and its options."""

    delivery: Delivery
    mode: bytes = b""
    wait_ms: Optional[int] = None
    reason: Optional[bytes] = None
    priority: Optional[int] = None
    is_said: bool = True
    """Whether user code named that wait for this failure, not for all."""

    def outcome(self) -> Outcome:
        words: list[Any] = [b"DQ.NACK", self.delivery.key, self.delivery.id, b"TOKEN", self.delivery.token]
        words += [self.mode] if self.mode else []
        words += [] if self.wait_ms is None else [b"DELAY", self.wait_ms]
        words += [] if self.priority is None else [b"PRIORITY", self.priority]
        words += [] if self.reason is None else [b"REASON", self.reason]
        return Outcome(self.delivery, tuple(words), _state, self._refused)

    def _refused(self, _: bytes) -> Optional[Outcome]:
        less = self._less()
        return less and less.outcome()

    def _less(self) -> Optional[Back]:
        """Leaves out what the server may have refused. If that was a wait, the job failed instead: it must not come
        back at once."""
        if self.wait_ms is not None and self.is_said and self.mode != b"FATAL":
            return failure(self.delivery, self.reason)._replace(priority=self.priority)
        if self.wait_ms is not None:
            return self._replace(wait_ms=None)
        if self.priority is not None:
            return self._replace(priority=None)
        return None if self.reason is None else self._replace(reason=None)


def failure(delivery: Delivery, reason: Optional[bytes], wait_ms: Optional[int] = None) -> Back:
    """The least limit holds, the job's (which the server knows) or the handler's. The job's own ladder comes first,
    then the handler's; else the server's holds."""
    handler = delivery.handler
    if handler and 0 < handler.attempts <= delivery.attempt - delivery.unknown:
        return Back(delivery, b"FATAL", reason=reason)
    if wait_ms is not None:
        return Back(delivery, b"", wait_ms, reason)
    wait_s = handler.delay_s(delivery.attempt) if handler and delivery.ladder_ms is None else None
    if wait_s is None:
        return Back(delivery, reason=reason)
    return Back(delivery, b"", to_ms(max(wait_s, SHORTEST_DELAY_S)), reason, is_said=False)


def returned(delivery: Delivery, wait_s: float = 0.0) -> Outcome:
    """Given back, as if it had not been delivered; at once it keeps its place."""
    return Back(delivery, b"SILENT", to_ms(wait_s) if wait_s else None, is_said=False).outcome()


def unknown(delivery: Delivery, kind: str) -> Outcome:
    """The job is of a kind that this worker does not know: another worker may, at the latest after a deploy."""
    reason = cut(f'unknown kind "{kind}"'.encode("utf-8", "replace"))
    if delivery.attempt >= UNKNOWN_KIND_ATTEMPTS:
        return Back(delivery, b"FATAL", reason=reason).outcome()
    wait_s = min(UNKNOWN_KIND_DELAY_S * delivery.attempt, UNKNOWN_KIND_LONGEST_S)
    back = Back(delivery, b"", to_ms(wait_s), reason, is_said=False).outcome()
    back.prepend([(b"DQ.STEP", delivery.key, delivery.id, delivery.token, UNKNOWN_KIND, delivery.unknown + 1)])
    return back


def used_up(delivery: Delivery) -> Outcome:
    """The job was delivered as often as it may be, and nothing was heard of the last time."""
    return Back(delivery, b"FATAL", reason=USED_UP).outcome()


def later(delivery: Delivery) -> Outcome:
    """Given back, as its handler still runs here for an older delivery."""
    return returned(delivery, STILL_RUNS_DELAY_S)


def ended(delivery: Delivery, verdict: Verdict) -> Outcome:
    """The outcome of a delivery whose handler ended."""
    if verdict.what == "done":
        return done(delivery) if verdict.result is None else succeeded(delivery, verdict.result)
    if verdict.what == "back":
        return returned(delivery)
    if verdict.what == "give up":
        return Back(delivery, b"FATAL", reason=verdict.reason).outcome()
    if verdict.what == "snooze":
        return Back(delivery, b"SILENT", verdict.wait_ms, verdict.reason).outcome()
    return failure(delivery, verdict.reason, verdict.wait_ms).outcome()
