"""The command line: workers in processes of their own."""

from __future__ import annotations

import argparse
import asyncio as aio
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from . import _guard, asyncio
from ._processes import CANNOT, Processes
from .errors import ConfigurationError, DqError
from .handler import Handler
from .kind import BaseKind
from .queue import Queue
from .worker import Worker

FAILED = 1
WORKERS = (Worker, asyncio.Worker)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m dq")
    command = made.add_subparsers(dest="command", required=True).add_parser("worker", help="runs handlers")
    command.add_argument(
        "targets",
        nargs="+",
        metavar="module",
        help="its worker or handlers; or module:name of a worker, a function that makes one, a handler, a list of them",
    )
    url = os.environ.get("DQ_URL") or os.environ.get("REDIS_URL") or "redis://localhost"
    command.add_argument("--url", default=url, help="the server; by default DQ_URL, or REDIS_URL")
    command.add_argument("--queue", action="append", default=[], help="its name; several in strict order")
    command.add_argument("--processes", type=int, default=1, help="how many workers; one that dies is started again")
    command.add_argument("--concurrency", type=int, default=10, help="how many handlers run at a time, in each process")
    command.add_argument(
        "--reload",
        action=argparse.BooleanOptionalAction,
        help="in development: starts again when a .py file below the working directory changes",
    )
    command.add_argument("--health", help='"127.0.0.1:8081" or a file; with several processes %%d is their number')
    return made


def main(words: Sequence[str]) -> int:
    given = parser().parse_args(words)
    if given.processes > 1 or given.reload:
        return Processes(words, given.processes, given.reload).run()
    sys.path.insert(0, os.getcwd())
    try:
        worker = load(given)
        if isinstance(worker, asyncio.Worker):
            aio.run(worker.run())
        else:
            worker.run()
    except (ConfigurationError, ImportError, AttributeError, TypeError, ValueError) as error:
        print(f"dq: {type(error).__name__}: {error}", file=sys.stderr)
        return CANNOT
    except DqError as error:
        print(f"dq: {error}", file=sys.stderr)
        return FAILED
    return 0


def load(given: argparse.Namespace) -> Any:
    modules, found, workers = [], [], []
    for target in given.targets:
        module, _, name = target.partition(":")
        modules.append(importlib.import_module(module))
        parts = _named(modules[-1], name, bool(given.queue)) if name else _all_of(modules[-1])
        found += [each for _, each in parts]
        workers += [f"{module}:{part}" for part, each in parts if isinstance(each, WORKERS)]
    if workers:
        if len(found) > 1:
            raise ValueError(f"a process runs one worker and nothing else: name {' or '.join(workers)} alone")
        return found[0]
    functions = [each.function if isinstance(each, Handler) else each for each in found]
    face: Any = asyncio if any(map(_guard.is_coroutine_function, functions)) else sys.modules[__package__]
    queues = _queues(modules, found, {each: face.Queue(given.url, each) for each in given.queue})
    if not queues:
        raise ValueError(f"for the handlers of {' '.join(given.targets)} name their queue, --queue orders")
    health = given.health and given.health.replace("%d", os.environ.get("DQ_PROCESS", "0"))
    return face.Worker(queues, *found, concurrency=given.concurrency, health=health)


Parts = list[tuple[str, Any]]
"""What a target names, with their names."""


def _named(module: ModuleType, name: str, is_handler: bool) -> Parts:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, (list, tuple)):
        return [(name, each) for each in found]
    if not is_handler and callable(found) and not isinstance(found, Handler):
        found = found()
        if not isinstance(found, WORKERS):
            raise ValueError(f"{module.__name__}:{name} makes no worker: for a handler name its queue, --queue orders")
    return [(name, found)]


def _all_of(module: ModuleType) -> Parts:
    """Its workers, or the handlers that it, or a module below it, defines; each once."""
    values = {each: name for name, each in vars(module).items() if issubclass(type(each), (Handler, *WORKERS))}
    named = [(name, each) for each, name in values.items()]
    own = [(name, each) for name, each in named if f"{each.__module__}.".startswith(f"{module.__name__}.")]
    found: Parts = [(name, each) for name, each in named if isinstance(each, WORKERS)] or own
    if not found:
        raise ValueError(f"{module.__name__} has no worker, and no handler that dq.handler or queue.kind made")
    return found


def _queues(modules: Iterable[ModuleType], handlers: Iterable[Any], named: dict[str, Any]) -> list[Any]:
    """Those of kinds; for other handlers those that are named, else those that the modules define."""
    of_kinds = {each.queue.name: each.queue for each in handlers if isinstance(each, BaseKind)}
    values = [each for module in modules for each in vars(module).values()]
    others = named
    if not named and not all(isinstance(each, BaseKind) for each in handlers):
        others = {each.name: each for each in values if issubclass(type(each), (Queue, asyncio.Queue))}
    return [*{**others, **of_kinds}.values()]
