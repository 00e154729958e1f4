"""How the probe of each language is started. A language whose probe is not there is left out, and said to be."""

import os
import sys
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1]
PYTHON_PROBE = CLIENTS / "python" / "probe" / "probe.py"


def python(face):
    program = os.environ.get("DQ_PROBE_PYTHON", sys.executable)
    return [program, "-B", str(PYTHON_PROBE), face]


# tools/suite.sh builds the others, and says by the environment what to run: DQ_PROBE_GO, DQ_PROBE_NODE, ...
def launched(name):
    command = os.environ.get(f"DQ_PROBE_{name.upper()}")
    return command.split() if command else None


PROBES = {
    "python": python("sync"),
    "python-asyncio": python("asyncio"),
    "node-ioredis": launched("node_ioredis"),
    "node-redis": launched("node_redis"),
    "go": launched("go"),
    "java-jedis": launched("java_jedis"),
    "java-lettuce": launched("java_lettuce"),
    "java-redisson": launched("java_redisson"),
}


def chosen():
    """Those of the environment's LANGUAGES (a language, or a probe of it), or all that are there."""
    wanted = os.environ.get("LANGUAGES", "").replace(",", " ").split()
    return {
        name: command
        for name, command in PROBES.items()
        if command and (not wanted or name in wanted or name.split("-")[0] in wanted)
    }
