"""What links with and without asyncio have in common: jobs in hand, outcomes to be sent, and their replies."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Callable, Optional

from redis.exceptions import ResponseError

from . import _trouble
from ._core import ANSWER_S, SHORTEST_ANSWER_S, SLACK_S, Fetches
from ._deaths import Deaths
from ._delivery import Command, Delivery, as_map
from ._ends import Outcome, suspended
from ._errand import Errand, Errands, Outcomes, Part, last_words, reach
from ._idle import Idle
from ._leases import Leases, give_back
from ._listening import COVER_AFTER_S, MOST_KEYS, Listening
from ._notes import Notes
from ._owner import Base
from ._scheduler import TURN_S

MOST_LENGTHS = 1000  # of leases, cached by TTR

Members = list[tuple[Any, bytes, float]]
"""Queue, key and weight."""


class BaseLink:
    """The queues that one pair of connections serves: one connection waits for jobs, the other does the rest."""

    _waiting: Any
    """The connection of its fetches."""
    _control: Any
    """The connection for everything else."""

    def __init__(self, worker: Base, members: Members, fetches: Fetches) -> None:
        self._base = worker
        self.place = reach(members[0][0].client, members[0][1])
        self._fetches = fetches
        self._queues = {key: each for each, key, _ in members}
        self._leases = Leases()
        self._notes = Notes()
        self._idle = Idle([*self._queues])
        self._deaths: dict[bytes, Deaths] = worker._dead_hook.joined_by(self) if worker._dead_hook is not None else {}
        self._all_listening = [Listening(key) for key in self._queues] if len(self._queues) <= MOST_KEYS else []
        self._listen_at = math.inf
        """When the next job may need a listener, which hears of its loss."""
        self._errands = Errands()
        self._lengths: dict[int, float] = {}
        """The lengths of leases, by the TTR of the job."""
        self._outcomes = Outcomes()
        self._take_outcomes = self._outcomes.take
        self._telling: deque[Part] = deque()
        """Those that the batcher has sent and got no reply to."""
        self._fetching = False
        self._fetched_at = 0.0
        """When the current fetch began."""
        self._troubles = 0
        self._is_heard = False
        """The last exchange with the server succeeded."""
        self._is_recalled = False
        """The waiting fetch should end."""
        self._late_ears: set[Any] = set()
        """Connections whose waits should end, to cover more jobs."""
        self._may_unblock = True
        self._returns: list[Command] = []
        """What gives back the jobs that are left in hand."""
        self.is_kept = False
        """Someone renews the leases."""
        self.trouble: Optional[Exception] = None
        """The last error."""

    @property
    def _wake_at(self) -> float:
        """When the batcher has something to do, unless it is woken before."""
        return min(self._leases.beat_at, self._notes.next_at, self._look_for_deaths_at)

    @property
    def _look_for_deaths_at(self) -> float:
        return min((each.next_at for each in self._deaths.values()), default=math.inf)

    @property
    def _has_more(self) -> bool:
        """Whether a link that stops must still talk to the server."""
        return bool(self._returns or self._outcomes)

    def _ring(self) -> None:
        """Called when there is something to send."""
        raise NotImplementedError

    def _wake(self) -> None:
        """Called when a heartbeat or the end of a lease may be earlier than planned."""
        raise NotImplementedError

    def _wake_courier(self) -> None:
        raise NotImplementedError

    def _wake_ears(self) -> None:
        """Called when ``_listen_at`` became earlier."""
        raise NotImplementedError

    def _cover(self, listening: Listening) -> None:
        """Begins or renews the wait of a listener."""
        raise NotImplementedError

    # --- Fetches give way to those of other links

    def recall(self) -> None:
        """Has the waiting fetch end soon."""
        if self._may_unblock:
            self._is_recalled = True
            self._wake_courier()

    def _wake_ear(self, line: Any) -> None:
        """Has the wait of a listener end soon."""
        if self._may_unblock:
            self._late_ears.add(line)
            self._wake_courier()

    def is_telling(self, of: Optional[Delivery] = None) -> bool:
        """The server has not confirmed yet how all deliveries ended, or this one."""
        return bool(self._leases.unanswered) if of is None else of in self._leases.unanswered

    def has_besides(self, delivery: Optional[Delivery]) -> bool:
        """Whether other deliveries are in hand, or have ended and the server has not confirmed it yet."""
        return self.is_telling() or len(self._leases.held) > (delivery in self._leases.held)

    @property
    def _is_unblocking(self) -> bool:
        return bool(self._late_ears) or (self._is_recalled and self._fetching)

    def _unblock(self, *lines: Any) -> Optional[Command]:
        """The command that ends the waits of these connections; of those that should end, if none is given.

        Only of those to the server that would get the command: elsewhere the numbers are others'. Its reply goes to
        ``_unblocked``.
        """
        if not lines:
            late, self._late_ears = self._late_ears, set()
            lines = (*late, self._waiting) if self._is_recalled and self._fetching else (*late,)
            self._is_recalled = False
        ids = [each.client_id for each in lines if each.client_id is not None and each.peer == self._control.peer]
        return (b"DQ.UNBLOCK", *ids) if ids and self._may_unblock else None

    def _unblocked(self, reply: Any) -> int:
        if isinstance(reply, ResponseError):
            self._may_unblock = False
            self._base._off("the server refuses DQ.UNBLOCK: waits end by themselves, or with their connections", reply)
            return 0
        return int(reply)

    def waits_s(self) -> float:
        """How long a fetch may wait while other links may need its places."""
        is_recallable = self._may_unblock and self._waiting.client_id is not None
        return self._base.wait_s if is_recallable else min(self._base.wait_s, TURN_S)

    def _put_back(self, told: Iterable[Part]) -> None:
        """Puts back outcomes that were sent and got no reply."""
        unheard = [*chain.from_iterable(told)]
        for outcome in unheard:
            size = outcome.size
            if outcome.again():
                text = "job %r: what it sent, %d bytes, cut the connection twice: not sent again"
                self._base._log.say(logging.ERROR, text, outcome.delivery.job.id, size)
        self._outcomes.extendleft(reversed(unheard))

    def _ahead_answered(self, reply: Any) -> None:
        if isinstance(reply, ResponseError) and _trouble.may_not(reply):
            self._base._off("the server refuses DQ.STEP: jobs of unknown kinds use up attempts of handlers", reply)

    def _part_answered(self, part: Part, reply: Any) -> Optional[ResponseError]:
        """Takes the reply to an ACK without results. Returns an error that passes, or that ends the worker."""
        trouble: Optional[ResponseError] = None
        for outcome, row in zip(part, [reply] * len(part) if isinstance(reply, ResponseError) else reply):
            if row == 1:
                self._leases.unanswered.pop(outcome.delivery, None)
                outcome.delivery.job = None
            else:
                trouble = self._answered(outcome, row if row is reply else (row,)) or trouble
        if self._base._killer is not None or self._base._returning:
            self._base._told()
        return trouble

    def _answered(self, outcome: Outcome, reply: Any) -> Optional[ResponseError]:
        """Takes an outcome's reply. Returns an error that passes, or that ends the worker."""
        if isinstance(reply, ResponseError):
            # A result, or the job that replaces this one, may find no memory; an end without it frees some.
            is_more = outcome.command[2] == b"RESULTS" or outcome.command[0] in (b"DQ.ADD", "DQ.ADD")
            is_full = is_more and str(reply).startswith("OOM")
            if not is_full and not _trouble.is_refusal(reply, outcome.command[0]):
                self._outcomes.append(outcome)
                return reply
            self._base._refused(outcome, str(reply))
            is_last = outcome.refused(str(reply).encode("utf-8", "replace"))
        else:
            is_last = outcome.answered(reply)
        if not is_last:
            self._outcomes.append(outcome)
            return None
        self._leases.unanswered.pop(outcome.delivery, None)
        # Where an answer was lost the server is asked, as of each: it may have carried out the first sending.
        if self._deaths and outcome.verdict in ("dead", "answer lost"):
            self._deaths[outcome.delivery.key].answered(outcome.delivery.id, outcome.delivery.due_ms)
            self._wake_courier()
        if self._base._killer is not None or self._base._returning:
            self._base._told()
        if outcome.verdict in ("lost", "refused"):
            self._base._lost(outcome.delivery)
        return None

    def _found(self, reply: Any, since: float) -> list[Delivery]:
        """The deliveries of a fetch's reply. since: the earliest time at which their leases may have begun."""
        if isinstance(reply, ResponseError):
            raise reply
        if reply is None:
            return []
        key, rows = reply
        codec, given, lengths, made = self._queues[key].codec, self._base._lease.given, self._lengths, self._base._jobs
        found, shortest_s = [], math.inf
        for row in rows:
            delivery = Delivery(key, row, self, since)
            delivery.job = made(delivery, codec)
            lease_s = lengths.get(delivery.ttr_ms)
            if lease_s is None:
                if len(lengths) >= MOST_LENGTHS:
                    lengths.clear()
                lease_s = lengths[delivery.ttr_ms] = given(delivery.ttr_ms)
            delivery.lease_s = lease_s
            delivery.lease_until = since + lease_s if self.is_kept else math.inf
            if lease_s < shortest_s:
                shortest_s = lease_s
            found.append(delivery)
        if self.is_kept:
            if self._leases.taken(found, since, shortest_s):
                self._wake()
            if self._listen_at == math.inf and self._all_listening and found:
                self._listen_at = since + COVER_AFTER_S
                self._wake_ears()
        else:
            self._leases.taken(found, since, shortest_s)
        return found

    def settle(self, delivery: Delivery, decide: Callable[..., Outcome], *rest: Any) -> bool:
        """Takes a delivery out of those in hand, and has ``decide`` say how it ends.

        Its handler, a heartbeat and the stop may all try: the first one decides. Returns whether it was still in hand.
        ``told_soon`` must follow, unless a fetch follows at once.
        """
        if not self._leases.settle(delivery):
            return False
        self._leases.unanswered[delivery] = None
        outcome = suspended(delivery, *delivery.suspension) if delivery.suspension else decide(delivery, *rest)
        note = self._notes.end(delivery) if self._notes.is_used else None
        if note is not None:
            outcome.prepend([note])
        if not self._outcomes:
            self._outcomes.first_at = time.monotonic()
        self._outcomes.append(outcome)
        return True

    def holds(self, delivery: Delivery) -> bool:
        return delivery in self._leases.held

    def lose(self, deliveries: Iterable[Delivery]) -> None:
        """Reports deliveries as lost, those of them that are still in hand."""
        for delivery in deliveries:
            if self._leases.settle(delivery):
                self._notes.end(delivery)
                self._base._lost(delivery)

    def correct(self, delivery: Delivery) -> None:
        """Asks for a lease of another length, if the delivery's handler wants one."""
        lease_s = self._base._lease.corrected(delivery)
        if lease_s is not None:
            self._leases.ask(delivery, lease_s)
            self._wake()

    def told_soon(self) -> None:
        if self._outcomes:
            self._ring()

    @property
    def _answer_s(self) -> float:
        """How long a reply to anything but a fetch may take: heartbeats must be in time."""
        return min(ANSWER_S, max(self._leases.shortest_s() / 3, SHORTEST_ANSWER_S))

    def _beaten(self, group: list[Delivery], reply: Any, sent: float) -> None:
        if isinstance(reply, ResponseError):
            raise reply
        for delivery in self._leases.beaten(group, reply, sent):
            self._notes.end(delivery)
            self._base._lost(delivery)

    def _look(self, now: float) -> None:
        """Reports deliveries as lost whose lease has expired, whatever the server would say."""
        for delivery in self._leases.over(now):
            self._notes.end(delivery)
            self._base._lost(delivery)

    # --- Hearing of cancellations

    def _listen(self, now: float) -> None:
        """Has listeners cover the jobs that have been in hand for some time."""
        if now < self._listen_at:
            return
        self._listen_at, held = math.inf, list(self._leases.held)
        for listening in self._all_listening:
            at = listening.lacks_at(held)
            if at <= now:
                self._cover(listening)
                at = now + COVER_AFTER_S
            self._listen_at = min(self._listen_at, at)

    def _begin_to_hear(self, listening: Listening) -> Optional[Command]:
        return listening.begin(list(self._leases.held), time.monotonic())

    def _heard(self, listening: Listening, reply: Any, sent: float) -> None:
        self.lose(listening.heard(reply, sent))

    def _listening_failed(self, listening: Listening, error: Exception) -> None:
        listening.stumbled()
        if listening.is_off:
            self._base._off("the server refuses DQ.BTOUCH: a cancel is heard at the next heartbeat", error)

    # --- Progress, and what handlers ask

    def show_progress(self, delivery: Delivery, text: bytes) -> None:
        if self.holds(delivery) and self._notes.say(delivery, text, time.monotonic()):
            self._wake()

    def _noted(self, delivery: Delivery, text: bytes, reply: Any) -> None:
        if isinstance(reply, ResponseError):
            if not _trouble.is_refusal(reply, b"DQ.TOUCH"):
                raise reply
            self._base._log.say(logging.ERROR, "job %r: the server refused its progress: %s", delivery.id, reply)
        self._notes.confirmed(delivery, text)
        if reply is None:
            self.lose([delivery])

    def say(self, command: Command, refused: Callable[[Command, ResponseError], None]) -> None:
        """Sends a command once there is a connection, and again until the server has replied."""

        def answered() -> None:
            (reply,) = errand.replies or (None,)
            if isinstance(reply, ResponseError):
                refused(command, reply)

        errand = Errand([command], answered, bears="OOM")
        self._errands.add(errand)
        self._wake_courier()

    def look_up(self, delivery: Delivery, then: Callable[[Delivery, bytes], None]) -> None:
        """Asks why the job's last attempt failed. The reason is told to ``then``, by the batcher."""

        def answered() -> None:
            (reply,) = errand.replies or (None,)
            if isinstance(reply, ResponseError):
                self._base._off("the server refuses DQ.GET: jobs that may have ended a worker do not run alone", reply)
                reply = None
            then(delivery, (as_map(reply) or {}).get(b"reason") or b"")

        errand = Errand([(b"DQ.GET", delivery.key, delivery.id, b"PREFIX", 0)], answered)
        self._errands.add(errand)
        self._wake_courier()

    def _heard_of(self, deaths: Deaths, commands: Sequence[Command], replies: list[Any]) -> None:
        Errand(commands).answered(replies)
        deaths.heard(replies, time.monotonic())

    def child(self, key: bytes, job: Mapping[str, Any], like: str) -> Any:
        """The command (or the steps to it) that adds a job to this key, which ``like`` names if the job does not."""
        return self._queues[key]._child(key, job, like)

    def is_healthy(self, now: float) -> bool:
        """A fetch or a heartbeat was answered, and none is late."""
        if not self._is_heard or now > self._leases.beat_at + SLACK_S:
            return False
        return not self._fetching or now - self._fetched_at <= self._base.wait_s + 2 * SLACK_S

    def _last_words(self) -> bytes:
        """What the server is to know after all when it answers again, the smallest first; each may be sent twice."""
        self._leave()
        return last_words(self._returns, [*chain.from_iterable(self._telling), *self._outcomes])

    def _leave(self) -> None:
        """Has all jobs left in hand given back."""
        left: list[Delivery] = []
        while self._leases.held:
            left.append(self._leases.held.popitem()[0])
        for delivery in left:
            delivery.tell("stopping")
        self._errands.end()
        self._base._left(left)
        self._returns += give_back(left)
