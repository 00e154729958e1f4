"""A job as a handler sees it, and how its payload is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Optional, Protocol

from .errors import Cancelled, PayloadError
from .times import from_ms, maybe_from_ms

if TYPE_CHECKING:
    from ._core import Delivery

ENVELOPE_VERSION = 1


class Codec(Protocol):
    """Makes bytes of what ``Queue.add`` is given, and the other way round in ``job.data``."""

    def encode(self, data: Any) -> bytes: ...

    def decode(self, payload: bytes) -> Any: ...


class JsonCodec:
    """The default: compact JSON. Bytes are sent as they are."""

    def encode(self, data: Any) -> bytes:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return bytes(data)
        return to_json(data).encode()

    def decode(self, payload: bytes) -> Any:
        return json.loads(payload)


def to_json(data: Any) -> str:
    try:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"data must be what JSON can hold, without NaN and Infinity: {error}") from None


class BytesCodec:
    """Bytes in, bytes out."""

    def encode(self, data: Any) -> bytes:
        return bytes(data) if not isinstance(data, str) else data.encode()

    def decode(self, payload: bytes) -> bytes:
        return payload


def id_from(raw: bytes) -> str:
    """Ids may hold any bytes: those that are not UTF-8 survive as surrogates, as in file names."""
    return raw.decode("utf-8", "surrogateescape")


def id_to(id: str) -> bytes:
    return id.encode("utf-8", "surrogateescape")


class Envelope:
    """A payload with a kind and headers: ``{"dq":1,"kind":...,"data":...,"headers":{...}}``."""

    __slots__ = ("data", "headers", "kind", "version")

    def __init__(self, version: int, kind: Optional[str], data: Any, headers: Mapping[str, str]) -> None:
        self.version = version
        self.kind = kind
        self.data = data
        self.headers = headers

    @staticmethod
    def write(data: Any, kind: Optional[str], headers: Optional[Mapping[str, str]]) -> bytes:
        envelope: dict[str, Any] = {"dq": ENVELOPE_VERSION}
        if kind is not None:
            envelope["kind"] = kind
        envelope["data"] = data
        if headers:
            envelope["headers"] = dict(headers)
        try:
            return to_json(envelope).encode()
        except TypeError as error:
            raise TypeError(f"data of a job with a kind or headers must be what JSON can hold: {error}") from None

    @staticmethod
    def read(payload: bytes) -> Optional[Envelope]:
        """None where the payload is no envelope."""
        if not payload.startswith(b"{") or b'"dq"' not in payload:
            return None
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError):
            return None
        version, kind = value.get("dq"), value.get("kind")
        if type(version) is not int or "data" not in value or not ("kind" in value or "headers" in value):
            return None
        if kind is not None and not isinstance(kind, str):
            return None
        headers = value.get("headers")
        return Envelope(version, kind, value["data"], headers if isinstance(headers, dict) else {})


_UNREAD: Any = object()


class Job:
    """One delivery of a job."""

    __slots__ = ("_codec", "_delivery", "_envelope", "_told", "_why")

    def __init__(self, delivery: Delivery, codec: Codec) -> None:
        self._delivery = delivery
        self._codec = codec
        self._envelope: Optional[Envelope] = _UNREAD
        self._told: Optional[threading.Event] = None
        self._why: Optional[str] = None

    def __repr__(self) -> str:
        return f"<Job {self.id!r} of {self.queue!r}, attempt {self.attempt}>"

    @property
    def id(self) -> str:
        """The job's id. Bytes that are not UTF-8 are surrogates, as ``os.fsdecode`` makes them."""
        return id_from(self._delivery.id)

    @property
    def queue(self) -> str:
        """The key that it came from; of a sharded queue, the shard's."""
        return id_from(self._delivery.key)

    @property
    def payload(self) -> bytes:
        """The payload's bytes, envelope included."""
        return self._delivery.payload

    @property
    def token(self) -> str:
        """What names this delivery."""
        return self._delivery.token.decode()

    @property
    def attempt(self) -> int:
        """How often the job was delivered, this time included."""
        return self._delivery.attempt

    @property
    def max_attempts(self) -> int:
        """After so many deliveries the job is dead, by its own limit or its handler's; 0: no limit."""
        handler = self._delivery.handler
        return self._delivery.max_attempts or (handler.attempts if handler else 0)

    @property
    def is_last_attempt(self) -> bool:
        """If this one fails, the job is dead."""
        return 0 < self.max_attempts <= self.attempt

    @property
    def deadline(self) -> datetime:
        """When the lease ended at delivery. The worker keeps renewing it while the handler runs."""
        return from_ms(self._delivery.deadline_ms)

    @property
    def due(self) -> Optional[datetime]:
        """When the job was due; of a recurring one, the instant of its occurrence."""
        return maybe_from_ms(self._delivery.due_ms)

    occurrence = due

    @property
    def envelope(self) -> Optional[Envelope]:
        """The envelope, where the payload is one."""
        if self._envelope is _UNREAD:
            self._envelope = Envelope.read(self._delivery.payload)
        return self._envelope

    @property
    def kind(self) -> Optional[str]:
        return self.envelope.kind if self.envelope else None

    @property
    def headers(self) -> Mapping[str, str]:
        return self.envelope.headers if self.envelope else {}

    @property
    def data(self) -> Any:
        """What was added, as the queue's codec reads it."""
        if self.envelope:
            return self.envelope.data
        try:
            return self._codec.decode(self._delivery.payload)
        except Exception as error:
            undecodable = PayloadError(f"payload cannot be decoded: {type(error).__name__}: {error}")
            undecodable.job = self
            raise undecodable from error

    @property
    def lost(self) -> bool:
        """Another worker may have the job: stop, the end of this handler will not count."""
        return self._why == "lost"

    @property
    def cancelled(self) -> bool:
        """The job was lost, or the worker stops and the handler's time to finish is over."""
        return self._why is not None

    def check(self) -> None:
        """Raises ``Cancelled`` where ``cancelled``: for long handlers, between two steps."""
        if self._why is not None:
            raise Cancelled(self._why)

    def sleep(self, duration: float) -> None:
        """Sleeps for so many seconds; raises ``Cancelled`` at once when ``cancelled``."""
        if self._told is None:
            self._told = threading.Event()
        if self._why is None:
            self._told.wait(duration)
        self.check()

    def fail(self, error: BaseException) -> None:
        """In a batch: this one job failed (or is retried, snoozed, given up), and the others did not."""
        self._delivery.error = RuntimeError("failed without an error") if error is None else error

    def _tell(self, why: str) -> None:
        self._why = why
        if self._told is not None:
            self._told.set()
