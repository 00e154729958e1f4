"""The clients of redis-py that a queue may have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable, Union

import redis
from redis.backoff import NoBackoff
from redis.credentials import UsernamePasswordCredentialProvider
from redis.exceptions import ConnectionError, RedisError
from redis.retry import Retry

from ._core import ANSWER_S, need
from ._many import LOST, Unanswered
from ._trouble import lacks_resp3

Client = Union[redis.Redis, redis.RedisCluster]


def free_after(looks: int) -> float:
    """How soon to look for a connection that is free, in seconds, if a client's pool had no more at so many looks.

    Ever later: hundreds that look would hold up those that have one.
    """
    return 0.005 * float(2 ** min(looks, 4))


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


def speaks_less(queue: Any, error: RedisError, client: Any, made: Callable[..., Any]) -> bool:
    """Whether a client of the queue's own, which speaks RESP2 only, takes the place of one that the server refused."""
    if queue._url is None or not lacks_resp3(error):
        return False
    if client.connection_pool.connection_kwargs.get("protocol") == 2:
        return False
    if queue.client is client:
        queue.client = made(queue._url, protocol=2)
    return True


@contextlib.contextmanager
def unanswered() -> Iterator[None]:
    """Errors after which redis-py sends again become one after which it does not."""
    try:
        yield
    except LOST as error:
        raise Unanswered from error


def sender(pipeline: Any) -> Any:
    """What sends the pipeline's transaction, once or, after an error of the connection, again."""
    found = getattr(pipeline, "_execution_strategy", pipeline)
    need(found, "_execute_transaction")
    return found


def unrepeated(pipeline: Any) -> None:
    """Has redis-py not send the transaction again itself: jobs that ran meanwhile would be added once more."""
    owner = sender(pipeline)
    send = owner._execute_transaction

    def once(*args: Any) -> Any:
        with unanswered():
            return send(*args)

    owner._execute_transaction = once
