"""Cores, clocks and processes."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

CORES = sorted(os.sched_getaffinity(0))
CLIENT_CORE, SERVER_CORE = CORES[0], CORES[-1]
PATIENCE_S = 60


def pin_to_client_core():
    os.sched_setaffinity(0, {CLIENT_CORE})


@contextlib.contextmanager
def on_server_core():
    """A process starts on the core of the one that starts it."""
    os.sched_setaffinity(0, {SERVER_CORE})
    try:
        yield
    finally:
        pin_to_client_core()


def cpu_s(pid):
    """CPU time that a process has used, all its threads together, to the nanosecond."""
    per_process = 2
    return time.clock_gettime((~pid << 3) | per_process)


def resident_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} tells no VmRSS")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience_s} s")
        time.sleep(0.01)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def end(process):
    """With all that it started: it has a session of its own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def description():
    cpu = Path("/proc/cpuinfo").read_text()
    models = [line.split(": ", 1)[1] for line in cpu.splitlines() if line.startswith("model name")]
    model = models[0] if models else "unknown CPU"
    load = os.getloadavg()[0]
    kernel = os.uname().release.split("-")[0]
    return f"{model}, {len(CORES)} cores, Linux {kernel}, load {load:.2f} when it began"
