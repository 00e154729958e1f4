"""A server, and workers in processes of their own."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "suite"))

from brokers import processes, server, until  # noqa: E402

__all__ = ["process", "server", "until"]

LIMITS = ["--workers", "1", "--max-async-tasks", "2", "--max-prefetch", "1"]
process = processes(["taskiq", "worker", "program:broker", *LIMITS], HERE)


@pytest.fixture
def db(server):
    return server.client()
