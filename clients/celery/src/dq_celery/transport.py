"""The transport: kombu's own for Redis, with queues of dq instead of lists.

Connections, TLS, fanout exchanges by PUBLISH and SUBSCRIBE, the tables of bindings and the event loop are kombu's.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from queue import Empty
from time import monotonic, time
from typing import Any, Optional

import redis
from kombu.log import get_logger
from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str
from redis import exceptions

from . import control, jobs, limits, retries, worker
from .alone import OFF, Alone
from .errors import NotRetried, translate
from .leases import Delivery, Leases
from .qos import QoS
from .queues import Queues
from .sentinel import SentinelConnections, is_sentinel
from .waits import ANSWER_S, Waits

logger = get_logger("dq_celery")

#: How many tasks one command looks at, when a revoke looks at all of them.
SCANNED = 500
#: Options of kombu's transport that have no meaning here, as the server keeps what is not acknowledged.
UNUSED = {
    "ack_emulation",
    "priority_steps",
    "unacked_index_key",
    "unacked_key",
    "unacked_mutex_expire",
    "unacked_mutex_key",
    "unacked_restore_interval",
    "unacked_restore_limit",
    "unacked_restore_throttle",
}


class Poller(kombu_redis.MultiChannelPoller):
    """Always reads a reply: a job in it has a lease, which must be renewed."""

    def on_readable(self, fileno: int) -> Any:
        channel, kind = self._fd_to_chan.get(fileno, (None, None))
        if channel is None:
            return None
        if kind == "BRPOP" and not channel._in_poll:
            # No reply was awaited: the server closed the connection.
            channel.client.connection.disconnect()
            return None
        return channel.handlers[kind]()

    def _update_brpop_polling(self) -> None:
        """Does nothing: no reply is ever left unread."""


class Channel(Waits, Queues):
    QoS = QoS

    #: The lease in seconds, if the queue has no TTR. It is renewed while the worker lives, so it need not last as long
    #: as a task.
    visibility_timeout = 10
    #: How long, in seconds, an expired task is kept for a worker to record that it was revoked.
    expires_grace = 3600
    #: Whether messages that are rejected without being requeued are kept, as dead jobs.
    dead_letters = False
    priority_steps = [0]
    keyprefix_queues = "_kombu.dq.queues"

    from_transport_options = (
        *(option for option in kombu_redis.Channel.from_transport_options if option not in UNUSED),
        "dead_letters",
        "expires_grace",
        "master_name",
        "min_other_sentinels",
        "sentinel_kwargs",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._no_ack: set[str] = set()
        self._expires: dict[str, int] = {}
        self._alone: Optional[Alone] = None
        super().__init__(*args, **kwargs)
        self.leases: Leases = self.connection.leases_of(self)

    # --- Adding

    def _put(self, queue: str, message: dict[str, Any], _publish_batch: Any = None, **kwargs: Any) -> None:
        now_ms, key = int(time() * 1000), self.key(queue)
        command = ["DQ.ADD", key, jobs.job_id(message), jobs.payload(message), "NEXT"]
        command += ["PRIORITY", self._get_message_priority(message)]
        command += jobs.timing(message, now_ms, int(self.expires_grace * 1000))
        expires, ttl = self._limits.get(queue, (0, 0))
        reader = None if queue in self._limits else self._reader(queue)
        ttl = reader[1][2] if reader else ttl
        command += ["TTL", ttl] if ttl and "TTL" not in command[5:] else []
        command += jobs.labelled(message)
        if _publish_batch is not None:
            _publish_batch.add("execute_command", *command)
            if expires:
                _publish_batch.add("pexpire", queue, expires)
            return
        try:
            self._ask(*command)
        except exceptions.ResponseError as error:
            if not retries.is_retry(message):
                raise
            wait_ms = max(0, (jobs.instant_ms(message["headers"].get("eta")) or 0) - now_ms)
            raise NotRetried(str(error), message["headers"]["retries"], wait_ms) from error
        if expires:
            self.leases.client.pexpire(key, expires)
        elif reader and reader[1][1] and self.leases.client.pexpire(key, reader[1][1], nx=True):
            # The queue was not there: it expired, as nobody read it.
            exchange, (member, *_) = reader
            self._unbind(exchange, member, queue)

    def _put_fanout(self, exchange: str, message: dict[str, Any], routing_key: str, **kwargs: Any) -> None:
        # Workers first: they discard the tasks that they take in the meantime.
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        if exchange.endswith(".pidbox"):
            control.revoke(self, message)

    def delete_tasks(self, ids: list[str]) -> dict[str, bytes]:
        """Deletes tasks from all queues unless a worker has them. Returns those that were deleted."""
        keys = self._declared_keys()
        if not keys:
            return {}
        with self.conn_or_acquire() as client, client.pipeline(transaction=False) as pipe:
            for id in ids:
                for key in keys:
                    pipe.execute_command("DQ.GET", key, id)
                    pipe.execute_command("DQ.DEL", key, "UNRESERVED", "IDS", 1, id)
            replies = iter(pipe.execute(raise_on_error=False))
        deleted: dict[str, bytes] = {}
        for id in ids:
            for _ in keys:
                shown, count = next(replies), next(replies)
                if count == 1:
                    deleted[id] = jobs.field(shown, b"payload") or b""
        return deleted

    def scan_tasks(self) -> Iterator[list[tuple[str, bytes]]]:
        """The ids and payloads of all tasks in all queues, in chunks."""
        for key in self._declared_keys():
            cursor = None
            while cursor != b"0":
                cursor, ids = self._ask("DQ.SCAN", key, cursor or 0, "COUNT", SCANNED)
                yield list(self._payloads(key, ids))

    def _payloads(self, key: str, ids: list[bytes]) -> Iterator[tuple[str, bytes]]:
        with self.conn_or_acquire() as client, client.pipeline(transaction=False) as pipe:
            for id in ids:
                pipe.execute_command("DQ.GET", key, id)
            for id, shown in zip(ids, pipe.execute()):
                if shown:
                    yield bytes_to_str(id), jobs.field(shown, b"payload")

    def _declared_keys(self) -> list[str]:
        with self.conn_or_acquire() as client:
            return [self.key(bytes_to_str(queue)) for queue in client.smembers(self.keyprefix_queues)]

    # --- Taking

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> Any:
        if no_ack:
            self._no_ack.add(queue)
        worker.attach()
        self._withdraw()
        return super().basic_consume(queue, no_ack, *args, **kwargs)

    def _basic_cancel(self, consumer_tag: str) -> Any:
        self._no_ack.discard(self._tag_to_queue.get(consumer_tag))
        self._withdraw()
        return super()._basic_cancel(consumer_tag)

    def _brpop_start(self, timeout: Optional[float] = None) -> None:
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues or self._waits_alone():
            return
        self._declare_late()
        connection = self.client.connection
        self._learn_id(connection)
        self._keep(queues)
        expiring = [self._limits[queue][0] / 3000 for queue in queues if self._limits.get(queue, (0, 0))[0]]
        wait_s = min([timeout or self.connection.brpop_timeout, *expiring])
        options = ["NOACK"] if self._no_ack.issuperset(queues) else ["LEASE", self._lease_ms]
        self._in_poll = connection
        self._brpop_sent_at = monotonic()
        connection.send_command("DQ.BPOP", *map(self.key, queues), wait_s, *options, "WITHDUE", "WITHTERMS")

    def _brpop_read(self, **options: Any) -> bool:
        reply = self._read_reply()
        if not reply:
            raise Empty()
        queue = self._queue_of(reply[0])
        self._queue_cycle.rotate(queue)
        if queue not in self.connection._callbacks:
            self._return(reply)
            raise Empty()
        self._hand_over(queue, self._message(queue, reply[1:], queue in self._no_ack))
        return True

    def _waits_alone(self) -> bool:
        """Whether a task is to run alone, or does: nothing else is taken. Begins with it as soon as it may."""
        if self._alone is None:
            return False
        try:
            reply = self._alone.take()
            if reply:
                self._hand_over(self._alone.queue, self._message(self._alone.queue, reply, False))
        except Empty:
            pass
        except exceptions.NoPermissionError as error:
            self._say_missing(OFF, error)
            self._alone = None
        if self._alone is not None and self._alone.is_over():
            self._alone = None
        return self._alone is not None

    def _hand_over(self, queue: str, message: dict[str, Any]) -> None:
        tag = message["properties"]["delivery_tag"]
        try:
            self.connection._deliver(message, queue)
        except Exception as error:
            if queue in self._no_ack or tag in self.qos._delivered:
                raise
            self._bury(tag, error)

    def _get(self, queue: str) -> dict[str, Any]:
        reply = self._ask("DQ.POP", self.key(queue), "LEASE", self._lease_ms, "WITHDUE", "WITHTERMS")
        self._keep([queue])
        if not reply:
            raise Empty()
        return self._message(queue, reply, False)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack, **kwargs)
        if message is not None and no_ack:
            self.leases.ack(message.delivery_tag)
        return message

    def _message(self, queue: str, job: list[Any], no_ack: bool) -> dict[str, Any]:
        id, text, token, attempts, deadline, due, (ttr_ms, most, *_) = job
        tag = f"{bytes_to_str(token or b'')}:{bytes_to_str(id)}:{queue}"
        if token is not None:
            delivery = Delivery(self.key(queue), id, token)
            if attempts > 1 and self.leases.still_runs(tag, delivery):
                raise Empty()
            if not self.leases.take(tag, delivery, deadline, ttr_ms):
                raise Empty()
        try:
            message = jobs.message(text, tag, attempts, due, int(time() * 1000))
        except ValueError as error:
            self._bury(tag, error)
            raise Empty() from error
        if no_ack:
            self.leases.ack(tag)
        elif token is not None and not self._may_run(queue, id, message, attempts, most):
            raise Empty()
        return message

    def _may_run(self, queue: str, id: bytes, message: dict[str, Any], attempts: int, most: int) -> bool:
        headers, tag = message["headers"], message["properties"]["delivery_tag"]
        if limits.is_unknown(headers):
            logger.warning("no task is called %r: gave back %r", headers["task"], id)
            self.leases.nack(tag, *limits.unknown(headers, attempts))
            return False
        reason = self._reason(queue, id) if attempts > 1 else b""
        limit = limits.allowed(headers, most)
        retries.count(headers, reason)
        is_lost = reason in (limits.LEASE_ENDED, limits.PROCESS_LOST.encode())
        if is_lost and 0 < limit < attempts:
            logger.error("task %r is dead: %s", id, limits.USED_UP)
            self.leases.nack(tag, "FATAL", "REASON", limits.USED_UP)
        elif reason != limits.LEASE_ENDED or limit != attempts or queue not in self.active_queues:
            return True
        else:
            return self._begins_alone(queue, id, tag)
        return False

    def _begins_alone(self, queue: str, id: bytes, tag: str) -> bool:
        if OFF in self.connection.missing:
            return True
        if self._alone is None:
            logger.warning("task %r may have ended its workers: its last attempt runs alone", id)
            self._alone = Alone(self.leases, queue, self.key(queue), id)
        if self._alone.begins(id, tag):
            return True
        self.leases.nack(tag, *self._alone.give_back)
        return False

    def _reason(self, queue: str, id: bytes) -> bytes:
        """Why the job's last delivery ended. Without the right to ask, the worker goes on without it."""
        try:
            return jobs.field(self.show(queue, id, "PREFIX", 0), b"reason") or b""
        except exceptions.NoPermissionError as error:
            self._say_missing("retries that the server refused are not counted", error)
            return b""

    def _bury(self, tag: str, error: Exception) -> None:
        """Keeps a message that cannot be read as dead: delivered again it would fail again, and block the workers."""
        logger.error("job %s cannot be read as a message, and is kept as dead: %r", tag, error)
        self.leases.nack(tag, "FATAL", "REASON", f"unreadable: {error!r}")

    def close(self) -> None:
        if self.connection is not None:
            self._withdraw()
        if self._alone is not None:
            self._alone.leave()
            self._alone = None
        super().close()

    # --- Looking

    def peek(self, queue: str, *what: Any) -> list[list[Any]]:
        return self._ask("DQ.PEEK", self.key(queue), *what)

    def show(self, queue: str, id: bytes, *options: Any) -> Any:
        return self._ask("DQ.GET", self.key(queue), id, *options)

    # --- Helpers

    def key(self, queue: str) -> str:
        return f"{self.global_keyprefix}{queue}"

    def _queue_of(self, key: bytes) -> str:
        return bytes_to_str(key)[len(self.global_keyprefix) :]

    def _ask(self, command: str, key: str, *args: Any) -> Any:
        with self.conn_or_acquire() as client:
            try:
                return client.execute_command(command, key, *args)
            except exceptions.ResponseError as error:
                raise translate(error, key) from error

    @property
    def _lease_ms(self) -> int:
        return max(1, int(self.visibility_timeout * 1000))


class SentinelChannel(SentinelConnections, Channel):
    pass


class Transport(kombu_redis.Transport):
    Channel = Channel

    #: The longest wait of one DQ.BPOP, which is then sent again.
    brpop_timeout = 10
    driver_type = "dq"
    driver_name = "dq"
    sentinel_timeout_s = ANSWER_S

    def __init__(self, client: Any, *args: Any, **kwargs: Any) -> None:
        if is_sentinel(client.hostname or "", client.transport_cls):
            self.Channel = SentinelChannel
        super().__init__(client, *args, **kwargs)
        self.cycle = Poller()
        self._leases: Optional[Leases] = None
        self._has_loop = False
        #: What was said to be off, as a right is missing.
        self.missing: set[str] = set()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self._has_loop = True
        if self._leases is not None:
            self._leases.waits_for_acks = False
        super().register_with_event_loop(connection, loop)

    def leases_of(self, channel: Channel) -> Leases:
        """The leases of all channels, with their own connections, which never wait for long."""
        if self._leases is None:
            pool = channel._get_pool()
            pool.max_connections = 1 << 16  # one for each thread that acknowledges
            wait_s = min(ANSWER_S, channel._lease_ms / 3000)
            pool.connection_kwargs.update(socket_timeout=wait_s, socket_connect_timeout=wait_s)
            self._leases = Leases(redis.Redis(connection_pool=pool), channel._lease_ms)
            self._leases.waits_for_acks = not self._has_loop
        return self._leases

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        if self._leases is not None:
            self._leases.close()
            self._leases = None


class SecureTransport(Transport):
    """``dqs://``: verifies the server's certificate unless the URL or ``broker_use_ssl`` says otherwise."""

    def __init__(self, client: Any, *args: Any, **kwargs: Any) -> None:
        client.ssl = client.ssl or {"ssl_cert_reqs": ssl.CERT_REQUIRED}
        super().__init__(client, *args, **kwargs)
