"""The queue for programs with asyncio. Its methods are those of ``dq.Queue``, awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from redis.exceptions import ConnectionError, RedisError, ResponseError

from .. import _arguments as words
from .. import _guard
from .._adds import KEEP_S
from .._arguments import Bytes
from .._client import free_after, is_crowded, speaks_less
from .._commands import Commands
from .._delivery import Command
from .._group import QueueGroup
from .._many import LOST, Grouped
from .._options import near_misses
from .._outcomes import Deadline
from .._trouble import refused
from ..codec import Codec, id_from
from ..errors import Refused, UnknownJob
from ..hooks import Hooks
from ..kind import AsyncKind
from ..times import Duration
from ._awaiting import Awaiting
from ._client import Client, of_url, unrepeated

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._adds import AddOptions
    from .._arguments import Filters
    from ..handler import HandlerOptions
    from ..kind import Async, P, R


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
        self._url = client if isinstance(client, str) else None
        self.client: Client = of_url(client) if isinstance(client, str) else client
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
        if grouped:
            grouped.calls = calls
        commands = grouped.commands(calls) if grouped else calls
        is_atomic = grouped is not None and grouped.is_atomic
        looks = 0
        while True:
            client = self.client
            try:
                if len(commands) == 1:
                    replies = [await client.execute_command(*commands[0], NEVER_DECODE=True)]
                else:
                    replies = await self._pipelined(commands, is_atomic, grouped)
            except ResponseError as error:
                if not speaks_less(self, error, client, of_url):
                    raise await self._refused(error, commands, commands[0]) from None
            except ConnectionError as error:
                if speaks_less(self, error, client, of_url):
                    continue
                if not is_crowded(error):
                    raise
                await asyncio.sleep(free_after(looks))
                looks += 1
            else:
                for command, reply in zip(commands, replies):
                    if isinstance(reply, ResponseError):
                        refusal = await self._refused(reply, commands, command)
                        raise grouped.partly(refusal, replies) if grouped else refusal
                    if isinstance(reply, Exception):  # a cluster's node was lost: its errors are values, too
                        raise reply
                return combine(grouped.replies(replies) if grouped else replies)

    async def _permitted(self, calls: Sequence[Command], what: str) -> bool:
        """Sends what an optional right is needed for. False if that is missing."""
        try:
            await self._run(calls, list)
        except Refused as error:
            if error.code != "NOPERM":
                raise
            return self._off(what, str(error))
        return True

    async def _phases(self, steps: Any) -> Any:
        replies: Any = None
        lost: Optional[Exception] = None
        while True:
            try:
                asked = steps.send(replies) if lost is None else steps.throw(lost)
            except StopIteration as stop:
                return stop.value
            replies, lost = [], None
            try:
                if isinstance(asked, float):
                    await asyncio.sleep(asked)
                elif isinstance(asked, Grouped):
                    replies = await self._run(asked.calls, list, asked)
                elif asked:
                    replies = await self._run(asked, list)
            except (*LOST, Refused) as error:
                if isinstance(asked, Grouped) and isinstance(error, Refused):
                    raise
                lost = error

    async def _refused(self, error: ResponseError, commands: Sequence[Command], command: Command) -> Exception:
        """The exception for what the server says to the command; if AFTER names what is not there, with those ids."""
        named = words.after_unknown(error, commands)
        found: list[Any] = []
        with contextlib.suppress(RedisError):
            found = await self._pipelined([("DQ.GET", key, id, "PREFIX", 0) for key, id in named], False)
        missing = [id_from(id) for (_, id), job in zip(named, found) if job is None]
        return UnknownJob(missing) if missing else refused(error, command)

    async def _pipelined(
        self, commands: Sequence[Command], is_atomic: bool, grouped: Optional[Grouped] = None
    ) -> list[Any]:
        if is_atomic:  # a cluster's client would connect in an event loop of its own
            await self.client.initialize()
        pipeline = self.client.pipeline(transaction=is_atomic)
        if grouped and grouped.is_once:
            unrepeated(pipeline)
        for command in commands:
            pipeline.execute_command(*command, NEVER_DECODE=True)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)  # whose words redis-py would change
        return [*map(words.undecoded, replies)] if is_atomic else replies

    def kind(
        self,
        name: Optional[str] = None,
        *,
        defaults: Optional[AddOptions] = None,
        **options: Unpack[HandlerOptions],
    ) -> Callable[[Async[P, R]], AsyncKind[P, R]]:
        """Decorates the handler of a kind of jobs, a coroutine function. See ``dq.Queue.kind``."""
        given = {"name": name, "defaults": defaults, **options}
        return lambda function: AsyncKind(self, function, given)

    def group(self, name: Bytes) -> QueueGroup:
        """One group of this queue, such as a tenant: ``queue.group("acme").set(weight=3, max=5, rate=(100, 60))``."""
        return QueueGroup(self, name)

    async def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end of a job, and returns its result.

        Raises TimedOut, or JobFailed if the job is dead, deleted or expired, or if the queue no longer knows it (give
        it ``keep``). All waits of a queue share one connection (one for each shard that is waited for).
        """
        return await self._waited(id, Deadline(timeout))

    async def _waited(self, id: Bytes, deadline: Deadline) -> Any:
        raw, key = words.bytes_of(id), self._key(id)
        awaiting = self._awaiting.get(key) or self._awaiting.setdefault(key, Awaiting(self.client, key))
        return (await awaiting.wait(raw, deadline)).result(self.codec)

    async def add_and_wait(
        self,
        data: Any,
        *,
        timeout: Optional[Duration] = None,
        **options: Unpack[AddOptions],
    ) -> Any:
        """``add``, and then ``wait``: a request and its reply. The result is kept for 60 s by default.

        Raises ValueError if there is a job with that id already.
        """
        deadline = Deadline(timeout)
        options.setdefault("keep", KEEP_S)
        id = await self.add(data, **options)
        if id is None:
            raise ValueError(f"the job {options.get('id')!r} is there already: wait for it with Queue.wait")
        return await self._waited(id, deadline)

    async def ids(self, *, count: int = 1000, **filters: Unpack[Filters]) -> AsyncIterator[str]:
        """Iterates over all ids, step by step, as ``scan_iter`` does. The filters are those of ``scan``."""
        for shard in range(len(self.keys)):
            cursor = "0"
            while True:
                cursor, ids = await self.scan(cursor, shard=shard, count=count, **filters)
                for id in ids:
                    yield id
                if cursor == "0":
                    break

    async def unblock(self, *client_ids: int) -> int:
        """Ends waits (BPOP, AWAIT, BTOUCH) of connections of this user, by their CLIENT IDs. Returns how many.

        Safe at any moment, unlike CLIENT UNBLOCK. In a cluster it goes to the node of the queue's first key.
        """
        client: Any = self.client
        where = {"target_nodes": client.get_node_from_key(self.keys[0])} if hasattr(client, "get_node_from_key") else {}
        return await client.execute_command("DQ.UNBLOCK", *client_ids, **where)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Closes the client's connections."""
        for each in self._awaiting.values():
            await each.close()
        await self.client.aclose()

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
