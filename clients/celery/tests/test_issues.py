"""What people report of Celery on Redis: each on kombu's own transport, where it happens, and on dq, where it does not.

kombu#337, celery#2599, celery#1307, celery#3501, celery#9849, celery#4300.
"""

import signal

import pytest
from conftest import until

pytestmark = pytest.mark.long

BOTH = pytest.mark.parametrize("transport", ["redis", "dq"])


def unacked(server, name):
    """Whether kombu's own transport keeps the task as one that a worker has."""
    return any(name.encode() in kept for kept in server.db.hvals("unacked"))


def ran_before(app, server, name, countdown):
    """Whether a task has run before another one that was added later, and is due later."""
    app.note.apply_async(("later",), countdown=countdown).get(timeout=120)
    return server.ran(name)


@BOTH
def test_kombu_337_an_eta_beyond_the_visibility_timeout(server, worker, program, transport):
    """Redis: the task goes back to the queue while the worker holds it, and runs once for each time."""
    app = program(transport, LEASE=3)
    for _ in range(2):
        worker(transport=transport, LEASE=3, EAGER=1)
    app.note.apply_async(("a",), countdown=9)
    if transport == "redis":
        until(lambda: server.ran("a") > 1, "the second run")
    else:
        assert ran_before(app, server, "a", 12) == 1
        until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")


@BOTH
def test_celery_2599_a_visibility_timeout_that_another_worker_does_not_have(server, worker, program, transport):
    """Redis: the timeout of the worker that looks counts for the tasks of all workers."""
    app = program(transport, LEASE=43200)
    worker(transport=transport, LEASE=43200, EAGER=1)
    result = app.hold.delay("a")
    until(lambda: server.ran("a"), "the start")
    worker(transport=transport, LEASE=3, EAGER=1)
    if transport == "redis":
        until(lambda: server.ran("a") > 1, "the second run")
    else:
        assert ran_before(app, server, "a", 8) == 1
        assert server.dq("GET", "celery", result.id)[b"state"] == b"reserved"
    server.trace.set("go:a", 1)


@BOTH
def test_celery_1307_the_server_restarts_while_a_worker_holds_an_eta(durable, worker, program, transport):
    """Redis: for an hour the task stays among those that a worker has, although no worker has it.

    With kombu 5.7 the worker ends, as it cannot put the task back; then its supervisor starts another.
    """
    app = program(transport, at=durable)
    running = worker(at=durable, transport=transport)
    app.note.apply_async(("a",), countdown=8)
    if transport == "redis":
        until(lambda: unacked(durable, "note"), "the delivery")
    durable.kill()
    until(lambda: running.says("Connection to broker lost"), "the loss")
    durable.start()
    until(lambda: running.process.poll() is not None or running.connected() == 2, "the worker's next step")
    if running.process.poll() is not None:
        assert transport == "redis"
        worker(at=durable, transport=transport)
    assert ran_before(app, durable, "a", 12) == (0 if transport == "redis" else 1)
    if transport == "redis":
        assert unacked(durable, "note")


@BOTH
def test_celery_3501_a_killed_worker_s_etas(server, worker, program, transport):
    """Redis: the tasks come back after the visibility timeout (an hour unless set), however soon they are due."""
    app = program(transport)
    lost = worker(transport=transport)
    app.note.apply_async(("a",), countdown=6)
    if transport == "redis":
        until(lambda: unacked(server, "note"), "the delivery")
    lost.kill()
    worker(transport=transport)
    assert ran_before(app, server, "a", 9) == (0 if transport == "redis" else 1)
    if transport == "redis":
        assert unacked(server, "note")


@BOTH
def test_celery_9849_a_worker_holds_all_etas_in_memory(server, worker, program, transport):
    count = 3000
    app = program(transport)
    running = worker(transport=transport)
    app.note.delay("warm").get(timeout=60)
    before = running.rss_mb()
    with app.app.producer_or_acquire() as producer:
        for number in range(count):
            app.note.apply_async((str(number),), countdown=3600, producer=producer, ignore_result=True)
    if transport == "redis":
        until(lambda: server.db.hlen("unacked") == count, "the worker's having them all")
        assert running.rss_mb() - before > 5
    else:
        app.note.delay("last").get(timeout=60)
        assert server.dq("LEN", "celery", "DELAYED") == count
        assert running.rss_mb() - before < 5


def test_a_worker_beside_100_000_etas(server, worker, program):
    """celery#9849: they are none of its memory."""
    app = program()
    app.note.apply_async(("model",), countdown=3600)
    [[_id, payload, due, *_]] = server.dq("PEEK", "celery", "DELAYED")
    alone = worker("--without-gossip", "--without-mingle")
    app.note.delay("first").get(timeout=60)
    before = alone.rss_mb()
    alone.stop()
    for start in range(0, 100_000, 1000):
        pipe = server.db.pipeline(transaction=False)
        for number in range(start, start + 1000):
            pipe.execute_command("DQ.ADD", "celery", f"n{number}", payload, "AT", due)
        pipe.execute()
    running = worker("--without-gossip", "--without-mingle")
    app.note.delay("last").get(timeout=60)
    assert server.dq("LEN", "celery", "DELAYED") == 100_001
    assert running.rss_mb() - before < 5


@BOTH
@pytest.mark.parametrize("how", [signal.SIGTERM, None])
def test_celery_4300_a_revoked_task_runs(server, worker, program, transport, how):
    """Redis: workers remember what is revoked, and a worker that was not there does not know."""
    app = program(transport)
    if how is not None:
        first = worker(transport=transport)
    result = app.note.apply_async(("a",), countdown=8)
    if how is not None and transport == "redis":
        until(lambda: unacked(server, "note"), "the delivery")
    result.revoke()
    if how is not None:
        until(lambda: first.says("flagged as revoked") or transport == "dq", "the revoke")
        first.stop(how)
    worker(transport=transport)
    assert ran_before(app, server, "a", 11) == (1 if transport == "redis" else 0)
