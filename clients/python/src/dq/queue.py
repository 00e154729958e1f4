"""The queue for programs without asyncio."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from . import _arguments as words
from ._arguments import Bytes
from ._awaiting import Awaiting
from ._client import Client
from ._commands import Commands
from ._core import ANSWER_S
from ._delivery import Command
from ._many import Grouped
from ._options import near_misses
from ._outcomes import until
from ._trouble import refused
from ._waits import KEEP_S
from .codec import Codec
from .hooks import Hooks
from .times import Duration

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._adds import AddOptions

T = TypeVar("T")


@near_misses("Queue")
class Queue(Commands):
    """A queue, by its server's URL or a client of redis-py (Redis, RedisCluster, a Sentinel's master_for).

    shards: spreads the queue over this many keys, ``name:{0}`` to ``name:{n-1}``, by the CRC-32 of the id.
    codec: encodes data as bytes; JSON by default.
    hooks: called when jobs are added.
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
            redis.Redis.from_url(client, socket_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0))
            if isinstance(client, str)
            else client
        )
        self._awaiting: dict[bytes, Awaiting] = {}

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        commands = grouped.commands(calls) if grouped else calls
        try:
            if len(commands) == 1:
                replies = [self.client.execute_command(*commands[0], NEVER_DECODE=True)]
            else:
                replies = self._pipelined(commands, grouped is not None and grouped.is_atomic)
        except ResponseError as error:
            raise refused(error) from None
        return combine(grouped.replies(replies) if grouped else replies)

    def _pipelined(self, commands: Sequence[Command], is_atomic: bool) -> list[Any]:
        pipeline = self.client.pipeline(transaction=is_atomic)
        for command in commands:
            pipeline.execute_command(*command, NEVER_DECODE=True)
        replies: list[Any] = pipeline.execute(raise_on_error=False)
        for error in replies:  # with the server's words: redis-py would put the command before them
            if isinstance(error, Exception):
                raise error
        return [*map(words.undecoded, replies)] if is_atomic else replies

    def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end of a job, and returns its result.

        Raises TimedOut, or JobFailed if the job is dead, deleted or expired, or if the queue no longer knows it (give
        it ``keep``). All waits of a queue share one connection (one for each shard that is waited for).
        """
        end_by = until(timeout)
        raw, key = words.bytes_of(id), self._key(id)
        awaiting = self._awaiting.get(key) or self._awaiting.setdefault(key, Awaiting(self.client, key))
        return awaiting.wait(raw, end_by).result(self.codec)

    def add_and_wait(
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
        id = self.add(data, keep=keep, **options)
        if id is None:
            raise ValueError(f"the job {options.get('id')!r} is there already: wait for it with Queue.wait")
        return self.wait(id, None if end_by is None else max(0.0, end_by - time.monotonic()))

    def ids(self, *, state: Optional[str] = None, match: Optional[str] = None, count: int = 1000) -> Iterator[str]:
        """Iterates over all ids, step by step, as ``scan_iter`` does."""
        for shard in range(len(self.keys)):
            cursor = "0"
            while True:
                cursor, ids = self.scan(cursor, shard=shard, state=state, match=match, count=count)
                yield from ids
                if cursor == "0":
                    break

    def close(self) -> None:
        """Closes the client's connections."""
        for each in self._awaiting.values():
            each.close()
        self.client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
