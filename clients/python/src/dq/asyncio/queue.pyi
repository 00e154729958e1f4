"""Written by tools/stubs.py."""

import os
import random
import time
from binascii import hexlify
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar
from .. import _arguments as words
from .. import _guard
from .._arguments import Bytes, IfExists, OnDead
from .._delivery import Command
from .._job_options import ABOUT, job_options
from .._many import MOST_AFTER, Added, Grouped, sent_once
from .._options import near_misses, unknown
from ..codec import Codec, Envelope, label_of
from ..hooks import Hooks
from ..times import Duration, seconds, to_ms
from typing_extensions import Unpack
from .._job_options import JobOptions
from typing import Any, Optional
from .._adds import Adds
from .._arguments import Bytes
from .._core import WAIT_S
from .._delivery import as_map
from .._options import near_misses
from .._waits import End
from ..codec import Codec, id_from
from ..errors import TimedOut
from ..times import Duration, seconds
import logging
import re
import zlib
from .._adds import _labelled
from .._outcomes import Outcomes
from .._rule import RuleChanges
from ..codec import Envelope, id_from
from ..times import between, to_ms
from collections.abc import Iterable, Sequence
from datetime import datetime
from .._arguments import Bytes, State
from .._delivery import Command, as_map
from .._explanation import Explanation, reasons
from .._job_info import JobInfo
from .._many import Grouped
from .._rules import Rules
from ..codec import Codec, JsonCodec, id_from, id_to
from ..records import Group, Peeked, Stats, add_up
from ..times import from_ms, instant_to_ms
from .._arguments import Filters
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Callable, Literal, Optional, TypeVar, Union
from .._arguments import Bytes, Ladder, Mode, Rate, State
from .._job_options import job_options
from .._queries import Queries
from ..records import Reserved
from collections.abc import Sequence
from dataclasses import dataclass
from ..codec import id_from
from ..records import paused_until
from ..times import Duration, between, to_ms
import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union
from redis.exceptions import ConnectionError, RedisError, ResponseError
from .._adds import KEEP_S
from .._client import free_after, is_crowded, speaks_less
from .._commands import Commands
from .._group import GroupStats
from .._many import LOST, Grouped
from .._outcomes import Deadline
from .._trouble import refused
from ..errors import Refused, UnknownJob
from ..kind import AsyncKind
from ..times import Duration
from ._awaiting import Awaiting
from ._client import Client, of_url, unrepeated
from .._adds import AddOptions
from ..handler import HandlerOptions
from ..kind import Async, P, R

class QueueGroup:
    name: str
    async def set(self, *, weight: Optional[int]=None, max: Optional[int]=None, rate: Optional[words.Rate]=None, maxlen: Optional[int]=None) -> bool:
        ...
    async def clear(self) -> bool:
        ...
    async def pause(self, duration: Optional[Duration]=None) -> bool:
        ...
    async def resume(self) -> bool:
        ...
    async def stats(self) -> Optional[GroupStats]:
        ...

class Queue:
    client: Client
    name: str
    shards: int
    codec: Codec
    hooks: Sequence[Hooks]
    keys: list[bytes]
    def __init__(self, client: Union[str, Client], name: str, *, shards: int=0, codec: Optional[Codec]=None, hooks: Sequence[Hooks]=()) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def kind(self, name: Optional[str]=None, *, defaults: Optional[AddOptions]=None, **options: Unpack[HandlerOptions]) -> Callable[[Async[P, R]], AsyncKind[P, R]]:
        ...
    def group(self, name: Bytes) -> QueueGroup:
        ...
    async def wait(self, id: Bytes, timeout: Optional[Duration]=None) -> Any:
        ...
    async def add_and_wait(self, data: Any, *, timeout: Optional[Duration]=None, **options: Unpack[AddOptions]) -> Any:
        ...
    def ids(self, *, count: int=1000, **filters: Unpack[Filters]) -> AsyncIterator[str]:
        ...
    async def unblock(self, *client_ids: int) -> int:
        ...
    async def close(self) -> None:
        ...
    async def __aenter__(self) -> Queue:
        ...
    async def __aexit__(self, *_: object) -> None:
        ...
    async def add(self, data: Any, *, id: Optional[Bytes]=None, delay: Optional[Duration]=None, at: Optional[datetime]=None, if_exists: Optional[IfExists]=None, after: Optional[Sequence[Bytes]]=None, after_group: Optional[str]=None, on_dead: Optional[OnDead]=None, kind: Optional[str]=None, headers: Optional[Mapping[str, str]]=None, **options: Unpack[JobOptions]) -> Optional[str]:
        ...
    async def add_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        ...
    async def chain(self, jobs: Iterable[Mapping[str, Any]]) -> list[Optional[str]]:
        ...
    async def join(self, jobs: Iterable[Mapping[str, Any]], *, then: Mapping[str, Any]) -> Optional[str]:
        ...
    async def every(self, interval: Duration, data: Any=None, *, id: Bytes, first: Optional[datetime]=None, until: Optional[datetime]=None, times: Optional[int]=None, grace: Optional[Duration]=None, jitter: Optional[Duration]=None, kind: Optional[str]=None, headers: Optional[Mapping[str, str]]=None, **options: Unpack[JobOptions]) -> Optional[str]:
        ...
    async def cron(self, expression: str, data: Any=None, *, id: Bytes, tz: Optional[str]=None, until: Optional[datetime]=None, times: Optional[int]=None, grace: Optional[Duration]=None, jitter: Optional[Duration]=None, kind: Optional[str]=None, headers: Optional[Mapping[str, str]]=None, **options: Unpack[JobOptions]) -> Optional[str]:
        ...
    async def result(self, id: Bytes) -> Any:
        ...
    async def cancel(self, id: Bytes) -> bool:
        ...
    async def signal(self, id: Bytes, name: str, value: Any=None) -> Optional[bool]:
        ...
    async def rules(self, program: Bytes, rules: Mapping[str, Mapping[str, Any]], *, prune: bool=False, allow_empty: bool=False, dry_run: bool=False) -> RuleChanges:
        ...
    async def get(self, id: Bytes, *, prefix: Optional[int]=None) -> Optional[JobInfo]:
        ...
    async def peek(self, state: State, *, count: int=1, since: Optional[datetime]=None, until: Optional[datetime]=None, prefix: Optional[int]=None) -> list[Peeked]:
        ...
    async def scan(self, cursor: str='0', *, shard: int=0, count: Optional[int]=None, **filters: Unpack[Filters]) -> tuple[str, list[str]]:
        ...
    async def forecast(self, since: datetime, until: datetime, buckets: int) -> list[int]:
        ...
    async def len(self, state: Optional[State]=None, *, group: Optional[str]=None) -> int:
        ...
    async def stats(self) -> Optional[Stats]:
        ...
    async def explain(self, id: Optional[Bytes]=None) -> Optional[list[Explanation]]:
        ...
    async def next(self, id: Bytes, count: int=1) -> Optional[list[datetime]]:
        ...
    async def groups(self, cursor: str='0', *, shard: int=0, match: Optional[str]=None, count: Optional[int]=None, has_settings: bool=False) -> tuple[str, list[Group]]:
        ...
    async def delete(self, *ids: Bytes, unreserved: bool=False) -> int:
        ...
    async def pop(self, count: int=1, *, id: Optional[Bytes]=None, ttr: Optional[Duration]=None, noack: bool=False) -> list[Reserved]:
        ...
    async def bpop(self, timeout: Duration, count: int=1, *, ttr: Optional[Duration]=None, noack: bool=False) -> list[Reserved]:
        ...
    async def ack(self, id: Bytes, token: str, result: Any=None) -> bool:
        ...
    async def ack_many(self, tokens: Mapping[str, str], results: Mapping[str, Any]=MappingProxyType({})) -> int:
        ...
    async def nack(self, id: Bytes, token: Optional[str]=None, *, delay: Optional[Duration]=None, priority: Optional[int]=None, mode: Mode='fail', reason: Optional[str]=None) -> Optional[str]:
        ...
    async def nack_many(self, tokens: Mapping[str, str], *, delay: Optional[Duration]=None, priority: Optional[int]=None, mode: Mode='fail', reason: Optional[str]=None) -> dict[str, Optional[str]]:
        ...
    async def touch(self, id: Bytes, token: Optional[str]=None, *, ttr: Optional[Duration]=None, cost: Optional[int]=None) -> Optional[datetime]:
        ...
    async def touch_many(self, tokens: Mapping[str, str], *, ttr: Optional[Duration]=None) -> dict[str, Optional[datetime]]:
        ...
    async def reschedule(self, *ids: Bytes, delay: Optional[Duration]=None, at: Optional[datetime]=None, priority: Optional[int]=None) -> int:
        ...
    async def kick(self, *ids: Bytes) -> int:
        ...
    async def kick_oldest(self, count: int) -> int:
        ...
    async def configure(self, *, ttr: Optional[Duration]=None, attempts: Optional[int]=None, backoff: Union[Ladder, str, None]=None, maxlen: Optional[int]=None, maxbytes: Optional[int]=None, deadlen: Optional[int]=None, dedupe: Optional[Duration]=None, maxreserved: Optional[int]=None, rate: Optional[Rate]=None, groupmax: Optional[int]=None, grouprate: Optional[Rate]=None, groupfifo: Optional[bool]=None, donelen: Optional[int]=None, donettl: Optional[Duration]=None, donebytes: Optional[int]=None, history: Optional[int]=None) -> None:
        ...
    async def settings(self) -> Optional[dict[str, Any]]:
        ...
    async def pause(self, duration: Optional[Duration]=None) -> None:
        ...
    async def resume(self) -> None:
        ...
    async def purge(self, state: Union[State, Literal['all']]) -> int:
        ...
