"""The result backend ``dq://``: a client that asks for a result waits in the server until it is there.

All results are jobs of one queue. A final result is a done job, kept as long as ``result_expires`` says. A result that
is waited for, or part of a chord, but not known yet, is a job that is never due: so DQ.AWAIT can wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Callable, Optional

from celery import signals, states
from celery.backends.base import KeyValueStoreBackend
from celery.backends.redis import RedisBackend, SentinelBackend
from celery.exceptions import TimeoutError
from kombu.exceptions import EncodeError
from kombu.log import get_logger
from kombu.utils.encoding import bytes_to_str
from kombu.utils.url import maybe_sanitize_url
from redis import exceptions

from . import chords, errors
from .store import Store

logger = get_logger("dq_celery")

#: The longest wait of one command, so that a connection that hangs is noticed.
WAIT_S = 5.0
LEAST_S = 0.001
#: What a server takes by default, and how often a result is sent that closes the connection.
LARGEST_BYTES = 512 << 20
MOST_CUTS = 2
#: Ids in one DQ.AWAIT.
AT_ONCE = 1000
QUEUE = "celery-results"
SCHEMES = {"dq": "redis", "dqs": "rediss"}


class DqBackend(KeyValueStoreBackend):
    supports_native_join = True
    supports_autoexpire = True
    persistent = True

    def __init__(self, app: Any, url: str = "", **kwargs: Any) -> None:
        super().__init__(app=app, url=url, **kwargs)
        options = app.conf.get("result_backend_transport_options", {})
        self._url = url
        #: Used for its connections only: addresses, TLS, pools and retries.
        self._connections = connections(app, url)
        self.store = Store(
            lambda: self._connections.client,
            prefixed(options.get("queue", QUEUE), options.get("global_keyprefix")),
            int(self.expires * 1000) if self.expires else 0,
        )
        signals.worker_ready.connect(self._worker_ready)

    def as_uri(self, include_password: bool = False) -> str:
        return self._url if include_password else maybe_sanitize_url(self._url)

    # --- What Celery stores by key

    def get(self, key: bytes) -> Optional[bytes]:
        return self._ask(self.store.get, key)

    def mget(self, keys: Iterable[bytes]) -> list[Optional[bytes]]:
        return self._ask(self.store.get_many, list(keys))

    def set(self, key: bytes, value: Any) -> None:
        cuts = 0

        def end() -> None:
            nonlocal cuts
            if len(value) > LARGEST_BYTES or cuts >= MOST_CUTS:
                # Celery records that as the failure of the task, whose work is done.
                raise EncodeError(f"result cannot be stored: {len(value)} bytes")
            try:
                self.store.end(key, value)
            except exceptions.ConnectionError as error:
                cuts += type(error) is exceptions.ConnectionError and "connecting to" not in str(error)
                raise
            except exceptions.ResponseError as error:
                if "Protocol error" not in str(error):
                    raise
                cuts = MOST_CUTS
                raise exceptions.ConnectionError(str(error)) from error

        with self._room_or("the result of task %s is not stored: %s", self._strip_prefix(bytes_to_str(key))):
            self._ask(end)

    @staticmethod
    @contextmanager
    def _room_or(text: str, id: str) -> Iterator[None]:
        """Logs that a full server has refused a result: the work is done all the same."""
        try:
            yield
        except exceptions.ResponseError as error:
            if not errors.is_full(error):
                raise
            logger.error(text, id, error)

    def _set_with_state(self, key: bytes, value: Any, state: str) -> None:
        if state in states.READY_STATES:
            self.set(key, value)
        else:
            with self._room_or("the state of task %s is not stored: %s", self._strip_prefix(bytes_to_str(key))):
                self._ask(self.store.note, key, value)

    def delete(self, key: bytes) -> None:
        self._ask(self.store.delete, key)

    def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls the function, again while the server is away: as often as Celery's own Redis backend does."""
        try:
            return self._connections.ensure(function, args)
        except exceptions.ResponseError as error:
            raise errors.translate(error, self.store.key) from error

    # --- Waiting

    def wait_for(
        self,
        task_id: str,
        timeout: Optional[float] = None,
        interval: float = 0.5,
        no_ack: bool = True,
        on_interval: Optional[Callable[[], Any]] = None,
    ) -> dict[str, Any]:
        self._ensure_not_eager()
        found = self.get_many([task_id], timeout=timeout, interval=interval, on_interval=on_interval)
        return next(meta for _id, meta in found)

    def get_many(
        self,
        task_ids: Iterable[str],
        timeout: Optional[float] = None,
        interval: Optional[float] = 0.5,
        no_ack: bool = True,
        on_message: Optional[Callable[[Any], Any]] = None,
        on_interval: Optional[Callable[[], Any]] = None,
        max_iterations: Optional[int] = None,
        READY_STATES: Any = states.READY_STATES,
    ) -> Iterator[tuple[str, Any]]:
        ids = dict.fromkeys(bytes_to_str(id) for id in task_ids)
        until = None if timeout is None else monotonic() + timeout
        turn_s = (interval or 0.5) if on_interval else WAIT_S
        wait = Wait(self, [id for id in ids if id not in self._cache])
        found = {id: self._cache[id] for id in ids if id in self._cache}
        turns = 0
        while True:
            for id, meta in found.items():
                if on_message is not None:
                    on_message(meta)
                yield id, meta
            turns += 1
            if not wait.open or turns == max_iterations:
                return
            left = WAIT_S if until is None else until - monotonic()
            if left <= 0 and turns > 1:
                raise TimeoutError(f"The operation timed out after {timeout} s.")
            found = self._ask(wait.turn, max(0.0, min(turn_s, left)))
            if on_interval:
                on_interval()

    # --- Chords

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        self.ensure_chords_allowed()
        group_id, results = header_result_args
        header = self.app.GroupResult(group_id, list(results))
        self._ask(chords.open, self, header, body)

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        """Does nothing: the server counts the jobs of the header."""

    def add_to_chord(self, chord_id: str, result: Any) -> None:
        self._ask(chords.grow, self, chord_id, result)

    def on_chord_part_return(self, request: Any, state: str, result: Any, **kwargs: Any) -> None:
        """Ends the job of a task that ignores its result; storing a result has ended that of any other task.

        Then publishes the body, if this was the last part and no other worker has the body.
        """
        if request.group and request.id:
            id = bytes_to_str(request.id)
            with self._room_or("the chord of task %s goes on without its result: %s", id):
                self._ask(self.store.end_open, self.get_key_for_task(id), self._ended(id, state, result, request))
            self._ask(chords.publish, self, request.group)

    def fail(self, id: str, error: BaseException) -> None:
        """Stores that a task has failed. Raises the server's error if there is no room."""
        self._ask(self.store.end, self.get_key_for_task(id), self._ended(id, states.FAILURE, error))

    def _ended(self, id: str, state: str, result: Any, request: Any = None) -> Any:
        result = self.encode_result(result, state)
        meta = self._get_result_meta(result=result, state=state, traceback=None, request=request)
        return self.encode({**meta, "task_id": id})

    def results(self, ids: list[str]) -> dict[str, Any]:
        """What is stored of these tasks now."""
        values = self._ask(self.store.get_many, [self.get_key_for_task(id) for id in ids])
        return {id: self.decode_result(value) for id, value in zip(ids, values) if value}

    def _worker_ready(self, **_: Any) -> None:
        chords.watch(self)


class Wait:
    """Waits for the results of some tasks. Each turn returns those that have come."""

    def __init__(self, backend: DqBackend, ids: list[str]) -> None:
        self._backend = backend
        self.open = {backend.get_key_for_task(id): id for id in ids}
        #: Keys that may have no job that can be waited for.
        self._new = list(self.open)

    def turn(self, wait_s: float) -> dict[str, Any]:
        store = self._backend.store
        if self._new:
            values = dict(zip(self._new, store.get_many(self._new)))
            store.expect([key for key, value in values.items() if value is None])
            self._new = []
            # A result that is stored after this is found by the next turn.
            if found := self._take(values):
                return found
        # At 0, DQ.AWAIT would wait without end.
        ended = store.wait(list(self.open)[:AT_ONCE], max(wait_s, LEAST_S))
        self._new = [key for key, value in ended.items() if value is None]
        return self._take(ended)

    def _take(self, values: dict[bytes, Optional[bytes]]) -> dict[str, Any]:
        found = {}
        for key, value in values.items():
            meta = value and self._backend.decode_result(value)
            if meta and meta["status"] in states.READY_STATES:
                found[self.open.pop(key)] = meta
        self._backend._cache.update(found)
        return found


def connections(app: Any, url: str) -> RedisBackend:
    """Celery removes the part of the first address before the plus."""
    scheme, rest = url.replace("dq+", "").split("://", 1)
    kind = SentinelBackend if scheme == "sentinel" else RedisBackend
    return kind(app=app, url=f"{SCHEMES.get(scheme, scheme)}://{rest}")


def prefixed(queue: str, prefix: Optional[str]) -> str:
    """The queue's key with the prefix, joined as Celery joins it to its other keys."""
    if prefix and prefix[-1] not in ":_-.":
        prefix += "_"
    return f"{prefix or ''}{queue}"
