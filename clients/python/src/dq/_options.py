"""Rejects unknown options with an error that suggests the right one and names nothing internal."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def unknown(what: str, name: str, options: Iterable[str]) -> TypeError:
    known = list(options)
    meant = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {meant[0]!r}? " if meant else ""
    return TypeError(f"{what} has no option {name!r}: {hint}Its options are {', '.join(known)}")


def checked(function: F, what: str) -> F:
    parameters = inspect.signature(function).parameters.values()
    names = {each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return function  # the function that takes them checks them

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if not given.keys() <= names:
            raise unknown(what, next(each for each in given if each not in names), options)
        return function(*args, **given)

    return call  # type: ignore[return-value]


def near_misses(name: str) -> Callable[[C], C]:
    """Decorates a class whose public methods take options; ``name`` is what its users call it."""

    def decorate(made: C) -> C:
        for method, function in list(vars(made).items()):
            if not inspect.isfunction(function) or (method.startswith("_") and method != "__init__"):
                continue
            what = name if method == "__init__" else f"{name}.{method}"
            function.__qualname__ = what  # Python's own errors begin with it
            kinds = {each.kind for each in inspect.signature(function).parameters.values()}
            if inspect.Parameter.KEYWORD_ONLY in kinds:
                setattr(made, method, checked(function, what))
        return made

    return decorate
