"""Chords: the body is a job of the results' queue, ``after`` the group of its header's results.

The end of the last result makes the body ready, in the same command. One worker gets it, with a lease, and publishes
it. If that worker is killed before that, another one does.
"""

from __future__ import annotations

import threading
from typing import Any

from celery import signals, states
from celery.canvas import group, maybe_signature
from celery.exceptions import ChordError
from celery.result import GroupResult, result_from_tuple
from kombu.exceptions import OperationalError
from kombu.log import get_logger
from kombu.utils.json import dumps, loads
from redis import exceptions

from .errors import is_full

logger = get_logger("dq_celery")

WAIT_S = 5.0
REST_S = 1.0
LEASE_MS = 30_000
LATER_MS = 1000
UNREACHABLE = (OperationalError, exceptions.ConnectionError, exceptions.TimeoutError, OSError)
PREFIX = "chord:"


def leaves(result: Any) -> list[str]:
    """The ids of the tasks whose ends the chord waits for."""
    if isinstance(result, GroupResult):
        return [id for each in result.results for id in leaves(each)]
    return [result.id]


def open(backend: Any, header: GroupResult, body: Any) -> None:
    store, group = backend.store, f"{PREFIX}{header.id}"
    # A chord that is run again begins from the start.
    store.delete(group.encode())
    store.open_group(group, (backend.get_key_for_task(id) for id in leaves(header)))
    text = dumps({"header": header.as_tuple(), "body": body})
    store.client.execute_command("DQ.ADD", store.key, group, text, "AFTER", "GROUP", group)


def grow(backend: Any, chord_id: str, result: Any) -> None:
    """Adds the results of tasks that a part of the header adds to the chord while it runs."""
    backend.store.open_group(f"{PREFIX}{chord_id}", (backend.get_key_for_task(id) for id in leaves(result)))


def publish(backend: Any, group_id: str) -> None:
    """Publishes the body of this chord, if its header is done and no other worker publishes it."""
    store = backend.store
    chord = store.client.execute_command("DQ.POP", store.key, "ID", f"{PREFIX}{group_id}", "TTR", LEASE_MS)
    if chord:
        _settle(backend, chord)


def _settle(backend: Any, chord: list[Any]) -> None:
    store = backend.store
    id, text, token, *_ = chord
    try:
        _publish(backend, loads(text))
    except (*UNREACHABLE, exceptions.ResponseError) as error:
        if isinstance(error, exceptions.ResponseError) and not is_full(error):
            raise
        logger.warning("the body of %r is not published yet: %r", id, error)
        store.client.execute_command("DQ.NACK", store.key, "IDS", 1, id, token, "SILENT", "DELAY", LATER_MS)
        return
    store.client.execute_command("DQ.ACK", store.key, "WITHTOKENS", "IDS", 1, id, token)


def _publish(backend: Any, chord: dict[str, Any]) -> None:
    app = backend.app
    header = result_from_tuple(chord["header"], app)
    body = maybe_signature(chord["body"], app=app)
    ended = backend.results(leaves(header)) if header.results else {}
    try:
        values = [value(each, ended) for each in header.results]
    except ChordError as error:
        logger.error("chord %s: %s", header.id, error)
        # First, as error callbacks are to be called once: if there is no room, all of it is tried again later.
        for id in leaves(body.freeze() if isinstance(body, group) else body):
            backend.fail(id, error)
        backend.chord_error_from_stack(body, error)
        return
    body.delay(values)


def value(result: Any, ended: dict[str, Any]) -> Any:
    """The result of a part, or the list of results if the part is a group."""
    if isinstance(result, GroupResult):
        return [value(each, ended) for each in result.results]
    meta = ended.get(result.id)
    if meta is None or meta["status"] not in states.READY_STATES:
        raise ChordError(f"Dependency {result.id} has no result: the server had no room for it, or it has expired")
    if meta["status"] in states.PROPAGATE_STATES:
        raise ChordError(f"Dependency {result.id} raised {meta['result']!r}")
    return meta["result"]


def watch(backend: Any) -> None:
    """Starts a dispatcher when a worker is ready: one in each process."""
    if not any(isinstance(thread, Dispatcher) and thread.key == backend.store.key for thread in threading.enumerate()):
        Dispatcher(backend).start()


class Dispatcher(threading.Thread):
    """In a worker: publishes the bodies of chords whose worker was killed before it did."""

    def __init__(self, backend: Any) -> None:
        super().__init__(name="dq-chords", daemon=True)
        self._backend = backend
        self.key = backend.store.key
        self._stopped = threading.Event()
        signals.worker_shutting_down.connect(self._stop)

    def _stop(self, **_: Any) -> None:
        self._stopped.set()

    def run(self) -> None:
        said = ""
        while not self._stopped.is_set():
            try:
                self._next()
                said = ""
            except Exception as error:  # the server is away, or has no module
                if repr(error) != said:
                    said = repr(error)
                    logger.warning("chords are not looked at, trying again: %s", said)
                self._stopped.wait(REST_S)

    def _next(self) -> None:
        reply = self._backend.store.client.execute_command("DQ.BPOP", self.key, WAIT_S, "TTR", LEASE_MS)
        if reply:
            _settle(self._backend, reply[1:])
