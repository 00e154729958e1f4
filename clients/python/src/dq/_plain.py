"""Values that JSON cannot hold as they are: how they are written, and read as what an annotation says."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, Union
from uuid import UUID

_HOLD = (list, Sequence, tuple, dict, Mapping)
_UNIONS = (Union, getattr(types, "UnionType", Union))


class Unfit(ValueError):
    """It says where in the data."""


def plain(value: Any) -> Any:
    """What JSON holds in place of a value: a dataclass, a model of pydantic, an instant, a UUID, a Decimal, an Enum."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"JSON cannot hold an object of {type(value).__name__}")


def read(hint: Any, value: Any, where: str) -> Any:
    """The value as the annotation says. Raises Unfit if it is no such value."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    try:
        if origin in _UNIONS:
            return _one_of(inner, value, where)
        if origin is Literal:
            return value if value in inner else _no(hint, value, where)
        if origin in _HOLD or hasattr(hint, "_fields") or hasattr(hint, "__total__"):
            return _held(hint, origin, inner, value, where)
        if dataclasses.is_dataclass(hint):
            known = {field.name for field in dataclasses.fields(hint)}
            return hint(**fields(hint, known, _is(dict, value, where), f"{where}."))  # type: ignore[operator]
        if hasattr(hint, "model_validate"):
            return hint.model_validate(value)
        if hint in (datetime, date, time):
            return hint.fromisoformat(_is(str, value, where).replace("Z", "+00:00"))
        if hint is timedelta:
            return timedelta(seconds=value)
        if hint in (UUID, Decimal):
            return hint(_is(str, value, where))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return hint(value)
        if hint in (int, str, bool, float):
            is_number = hint is float and type(value) is int
            return value if type(value) is hint or is_number else _no(hint, value, where)
    except Unfit:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Unfit(f"{where}: {error}") from None
    return value


def _held(hint: Any, origin: Any, inner: Any, value: Any, where: str) -> Any:
    """What a container, a NamedTuple or a TypedDict holds."""
    if hasattr(hint, "__total__"):
        return fields(hint, {*typing.get_type_hints(hint)}, _is(dict, value, where), f"{where}.")
    if origin in (dict, Mapping):
        names = {
            name: int(name) if inner[0] is int else read(inner[0], name, where) for name in _is(dict, value, where)
        }
        return {names[name]: read(inner[1], each, f"{where}.{name}") for name, each in value.items()}
    each_hint = inner[:1] * len(_is(list, value, where))
    if origin is tuple and inner[1:] != (...,):
        each_hint = inner
    if hasattr(hint, "_fields"):
        each_hint = [typing.get_type_hints(hint).get(name, Any) for name in hint._fields]
    if len(each_hint) != len(value):
        raise Unfit(f"{where}: it has {len(value)} elements, not {len(each_hint)}")
    made = [read(each_hint[n], each, f"{where}[{n}]") for n, each in enumerate(value)]
    if hasattr(hint, "_fields"):
        return hint(*made)
    return made if origin is Sequence else origin(made)


def fields(of: Any, known: set[str], given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The fields that are known, read as the annotations of ``of`` say."""
    hints = typing.get_type_hints(of)
    return {name: read(hints.get(name, Any), value, where + name) for name, value in given.items() if name in known}


def _one_of(hints: Sequence[Any], value: Any, where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    others = [hint for hint in hints if hint is not type(None)]
    for hint in others:
        try:
            return read(hint, value, where)
        except Unfit:
            if len(others) == 1:
                raise
    return _no(" or ".join(map(str, hints)), value, where)


def _is(kind: type, value: Any, where: str) -> Any:
    return value if isinstance(value, kind) else _no(kind, value, where)


def _no(hint: Any, value: Any, where: str) -> Any:
    name = getattr(hint, "__name__", None) or str(hint)
    raise Unfit(f"{where}: {str(value)[:100]!r} is no {name}")
