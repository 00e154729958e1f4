"""What `make bench-count` has recorded: the table of instructions."""

import re
from pathlib import Path

from tables import markdown

BENCHES = Path(__file__).resolve().parent.parent
BUILDS = [BENCHES / "counts.txt", BENCHES / "counts-pgo.txt"]

HEAD = [
    "",
    "instructions, plain build",
    "with a profile",
    "at most",
    "the module's, plain build",
    "with a profile",
    "cache misses, plain build",
    "with a profile",
    "at most",
]
# Instructions and misses that were to be reached.
GOALS = {
    "DQ.ADD, delayed": (8300, 200),
    "DQ.POP": (7500, 200),
    "DQ.ACK": (6200, 200),
    "DQ.ADD, delayed, with an AOF": (15_500, None),
}
TOLD = ["DQ.ADD, delayed", "DQ.ADD, ready", "DQ.POP", "DQ.ACK", "DQ.BPOP that waits, and its DQ.ADD",
        "BZPOPMIN that waits, and its ZADD", "DQ.ADD, delayed, with an AOF", "ZADD, with an AOF", "ZADD", "PING"]

OF_GROUPS = ["instructions, the module's own", "without groups", "a group of each", "one in ten with settings"]


def sections():
    plain, profiled = map(recorded, BUILDS)
    return {
        "counts": markdown([HEAD, *(row(name, plain[name], profiled[name]) for name in TOLD)]),
        "group-counts": markdown([OF_GROUPS, *(of_groups(plain, command) for command in ("DQ.ADD", "DQ.POP", "DQ.ACK"))]),
    }


def of_groups(recorded, command):
    alone = "DQ.ADD, ready" if command == "DQ.ADD" else command
    names = [alone, f"{command}, a group of each", f"{command}, 1 in 10 set"]
    return [command, *(f"{recorded[name][1]:,}" for name in names)]


def recorded(path):
    """By command: instructions, those of the module, cache misses."""
    lines = re.findall(r"^([^#\n].*?) +(\d+) +(\d+) +(\d+)$", path.read_text(), re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in lines}


def row(name, plain, profiled):
    most = GOALS.get(name, (None, None))
    ours = [plain[1], profiled[1]] if "DQ" in name else [None, None]
    cells = [plain[0], profiled[0], most[0], *ours, plain[2], profiled[2], most[1]]
    return [name, *("" if cell is None else f"{cell:,}" for cell in cells)]
