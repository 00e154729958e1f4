"""The packages of the worker libraries, each in a clean environment: they run the ten lines of their READMEs.

A language has a script in tools/packages: `build FOLDER`, and `check FOLDER WORK` with DQ_URL. One whose tools are missing
is left out, unless CI=true: then they are installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "suite"))

from servers import Server  # noqa: E402

SCRIPTS = ROOT / "tools" / "packages"
NEEDS = {"node": "node20", "celery": "python", "dramatiq": "python", "taskiq": "python"}
ROUNDS = {"node": 2, "java": 3, "go": 2}  # one beside each client; in Go another producer adds one
PATIENCE_S = 600


def is_missing(language):
    need = NEEDS.get(language, language)
    if os.environ.get("CI") == "true":
        subprocess.run([ROOT / "tools/install/setup.sh", need], check=True)
        return False
    return subprocess.run([ROOT / "tools/install/setup.sh", "--check", need]).returncode != 0


@pytest.fixture
def server():
    made = Server().start()
    yield made
    made.close()


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda script: script.stem)
def test_the_package_runs_the_ten_lines(script, server, tmp_path):
    if is_missing(script.stem):
        pytest.skip(f"{script.stem} is not installed here")
    packages, work = tmp_path / "packages", tmp_path / "work"
    packages.mkdir()
    work.mkdir()
    subprocess.run([script, "build", packages], check=True, timeout=PATIENCE_S)
    assert list(packages.iterdir())
    environment = {**os.environ, "DQ_URL": server.url}
    subprocess.run([script, "check", packages, work], check=True, timeout=PATIENCE_S, env=environment)
    stats = server.client().execute_command("INFO", "dq")
    assert stats["dq_acked_total"] == ROUNDS.get(script.stem, 1), stats
    assert server.client().execute_command("DQ.LEN", "orders") == 0
