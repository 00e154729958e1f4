"""The clients of redis.asyncio that a queue may have."""

from __future__ import annotations

from typing import Union

import redis.asyncio as redis
from redis.asyncio.retry import Retry

from .. import _client

Client = Union[redis.Redis, redis.RedisCluster]


def of_url(url: str, **options: int) -> redis.Redis:
    return _client.of_url(url, redis, Retry, **options)  # type: ignore[no-any-return]
