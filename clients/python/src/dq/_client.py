"""The clients of redis-py that a queue may have."""

from __future__ import annotations

from typing import Any, Union

import redis
from redis.backoff import NoBackoff
from redis.credentials import UsernamePasswordCredentialProvider
from redis.exceptions import ConnectionError
from redis.retry import Retry

from ._core import ANSWER_S

Client = Union[redis.Redis, redis.RedisCluster]

FREE_S = 0.005
"""How soon to look for a connection that is free, if a client's pool has no more."""


def of_url(url: str, library: Any = redis, retry: Any = Retry, **options: Any) -> Any:
    """A client. Without retries by redis-py: it would send a DQ.POP again whose reply was lost.

    No error and no printed form of it shows the password.
    """
    try:
        made = library.Redis.from_url(url, socket_timeout=ANSWER_S, retry=retry(NoBackoff(), 0), **options)
    except ValueError:
        raise ValueError(
            "the server's URL cannot be read: redis://user:password@host:6379/0 (or rediss://, unix://), "
            "with special characters of the password percent-encoded"
        ) from None
    settings = made.connection_pool.connection_kwargs
    settings.update(options)  # they go before those of the URL
    user, password = settings.pop("username", None), settings.pop("password", None)
    if password is not None:
        settings["credential_provider"] = UsernamePasswordCredentialProvider(user, password)
    return made


def is_crowded(error: Exception) -> bool:
    """All connections of the client's pool are in use. Nothing was sent."""
    return isinstance(error, ConnectionError) and "too many connections" in str(error).lower()
