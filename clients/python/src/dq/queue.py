"""The queue for programs without asyncio."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from redis.exceptions import ConnectionError, RedisError, ResponseError

from . import _arguments as words
from ._adds import KEEP_S
from ._arguments import Bytes
from ._awaiting import Awaiting
from ._client import Client, free_after, is_crowded, of_url, speaks_less, unrepeated
from ._commands import Commands
from ._delivery import Command
from ._group import QueueGroup
from ._many import LOST, Grouped
from ._options import near_misses
from ._outcomes import Deadline
from ._trouble import refused
from .codec import Codec, id_from
from .errors import Refused, UnknownJob
from .hooks import Hooks
from .kind import Kind
from .times import Duration

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._adds import AddOptions
    from ._arguments import Filters
    from .handler import HandlerOptions
    from .kind import P, R, Sync

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
        self._url = client if isinstance(client, str) else None
        self.client: Client = of_url(client) if isinstance(client, str) else client
        self._awaiting: dict[bytes, Awaiting] = {}

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    def _run(self, calls: Sequence[Command], combine: Callable[[list[Any]], T], grouped: Optional[Grouped] = None) -> T:
        commands = grouped.commands(calls) if grouped else calls
        is_atomic = grouped is not None and grouped.is_atomic
        looks = 0
        while True:
            client = self.client
            try:
                if len(commands) == 1:
                    replies = [client.execute_command(*commands[0], NEVER_DECODE=True)]
                else:
                    replies = self._pipelined(commands, is_atomic, grouped)
            except ResponseError as error:
                if not speaks_less(self, error, client, of_url):
                    raise self._refused(error, commands, commands[0]) from None
            except ConnectionError as error:
                if speaks_less(self, error, client, of_url):
                    continue
                if not is_crowded(error):
                    raise
                time.sleep(free_after(looks))
                looks += 1
            else:
                for command, reply in zip(commands, replies):
                    if isinstance(reply, ResponseError):
                        refusal = self._refused(reply, commands, command)
                        raise grouped.partly(refusal, replies) if grouped else refusal
                    if isinstance(reply, Exception):  # a cluster's node was lost: its errors are values, too
                        raise reply
                return combine(grouped.replies(replies) if grouped else replies)

    def _permitted(self, calls: Sequence[Command], what: str) -> bool:
        """Sends what an optional right is needed for. False if that is missing."""
        try:
            self._run(calls, list)
        except Refused as error:
            if error.code != "NOPERM":
                raise
            return self._off(what, str(error))
        return True

    def _phases(self, steps: Any) -> Any:
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
                    time.sleep(asked)
                elif isinstance(asked, Grouped):
                    replies = self._run(asked.calls, list, asked)
                elif asked:
                    replies = self._run(asked, list)
            except (*LOST, Refused) as error:
                if isinstance(asked, Grouped) and isinstance(error, Refused):
                    raise
                lost = error

    def _refused(self, error: ResponseError, commands: Sequence[Command], command: Command) -> Exception:
        """The exception for what the server says to the command; if AFTER names what is not there, with those ids."""
        named = words.after_unknown(error, commands)
        found: list[Any] = []
        with contextlib.suppress(RedisError):
            found = self._pipelined([("DQ.GET", key, id, "PREFIX", 0) for key, id in named], False)
        missing = [id_from(id) for (_, id), job in zip(named, found) if job is None]
        return UnknownJob(missing) if missing else refused(error, command)

    def _pipelined(self, commands: Sequence[Command], is_atomic: bool, grouped: Optional[Grouped] = None) -> list[Any]:
        pipeline = self.client.pipeline(transaction=is_atomic)
        if grouped and grouped.is_once:
            unrepeated(pipeline)
        for command in commands:
            pipeline.execute_command(*command, NEVER_DECODE=True)
        replies: list[Any] = pipeline.execute(raise_on_error=False)  # whose words redis-py would change
        return [*map(words.undecoded, replies)] if is_atomic else replies

    def kind(
        self,
        name: Optional[str] = None,
        *,
        defaults: Optional[AddOptions] = None,
        **options: Unpack[HandlerOptions],
    ) -> Callable[[Sync[P, R]], Kind[P, R]]:
        """Decorates the handler of a kind of jobs: their payload is what it takes beside the job.

        ::

            @queue.kind(attempts=5)
            def send_receipt(job, order: int, at: datetime) -> Receipt: ...

            send_receipt.options(delay=60).add(order=17, at=now)
            dq.Worker(queue, send_receipt).run()

        Values are read as annotated: dataclasses, models of pydantic, datetime, UUID, Decimal, Enum, lists and
        dicts of them.

        name: by default the function's. defaults: options that its jobs have unless they say otherwise. The other
        options are those of ``dq.handler``.
        """
        given = {"name": name, "defaults": defaults, **options}
        return lambda function: Kind(self, function, given)

    def group(self, name: Bytes) -> QueueGroup:
        """One group of this queue, such as a tenant: ``queue.group("acme").set(weight=3, max=5, rate=(100, 60))``."""
        return QueueGroup(self, name)

    def wait(self, id: Bytes, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end of a job, and returns its result.

        Raises TimedOut, or JobFailed if the job is dead, deleted or expired, or if the queue no longer knows it (give
        it ``keep``). All waits of a queue share one connection (one for each shard that is waited for).
        """
        return self._waited(id, Deadline(timeout))

    def _waited(self, id: Bytes, deadline: Deadline) -> Any:
        raw, key = words.bytes_of(id), self._key(id)
        awaiting = self._awaiting.get(key) or self._awaiting.setdefault(key, Awaiting(self.client, key))
        return awaiting.wait(raw, deadline).result(self.codec)

    def add_and_wait(
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
        id = self.add(data, **options)
        if id is None:
            raise ValueError(f"the job {options.get('id')!r} is there already: wait for it with Queue.wait")
        return self._waited(id, deadline)

    def ids(self, *, count: int = 1000, **filters: Unpack[Filters]) -> Iterator[str]:
        """Iterates over all ids, step by step, as ``scan_iter`` does. The filters are those of ``scan``."""
        for shard in range(len(self.keys)):
            cursor = "0"
            while True:
                cursor, ids = self.scan(cursor, shard=shard, count=count, **filters)
                yield from ids
                if cursor == "0":
                    break

    def unblock(self, *client_ids: int) -> int:
        """Ends waits (BPOP, AWAIT, BTOUCH) of connections of this user, by their CLIENT IDs. Returns how many.

        Safe at any moment, unlike CLIENT UNBLOCK. In a cluster it goes to the node of the queue's first key.
        """
        client: Any = self.client
        where = {"target_nodes": client.get_node_from_key(self.keys[0])} if hasattr(client, "get_node_from_key") else {}
        return client.execute_command("DQ.UNBLOCK", *client_ids, **where)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes the client's connections."""
        for each in self._awaiting.values():
            each.close()
        self.client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
