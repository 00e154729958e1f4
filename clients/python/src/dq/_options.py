"""Rejects unknown options with an error that suggests the right one and names nothing internal."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def unknown(what: str, name: str, options: Iterable[str]) -> TypeError:
    known = list(options)
    meant = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {meant[0]!r}? " if meant else ""
    return TypeError(f"{what} has no option {name!r}: {hint}Its options are {', '.join(known)}")


def checked(function: F, what: str, said: Mapping[str, str]) -> F:
    """said: the options of a job, and what each of them says; of functions that take them."""
    parameters = inspect.signature(function).parameters.values()
    names = {each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for each in parameters:
        if each.kind is each.VAR_KEYWORD and each.annotation != "Unpack[JobOptions]":
            return function  # the function that takes them checks them
        if each.kind is each.VAR_KEYWORD:
            names |= said.keys()
            options += said
            function.__doc__ = f"{function.__doc__}\n" + "".join(f"        {each}: {said[each]}\n" for each in said)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if not given.keys() <= names:
            raise unknown(what, next(each for each in given if each not in names), options)
        return function(*args, **given)

    return call  # type: ignore[return-value]


def near_misses(name: str, said: Mapping[str, str] = MappingProxyType({})) -> Callable[[C], C]:
    """Decorates a class whose public methods take options; ``name`` is what its users call it."""

    def decorate(made: C) -> C:
        for method, function in list(vars(made).items()):
            if not inspect.isfunction(function) or (method.startswith("_") and method != "__init__"):
                continue
            what = name if method == "__init__" else f"{name}.{method}"
            function.__qualname__ = what  # Python's own errors begin with it
            kinds = {each.kind for each in inspect.signature(function).parameters.values()}
            if inspect.Parameter.KEYWORD_ONLY in kinds:
                setattr(made, method, checked(function, what, said))
        return made

    return decorate
