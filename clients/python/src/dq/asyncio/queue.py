"""The queue for programs with asyncio. Its methods are those of ``dq.Queue``, awaited."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import redis.asyncio as redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from .. import _arguments as words
from .. import _guard
from .._arguments import Bytes
from .._commands import Commands
from .._core import ANSWER_S
from .._delivery import Command
from .._many import Grouped
from .._options import near_misses
from .._outcomes import until
from .._trouble import refused
from .._waits import KEEP_S
from ..codec import Codec
from ..hooks import Hooks
from ..times import Duration
from ._awaiting import Awaiting
from ._client import Client

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._adds import AddOptions


@near_misses("Queue")
class Queue(Commands):
    """A queue, by its server's URL or a client of redis.asyncio (Redis, RedisCluster, a Sentinel's master_for).

    See ``dq.Queue``.
    """

    def __init__(
        self,
        client: Union[str, Client],
        name: str,
        *,
        shards: int = 0,
        codec: Optional[Codec] = None,
        hooks: Sequence[Hooks] = (),
    ) -> None:
        self._init(name, shards, codec, hooks)
        # No retries by redis-py: it would send a DQ.POP again whose reply was lost.
        self.client: Client = (
            redis.Redis.from_url(client, socket_timeout=ANSWER_S, retry=redis.retry.Retry(NoBackoff(), 0))
            if isinstance(client, str)
            else client
        )
        self._awaiting: dict[bytes, Awaiting] = {}

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    def _add(self, *parts: Any) -> Any:
        return self._steps(*parts) if self.hooks else super()._add(*parts)

    async def _ready(self, steps: Any) -> Command:
        """The command, once its hooks were awaited."""
        while not isinstance(steps, tuple):
            try:
                adding = next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            await _guard.joined(adding)
        return steps

    async def _run(
        self, calls: Sequence[Any], combine: Callable[[list[Any]], Any], grouped: Optional[Grouped] = None
    ) -> Any:
        calls = [await self._ready(call) for call in calls] if self.hooks else calls
        commands = grouped.commands(calls) if grouped else calls
        try:
            if len(commands) == 1:
                replies = [await self.client.execute_command(*commands[0], NEVER_DECODE=True)]
            else:
                replies = await self._pipelined(commands, grouped is not None and grouped.is_atomic)
        except ResponseError as error:
            raise refused(error) from None
        return combine(grouped.replies(replies) if grouped else replies)

    async def _pipelined(self, commands: Sequence[Command], is_atomic: bool) -> list[Any]:
        pipeline = self.client.pipeline(transaction=is_atomic)
        for command in commands:
            pipeline.execute_command(*command, NEVER_DECODE=True)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        for error in replies:  # with the server's words: redis-py would put the command before them
            if isinstance(error, Exception):
                raise error
        return [*map(words.undecoded, replies)] if is_atomic else replies

    async def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end of a job, and returns its result.

        Raises TimedOut, or JobFailed if the job is dead, deleted or expired, or if the queue no longer knows it (give
        it ``keep``). All waits of a queue share one connection (one for each shard that is waited for).
        """
        end_by = until(timeout)
        raw, key = words.bytes_of(id), self._key(id)
        awaiting = self._awaiting.get(key) or self._awaiting.setdefault(key, Awaiting(self.client, key))
        return (await awaiting.wait(raw, end_by)).result(self.codec)

    async def add_and_wait(
        self,
        data: Any,
        *,
        timeout: Optional[Duration] = None,
        keep: Duration = KEEP_S,
        **options: Unpack[AddOptions],
    ) -> Any:
        """``add``, and then ``wait``: a request and its reply. The result is kept for 60 s by default.

        Raises ValueError if there is a job with that id already.
        """
        end_by = until(timeout)
        id = await self.add(data, keep=keep, **options)
        if id is None:
            raise ValueError(f"the job {options.get('id')!r} is there already: wait for it with Queue.wait")
        return await self.wait(id, None if end_by is None else max(0.0, end_by - time.monotonic()))

    async def ids(
        self, *, state: Optional[str] = None, match: Optional[str] = None, count: int = 1000
    ) -> AsyncIterator[str]:
        """Iterates over all ids, step by step, as ``scan_iter`` does."""
        for shard in range(len(self.keys)):
            cursor = "0"
            while True:
                cursor, ids = await self.scan(cursor, shard=shard, state=state, match=match, count=count)
                for id in ids:
                    yield id
                if cursor == "0":
                    break

    async def aclose(self) -> None:
        """Closes the client's connections."""
        for each in self._awaiting.values():
            await each.close()
        await self.client.aclose()

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
