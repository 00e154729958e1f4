"""Queues and their bindings in kombu's tables: limits of queues, and those that expire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Any, Optional

from kombu.log import get_logger
from kombu.transport import redis as kombu_redis
from redis import exceptions

from .errors import is_full

logger = get_logger("dq_celery")


class Queues(kombu_redis.Channel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: What x-expires and x-message-ttl say of queues declared here, in ms, 0 where they say nothing.
        self._limits: dict[str, tuple[int, int]] = {}
        #: The same of queues that others declared, with their binding, by exchange and queue.
        self._bound: dict[str, dict[str, tuple[str, int, int]]] = {}
        self._keep_at = 0.0
        #: What is still to be written to kombu's tables.
        self._undeclared: list[Callable[[], Any]] = []
        super().__init__(*args, **kwargs)

    def _new_queue(self, queue: str, auto_delete: bool = False, **kwargs: Any) -> None:
        super()._new_queue(queue, auto_delete=auto_delete, **kwargs)
        self._expires.pop(queue, None)  # kombu would keep the bindings for an hour
        said = kwargs.get("arguments") or {}
        expires, ttl = (int(said.get(name) or 0) for name in ("x-expires", "x-message-ttl"))
        if expires or ttl:
            self._limits[queue] = (expires, ttl)
            if expires:
                self._declare(partial(self._make_expiring, queue))
        if not auto_delete:
            self._declare(partial(self._list_queue, queue))

    def _declare_late(self) -> None:
        undeclared, self._undeclared = self._undeclared, []
        for write in undeclared:
            self._declare(write)

    def maybe_refresh_binding_expiry(self) -> None:
        """kombu 5.7 calls this every second, also where nothing but broadcasts is read."""
        self._declare_late()

    def _make_expiring(self, queue: str) -> None:
        """A queue without messages is a key only if it has been made."""
        self._ask("DQ.CFGSET", self.key(queue))
        self.leases.client.pexpire(self.key(queue), self._limits[queue][0])

    def _keep(self, queues: Iterable[str]) -> None:
        """Keeps queues that are read from expiring."""
        expiring = {queue: self._limits[queue][0] for queue in queues if self._limits.get(queue, (0, 0))[0]}
        if not expiring or monotonic() < self._keep_at:
            return
        self._keep_at = monotonic() + min(expiring.values()) / 4000
        for queue, expires in expiring.items():
            if self.leases.client.pexpire(self.key(queue), expires):
                continue
            self._declare(partial(self._make_expiring, queue))
            for exchange, routing_key, arguments in self.state.queue_bindings(queue):
                _, pattern, _ = self.typeof(exchange).prepare_bind(queue, exchange, routing_key, arguments)
                self._queue_bind(exchange, routing_key, pattern, queue)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        if queue not in self._limits or self.typeof(exchange).type == "fanout":
            self._declare(partial(super()._queue_bind, exchange, routing_key, pattern, queue))
            return
        self._declare(partial(self._bind_limited, exchange, routing_key, pattern, queue))

    def _bind_limited(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Binds a queue with its limits, for those who publish. Bindings of queues that expired go."""
        self.get_table(exchange)
        for other, (member, expires, _) in list(self._bound.get(exchange, {}).items()):
            if expires and not self._ask("EXISTS", self.key(other)):
                self._unbind(exchange, member, other)
        with self.conn_or_acquire() as client:
            client.sadd(self.keyprefix_queue % exchange, self._member(routing_key, pattern, queue))

    def _member(self, routing_key: str, pattern: str, queue: str) -> str:
        limits = "{}:{}".format(*self._limits[queue])
        return self.sep.join([routing_key or "", pattern or "", queue, limits])

    def _unbind(self, exchange: str, member: str, queue: str) -> None:
        with self.conn_or_acquire() as client:
            client.srem(self.keyprefix_queue % exchange, member)
            client.delete(queue)
        self._bound[exchange].pop(queue, None)

    def get_table(self, exchange: str) -> list[tuple[str, str, str]]:
        bound: dict[str, tuple[str, int, int]] = {}
        table = []
        for routing_key, pattern, queue, *limits in super().get_table(exchange):
            table.append((routing_key, pattern, queue))
            if limits:
                member = self.sep.join([routing_key, pattern, queue, *limits])
                bound[queue] = (member, *map(int, limits[0].split(":")))
        self._bound[exchange] = bound
        return table

    def _reader(self, queue: str) -> Optional[tuple[str, tuple[str, int, int]]]:
        found = ((exchange, bound[queue]) for exchange, bound in self._bound.items() if queue in bound)
        return next(found, None)

    def _list_queue(self, queue: str) -> None:
        with self.conn_or_acquire() as client:
            client.sadd(self.keyprefix_queues, queue)

    def _declare(self, write: Callable[[], Any]) -> None:
        """Writes to kombu's tables. A worker does so later if the server's memory is full: it has tasks to end."""
        try:
            write()
        except exceptions.ResponseError as error:
            if not is_full(error):
                raise
            if not self._undeclared:
                logger.warning("queues are declared later, as the server's memory is full: %s", error)
            self._undeclared.append(write)

    def _size(self, queue: str) -> int:
        return self._ask("DQ.LEN", self.key(queue), "READY")

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return bool(self._ask("EXISTS", self.key(queue)))

    def _purge(self, queue: str) -> int:
        """Deletes the messages that no worker has, including those that are delayed."""
        return sum(self._ask("DQ.PURGE", self.key(queue), state) for state in ("READY", "DELAYED"))

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any) -> None:
        if if_empty and self._ask("DQ.LEN", self.key(queue)):
            return
        super().queue_delete(queue, if_unused=if_unused, **kwargs)

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        super()._delete(queue, *args, **kwargs)
        with self.conn_or_acquire() as client:
            if queue in self._limits:
                exchange, routing_key, pattern, *_ = args
                client.srem(self.keyprefix_queue % exchange, self._member(routing_key, pattern, queue))
            client.srem(self.keyprefix_queues, queue)
