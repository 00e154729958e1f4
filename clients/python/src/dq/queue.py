"""The queue of programs without asyncio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from ._commands import Commands
from ._core import ANSWER_S, Command
from ._options import near_misses
from ._trouble import refused
from .hooks import Hooks
from .job import Codec

T = TypeVar("T")
Client = Union[redis.Redis, redis.RedisCluster]


@near_misses("Queue")
class Queue(Commands):
    """A queue, by the URL of its server or a client of redis-py (Redis, RedisCluster, a Sentinel's master_for).

    shards: the queue is spread over so many keys, ``name:{0}`` to ``name:{n-1}``, by the CRC-32 of the id.
    codec: what makes bytes of data; JSON by default.
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
        # Nothing is sent twice by itself: a job without an id of its own would be there twice.
        self.client: Client = (
            redis.Redis.from_url(client, socket_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0))
            if isinstance(client, str)
            else client
        )

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T]) -> T:
        try:
            if len(calls) == 1:
                return combine([self.client.execute_command(*calls[0], NEVER_DECODE=True)])
            pipeline = self.client.pipeline(transaction=False)
            for call in calls:
                pipeline.execute_command(*call, NEVER_DECODE=True)
            replies = pipeline.execute(raise_on_error=False)
            for error in replies:  # as the server said it: redis-py would put the command before it
                if isinstance(error, Exception):
                    raise error
            return combine(replies)
        except ResponseError as error:
            raise refused(error) from None

    def ids(self, *, state: Optional[str] = None, match: Optional[str] = None, count: int = 1000) -> Iterator[str]:
        """All ids, step by step, as ``scan_iter`` does it."""
        for shard in range(len(self.keys)):
            cursor = "0"
            while True:
                cursor, ids = self.scan(cursor, shard=shard, state=state, match=match, count=count)
                yield from ids
                if cursor == "0":
                    break

    def close(self) -> None:
        """Closes the client's connections."""
        self.client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
