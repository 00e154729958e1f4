"""The clients of redis.asyncio that a queue may have."""

from __future__ import annotations

from typing import Union

import redis.asyncio as redis

Client = Union[redis.Redis, redis.RedisCluster]
