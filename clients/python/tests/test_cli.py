"""The command line: what it runs, what it refuses, and how it stops."""

import os
import signal
import subprocess
import sys
import time

import pytest

import dq

PATIENCE_S = 60
PROGRAM = """
import os, dq

@dq.handler
def close(job):
    if job.data == "die" and job.attempt == 1:
        os._exit(3)
    open(os.environ["OUT"] + "/" + job.id, "w").write(os.environ.get("DQ_PROCESS", "alone"))

@dq.handler
async def close_async(job):
    close(job)

def make():
    return dq.Worker(dq.Queue(os.environ["DQ_URL"], "made"), close)

several = [dq.Handler(close.function, kind="a"), dq.Handler(close.function, kind="b")]
"""


@pytest.fixture
def run(tmp_path, dq_url):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "out").mkdir()
    started = []

    def start(*words):
        environment = {**os.environ, "DQ_URL": dq_url, "OUT": str(tmp_path / "out")}
        command = [sys.executable, "-m", "dq", "worker", *words]
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.mark.parametrize(
    "queue, words",
    [
        ("q", ["program:close", "--queue", "q"]),
        ("q", ["program:close_async", "--queue", "q"]),
        ("made", ["program:make"]),
        ("q", ["program:several", "--queue", "other", "--queue", "q"]),
    ],
)
def test_it_runs_what_it_is_given(run, dq_url, tmp_path, queue, words):
    dq.Queue(dq_url, queue).add(1, id="j", kind="b" if "several" in words[0] else None)
    process = run(*words)
    until((tmp_path / "out" / "j").exists, "the job is done")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_several_processes_stop_together_and_one_that_dies_is_started_again(run, dq_url, tmp_path):
    queue = dq.Queue(dq_url, "q")
    queue.add("die", id="killer", ttr=1)
    process = run("program:close", "--queue", "q", "--processes", "2")
    until(lambda: queue.get("killer").state == "reserved", "it is delivered")
    second = dq.testing.server.Clock(queue.client)
    until(lambda: second.advance(seconds=1) and (tmp_path / "out" / "killer").exists(), "it runs in the next process")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    assert "ended with code 3" in process.stderr.read()


@pytest.mark.parametrize(
    "words, said",
    [
        (["program"], "name module and what is in it"),
        (["program:close"], "name their queue, --queue orders"),
        (["nothing:close", "--queue", "q"], "No module named 'nothing'"),
        (["program:closed", "--queue", "q", "--processes", "3"], "has no attribute 'closed'"),
    ],
)
def test_what_cannot_be_run_is_said(run, words, said):
    process = run(*words)
    assert process.wait(PATIENCE_S) == 2
    assert said in process.stderr.read()
