"""The lines for this library in docs/operations.md, as they are printed, permit every feature."""

import asyncio
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
import redis

import dq
import dq.asyncio

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
NAMES = ("library-producer", "library-worker")
PATIENCE_S = 60


def line(name):
    (found,) = [line.split() for line in PAGE.read_text().splitlines() if line.strip().startswith(f"user {name} ")]
    return [word.replace("orders", "q") for word in found[2:]]


@pytest.fixture
def rights(dq_server, dq_url):
    for name in NAMES:
        dq_server.client.execute_command("ACL", "SETUSER", name, "reset", *line(name))
    yield lambda name: dq_url.replace("unix://", f"unix://{name}:CHANGE-ME@")
    dq_server.client.execute_command("ACL", "DELUSER", *NAMES)


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


ACTS = {
    "done": lambda job: None,
    "failed": lambda job: 1 / 0,
    "retried": lambda job: (_ for _ in ()).throw(dq.Retry(60)),
    "snoozed": lambda job: (_ for _ in ()).throw(dq.Snooze(60, "later")),
    "dead": lambda job: (_ for _ in ()).throw(dq.GiveUp("no")),
    "unreadable": lambda job: job.data,
    "long": lambda job: job.pause(600),
    "slept": lambda job: job.sleep("nap", 600),
    "stepped": lambda job: job.step("one", lambda: 1) and job.wait("signed", 600),
    "parent": lambda job: job.spawn([{"data": 1, "delay": 600}]),
}


def test_a_producer(rights):
    with dq.Queue(rights("library-producer"), "q") as queue:
        queue.add(1, id="a", delay=60, kind="k", headers={"x": "y"}, group="g", backoff=[1])
        queue.add_many([{"data": 1}, {"data": 2, "at": datetime.now(timezone.utc)}])
        queue.add_many([{"data": n} for n in range(3)])
        queue.chain([{"data": 1}, {"data": 2}])
        assert queue.signal("a", "signed", 1) and queue.result("a") is None
        with pytest.raises(dq.JobFailed, match="unknown"):
            queue.wait("nobody", timeout=60)
        with pytest.raises(dq.TimedOut):
            queue.wait("a", timeout=0.1)
        queue.every(60, id="e")
        queue.cron("0 9 * * *", id="c")
        assert queue.get("a").group == "g" and queue.len() > 0
        assert queue.reschedule("a", delay=5) == 1 and queue.delete("a") == 1
        with pytest.raises(redis.exceptions.NoPermissionError):
            queue.pop()


def work(queue, mine, start, stop):
    """Everything that a worker does, on its server and when its lease is renewed."""
    for id in ACTS:
        queue.add(b"\xff" if id == "unreadable" else 1, id=id)
    queue.add(1, id="unknown", kind="nobody's")
    start()
    until(lambda: queue.get("unknown").state == "delayed" and queue.get("long").state == "reserved", "all have begun")
    until(
        lambda: queue.len("reserved") == 1 and queue.get("done") is None and queue.len("ready") == 0,
        "all but the long one have ended",
    )
    deadline = queue.get("long").deadline
    mine.clock.advance(seconds=1)
    until(lambda: queue.get("long").deadline > deadline, "its lease is renewed")
    until(lambda: any("b" in client["flags"] for client in mine.client.client_list()), "a fetch waits")
    stop()
    states = {id: queue.get(id) and queue.get(id).state for id in ACTS}
    assert states == {
        "done": None,
        "failed": "delayed",
        "retried": "delayed",
        "snoozed": "delayed",
        "dead": "dead",
        "unreadable": "dead",
        "long": "ready",
        "slept": "delayed",
        "stepped": "delayed",
        "parent": "blocked",
    }


OPTIONS = {"lease": 2, "drain": 0.1, "concurrency": 12}


def test_a_worker(rights, dq_server, dq_url):
    worker = dq.Worker(dq.Queue(rights("library-worker"), "q"), **OPTIONS)

    @worker.job("k")
    def kind(job): ...

    @worker.job("nothing else", lease=600)
    def other(job): ...

    worker._handlers.add(dq.Handler(lambda job: ACTS[job.id](job)))
    known = worker._handlers.choose
    worker._handlers.choose = lambda job: None if job.kind == "nobody's" else known(job)
    work(dq.Queue(dq_url, "q"), dq_server, worker.start, lambda: (worker.stop(), worker.join()))


def test_a_worker_of_asyncio(rights, dq_server, dq_url):
    thread, hold = None, {}

    async def act(job):
        if job.id == "long":
            await asyncio.sleep(600)
        if job.id == "stepped":
            await job.step("one", lambda: 1)
            await job.wait("signed", 600)
        found = ACTS[job.id](job)
        if found is not None:
            await found

    async def main():
        worker = dq.asyncio.Worker(dq.asyncio.Queue(rights("library-worker"), "q"), act, **OPTIONS)
        known = worker._handlers.choose
        worker._handlers.choose = lambda job: None if job.kind == "nobody's" else known(job)
        hold.update(worker=worker, loop=asyncio.get_running_loop())
        await worker.run(signals=False)

    thread = threading.Thread(target=lambda: asyncio.run(main()))

    def stop():
        hold["loop"].call_soon_threadsafe(hold["worker"].stop)
        thread.join(PATIENCE_S)

    work(dq.Queue(dq_url, "q"), dq_server, thread.start, stop)


def test_a_consumer(rights, dq_url):
    queue = dq.Queue(dq_url, "q")
    for id in "abc":
        queue.add(1, id=id)
    consumer = dq.Consumer(dq.Queue(rights("library-worker"), "q"), lease=600)
    a, b, _ = consumer.fetch(3)
    consumer.ack(a)
    consumer.nack(b, mode="fatal", reason="no")
    consumer.close()
    assert (queue.get("a"), queue.get("b").state, queue.get("c").state) == (None, "dead", "ready")


@pytest.mark.parametrize("name", NAMES)
def test_canary_each_right_is_needed(rights, dq_server, dq_url, name):
    """No line permits more than necessary: without any of its words, some of the features above fail."""
    needed = {
        "library-producer": {"+dq.add"},
        "library-worker": {"+dq.bpop", "+dq.ack", "+dq.nack", "+dq.touch", "+dq.btouch", "+dq.step", "+eval"},
    }[name]
    assert needed <= {*line(name)}
    assert not {word for word in line(name) if word.startswith("+@") or word in ("~*", "allkeys", "nopass")}
