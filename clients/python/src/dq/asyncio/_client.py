"""The clients of redis.asyncio that a queue may have."""

from __future__ import annotations

from typing import Any, Union

import redis.asyncio as redis
from redis.asyncio.retry import Retry

from .. import _client

Client = Union[redis.Redis, redis.RedisCluster]


def of_url(url: str, **options: int) -> redis.Redis:
    return _client.of_url(url, redis, Retry, **options)  # type: ignore[no-any-return]


def unrepeated(pipeline: Any) -> None:
    """See ``dq._client.unrepeated``."""
    owner = _client.sender(pipeline)
    send = owner._execute_transaction

    async def once(*args: Any) -> Any:
        with _client.unanswered():
            return await send(*args)

    owner._execute_transaction = once
