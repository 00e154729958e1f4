"""A queue of the session's server."""

import pytest

import dq


@pytest.fixture
def queue(dq_url):
    with dq.Queue(dq_url, "q") as made:
        yield made
