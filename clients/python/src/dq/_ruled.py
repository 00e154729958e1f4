"""Rules beside handlers: a worker says them when it starts, as each other one does."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from redis.exceptions import ResponseError

from . import _arguments as words
from . import _trouble
from ._arguments import Bytes
from ._intake import Intake
from ._options import near_misses, unknown
from .errors import ConfigurationError
from .handler import OPTIONS, Handler, handler
from .times import Duration, to_ms

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._delivery import Command
    from ._job_options import JobOptions
    from .handler import HandlerOptions

_OF_RULES = ("tz", "first", "until", "times", "grace", "jitter", "id", "data", "headers", "defaults")

Q = TypeVar("Q")
F = TypeVar("F", bound=Callable[..., Any])


@near_misses("Worker")
class Ruled(Intake[Q]):
    """Handlers that have a rule."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rules: list[tuple[str, dict[str, Any]]] = []

    def _made(self, function: Any, **options: Any) -> Handler[Any]:
        raise NotImplementedError

    def cron(
        self,
        expression: str,
        *,
        tz: Optional[str] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        kind: Optional[str] = None,
        id: Optional[Bytes] = None,
        data: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        defaults: Optional[JobOptions] = None,
        **options: Unpack[HandlerOptions],
    ) -> Callable[[F], Handler[F]]:
        """Decorates a handler whose job comes again by a cron expression, in the zone ``tz`` (default UTC).

        The worker adds that job to its first queue when it starts, as ``Queue.cron`` does: also one that has run its
        ``times`` by then, which begins anew. Another program may have the same rule; when it has left all of them,
        delete the job by its id.

        kind: of the job; by default the function's name. id: by default the kind. defaults: the job's options. The
        other options are those of ``Queue.cron`` and of ``dq.handler``. A handler that was made before, as by
        ``Queue.kind``, has its own kind and options.
        """
        when = ["CRON", expression, *(["TZ", tz] if tz else []), *words.rule(until, times, grace, jitter)]
        rule = {"id": id, "data": data, "headers": headers, "options": defaults or {}, "when": when}
        return self._ruled("Worker.cron", kind, rule, options)

    def every(
        self,
        interval: Duration,
        *,
        first: Optional[datetime] = None,
        until: Optional[datetime] = None,
        times: Optional[int] = None,
        grace: Optional[Duration] = None,
        jitter: Optional[Duration] = None,
        kind: Optional[str] = None,
        id: Optional[Bytes] = None,
        data: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        defaults: Optional[JobOptions] = None,
        **options: Unpack[HandlerOptions],
    ) -> Callable[[F], Handler[F]]:
        """Decorates a handler whose job comes again every ``interval``. See ``cron``, and ``Queue.every``."""
        ms = to_ms(interval, "interval", 1000)
        when = ["EVERY", ms, *words.due(None, first), *words.rule(until, times, grace, jitter)]
        rule = {"id": id, "data": data, "headers": headers, "options": defaults or {}, "when": when}
        return self._ruled("Worker.every", kind, rule, options)

    def _ruled(self, what: str, kind: Optional[str], rule: dict[str, Any], options: Any) -> Callable[[F], Handler[F]]:
        if self._links:
            raise RuntimeError("the worker runs already: its rules must be known before")
        for name in options.keys() - set(OPTIONS):
            raise unknown(what, name, [*_OF_RULES, *OPTIONS])
        handler(kind=kind, **options)  # now, and not when the decorator is applied

        def register(function: F) -> Handler[F]:
            is_made = isinstance(function, Handler)
            if is_made and (options or kind is not None or not function.kind):  # type: ignore[attr-defined]
                raise TypeError("a handler with a rule has a kind and options of its own, or none yet")
            own = {} if is_made else {"kind": kind or getattr(function, "__name__", None), **options}
            found = self._made(function, **own)
            self._handlers.add(found)
            self._rules.append((found.kind or "", rule))
            return found

        return register

    def _said_rules(self) -> list[Any]:
        """The commands that add the jobs, or (with asyncio hooks) the steps to them; once."""
        rules, self._rules = self._rules, []
        queue: Any = self.queues[0]
        return [queue._rule(**{**rule, "id": rule["id"] or kind}, kind=kind) for kind, rule in rules]

    def _say(self, commands: list[Command]) -> None:
        for command in commands:
            next(link for link in self._links if command[1] in link._queues).say(command, self._unsaid)

    def _unsaid(self, command: Command, error: ResponseError) -> None:
        why = str(_trouble.refused(error, command))
        if _trouble.may_not(error):
            self._off("the server does not permit to add recurring jobs: the rules of handlers are not said", error)
        elif "UNTIL is before the first occurrence" in str(error):
            self._log.say(logging.INFO, "a rule is over: %s", why)
        elif str(error).startswith(("MAX", "OOM")):
            self._log.say(logging.ERROR, "a rule is not said until the next start: %s", why)
        elif all(link.is_kept for link in self._links):
            self._fail(ConfigurationError(why))
        else:  # in tests
            raise ConfigurationError(why)
