import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients" / "suite"))

from servers import Server  # noqa: E402


@pytest.fixture
def server():
    made = Server().start()
    yield made
    made.close()
