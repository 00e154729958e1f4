"""The built wheel, in a clean environment, runs the ten lines of the README."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def first_block():
    text = (ROOT / "README.md").read_text()
    return text.split("```python\n", 1)[1].split("```", 1)[0]


PROGRAM = """
import os, signal, threading
from datetime import timedelta
import dq

done = []

def close_order(order):
    done.append(order)
    os.kill(os.getpid(), signal.SIGTERM)

{lines}

assert done == [17], done
"""


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="takes long: with CI=true only")
def test_the_wheel_runs_the_ten_lines(tmp_path, dq_server, dq_url):
    subprocess.run([sys.executable, "-m", "build", "-q", "-o", tmp_path, ROOT], check=True)
    names = {path.suffix for path in tmp_path.iterdir()}
    assert names == {".whl", ".gz"}
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    lines = first_block().replace("redis://localhost", dq_url).replace("timedelta(minutes=30)", "0")
    subprocess.run([python, "-c", PROGRAM.format(lines=lines)], check=True, timeout=60, cwd=tmp_path)
