"""How the probe of each language is started. A language whose probe is not there is left out, and said to be."""

import os
import sys
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1]
OUT = Path(os.environ.get("DQ_SUITE_OUT", CLIENTS.parent / "target" / "suite"))
PYTHON_PROBE = CLIENTS / "python" / "probe" / "probe.py"


def python(face):
    program = os.environ.get("DQ_PROBE_PYTHON", sys.executable)
    return [program, str(PYTHON_PROBE), face]


# tools/testing/suite.sh builds the others; the environment may name one, as DQ_PROBE_GO.
def launched(name):
    command = os.environ.get(f"DQ_PROBE_{name.upper().replace('-', '_')}")
    if command:
        return command.split()
    built = OUT / "probes" / name
    return [str(built)] if built.exists() else None


BUILT = ("node-ioredis", "node-redis", "go", "java-jedis", "java-lettuce", "java-redisson", "rust")
PROBES = {
    "python": python("sync"),
    "python-asyncio": python("asyncio"),
    **{name: launched(name) for name in BUILT},
}


def chosen():
    """Those of the environment's LANGUAGES (a language, or a probe of it), or all that are there."""
    wanted = os.environ.get("LANGUAGES", "").replace(",", " ").split()
    return {
        name: command
        for name, command in PROBES.items()
        if command and (not wanted or name in wanted or name.split("-")[0] in wanted)
    }
