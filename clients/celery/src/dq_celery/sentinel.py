"""Sentinels, as in ``dq+sentinel://host:26379;dq+sentinel://host2:26379/0?master_name=mymaster``."""

from __future__ import annotations

from typing import Any

import redis
from kombu.transport.redis import SentinelManagedSSLConnection
from kombu.utils.url import url_to_parts
from redis import sentinel
from redis.backoff import NoBackoff
from redis.retry import Retry

DEFAULT_PORT = 26379


def is_sentinel(hostname: str, transport: str) -> bool:
    """kombu splits the first URL at its plus; after a failover it takes another URL whole."""
    return hostname.startswith("sentinel://") or str(transport).endswith("+sentinel")


class SentinelConnections:
    """A mixin of the channel: its connections go to the master that the sentinels name."""

    connection_class = sentinel.SentinelManagedConnection
    connection_class_ssl = SentinelManagedSSLConnection
    master_name: str = ""
    min_other_sentinels = 0
    sentinel_kwargs: dict[str, Any] = {}

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        params = super()._connparams(asynchronous)
        path = next((url.path for url in self._urls() if url.path), None)
        if path:
            params["db"] = self._prepare_virtual_host(path)
        for unknown in ("host", "port", "master_name"):
            params.pop(unknown, None)
        return params

    def _urls(self) -> list[Any]:
        client = self.connection.client
        urls = [url for url in client.alt if "://" in url] or [client.hostname]
        return [url_to_parts(url.split("+", 1)[-1]) for url in urls if url]

    def _get_pool(self, asynchronous: bool = False) -> Any:
        params, urls = self._connparams(asynchronous), self._urls()
        name = self.master_name or next((url.query["master_name"] for url in urls if "master_name" in url.query), None)
        if not name:
            raise ValueError(
                "which master? Add ?master_name=... to the dq+sentinel:// URL, or set the transport option"
            )
        self.keyprefix_fanout = self.keyprefix_fanout.format(db=params["db"])
        hosts = [(url.hostname or "localhost", url.port or DEFAULT_PORT) for url in urls]
        # If one sentinel does not answer, the next is asked.
        once = {"socket_timeout": self.connection.sentinel_timeout_s, "retry": Retry(NoBackoff(), 0)}
        asking = {**once, **self.sentinel_kwargs}
        asked = sentinel.Sentinel(hosts, self.min_other_sentinels, sentinel_kwargs=asking, **params)
        return asked.master_for(name, redis.Redis).connection_pool
