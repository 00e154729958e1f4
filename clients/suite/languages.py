"""How each language's probe is started. A language without a probe is left out, with a message."""

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


# tools/testing/suite.sh builds the probes; an environment variable such as DQ_PROBE_GO may name another one.
def launched(name):
    command = os.environ.get(f"DQ_PROBE_{name.upper().replace('-', '_')}")
    built = OUT / "probes" / name
    if command or built.exists():
        return functools.partial(start, command.split() if command else [str(built)])
    return None


BUILT = ("node-ioredis", "node-redis", "go", "java-jedis", "java-lettuce", "java-redisson", "rust")
# Each entry starts a probe, whose standard error goes to a log.
PROBES = {
    "python": functools.partial(Fork, "sync"),
    "python-asyncio": functools.partial(Fork, "asyncio"),
    **{name: launched(name) for name in BUILT},
}


def chosen():
    """The languages (or probes) that the environment's LANGUAGES names, or all that exist."""
    wanted = os.environ.get("LANGUAGES", "").replace(",", " ").split()
    return {
        name: starting
        for name, starting in PROBES.items()
        if starting and (not wanted or name in wanted or name.split("-")[0] in wanted)
    }
