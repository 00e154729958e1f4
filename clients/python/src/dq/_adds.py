"""Methods of a queue that add jobs."""

from __future__ import annotations

import os
import random
import time
from binascii import hexlify
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from . import _arguments as words
from . import _guard
from ._arguments import Bytes, IfExists, OnDead
from ._delivery import Command
from ._job_options import ABOUT, job_options
from ._many import MOST_AFTER, Added, Grouped, sent_once
from ._options import near_misses, unknown
from .codec import Codec, Envelope, label_of
from .hooks import Hooks
from .times import Duration, seconds, to_ms

T = TypeVar("T")
KEEP_S = 60.0
"""How long a job is kept whose end its producer may have to look up."""
_AFTER = ("after", "after_group", "on_dead")
_FIXED = (int, float, str, bytes, timedelta, datetime, type(None))
_ABSENT = object()
_OWN = frozenset(("data", "id", "headers"))
_OF_JOBS = ("data", "delay", "at", "id", "if_exists", *ABOUT, *_AFTER, "kind", "headers")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._job_options import JobOptions

    class AddOptions(JobOptions, total=False):
        id: Bytes
        delay: Duration
        at: datetime
        if_exists: IfExists
        after: Sequence[Bytes]
        after_group: str
        on_dead: OnDead
        kind: str
        headers: Mapping[str, str]


_CHANCE = random.Random()
"""The program may seed ``random``: ids must not repeat then, nor after a fork."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHANCE.seed)


def new_id() -> bytes:
    """A new id, in hex: 48 bits of time and 80 random bits. Ids made in a later millisecond are greater."""
    return hexlify((time.time_ns() // 1_000_000 << 80 | _CHANCE.getrandbits(80)).to_bytes(16, "big"))


def _labelled(options: Mapping[str, Any], kind: Optional[str]) -> Mapping[str, Any]:
    """The options with a label, which is the job's kind unless they have another."""
    return options if kind is None or options.get("label") is not None else {**options, "label": label_of(kind)}


class _Like:
    """Parsed options of a job, kept for the next one: most jobs of an ``add_many`` have the same."""

    def __init__(self) -> None:
        self._options: Mapping[str, Any] = {}
        self.words: Sequence[Any] = []
        self.if_exists: Optional[IfExists] = None
        self.is_how = (False, True)
        """Whether the job is ``after`` others, and whether it can share a command with other jobs."""

    def or_of_job(self, job: Mapping[str, Any]) -> _Like:
        """Returns itself, holding the options of this job."""
        if not self._are_those_of(job):
            options = {name: value for name, value in job.items() if name not in _OWN}
            self._read({**options})
            self._options = options
        return self

    def _are_those_of(self, job: Mapping[str, Any]) -> bool:
        """Whether values and types are equal. A mutable value never counts as equal: it may have changed."""
        options = self._options
        left = len(options)
        for name, value in job.items():
            if name in _OWN:
                continue
            known = options.get(name, _ABSENT)
            if type(value) not in _FIXED or type(known) is not type(value) or known != value:
                return False
            left -= 1
        return left == 0

    def _read(self, rest: dict[str, Any]) -> None:
        self.if_exists = rest.pop("if_exists", None)
        after = words.after(*(rest.pop(name, None) for name in _AFTER))
        due = words.due(rest.pop("delay", None), rest.pop("at", None))
        kind = rest.pop("kind", None)
        said = job_options(_labelled({name: rest.pop(name, None) for name in ABOUT}, kind))
        for name in rest:
            raise unknown("a job", name, _OF_JOBS)
        self.words = [*words.condition(self.if_exists), *due, *said, *after]
        self.is_how = (bool(after), self.if_exists != "next" and not after)


@near_misses("Queue", ABOUT)
class Adds:
    name: str
    hooks: Sequence[Hooks]
    keys: list[bytes]
    codec: Codec
    _log: _guard.Log

    def _key(self, id: Bytes) -> bytes:
        raise NotImplementedError

    def _run(self, calls: Sequence[Any], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        """grouped: packs the calls into fewer commands."""
        raise NotImplementedError

    def _phases(self, steps: Generator[Any, Any, Any]) -> Any:
        """Sends what the steps yield, one after the other: jobs, or commands. A number is a pause."""
        raise NotImplementedError

    def _steps(
        self,
        data: Any,
        id: bytes,
        kind: Optional[str],
        headers: Optional[Mapping[str, str]],
        options: Sequence[Any],
        key: Optional[bytes] = None,
    ) -> Generator[_guard.Adding, None, Command]:
        """Returns the command. Yields each hook call that must be awaited before the next hook is called."""
        for hooks in self.hooks:
            adding = _guard.Adding(self._log, hooks, self.name, dict(headers or {}))
            if adding.waits is not None:
                yield adding
            headers = adding.headers
        payload = Envelope.write(data, kind, headers) if kind is not None or headers else self.codec.encode(data)
        return ("DQ.ADD", key or self._key(id), id, words.payload(payload), *options)

    def _now(self, steps: Any) -> Command:
        """The command, where hooks cannot be awaited."""
        while not isinstance(steps, tuple):
            try:
                adding = next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            _guard.unawaited(self._log, adding.hooks, "adding", adding.waits)
        return steps

    def _add(self, *parts: Any) -> Any:
        """The command, or (with asyncio hooks) the steps to it."""
        return self._now(self._steps(*parts))

    def add(
        self,
        data: Any,
        *,
        id: Optional[Bytes] = None,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        if_exists: Optional[IfExists] = None,
        after: Optional[Sequence[Bytes]] = None,
        after_group: Optional[str] = None,
        on_dead: Optional[OnDead] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        **options: Unpack[JobOptions],
    ) -> Optional[str]:
        """Adds a job, due now, after ``delay`` or at the instant ``at``. Returns its id, or None if it was refused.

        Raises QueueFull if the queue has reached its MAXLEN or MAXBYTES.

        data: bytes, or a value that the codec encodes (JSON by default).
        id: unique in the queue; made up if omitted. A second job with an existing id is refused, so adding twice does
            no harm. A dead or done job is replaced.
        if_exists: instead of refusing the job: "replace", "only-replace" (XX) or "next" (run once more when the
            current run is over).
        attempts, backoff, ttr: without them the queue's apply, then those of the worker's handler; of limits of
            attempts the least holds.
        kind: chooses the worker's handler. It is also the job's label, unless ``label`` is another.
        after: ids of jobs of this queue that must end before this one begins; ``job.results`` says how they ended.
        after_group: the job begins when all jobs of that group have ended.
        on_dead: what the job does if one of ``after`` dies: "wait" (the default, as it may be kicked), "run" or "die".
        """
        said = job_options(_labelled(options, kind)) + words.condition(if_exists) + words.due(delay, at)
        said += words.after(after, after_group, on_dead)
        made = self._id_for(id, after, after_group)
        # If a generated id exists already, an earlier sending added it, and its reply was lost.
        known = made if id is None and if_exists != "only-replace" else None
        call = self._add(data, made, kind, headers, said)
        return self._run([call], lambda replies: words.maybe_id(replies[0] or known))

    def _added(self, job: Mapping[str, Any], key: Optional[bytes] = None, before: Optional[_Like] = None) -> Added:
        """The command that adds ``job``, a mapping of ``add``'s arguments.

        key: used instead of the key of the id's own shard.
        before: the parsed options of the previous job.
        """
        if not (type(job) is dict or isinstance(job, Mapping)) or "data" not in job:
            raise TypeError(f'a job is a mapping of what add takes, as {{"data": ..., "delay": 60}}, not {job!r}')
        data, id, kind, headers = job["data"], job.get("id"), job.get("kind"), job.get("headers")
        made = self._id_for(id, job.get("after"), job.get("after_group")) if key is None else words.bytes_of(job["id"])
        like = (_Like() if before is None else before).or_of_job(job)
        known = made if id is None and like.if_exists != "only-replace" else None
        if not self.hooks and kind is None and not headers and key is None:
            payload = words.payload(self.codec.encode(data))
            return Added(("DQ.ADD", self._key(made), made, payload, *like.words), known, *like.is_how)
        return Added(self._add(data, made, kind, headers, like.words, key), known, *like.is_how)

    def add_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        """Adds many jobs in one round trip. Each is a mapping of ``add``'s arguments, including ``data``.

        Returns their ids, with None for a job that was refused. Jobs with equal options share commands. If some are
        ``after`` others, all are added in one transaction.
        """
        before, last = _Like(), None
        return self._run_many([self._added(last := job, None, before) for job in jobs], last)

    def chain(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        """Adds jobs in one transaction, each of which begins when the one before it has ended.

        Returns their ids, with None for a job that was refused.
        """
        made: list[Added] = []
        before, job = None, None
        for job in jobs:
            chained = {**job} if before is None else {**job, "after": [*(job.get("after") or ()), before]}
            id = chained.get("id")
            before = self._id_for(id, chained.get("after"), chained.get("after_group"))
            added = self._added({**chained, "id": before})
            if id is None and job.get("if_exists") != "only-replace":
                added.known = before
            made.append(added)
        return self._run_many(made, job)

    def join(self, jobs: Iterable[Mapping[str, Any]], *, then: Mapping[str, Any]) -> Optional[str]:
        """Adds jobs, and one that begins when all of them have ended: ``then``. Returns its id.

        All are added in one transaction, and are mappings of ``add``'s arguments. ``results`` of the last job say how
        the others ended, its ``on_dead`` what it does if one dies. It is kept for 60 s by default: if the answer of the
        server is lost, it is looked up, and all are sent again only if it is not there and none of the others ran.
        Where nobody can tell, as its ``keep`` is over or a job of its ``id`` was there and had not ended, the error of
        the connection says so.

        More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then ``results`` is
        empty.
        """
        made, last = [{**job} for job in jobs], {**then}
        if last.get("keep") is None:
            last["keep"] = KEEP_S
        if not made:
            raise ValueError("join needs jobs that come before the last one")
        if last.get("after") is not None or last.get("after_group") is not None:
            raise ValueError("then takes neither after nor after_group: it is after the jobs of the join")
        given = [words.new(job["id"]) for job in (*made, last) if job.get("id") is not None]
        key = self._key(given[0] if given else new_id())
        if any(self._key(id) != key for id in given):
            raise ValueError("the jobs of a join must be in one shard: leave their ids out")
        *ids, id = (self._id_in(key, job.get("id")) for job in (*made, last))
        if len(made) > MOST_AFTER:
            group = made[0].get("group") or f"join:{new_id().decode()}"
            if any(job.setdefault("group", group) != group for job in made):
                raise ValueError(f"more than {MOST_AFTER} jobs are joined by their group: give them one, or none")
            last["after_group"] = group
        else:
            last["after"] = ids
        like = _Like()
        adds = [self._added({**job, "id": id}, key, like) for job, id in zip(made, ids)]
        adds.append(self._added({**last, "id": id}, key))
        known = None if then.get("id") is not None or then.get("if_exists") == "only-replace" else id
        return self._phases(  # type: ignore[no-any-return]
            self._at_once(Grouped(adds), last, lambda replies: words.maybe_id(replies[-1] or known))
        )

    def _at_once(
        self, grouped: Grouped, last: Mapping[str, Any], combine: Callable[[list[Any]], T]
    ) -> Generator[Any, Any, T]:
        """The steps that add jobs in one transaction. last: the last one's arguments."""
        id = last.get("id")
        given = None if id is None else (self._key(id), words.bytes_of(id))
        kept_s = 0.0 if last.get("keep") is None else seconds(last["keep"], "keep")
        if last.get("ttl") is not None:
            kept_s = min(kept_s, seconds(last["ttl"], "ttl"))
        return combine((yield from sent_once(grouped, given, kept_s, time.monotonic)))

    def _id_in(self, key: bytes, id: Optional[Bytes]) -> bytes:
        """The id, or a new one of this key."""
        made = new_id() if id is None else words.bytes_of(id)
        while self._key(made) != key:
            made = new_id()
        return made

    def _child(self, key: bytes, job: Mapping[str, Any], like: str) -> Any:
        """The command (or the steps to it) that adds a job of ``spawn``, in the shard of the job that spawns it.

        like: its id if it names none; ``like~1``, ``like~2``, ... where that is of another shard.
        """
        given = job.get("id") if isinstance(job, Mapping) else None
        id = words.bytes_of(like if given is None else given)
        if given is not None and self._key(id) != key:
            raise ValueError(f"job {given!r} must be in the shard of the job that spawns it: leave its id out")
        n = 0
        while self._key(id) != key:
            n += 1
            id = words.bytes_of(f"{like}~{n}")
        return self._added({**job, "id": id}, key).call

    def _id_for(self, id: Optional[Bytes], after: Optional[Sequence[Bytes]], after_group: Optional[str]) -> bytes:
        """The job's id, or a new one. A job that waits for others is in their shard."""
        raw = None if id is None else words.new(id)
        if after_group is not None and len(self.keys) > 1:
            raise ValueError("after_group does not work in a sharded queue: each shard has a group of that name")
        if not after or isinstance(after, (str, bytes)) or len(self.keys) == 1:
            return new_id() if raw is None else raw
        shards = {self._key(other) for other in after}
        if id is None and len(shards) > 1:
            raise ValueError("a job cannot be after jobs of different shards")
        made = new_id() if raw is None else raw
        while id is None and self._key(made) not in shards:
            made = new_id()
        if shards != {self._key(made)}:
            raise ValueError(f"job {id!r} must be in the shard of the jobs that it is after: leave its id out")
        return made

    def _run_many(self, made: Sequence[Added], last: Any) -> list[Optional[str]]:
        """last: the last job, as the program gave it."""
        grouped = Grouped(made)

        def ids(replies: list[Any]) -> list[Optional[str]]:
            return [words.maybe_id(reply or each.known) for reply, each in zip(replies, made)]

        if grouped.is_atomic:
            return self._phases(self._at_once(grouped, last, ids))  # type: ignore[no-any-return]
        return self._run(grouped.calls, ids, grouped)

    def every(
        self,
        interval: Duration,
        data: Any = None,
        *,
        id: Bytes,
        first: Optional[datetime] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        **options: Unpack[JobOptions],
    ) -> Optional[str]:
        """Adds a recurring job, due every ``interval``. Call it at each start: an unchanged rule goes on as it was.

        first: when the first occurrence is due; by default one interval from now.
        until, times: the last instant, and the number of occurrences.
        grace: an occurrence that is this late is skipped.
        jitter: each occurrence is due up to this much later.
        """
        when = ["EVERY", to_ms(interval, "interval", 1000), *words.due(None, first)]
        when += words.rule(until, times, grace, jitter)
        call = self._rule(when, data, id=id, kind=kind, headers=headers, options=options)
        return self._run([call], lambda replies: words.maybe_id(replies[0]))

    def cron(
        self,
        expression: str,
        data: Any = None,
        *,
        id: Bytes,
        tz: Optional[str] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        kind: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        **options: Unpack[JobOptions],
    ) -> Optional[str]:
        """Adds a recurring job by a cron expression, in the zone ``tz`` (an IANA name; default UTC). See ``every``."""
        when = ["CRON", expression, *(["TZ", tz] if tz else []), *words.rule(until, times, grace, jitter)]
        call = self._rule(when, data, id=id, kind=kind, headers=headers, options=options)
        return self._run([call], lambda replies: words.maybe_id(replies[0]))

    def _rule(self, when: list[Any], data: Any, *, id: Bytes, kind: Any, headers: Any, options: Any) -> Any:
        """The command that adds a recurring job, or (with asyncio hooks) the steps to it."""
        said = [*when, *job_options(_labelled(options, kind)), "REPLACE"]
        return self._add(data, words.new(id), kind, headers, said)
