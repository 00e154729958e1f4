"""The queue of programs with asyncio. Its methods are those of ``dq.Queue``, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Callable, Optional, Union

import redis.asyncio as redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from .. import _guard
from .._commands import Commands
from .._core import ANSWER_S, Command
from .._options import near_misses
from .._trouble import refused
from ..hooks import Hooks
from ..job import Codec

Client = Union[redis.Redis, redis.RedisCluster]


@near_misses("Queue")
class Queue(Commands):
    """A queue, by the URL of its server or a client of redis.asyncio (Redis, RedisCluster, a Sentinel's master_for)."""

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
        # Nothing is sent twice by itself: a job without an id of its own would be there twice.
        self.client: Client = (
            redis.Redis.from_url(client, socket_timeout=ANSWER_S, retry=redis.retry.Retry(NoBackoff(), 0))
            if isinstance(client, str)
            else client
        )

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    def _add(self, *parts: Any) -> Any:
        return self._steps(*parts) if self.hooks else super()._add(*parts)

    async def _ready(self, steps: Any) -> Command:
        """The command, after what its hooks have to await."""
        while not isinstance(steps, tuple):
            try:
                adding = next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            await _guard.joined(adding)
        return steps

    async def _run(self, calls: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
        calls = [await self._ready(call) for call in calls] if self.hooks else calls
        try:
            if len(calls) == 1:
                return combine([await self.client.execute_command(*calls[0], NEVER_DECODE=True)])
            pipeline = self.client.pipeline(transaction=False)
            for call in calls:
                pipeline.execute_command(*call, NEVER_DECODE=True)
            replies = await pipeline.execute(raise_on_error=False)
            for error in replies:  # as the server said it: redis-py would put the command before it
                if isinstance(error, Exception):
                    raise error
            return combine(replies)
        except ResponseError as error:
            raise refused(error) from None

    async def ids(
        self, *, state: Optional[str] = None, match: Optional[str] = None, count: int = 1000
    ) -> AsyncIterator[str]:
        """All ids, step by step, as ``scan_iter`` does it."""
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
        await self.client.aclose()

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
