"""A server, a broker on it, and workers: in this process, or in one of their own."""

import sys
from pathlib import Path

import dramatiq
import pytest

from dq_dramatiq import DqBroker

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "suite"))

from brokers import processes, server, until  # noqa: E402
from servers import Server  # noqa: E402

__all__ = ["process", "server", "until"]

process = processes(["dramatiq", "program", "--processes", "1", "--threads", "2"], HERE)


@pytest.fixture
def durable():
    """A server that has all its data again after a restart."""
    made = Server("--appendfsync", "always").start()
    yield made
    made.close()


@pytest.fixture
def brokers():
    """Makes the program's broker: ``brokers(server, lease=3000)``."""
    made = []

    def make(server, **options):
        made.append(DqBroker(url=server.url, **options))
        dramatiq.set_broker(made[-1])
        made[-1].emit_after("process_boot")
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@pytest.fixture
def broker(server, brokers):
    return brokers(server)


@pytest.fixture
def work():
    """Starts a worker on a broker, in this process."""
    started = []

    def start(broker, threads=4):
        started.append(dramatiq.Worker(broker, worker_timeout=100, worker_threads=threads))
        started[-1].start()
        return started[-1]

    yield start
    for worker in started:
        worker.stop()
