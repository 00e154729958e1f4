"""Codecs for payloads, results and steps, and the envelope of jobs with a kind or headers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional, Protocol

from ._plain import plain
from .errors import PayloadError

ENVELOPE_VERSION = 1


class Codec(Protocol):
    """Encodes what ``Queue.add`` is given as bytes, and decodes it for ``job.data``."""

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


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=plain)


def _of_c() -> Optional[Callable[[Any, int], Iterable[str]]]:
    """The encoder that JSONEncoder makes anew for each value, which takes as long as encoding a small one.

    Made once, it cannot detect circular values: they fail as too deep.
    """
    try:
        make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
        made = make(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
        return made if "".join(made({"a": [1, "\u00e9"]}, 0)) == _ENCODER.encode({"a": [1, "\u00e9"]}) else None
    except (AttributeError, TypeError):  # a Python that lacks it
        return None


_WRITE = _of_c() or (lambda data, _: (_ENCODER.encode(data),))


def to_json(data: Any) -> str:
    try:
        return "".join(_WRITE(data, 0))
    except ValueError as error:
        raise ValueError(f"data must be what JSON can hold, without NaN and Infinity: {error}") from None
    except RecursionError:
        raise ValueError("data must be what JSON can hold: they are in themselves, or nested too deep") from None


class BytesCodec:
    """Bytes in, bytes out."""

    def encode(self, data: Any) -> bytes:
        return bytes(data) if not isinstance(data, str) else data.encode()

    def decode(self, payload: bytes) -> bytes:
        return payload


def id_from(raw: bytes) -> str:
    """Ids may hold any bytes: those that are not UTF-8 become surrogates, as in file names."""
    return raw.decode("utf-8", "surrogateescape")


def id_to(id: str) -> bytes:
    return id.encode("utf-8", "surrogateescape")


LABEL_BYTES = 256


def label_of(kind: Any) -> Optional[str]:
    """The label of jobs of this kind; None if it can be none."""
    try:
        return kind if 1 <= len(kind.encode()) <= LABEL_BYTES else None
    except (AttributeError, UnicodeEncodeError):  # no text, or one that is not Unicode
        return None


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
        """None if the payload is not an envelope."""
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


def decoded(codec: Codec, raw: bytes, what: str) -> Any:
    try:
        return codec.decode(raw)
    except Exception as error:
        raise PayloadError(f"{what} cannot be decoded: {type(error).__name__}: {error}") from error
