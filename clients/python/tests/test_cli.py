"""The command line: what it runs, what it refuses, and how it stops."""

import os
import signal
import subprocess
import sys

import pytest
from running import PATIENCE_S, until

import dq

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
SHOP = """
from dq.asyncio import Queue
from program import several
import dq, os, program

queue = Queue(os.environ["DQ_URL"], "typed")

@queue.kind
async def sell(job, to: str):
    await program.close_async(job)

@dq.handler(kind="remind")
async def remind(job):
    await program.close_async(job)
"""
BOTH = """
import dq, os, program

typed = dq.Queue(os.environ["DQ_URL"], "typed")
own = dq.Queue(os.environ["DQ_URL"], "own")

@typed.kind("sell")
def sell(to: str): ...

@dq.handler
def close(job):
    program.close.function(job)
"""
WORKER = """
import dq, os, program

worker = dq.Worker(dq.Queue(os.environ["DQ_URL"], "own"))
remind = worker.job("remind")(program.close.function)
"""
WORKERS = """
import dq, own

early = dq.Worker(own.worker.queues, own.remind)
late = dq.Worker(own.worker.queues, own.remind)
all = [early, late]
"""


@pytest.fixture
def run(tmp_path, dq_url):
    texts = {"program": PROGRAM, "shop": SHOP, "own": WORKER, "both": BOTH, "workers": WORKERS}
    texts["empty"] = "import program"
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
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


@pytest.mark.parametrize(
    "queue, words",
    [
        ("q", ["program:close", "--queue", "q"]),
        ("q", ["program:close_async", "--queue", "q"]),
        ("made", ["program:make"]),
        ("q", ["program:several", "--queue", "other", "--queue", "q"]),
        ("q", ["program:several", "own:remind", "--queue", "q"]),
        ("typed", ["shop"]),
        ("own", ["own"]),
        ("own", ["workers:late"]),
        ("own", ["both"]),
        ("other", ["both", "--queue", "other"]),
    ],
)
def test_it_runs_what_it_is_given(run, dq_url, tmp_path, queue, words):
    kinds = {"program:several": "b", "shop": "remind", "own": "remind", "workers:late": "remind"}
    dq.Queue(dq_url, queue).add(1, id="j", kind=kinds.get(words[0]))
    process = run(*words)
    until((tmp_path / "out" / "j").exists, "the job is done")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_several_processes_stop_together_and_one_that_dies_is_started_again(run, queue, tmp_path):
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
        (["empty"], "empty has no worker, and no handler"),
        (["program:make", "own"], "name program:make or own:worker alone"),
        (["own:worker", "own:remind"], "name own:worker alone"),
        (["workers"], "name workers:early or workers:late alone"),
        (["workers:all"], "name workers:all or workers:all alone"),
        (["program:os.getpid"], "makes no worker"),
        (["program", "--queue", "q"], "is no coroutine function"),
        (["program:close"], "name their queue, --queue orders"),
        (["nothing:close", "--queue", "q"], "No module named 'nothing'"),
        (["program:closed", "--queue", "q", "--processes", "3"], "has no attribute 'closed'"),
    ],
)
def test_what_cannot_be_run_is_said(run, words, said):
    process = run(*words)
    assert process.wait(PATIENCE_S) == 2
    assert said in process.stderr.read()


def test_it_starts_again_when_a_file_changes(run, queue, tmp_path):
    """Also after an error of the program, and never in the middle of a job."""
    program, out = tmp_path / "changing.py", tmp_path / "out"

    def write(body):
        program.write_text(f"import dq, os, time\nout = os.environ['OUT']\n@dq.handler\ndef work(job):\n    {body}\n")

    write("open(out + '/began', 'w'); time.sleep(1); open(out + '/' + job.id, 'w').write('old')")
    process = run("changing", "--queue", "q", "--reload")
    queue.add(1, id="slow")
    until((out / "began").exists, "it runs")
    write("no Python")
    until(lambda: queue.get("slow") is None, "the old program ends its job")
    assert (out / "slow").read_text() == "old"
    said = ""
    while "ended with code 1: it is started again when a file changes" not in said:
        said += (line := process.stderr.readline())
        assert line, said
    assert "SyntaxError" in said
    write("open(out + '/' + job.id, 'w').write('new')")
    queue.add(1, id="fast")
    until(lambda: (out / "fast").exists() and (out / "fast").read_text() == "new", "the new program runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
