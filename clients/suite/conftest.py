"""Fixtures, and the table at the end."""

import inspect
import os
import sys
import traceback
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import languages
from proxy import acks, held, swallow, touched
from world import World

EACH = "each"
REFERENCE = "python"


class Scenario:
    """Made by ``@scenario``: for each language a test that must pass, and one that must fail with the canary."""

    def __init__(self, play, number, canary, gate, only):
        self.play, self.number, self.canary, self.gate, self.only = (play, number, canary, gate, only)


def scenario(number, canary, *, gate=False, only=None):
    """Declares a scenario. number: of the behaviour; canary: what breaks the worker, called with the world before the
    scenario.

    gate: it is short, so it runs for each change, in Python and with its canary; ``EACH``: in each language.
    """

    def decorate(play):
        play.scenario = Scenario(play, number, canary, gate, only)
        return play

    return decorate


def breaks(*rules):
    """A canary that gives these rules to the proxy."""
    return lambda world: world.prepare(lambda proxy: proxy.rules.extend(rules))


def says(answer):
    """A canary for which the server says this where it refuses anything."""
    change = lambda command, reply: answer if reply.startswith(b"-") else None  # noqa: E731
    return lambda world: world.prepare(lambda proxy: proxy.replies.append(change))


def but_the_first(rule):
    """A canary that applies the rule, but not the first time that it matches."""

    def canary(world):
        seen = []

        def later(command):
            verdict = rule(command)
            seen.extend([] if verdict is None else [verdict])
            return verdict if len(seen) > 1 else None

        breaks(later)(world)

    return canary


# Canaries of several files.
never_acks = breaks(acks(1))
acks_only_once = but_the_first(acks(1))
no_nack = breaks(swallow(b"DQ.NACK", b"$7\r\ndelayed\r\n"))
no_heartbeats = breaks(swallow(b"DQ.TOUCH", touched), held(b"DQ.BTOUCH"))
# A fatal error looks like a server that is starting.
seems_transient = says(b"-LOADING the server is loading\r\n")


def plain_client(world):
    """A client that follows no redirection loses the slots of the other node."""
    world.is_plain = True


def permitted(world):
    """The user lacks no right."""
    world.is_permitted = True


def place_of(world, cluster):
    return {"url": cluster.url} if getattr(world, "is_plain", False) else {"cluster": cluster.url}


KEEP_MS = 600_000


def returns(value):
    return {"do": "return", "value": value}


def pytest_addoption(parser):
    parser.addoption("--gate", action="store_true", help="only the scenarios that are short")


def pytest_pycollect_makeitem(collector, name, obj):
    found = getattr(obj, "scenario", None) if inspect.isfunction(obj) else None
    if found is None or obj.__module__ != collector.obj.__name__:
        return None
    is_gate = collector.config.getoption("--gate")
    return [
        Play.from_parent(
            collector,
            name=f"{name}[{language}{'-canary' if broken else ''}]",
            language=language,
            found=found,
            broken=broken,
        )
        for language in languages.chosen()
        for broken in (False, True)
        if found.only is None or language.split("-")[0] in found.only
        if not is_gate or is_in_gate(found, language, broken)
    ]


def is_in_gate(found, language, broken):
    """In Python with the canary, as that proves the scenario; in each other language by one of its clients.

    Which one depends on the scenario, so that all of them are played. Python's two workers share no loop:
    asyncio counts as a language.
    """
    if language == REFERENCE:
        return found.gate
    if found.gate != EACH or broken:
        return False
    siblings = [probe for probe in languages.PROBES if language_of(probe) == language_of(language)]
    return language == siblings[zlib.crc32(found.play.__name__.encode()) % len(siblings)]


def language_of(probe):
    return probe if probe.startswith(REFERENCE) else probe.split("-")[0]


class Play(pytest.Item):
    def __init__(self, *, language, found, broken, **rest):
        super().__init__(**rest)
        self.language, self.found, self.broken = language, found, broken
        self.user_properties += [("scenario", found.play.__name__), ("number", found.number), ("language", language)]
        self.user_properties += [("broken", broken)]

    def runtest(self):
        is_gate = self.config.getoption("--gate")
        world = World(languages.PROBES[self.language], self.language, is_gate=is_gate)
        try:
            if not self.broken:
                self.found.play(world)
                return
            self.found.canary(world)
            world.patience_s = 6
            try:
                self.found.play(world)
            except AssertionError:
                return
            raise RuntimeError("the canary passed: the scenario does not notice what it is for")
        except BaseException:
            print(world.log_text())
            raise
        finally:
            world.close()

    def repr_failure(self, excinfo, style=None):
        return "".join(traceback.format_exception(excinfo.type, excinfo.value, excinfo.tb)[-6:])

    def reportinfo(self):
        return self.path, self.found.play.__code__.co_firstlineno, self.name


def pytest_terminal_summary(terminalreporter, config):
    results, numbers = {}, {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            known = dict(report.user_properties)
            if "scenario" not in known:
                continue
            name = known["scenario"]
            numbers[name] = known["number"]
            cell = results.setdefault(name, {}).setdefault(known["language"], {})
            cell["canary" if known["broken"] else "plays"] = outcome == "passed"
    if not results:
        return
    columns = sorted({language for row in results.values() for language in row})
    lines = [f"| | scenario | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for name in sorted(results, key=lambda name: (numbers[name], name)):
        cells = [mark(results[name].get(language)) for language in columns]
        lines.append(f"| {numbers[name]} | {name.replace('_', ' ')} | {' | '.join(cells)} |")
    path = Path(os.environ.get("DQ_SUITE_OUT", Path(__file__).parents[2] / "target" / "suite"))
    path.mkdir(parents=True, exist_ok=True)
    (path / "table.md").write_text("\n".join(lines) + "\n")
    terminalreporter.write_line("\n".join(["", *lines]))


def mark(cell):
    if cell is None:
        return "-"
    plays = {True: "yes", False: "NO", None: "-"}[cell.get("plays")]
    return plays + {True: "", False: ", CANARY PASSED", None: ""}[cell.get("canary")]
