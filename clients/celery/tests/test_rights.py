"""The rights that docs/operations.md prints are enough for a producer and a worker, with all that they do."""

import pytest
from celery import chord
from celery.exceptions import TaskRevokedError, WorkerLostError
from conftest import Server, until
from kombu.exceptions import OperationalError
from places import PAGE, printed
from servers import free_port


def rights_of_results():
    """What both users need if results are in dq, too."""
    [found] = [each for each in PAGE.read_text().splitlines() if "~celery-results" in each]
    return found.split("`")[1].split()


@pytest.fixture
def guarded():
    port = free_port()
    made = Server(True, "--port", str(port))
    for name in ("celery-producer", "celery-worker"):
        made.db.execute_command("ACL", "SETUSER", name, "reset", *printed(name))
    made.url_of = lambda name: f"dq://{name}:CHANGE-ME@127.0.0.1:{port}/0"
    yield made
    made.close()


def denied(server):
    """redis-py says its name and version to servers that let it."""
    reasons = [entry["object"] for entry in server.db.acl_log()]
    return [reason for reason in reasons if reason != "client|setinfo"]


@pytest.mark.parametrize("pool", ["solo", "prefork"])
def test_a_producer_and_a_worker(guarded, worker, program, pool):
    app = program(at=guarded, BROKER=guarded.url_of("celery-producer"))
    start = {"at": guarded, "BROKER": guarded.url_of("celery-worker"), "pool": pool, "LEASE": 2}
    guarded.dq("CFGSET", "celery", "ATTEMPTS", 2)
    poison = app.hold.delay("poison")
    for n in range(2):
        killed = worker(**start)
        until(lambda n=n: guarded.ran("poison") == n + 1, "the start")
        killed.kill()
    guarded.db.sadd("_kombu.binding.celeryev", "#\x06\x16\x06\x16celeryev.viewer")
    running = worker("-E", **start)
    with pytest.raises(WorkerLostError):
        poison.get(timeout=60)
    guarded.dq("CFGSET", "celery", "ATTEMPTS", 0)
    assert app.note.apply_async(("a",), countdown=0.2, priority=3).get(timeout=60) == "a"
    assert chord([app.note.s("b"), app.note.s("c")])(app.note.si("body")).get(timeout=60) == "body"
    app.again.delay("retried").get(timeout=60)
    app.refuse.delay("requeued", True)
    until(lambda: guarded.ran("requeued") == 2, "the second run")
    app.refuse.delay("dropped", False)
    expired = app.note.apply_async(("expired",), expires=-1)
    with pytest.raises(TaskRevokedError):
        expired.get(timeout=60)
    revoked = app.note.apply_async(("revoked",), countdown=3600)
    stamped = app.note.apply_async(("stamped",), countdown=3600, stamped_headers=["order"], order="17")
    inspect = app.app.control.inspect(timeout=10, limit=1)
    shown = until(inspect.scheduled, "the worker's answer")[running.name]
    assert {each["request"]["id"] for each in shown} == {revoked.id, stamped.id}
    revoked.revoke()
    app.app.control.revoke_by_stamped_headers({"order": "17"})
    assert (revoked.state, stamped.state) == ("REVOKED", "REVOKED")
    app.note.apply_async(("purged",), countdown=3600)
    assert app.app.control.purge() == 1
    held = app.hold.delay("held").id
    until(lambda: guarded.ran("held"), "the start")
    deadline = guarded.dq("GET", "celery", held)[b"deadline"] or 0
    until(lambda: (guarded.dq("GET", "celery", held)[b"deadline"] or 0) > deadline, "a renewal")
    guarded.trace.set("go:held", 1)
    until(lambda: guarded.dq("LEN", "celery") == 0, "the last acknowledgement")
    running.stop()
    assert guarded.dq("LEN", "celeryev.viewer") > 0, "events"
    assert denied(guarded) == []


@pytest.mark.parametrize("withheld", [[], ["dq.reschedule"], ["dq.pop"]])
def test_a_task_that_is_to_run_alone(guarded, worker, program, withheld):
    guarded.db.execute_command("ACL", "SETUSER", "celery-worker", *(f"-{each}" for each in withheld))
    app = program(at=guarded, BROKER=guarded.url_of("celery-producer"))
    suspect = app.good.delay().id
    guarded.suspect(suspect)
    app.hold.delay("before")
    running = worker("-c", "2", at=guarded, BROKER=guarded.url_of("celery-worker"), pool="threads")
    until(lambda: guarded.ran("before"), "the start")
    guarded.dq("RESCHEDULE", "celery", "DELAY", 0, suspect)
    until(lambda: running.says("its last attempt runs alone"), "the suspicion")
    until(lambda: guarded.dq("LEN", "celery", "DELAYED") == 1, "its return")
    if "dq.reschedule" in withheld:
        until(lambda: guarded.dq("LEN", "celery") == 1, "its run beside the other")
    guarded.trace.set("go:before", 1)
    until(lambda: guarded.dq("LEN", "celery") == 0, "the end of both")
    assert guarded.trace.get("good") == "1"
    assert denied(guarded) == withheld


def test_results_in_dq(guarded, worker, program):
    for name in ("celery-producer", "celery-worker"):
        guarded.db.execute_command("ACL", "SETUSER", name, *rights_of_results())
    urls = {each: guarded.url_of(f"celery-{each}") for each in ("producer", "worker")}
    app = program(at=guarded, BROKER=urls["producer"], BACKEND=urls["producer"])
    waited = app.note.delay("a")
    worker(at=guarded, BROKER=urls["worker"], BACKEND=urls["worker"])
    assert waited.get(timeout=60) == "a"
    body = chord([app.note.s("b"), app.note.s("c").set(ignore_result=True)])(app.note.si("body"))
    assert body.get(timeout=60) == "body"
    body.forget()
    until(lambda: guarded.dq("LEN", "celery-results") == 0, "the end of the chord")
    assert denied(guarded) == []


def test_the_rights_are_looked_at(guarded, program):
    guarded.db.execute_command("ACL", "SETUSER", "celery-producer", "-dq.add")
    app = program(at=guarded, BROKER=guarded.url_of("celery-producer"))
    with pytest.raises(OperationalError, match=r"dq\.add"):
        app.note.apply_async(("a",), retry=False)
    assert denied(guarded) == ["dq.add"]
