"""Types: what a program gets wrong, mypy --strict refuses; and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
PROGRAM = Path(__file__).parent / "typed" / "program.py"


def test_mypy_refuses_what_is_wrong_and_nothing_else():
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAM.parents[2]).stdout
    refused = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    wrong = {n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert refused == wrong, found
