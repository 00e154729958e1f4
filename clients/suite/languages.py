"""How the probe of each language is started. A language whose probe is not there is left out, and said to be."""

import functools
import os
import subprocess
from pathlib import Path

from forked import Fork

CLIENTS = Path(__file__).resolve().parents[1]
OUT = Path(os.environ.get("DQ_SUITE_OUT", CLIENTS.parent / "target" / "suite"))


def start(command, log):
    with open(log, "ab") as errors:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )


# tools/testing/suite.sh builds the others; the environment may name one, as DQ_PROBE_GO.
def launched(name):
    command = os.environ.get(f"DQ_PROBE_{name.upper().replace('-', '_')}")
    built = OUT / "probes" / name
    if command or built.exists():
        return functools.partial(start, command.split() if command else [str(built)])
    return None


BUILT = ("node-ioredis", "node-redis", "go", "java-jedis", "java-lettuce", "java-redisson", "rust")
# Each starts one, whose standard error goes to a log.
PROBES = {
    "python": functools.partial(Fork, "sync"),
    "python-asyncio": functools.partial(Fork, "asyncio"),
    **{name: launched(name) for name in BUILT},
}


def chosen():
    """Those of the environment's LANGUAGES (a language, or a probe of it), or all that are there."""
    wanted = os.environ.get("LANGUAGES", "").replace(",", " ").split()
    return {
        name: starting
        for name, starting in PROBES.items()
        if starting and (not wanted or name in wanted or name.split("-")[0] in wanted)
    }
