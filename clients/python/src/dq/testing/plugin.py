"""The pytest plugin: one server for the session, empty for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Clock, TestServer


@pytest.fixture(scope="session")
def dq_server() -> Iterator[TestServer]:
    """A server with the module and its test clock, by the variables DQ_SERVER and DQ_MODULE."""
    with TestServer() as server:
        yield server


@pytest.fixture
def dq_url(dq_server: TestServer) -> str:
    """The URL of the server, which is emptied first."""
    dq_server.client.flushall()
    return dq_server.url


@pytest.fixture
def clock(dq_server: TestServer, dq_url: str) -> Clock:
    """The server's clock: ``clock.advance(days=30)``."""
    return dq_server.clock
