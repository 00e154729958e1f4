"""A job as a handler with asyncio sees it: what it asks of the server is awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from .. import _guard, _steps
from .._arguments import OnDead
from .._job_options import Corrections
from ..job import BaseJob, JobResult
from ..times import Duration

T = TypeVar("T")


class Job(BaseJob, Corrections[Awaitable[None]]):
    """One delivery of a job, for handlers that are coroutine functions. See ``dq.Job``."""

    __slots__ = ()

    async def step(self, name: str, function: Callable[[], Union[T, Awaitable[T]]]) -> T:
        """Runs the function, which may be a coroutine function, once in the life of the job. Keeps what it returns.

        Later attempts return the kept value. Code outside steps runs again in each attempt.
        """
        return await self._do(_steps.step(self._steps, name, function))  # type: ignore[no-any-return]

    async def sleep(self, name: str, duration: Duration) -> None:
        """Ends the attempt, uncounted. After ``duration`` the handler begins again, and then goes on here at once."""
        await self._do(_steps.sleep(self._steps, name, duration))

    async def wait(self, name: str, timeout: Optional[Duration] = None) -> Any:
        """Returns the value of the signal ``name``.

        If it has not come, ends the attempt, uncounted: the handler begins again when it comes.

        Raises ``TimedOut`` if it does not come within ``timeout``.
        """
        return await self._do(_steps.wait(self._steps, name, timeout))

    async def wait_for(
        self, ids: Iterable[str], name: Optional[str] = None, *, on_dead: OnDead = "run"
    ) -> list[JobResult]:
        """Returns how these jobs of the queue ended.

        If some have not, ends the attempt, uncounted: the handler begins again when all have.

        on_dead: what to do if one of them dies: "wait" (it may be kicked), "run" or "die".
        """
        return JobResult.read(await self._do(_steps.wait_for(self._steps, ids, name, on_dead)), self._codec)

    async def spawn(
        self, jobs: Iterable[Mapping[str, Any]], name: Optional[str] = None, *, on_dead: OnDead = "run"
    ) -> list[JobResult]:
        """Adds jobs, each a mapping of ``Queue.add``'s arguments, and waits for their ends, in one atomic step.

        A job without an ``id`` gets ``<id of this job>/<name>/<number>``, so later attempts find the same jobs.
        """
        return JobResult.read(await self._do(_steps.spawn(self._steps, jobs, name, on_dead)), self._codec)

    async def once(self, name: str, script: str, keys: Sequence[Any] = (), args: Sequence[Any] = ()) -> bool:
        """Runs a Lua script that takes effect once in the life of the job, on this server. Returns whether it ran now.

        See ``dq.Job.once``.
        """
        return await self._do(_steps.once(self._steps, name, script, keys, args))  # type: ignore[no-any-return]

    async def _correct(self, given: Mapping[str, Any]) -> None:
        await self._do(_steps.correct(self._steps, given))

    async def _do(self, steps: _steps.Steps) -> Any:
        owner, answer = self._delivery.owner, None
        while True:
            try:
                order = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(order, _steps.Call):
                answer = order.function()
                answer = await answer if _guard.is_awaitable(answer) else answer
            elif isinstance(order, _steps.Children):
                key = self._delivery.key
                children = zip(order.jobs, order.like)
                answer = [await owner.ready(key, owner.child(key, job, like)) for job, like in children]
            else:
                answer = await owner.ask(self._delivery, order.commands)
