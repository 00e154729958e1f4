"""A kind of jobs, declared once: its payload is what its handler takes, its result what that returns."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from . import _guard, _plain
from .errors import PayloadError
from .handler import Handler

R = TypeVar("R")
if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from typing_extensions import Concatenate, ParamSpec, Unpack

    from ._adds import AddOptions
    from .job import BaseJob
    from .times import Duration

    P = ParamSpec("P")
else:
    P = TypeVar("P")


class BaseKind(Handler[Callable[..., Any]], Generic[P, R]):
    """What ``queue.kind`` makes of a function: its handler, and what adds its jobs.

    It can still be called as that function.
    """

    def __init__(self, queue: Any, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
        self.queue = queue
        self.defaults = dict(given.get("defaults") or {})
        options = {name: value for name, value in given.items() if name not in ("name", "defaults")}
        name = given.get("name") or getattr(function, "__name__", None)
        super().__init__(self._taking(function), kind=name, **options)
        functools.update_wrapper(self, function)
        self._own = function
        self._signature = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._own(*args, **kwargs)

    def _taking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if _guard.is_coroutine_function(function):

            async def acall(job: BaseJob) -> Any:
                return await function(job, **self._arguments(job))

            return acall
        return lambda job: function(job, **self._arguments(job))

    def _arguments(self, job: BaseJob) -> dict[str, Any]:
        """What the payload holds of what the function takes. What else it holds is another version's."""
        job_name, *names = self._signature.parameters
        try:
            if not isinstance(job.data, dict):
                raise ValueError(f"it is no object, but {job.data!r:.100}")
            found = _plain.fields(self._own, set(names), job.data)
            self._signature.bind(**{job_name: job}, **found)
        except (ValueError, TypeError) as error:
            raise PayloadError(f"payload of kind {self.kind!r}: {error}") from None
        return found

    def _data(self, args: Any, kwargs: Any) -> dict[str, Any]:
        bound = self._signature.bind(None, *args, **kwargs).arguments
        return dict([*bound.items()][1:])

    def _of(self, args: Any, kwargs: Any, options: Any) -> dict[str, Any]:
        return {**self.defaults, **options, "data": self._data(args, kwargs), "kind": self.kind}

    def of(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """A job for ``add_many``, ``chain`` and ``join``."""
        return self._of(args, kwargs, {})

    def _read(self, value: Any) -> Any:
        hint = typing.get_type_hints(self._own).get("return", Any)
        return value if value is None else _plain.read(hint, value, f"result of kind {self.kind!r}")


class Kind(BaseKind[P, R]):
    if TYPE_CHECKING:

        def __call__(self, job: Any, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def add(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Adds a job, with what the handler takes beside it. Returns its id."""
        return self.queue.add(**self._of(args, kwargs, {}))  # type: ignore[no-any-return]

    def options(self, **options: Unpack[AddOptions]) -> Options[P, R]:
        """For jobs with options: ``send.options(delay=60).add(order=17)``."""
        return Options(self, options)

    def wait(self, id: str, timeout: Optional[Duration] = None) -> R:
        """Waits for the end of such a job, and returns its result."""
        return self._read(self.queue.wait(id, timeout))  # type: ignore[no-any-return]


class Options(Generic[P, R]):
    """A kind, with options for its jobs."""

    def __init__(self, kind: BaseKind[P, R], options: Any) -> None:
        self._kind, self._options = kind, options

    def of(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """A job for ``add_many``, ``chain`` and ``join``."""
        return self._kind._of(args, kwargs, self._options)

    def add(self, *args: P.args, **kwargs: P.kwargs) -> Optional[str]:
        """Adds a job. Returns its id, or None if it was refused."""
        return self._kind.queue.add(**self.of(*args, **kwargs))  # type: ignore[no-any-return]


class AsyncKind(BaseKind[P, R]):
    """``Kind`` of a queue of dq.asyncio."""

    if TYPE_CHECKING:

        def __call__(self, job: Any, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]: ...

    async def add(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Adds a job, with what the handler takes beside it. Returns its id."""
        return await self.queue.add(**self._of(args, kwargs, {}))  # type: ignore[no-any-return]

    def options(self, **options: Unpack[AddOptions]) -> AsyncOptions[P, R]:
        """For jobs with options: ``await send.options(delay=60).add(order=17)``."""
        return AsyncOptions(self, options)

    async def wait(self, id: str, timeout: Optional[Duration] = None) -> R:
        """Waits for the end of such a job, and returns its result."""
        return self._read(await self.queue.wait(id, timeout))  # type: ignore[no-any-return]


class AsyncOptions(Options[P, R]):
    async def add(self, *args: P.args, **kwargs: P.kwargs) -> Optional[str]:  # type: ignore[override]
        """Adds a job. Returns its id, or None if it was refused."""
        return await self._kind.queue.add(**self.of(*args, **kwargs))  # type: ignore[no-any-return]


if TYPE_CHECKING:
    Sync = Callable[Concatenate[Any, P], R]
    Async = Callable[Concatenate[Any, P], Awaitable[R]]
