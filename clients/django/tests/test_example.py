"""The example project, with its own server and its worker."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "example"
PATIENCE_S = 60


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return value


@pytest.fixture
def manage(dq_url, tmp_path):
    environment = {**os.environ, "DQ_URL": dq_url, "SHOP_DB": str(tmp_path / "db"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    started = []

    def start(*words):
        command = [sys.executable, EXAMPLE / "manage.py", *words]
        started.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        print(each.communicate()[1])


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url, data=None):
    try:
        with urllib.request.urlopen(url, data) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def test_the_example_project(manage, clock):
    assert manage("migrate", "--run-syncdb", "-v", "0").wait(PATIENCE_S) == 0
    assert manage("check").wait(PATIENCE_S) == 0
    site = f"http://127.0.0.1:{free_port()}"
    manage("runserver", "--noreload", site.removeprefix("http://"))
    placed = until(lambda: ask(f"{site}/orders/17", b""), "the site answers")
    result = f"{site}/results/{placed['confirmation']}"
    assert ask(result) == {"status": "READY", "value": None} and ask(f"{site}/results/mails:1") == 404
    worker = manage("dqworker", "--concurrency", "2")
    done = {"status": "SUCCESSFUL", "value": "confirmed order 17"}
    until(lambda: ask(result) == done, "the order is confirmed")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
