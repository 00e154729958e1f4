"""A job as a handler with asyncio sees it: what it asks of the server is awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

from .. import _guard, _steps
from ..job import BaseJob, Result
from ..times import Duration

T = TypeVar("T")


class Job(BaseJob):
    """One delivery of a job, for handlers that are coroutine functions. See ``dq.Job``."""

    __slots__ = ()

    async def step(self, name: str, function: Callable[[], Union[T, Awaitable[T]]]) -> T:
        """Runs the function (which may be a coroutine function) once in the life of the job, and keeps what it returns.

        In later attempts the kept value comes back. What is not a step runs again in each attempt.
        """
        return await self._do(_steps.step(self._steps, name, function))  # type: ignore[no-any-return]

    async def sleep(self, name: str, duration: Duration) -> None:
        """Ends the attempt, uncounted; the handler begins again after ``duration``, and then goes on here at once."""
        await self._do(_steps.sleep(self._steps, name, duration))

    async def wait(self, name: str, timeout: Optional[Duration] = None) -> Any:
        """The value of the signal ``name``. Where it has not come, the attempt ends, uncounted, until it does.

        Raises ``TimedOut`` where it did not come within ``timeout``.
        """
        return await self._do(_steps.wait(self._steps, name, timeout))

    async def wait_for(self, ids: Iterable[str], name: Optional[str] = None, *, on_dead: str = "run") -> list[Result]:
        """How these jobs of the queue ended. Where they have not, the attempt ends, uncounted, until they have."""
        return Result.read(await self._do(_steps.wait_for(self._steps, ids, name, on_dead)), self._codec)

    async def spawn(
        self, jobs: Iterable[Mapping[str, Any]], name: Optional[str] = None, *, on_dead: str = "run"
    ) -> list[Result]:
        """Adds jobs, each a mapping of what ``Queue.add`` takes, and waits for their ends, in one transaction."""
        return Result.read(await self._do(_steps.spawn(self._steps, jobs, name, on_dead)), self._codec)

    async def once(self, name: str, script: str, keys: Sequence[Any] = (), args: Sequence[Any] = ()) -> bool:
        """Runs a Lua script that takes effect once in the life of the job, on this server. Whether it ran now."""
        return await self._do(_steps.once(self._steps, name, script, keys, args))  # type: ignore[no-any-return]

    async def set_cost(self, cost: int) -> None:
        """What this delivery counts in the rates of the queue and its group, where that is known only afterwards."""
        await self._do(_steps.set_cost(self._steps, cost))

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
                answer = [await owner.ready(key, owner.child(key, job)) for job in order.jobs]
            else:
                answer = await owner.ask(self._delivery, order.commands)
