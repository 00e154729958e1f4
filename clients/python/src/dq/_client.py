"""The clients of redis-py that a queue may have."""

from __future__ import annotations

from typing import Union

import redis

Client = Union[redis.Redis, redis.RedisCluster]
