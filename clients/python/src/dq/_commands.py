"""Commands that change a queue, as methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Callable, Literal, Optional, TypeVar, Union

from . import _arguments as words
from ._arguments import Bytes, Ladder, Mode, Rate, State
from ._delivery import as_map
from ._job_options import job_options
from ._options import near_misses
from ._queries import Queries
from .records import Reserved
from .times import Duration, seconds, to_ms

T = TypeVar("T")
WITH = ("WITHDUE", "WITHRESULTS", "WITHSTEPS")


@near_misses("Queue")
class Commands(Queries):
    """A queue. All instants are timezone-aware datetimes; durations are timedeltas or numbers of seconds.

    Ids are text. Bytes that are not UTF-8 become surrogates, as in file names.
    """

    # --- Deliveries: a Worker sends these commands by itself

    def delete(self, *ids: Bytes, unreserved: bool = False) -> int:
        """Deletes jobs in any state; with ``unreserved``, only those that no worker holds. Returns how many."""
        return self._count_by_key("DQ.DEL", ids, *(["UNRESERVED"] if unreserved else []))

    def pop(
        self, count: int = 1, *, id: Optional[Bytes] = None, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Takes ready jobs without waiting: the first ``count`` (of each shard), or the one with ``id``.

        ttr: the length of their leases. noack: they are done at once, and need no ``ack``.
        """
        keys = self.keys if id is None else [self._key(id)]
        which = words.number("COUNT", count, 1) if id is None else ["ID", words.bytes_of(id)]
        calls = [("DQ.POP", key, *which, *words.ms("TTR", ttr, 1), *words.flag("NOACK", noack), *WITH) for key in keys]

        def read(replies: list[Any]) -> list[Reserved]:
            rows = [reply if id is None else [reply] if reply else [] for reply in replies]
            return [Reserved.read(key, row) for key, group in zip(keys, rows) for row in group]

        return self._run(calls, read)

    def bpop(
        self, timeout: Duration, count: int = 1, *, ttr: Optional[Duration] = None, noack: bool = False
    ) -> list[Reserved]:
        """Waits up to ``timeout`` for ready jobs, and takes up to ``count``. Not for a sharded queue in a cluster."""
        call = (
            "DQ.BPOP",
            *self.keys,
            seconds(timeout, "timeout"),
            *words.number("COUNT", count, 1),
            *words.ms("TTR", ttr, 1),
            *words.flag("NOACK", noack),
        )

        def read(replies: list[Any]) -> list[Reserved]:
            if replies[0] is None:
                return []
            key, rows = replies[0]
            return [Reserved.read(key, row) for row in rows]

        return self._run([(*call, *WITH)], read)

    def ack(self, id: Bytes, token: str, result: Any = None) -> bool:
        """The job is done. Returns False if the token is not current: the job is gone, or another worker has it."""
        return self._acked({id: token}, {} if result is None else {id: result}, bool)

    def ack_many(self, tokens: Mapping[str, str], results: Mapping[str, Any] = MappingProxyType({})) -> int:
        """``ack`` for many jobs: ``tokens`` and ``results`` are by id. Returns how many were done."""
        return self._acked(tokens, results, int)

    def _acked(self, tokens: Mapping[Any, str], results: Mapping[Any, Any], read: Callable[[int], T]) -> T:
        groups: dict[tuple[str, bytes], list[Any]] = {}
        for id, token in tokens.items():
            row = [words.bytes_of(id), token]
            if results.get(id) is None:
                groups.setdefault(("WITHTOKENS", self._key(id)), []).extend(row)
            else:
                groups.setdefault(("RESULTS", self._key(id)), []).extend([*row, self.codec.encode(results[id])])
        calls = [
            ("DQ.ACK", key, form, "IDS", len(rows) // (2 + (form == "RESULTS")), *rows)
            for (form, key), rows in groups.items()
        ]
        return self._run(calls, lambda replies: read(sum(map(sum, replies))))

    def nack(
        self,
        id: Bytes,
        token: Optional[str] = None,
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        mode: Mode = "fail",
        reason: Optional[str] = None,
    ) -> Optional[str]:
        """Gives a job back. Returns its new state, or None if it is not reserved with that token.

        mode: "fail", "silent" (not counted) or "fatal" (dead now).
        """
        options = [*words.value("TOKEN", token), *words.nack_options(delay, priority, mode, reason)]
        return self._one(id, "DQ.NACK", words.bytes_of(id), *options, read=words.maybe_text)

    def nack_many(
        self,
        tokens: Mapping[str, str],
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        mode: Mode = "fail",
        reason: Optional[str] = None,
    ) -> dict[str, Optional[str]]:
        """``nack`` for many jobs: ``tokens`` maps ids to tokens. Returns the new state of each."""
        return self._many("DQ.NACK", tokens, words.nack_options(delay, priority, mode, reason), words.maybe_text)

    def touch(
        self,
        id: Bytes,
        token: Optional[str] = None,
        *,
        ttr: Optional[Duration] = None,
        cost: Optional[int] = None,
    ) -> Optional[datetime]:
        """Renews the lease from now. Returns when it ends, or None if the job is not reserved with that token.

        ttr: the length of the new lease.
        cost: what the delivery counts towards the rates, if that is known only afterwards.
        """
        return self._one(
            id,
            "DQ.TOUCH",
            words.bytes_of(id),
            *words.value("TOKEN", token),
            *words.ms("TTR", ttr, 1),
            *job_options({"cost": cost}),
            read=words.maybe_instant,
        )

    def touch_many(self, tokens: Mapping[str, str], *, ttr: Optional[Duration] = None) -> dict[str, Optional[datetime]]:
        """``touch`` for many jobs: ``tokens`` maps ids to tokens. Returns when each lease ends."""
        return self._many("DQ.TOUCH", tokens, words.ms("TTR", ttr, 1), words.maybe_instant)

    def _many(
        self, command: str, tokens: Mapping[str, str], options: Sequence[Any], read: Callable[[Any], T]
    ) -> dict[str, T]:
        groups: dict[bytes, list[str]] = {}
        for id in tokens:
            groups.setdefault(self._key(id), []).append(id)
        calls = [
            (
                command,
                key,
                "IDS",
                len(ids),
                *(word for id in ids for word in (words.bytes_of(id), tokens[id])),
                *options,
            )
            for key, ids in groups.items()
        ]
        order = [id for ids in groups.values() for id in ids]
        return self._run(calls, lambda replies: dict(zip(order, (read(one) for all in replies for one in all))))

    def reschedule(
        self,
        *ids: Bytes,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        priority: Optional[int] = None,
    ) -> int:
        """Changes the due time, the priority or both of delayed or ready jobs. Returns how many it found."""
        options = [*words.due(delay, at), *words.number("PRIORITY", priority, *words.PRIORITIES)]
        if not options:
            raise TypeError("reschedule needs a new delay, at or priority, such as delay=60")
        return self._count_by_key("DQ.RESCHEDULE", ids, *options)

    def kick(self, *ids: Bytes) -> int:
        """Makes jobs ready that are dead or done, or blocked and should wait no longer. Returns how many."""
        return self._count_by_key("DQ.KICK", ids)

    def kick_oldest(self, count: int) -> int:
        """Makes the jobs ready again that have been dead longest, up to ``count`` of each shard. Returns how many."""
        return self._each("DQ.KICK", *words.number("COUNT", count, 1), read=sum)

    # --- Settings

    def configure(
        self,
        *,
        ttr: Optional[Duration] = None,
        attempts: Optional[int] = None,
        backoff: Union[Ladder, str, None] = None,
        maxlen: Optional[int] = None,
        maxbytes: Optional[int] = None,
        deadlen: Optional[int] = None,
        dedupe: Optional[Duration] = None,
        maxreserved: Optional[int] = None,
        rate: Optional[Rate] = None,
        groupmax: Optional[int] = None,
        grouprate: Optional[Rate] = None,
        groupfifo: Optional[bool] = None,
        donelen: Optional[int] = None,
        donettl: Optional[Duration] = None,
        donebytes: Optional[int] = None,
        history: Optional[int] = None,
    ) -> None:
        """Changes the settings that are given, on each shard. 0 turns a limit off. Rates are (jobs, window), or 0.

        backoff: "default" takes the queue's own away, so that the server's holds; [] is no wait.
        history: how many failed attempts each job keeps, at most 100.
        """
        options = [
            *words.ms("TTR", ttr, 1),
            *words.number("ATTEMPTS", attempts, 0, words.RATE_MOST),
            *(["BACKOFF", "DEFAULT"] if backoff == words.DEFAULT else words.ladder(backoff)),
            *words.number("MAXLEN", maxlen, 0),
            *words.number("MAXBYTES", maxbytes, 0),
            *words.number("DEADLEN", deadlen, 0),
            *words.ms("DEDUPE", dedupe),
            *words.number("MAXRESERVED", maxreserved, 0),
            *words.rate("RATE", rate),
            *words.number("GROUPMAX", groupmax, 0),
            *words.rate("GROUPRATE", grouprate),
            *words.value("GROUPFIFO", None if groupfifo is None else int(groupfifo)),
            *words.number("DONELEN", donelen, 0),
            *words.ms("DONETTL", donettl),
            *words.number("DONEBYTES", donebytes, 0),
            *words.number("HISTORY", history, 0, 100),
        ]
        return self._each("DQ.CFGSET", *options, read=words.nothing)

    def settings(self) -> Optional[dict[str, Any]]:
        """All settings (of the first shard) by name, durations in milliseconds; None if the queue does not exist."""

        def read(replies: list[Any]) -> Optional[dict[str, Any]]:
            settings = as_map(replies[0])
            return None if settings is None else {name.decode(): value for name, value in settings.items()}

        return self._run([("DQ.CFGGET", self.keys[0])], read)

    def pause(self, duration: Optional[Duration] = None) -> None:
        """Stops deliveries for ``duration``, or until ``resume``."""
        return self._each(
            "DQ.PAUSE", *([] if duration is None else [to_ms(duration, "duration", 1)]), read=words.nothing
        )

    def resume(self) -> None:
        """Ends a pause."""
        return self._each("DQ.RESUME", read=words.nothing)

    def purge(self, state: Union[State, Literal["all"]]) -> int:
        """Deletes all jobs of a state ("dead", "done", ...), or "all". Returns how many."""
        return self._each("DQ.PURGE", state, read=sum)
