"""The lines for this library in docs/operations.md, as they are printed, permit every feature."""

import asyncio
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from running import PATIENCE_S, running, until

import dq
import dq.asyncio
from dq._core import Handlers

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
NAMES = ("library-producer", "library-worker")


def line(name):
    (found,) = [line.split() for line in PAGE.read_text().splitlines() if line.strip().startswith(f"user {name} ")]
    return [word.replace("orders", "q") for word in found[2:]]


@pytest.fixture
def rights(dq_server, dq_url):
    for name in NAMES:
        dq_server.client.execute_command("ACL", "SETUSER", name, "reset", *line(name))
    yield lambda name: dq_url.replace("unix://", f"unix://{name}:CHANGE-ME@")
    dq_server.client.execute_command("ACL", "DELUSER", *NAMES)


ACTS = {
    "done": lambda job: None,
    **dict.fromkeys(("lost1", "lost2"), lambda job: None),
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
        with pytest.raises(dq.Refused, match=r"DQ.POP: NOPERM") as raised:
            queue.pop()
        assert raised.value.code == "NOPERM"


def test_a_program_that_sets_shares(rights, dq_server):
    (words,) = [line.split("`")[1].split() for line in PAGE.read_text().splitlines() if "| `+dq.groupset" in line]
    dq_server.client.execute_command("ACL", "SETUSER", "library-producer", *words)
    with dq.Queue(rights("library-producer"), "q") as queue:
        acme = queue.group("acme")
        assert acme.set(weight=3, max=5, rate=(100, 60), maxlen=9) and acme.pause(60) and acme.stats().paused
        assert acme.resume() and acme.stats().rate == (100, timedelta(minutes=1))
        assert acme.clear() and acme.stats() is None


def act(job):
    return ACTS[job.id](job)


async def act_async(job):
    if job.id == "long":
        await asyncio.sleep(600)
    if job.id == "stepped":
        await job.step("one", lambda: 1)
        await job.wait("signed", 600)
    found = act(job)
    return await found if asyncio.iscoroutine(found) else found


@pytest.mark.parametrize("module", [dq, dq.asyncio])
def test_a_worker(rights, dq_server, queue, monkeypatch, module):
    """Everything that a worker does, on its server and when its lease is renewed."""
    known = Handlers.choose
    monkeypatch.setattr(Handlers, "choose", lambda self, job: None if job.kind == "nobody's" else known(self, job))
    for id in ACTS:
        queue.add(b"\xff" if id == "unreadable" else 1, id=id)
    queue.add(1, id="unknown", kind="nobody's")
    handlers = [dq.Handler(act if module is dq else act_async)]
    handlers += [dq.Handler(handlers[0].function, kind=kind, lease=lease) for kind, lease in (("a", None), ("b", 600))]
    with running(module, rights("library-worker"), *handlers, lease=2, drain=0.1, concurrency=12):
        until(lambda: queue.get("unknown").state == "delayed" and queue.get("long").state == "reserved", "the begin")
        until(
            lambda: queue.len("reserved") == 1 and queue.get("done") is None and queue.len("ready") == 0,
            "all but the long one have ended",
        )
        deadline = queue.get("long").deadline
        dq_server.clock.advance(seconds=1)
        until(lambda: queue.get("long").deadline > deadline, "its lease is renewed")
        until(lambda: any("b" in client["flags"] for client in dq_server.client.client_list()), "a fetch waits")
    states = {id: queue.get(id) and queue.get(id).state for id in ACTS}
    assert states == {
        "done": None,
        "lost1": None,
        "lost2": None,
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


def test_a_consumer(rights, queue):
    for id in "abc":
        queue.add(1, id=id)
    consumer = dq.Consumer(dq.Queue(rights("library-worker"), "q"), lease=600)
    a, b, _ = consumer.fetch(3)
    consumer.ack(a)
    consumer.nack(b, mode="fatal", reason="no")
    consumer.close()
    assert (queue.get("a"), queue.get("b").state, queue.get("c").state) == (None, "dead", "ready")


OPTIONAL = {"+dq.btouch": 1, "+dq.unblock": 1, "+dq.get": 1, "+dq.step": 0, "+dq.add": 0, "+eval": 0, "+client|id": 0}
"""What only features need, and how often the log says that one is off. Else the jobs that need it say it."""


@pytest.mark.parametrize("word", OPTIONAL)
@pytest.mark.parametrize("module", [dq, dq.asyncio])
def test_without_an_optional_right_all_else_goes_on(rights, dq_server, queue, caplog, word, module):
    dq_server.client.execute_command("ACL", "SETUSER", "library-worker", "-" + word[1:])

    def brief(job):
        return job.pause(0.3) if job.id.startswith("brief") else act(job)

    async def brief_async(job):
        return await (asyncio.sleep(0.3) if job.id.startswith("brief") else act_async(job))

    handler = dq.Handler(brief if module is dq else brief_async, attempts=2)
    for id in ("lost1", "lost2"):
        queue.add(1, id=id)
        queue.pop(id=id, ttr=1)
    dq_server.clock.advance(seconds=2)
    queue.reschedule("lost1", "lost2", delay=600)
    with running(module, rights("library-worker"), handler, drain=0.2, lease=600):
        for id in ("brief1", "stepped", "parent", "slept", "failed", "brief2"):
            queue.add(1, id=id)
            until(lambda id=id: getattr(queue.get(id), "state", None) != "ready", f"{id} is begun")
        queue.reschedule("lost1", "lost2", delay=0)
        until(lambda: not queue.get("lost1") and not queue.get("lost2"), "those whose workers were lost are done")
        queue.add(1, id="done")
        until(lambda: queue.get("done") is None, "all else goes on")
    assert queue.len("reserved") == 0
    name = "DQ." + word[4:].upper() if word.startswith("+dq") else word
    said = [line for line in caplog.messages if f"refuses {name}" in line]
    assert len(said) == OPTIONAL[word], caplog.messages


def test_waits_without_the_right_to_end_them(rights, dq_server, dq_url, caplog):
    """A wait for another job begins a little later; those that were there go on."""
    dq_server.client.execute_command("ACL", "SETUSER", "library-producer", "-dq.unblock")
    with dq.Queue(dq_url, "q") as other, dq.Queue(rights("library-producer"), "q") as queue:
        threads = []
        ids = ("first", "second", "third")
        for id in ids:
            queue.add(id, id=id, keep=600, delay=600)
            threads.append(threading.Thread(target=queue.wait, args=(id, 60)))
            threads[-1].start()
            until(lambda id=id: id.encode() in queue._awaiting[b"q"]._waits.covered, "the server knows of it")
        other.reschedule(*ids, delay=0)
        assert dq.Worker(other, lambda job: job.data).drain() == 3
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert len([line for line in caplog.messages if "refuses DQ.UNBLOCK" in line]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_canary_each_right_is_needed(rights, dq_server, dq_url, name):
    """No line permits more than necessary: without any of its words, some of the features above fail."""
    needed = {
        "library-producer": {"+dq.add", "+dq.unblock"},
        "library-worker": {
            "+dq.bpop",
            "+dq.ack",
            "+dq.nack",
            "+dq.touch",
            "+dq.btouch",
            "+dq.step",
            "+dq.get",
            "+dq.unblock",
            "+eval",
        },
    }[name]
    assert needed <= {*line(name)}
    assert not {word for word in line(name) if word.startswith("+@") or word in ("~*", "allkeys", "nopass")}
