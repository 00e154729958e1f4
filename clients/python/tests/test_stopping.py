"""What a program without logging of its own prints, and what Ctrl-C says."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from running import until

import dq
from dq._line import Line

SOURCES = Path(__file__).parents[1] / "src"
LINE = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} dq (INFO|WARNING|ERROR): "

SYNC = """
import sys, dq
def handle(job):
    if job.data == "fail": raise ValueError("no paper")
    print(f"begun {job.id}\\n", end="", flush=True)  # in one piece
    job.pause(600) if job.data == "told" else __import__("time").sleep(600)
dq.Worker(dq.Queue(sys.argv[1], "q"), handle, concurrency=3, drain=float(sys.argv[2])).run()
"""
ASYNC = """
import sys, dq, dq.asyncio, asyncio
async def handle(job):
    if job.data == "fail": raise ValueError("no paper")
    print("begun", job.id, flush=True)
    await asyncio.sleep(600)
async def main():
    queue = dq.asyncio.Queue(sys.argv[1], "q")
    await dq.asyncio.Worker(queue, handle, concurrency=3, drain=float(sys.argv[2])).run()
asyncio.run(main())
"""


@contextlib.contextmanager
def run(program, url, drain, set_up=""):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", set_up + program, url, str(drain)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def begun(process, count):
    assert [process.stdout.readline().split()[0] for _ in range(count)] == ["begun"] * count


@pytest.mark.parametrize("program", [SYNC, ASYNC])
def test_ctrl_c_says_for_whom_it_waits_and_what_it_gave_back(dq_url, queue, program):
    queue.add("fail", id="failed", backoff=[600])
    for n in range(3):
        queue.add("told", id=f"j{n}")
    with run(program, dq_url, 0.2) as process:
        begun(process, 3)
        process.send_signal(signal.SIGINT)
        lines = process.communicate(timeout=60)[1].splitlines()
    said = [re.sub(LINE, "", line) for line in lines if re.match(LINE, line)]
    assert said[0] == "started: queue 'q', concurrency 3"
    assert said[1] == "job 'failed' failed, attempt 1"
    assert said[2] == "stopping: waiting up to 0.2 s for 3 handlers; stop again to give the jobs back now"
    assert re.fullmatch(r"stopped: queue 'q', gave back 3 jobs: ('j\d'(, )?){3}", said[3])
    assert process.returncode == 0 and queue.len("ready") == 3
    assert "ValueError: no paper" in "".join(lines)
    frames = [line for line in lines if line.lstrip().startswith("File ")]
    assert [str(SOURCES) in frame for frame in frames] == [True, False], frames


def test_what_ended_is_written_although_its_thread_comes_to_nothing_any_more(dq_server, queue, monkeypatch):
    """As on a busy machine: the server stands still, and the batcher has not left the line when the worker ends."""
    is_free, leave = threading.Event(), Line.leave
    monkeypatch.setattr(Line, "leave", lambda *args: is_free.wait(60) and leave(*args))
    starts, ends, ended = threading.Semaphore(0), [threading.Event() for _ in range(4)], threading.Semaphore(0)

    def handle(job):
        starts.release()
        ends[job.data].wait(60)

    class Hooks(dq.Hooks):
        def after(self, job):
            ended.release()

    queue.add_many([{"data": n} for n in range(4)])
    worker = dq.Worker(queue, handle, concurrency=4, drain=0.1, hooks=[Hooks()])
    worker.start()
    for _ in ends:
        assert starts.acquire(timeout=60)
    (link,) = worker._links
    until(lambda: link._control.client_id, "the batcher's connection")
    os.kill(dq_server._process.pid, signal.SIGSTOP)
    try:
        for n, end in enumerate(ends):  # one goes with a fetch, one is sent, others wait for the answer to that
            end.set()
            assert ended.acquire(timeout=60)
            if n < 2:
                until(lambda: link.is_telling() and not link._outcomes, "it is sent")
        worker.stop()
        worker.join()
    finally:
        os.kill(dq_server._process.pid, signal.SIGCONT)
        is_free.set()
    until(lambda: not queue.len(), "all ends are written")


@pytest.mark.parametrize("program", [SYNC, ASYNC])
def test_a_second_ctrl_c_does_not_wait(dq_url, queue, program):
    queue.add("told", id="j")
    with run(program, dq_url, 600) as process:
        begun(process, 1)
        process.send_signal(signal.SIGINT)
        assert "started: queue 'q'" in process.stderr.readline()
        first = process.stderr.readline()
        assert "waiting up to 600 s for one handler" in first, first
        process.send_signal(signal.SIGINT)
        last = process.communicate(timeout=60)[1].splitlines()[-1]
    assert last.endswith("stopped: queue 'q', gave back 1 job: 'j'") and queue.get("j").state == "ready"


def test_a_program_with_logging_of_its_own_has_its_lines_alone(dq_url, queue):
    queue.add("told", id="j")
    set_up = "import logging; logging.basicConfig(level='INFO', format='mine %(message)s')\n"
    with run(SYNC, dq_url, 0.1, set_up) as process:
        begun(process, 1)
        process.send_signal(signal.SIGTERM)
        lines = process.communicate(timeout=60)[1].splitlines()
    assert lines and all(line.startswith("mine ") for line in lines)
