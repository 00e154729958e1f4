"""Celery's worker, in a process of its own."""

import contextlib
import json
import os
import signal
import time

import pytest
from celery import chord
from celery.exceptions import ChordError, TaskRevokedError, WorkerLostError
from conftest import until
from kombu import serialization

from dq_celery import deaths, jobs

GREEN = ["gevent", "eventlet"]
# One of them does for each change: what they share is ours.
EACH_GREEN = ["gevent", pytest.param("eventlet", marks=pytest.mark.long)]


@pytest.fixture(params=["solo", "threads", "prefork", *GREEN])
def pool(request):
    if request.param in GREEN:
        pytest.importorskip(request.param)
    return request.param


def test_tasks_run_in_every_pool(server, worker, program, pool):
    app = program()
    worker("-c", "2", pool=pool)
    results = [app.note.delay(f"n{number}") for number in range(5)]
    assert [result.get(timeout=60) for result in results] == [f"n{number}" for number in range(5)]
    until(lambda: server.dq("LEN", "celery") == 0, "the last acknowledgement")


@pytest.mark.parametrize("pool", ["solo", "threads", "prefork"], indirect=True)
def test_a_retry_that_the_full_server_refuses_comes_again_and_counts(server, worker, program, pool):
    app = program(BACKEND="disabled://")
    worker("-c", "1", pool=pool, BACKEND="disabled://")
    server.trace.set("hold:kept", 1)
    id = app.much_later.delay("kept").id
    until(lambda: server.trace.llen("retries"), "the start")
    server.db.config_set("maxmemory", 1)
    server.trace.delete("hold:kept")
    job = until(lambda: (job := server.dq("GET", "celery", id))[b"reason"] and job, "the return")
    assert (job[b"state"], job[b"reason"][:22]) == (b"delayed", b"retry 1 was not added:")
    assert job[b"due"] > (time.time() + 3000) * 1000
    server.db.config_set("maxmemory", 0)
    server.dq("RESCHEDULE", "celery", "DELAY", 0, id)
    until(lambda: server.trace.lrange("retries", 0, -1) == ["0", "1"], "the second run")
    job = until(lambda: (job := server.dq("GET", "celery", id))[b"attempts"] == 0 and job, "its retry")
    assert json.loads(job[b"payload"])["headers"]["retries"] == 2


def test_an_eta_waits_in_the_server(server, worker, program, pool):
    app = program()
    worker("-c", "2", pool=pool)
    far = app.note.apply_async(("far",), countdown=3600)
    near = app.note.apply_async(("near",), countdown=0.5)
    assert near.get(timeout=60) == "near"
    assert server.dq("GET", "celery", far.id)[b"state"] == b"delayed"
    until(lambda: server.dq("LEN", "celery") == 1, "the acknowledgement")
    assert server.ran("far") == 0


@pytest.mark.parametrize("pool", ["solo", "prefork"])  # Celery's pool of threads finishes what it was given
def test_a_worker_that_stops_finishes_what_runs_and_gives_back_the_rest(server, worker, program, pool):
    app = program()
    slow = worker("-c", "1", pool=pool)
    for name in ("a", "b", "c"):
        app.hold.delay(name)
    until(lambda: server.ran("a"), "the start of the first")
    slow.process.send_signal(signal.SIGTERM)
    until(lambda: slow.says("Warm shutdown"), "the shutdown")
    server.trace.set("go:a", 1)
    slow.stop()
    assert server.trace.lrange("done", 0, -1) == ["a"]
    assert (server.dq("LEN", "celery", "READY"), server.dq("LEN", "celery", "RESERVED")) == (2, 0)
    for name in ("b", "c"):
        server.trace.set(f"go:{name}", 1)
    worker("-c", "1", pool=pool)
    until(lambda: server.trace.llen("done") == 3, "the others")
    # They had not been started, so they do not count as redelivered.
    assert [server.trace.get(f"redelivered:{name}") for name in "abc"] == ["0", "0", "0"]


@pytest.mark.parametrize("pool", ["threads", *EACH_GREEN], indirect=True)
def test_a_pool_that_finishes_what_it_was_given_loses_nothing(server, worker, program, pool):
    app = program()
    slow = worker("-c", "1", pool=pool)
    for name in ("a", "b", "c", "d", "e", "f"):
        app.hold.delay(name)
    until(lambda: server.ran("a"), "the start of the first")
    slow.process.send_signal(signal.SIGTERM)
    until(lambda: slow.says("Warm shutdown"), "the shutdown")
    for name in "abcdef":
        server.trace.set(f"go:{name}", 1)
    slow.stop()
    assert server.dq("LEN", "celery", "RESERVED") == 0
    worker("-c", "1", pool=pool)
    until(lambda: server.dq("LEN", "celery") == 0, "the others")
    assert sorted(server.trace.lrange("done", 0, -1)) == list("abcdef")


def test_a_long_task_keeps_its_lease(server, worker, program, pool):
    app = program()
    worker("-c", "1", pool=pool, LEASE=6)
    result = app.hold.delay("long")
    until(lambda: server.ran("long"), "the start")
    first = server.dq("GET", "celery", result.id)[b"deadline"]
    until(lambda: (server.dq("GET", "celery", result.id)[b"deadline"] or 0) > first, "the renewal")
    server.trace.set("go:long", 1)
    result.get(timeout=60)
    assert server.ran("long") == 1


@pytest.mark.parametrize("pool", ["solo", "threads", "prefork"], indirect=True)
def test_a_task_that_keeps_the_interpreter_busy_keeps_its_lease(server, worker, program, pool):
    app = program()
    worker("-c", "2", pool=pool, LEASE=6)
    result = app.spin.delay("busy")
    until(lambda: server.ran("busy"), "the start")
    for _ in range(2):
        last = server.dq("GET", "celery", result.id)[b"deadline"]
        until(lambda last=last: (server.dq("GET", "celery", result.id)[b"deadline"] or 0) > last, "a renewal")
    server.trace.set("go:busy", 1)
    result.get(timeout=60)
    assert server.ran("busy") == 1


def test_a_worker_that_stood_still_does_not_run_what_another_one_ran(server, worker, program):
    app = program()
    still = worker(LEASE=3)
    until(lambda: any(client["cmd"] == "dq.bpop" for client in server.db.client_list()), "the wait")
    still.process.send_signal(signal.SIGSTOP)
    late = app.note.delay("late").id
    until(lambda: server.dq("GET", "celery", late)[b"state"] == b"reserved", "the delivery that nobody reads")
    until(lambda: server.dq("GET", "celery", late)[b"state"] == b"ready", "the end of its lease")
    other = worker()
    until(lambda: server.dq("GET", "celery", late) is None, "the run by the other worker")
    other.stop()
    still.process.send_signal(signal.SIGCONT)
    app.note.delay("next").get(timeout=60)
    still.stop()
    assert (server.ran("late"), server.ran("next")) == (1, 1)


@pytest.mark.parametrize("pool", ["threads", "prefork", *EACH_GREEN], indirect=True)
def test_a_worker_that_stood_still_runs_nothing_that_it_had_fetched_and_lost(server, worker, program, pool):
    app = program()
    still = worker("-c", "1", pool=pool, LEASE=3)
    app.hold.delay("first")
    until(lambda: server.ran("first"), "the start")
    names = ["a"] if pool in GREEN else ["a", "b", "c"]  # those fetch one more than they run
    fetched = [app.note.delay(name).id for name in names]
    until(lambda: server.dq("LEN", "celery", "RESERVED") == 1 + len(names), "the delivery of all")
    os.killpg(still.process.pid, signal.SIGSTOP)
    until(lambda: server.dq("LEN", "celery", "READY") == 1 + len(names), "the end of the leases")
    server.trace.set("go:first", 1)
    other = worker("-c", "1")
    until(lambda: server.dq("LEN", "celery") == 0, "the run by the other worker")
    other.stop()
    os.killpg(still.process.pid, signal.SIGCONT)
    app.note.delay("next").get(timeout=60)
    assert {name: server.ran(name) for name in [*names, "next"]} == dict.fromkeys([*names, "next"], 1)
    # The worker fetches as much as before.
    app.hold.delay("second")
    until(lambda: server.ran("second"), "the start")
    for name in "defgh":
        app.note.delay(name)
    until(lambda: server.dq("LEN", "celery", "RESERVED") > len(names), "the delivery of more")
    # Both the tasks that it had read, and those that only the server had delivered.
    refused = [line for line in still.log.read_text().splitlines() if "is not run" in line]
    assert all(any(id in line for line in refused) for id in fetched)


@pytest.mark.parametrize("pool", ["threads", "prefork", *EACH_GREEN], indirect=True)
def test_a_worker_does_not_run_a_task_beside_itself(server, worker, program, pool):
    app = program()
    busy = worker("-c", "2", pool=pool)
    result = app.hold.delay("a")
    until(lambda: server.ran("a"), "the start")
    # As if the lease had ended while the server could not be reached.
    server.dq("NACK", "celery", result.id)
    until(lambda: busy.says("still runs here"), "the second delivery")
    assert server.ran("a") == 1
    server.trace.set("go:a", 1)
    until(lambda: server.dq("LEN", "celery") == 0, "the second run")
    assert server.ran("a") == 2


@pytest.mark.parametrize("pool", ["solo", *EACH_GREEN], indirect=True)
def test_the_task_of_a_killed_worker_comes_back_when_its_lease_ends(server, worker, program, pool):
    app = program()
    lost = worker(pool=pool, LEASE=3)
    app.hold.delay("a")
    until(lambda: server.ran("a"), "the start")
    lost.kill()
    server.trace.set("go:a", 1)
    worker(pool=pool)
    until(lambda: server.trace.llen("done") == 1, "the second run")
    assert (server.ran("a"), server.trace.get("redelivered:a")) == (2, "1")
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")


def test_a_retry_follows_the_run_that_asked_for_it(server, worker, program):
    app = program()
    worker()
    app.again.delay("a").get(timeout=60)
    assert server.ran("a") == 2
    until(lambda: server.dq("LEN", "celery") == 0, "the last acknowledgement")


def test_what_is_rejected(server, worker, program):
    app = program()
    worker()
    app.refuse.delay("requeued", True)
    until(lambda: server.ran("requeued") == 2, "the second run")
    app.refuse.delay("dropped", False)
    until(lambda: server.ran("dropped") == 1 and server.dq("LEN", "celery") == 0, "the rejection")


def test_an_expired_task_is_recorded_as_revoked(server, worker, program):
    app = program()
    first = app.note.apply_async(("expired",), expires=0.1)
    before_its_eta = app.note.apply_async(("early",), expires=0.1, countdown=3600)
    unwatched = app.note.apply_async(("unwatched",), expires=0.1, ignore_result=True)
    until(lambda: server.dq("GET", "celery", unwatched.id) is None, "the end of what nobody waits for")
    worker()
    for result in (first, before_its_eta):
        with pytest.raises(TaskRevokedError):
            result.get(timeout=60)
    assert server.trace.llen("ran") == 0


def test_a_revoked_task_is_deleted_at_once(server, program):
    app = program()
    results = [app.note.apply_async((name,), countdown=3600) for name in ("a", "b", "c")]
    results[0].revoke()
    app.app.control.revoke([result.id for result in results[1:]])
    assert server.dq("LEN", "celery") == 0
    assert {result.state for result in results} == {"REVOKED"}
    # The task was revoked once: its id can be used again.
    app.note.apply_async(("a",), task_id=results[0].id)
    assert server.dq("LEN", "celery", "READY") == 1


def test_a_revoke_by_stamps_deletes_what_waits_in_the_server(server, worker, program):
    app = program()
    stamped = {"stamped_headers": ["order"], "countdown": 3600}
    ours, listed, other = (
        app.note.apply_async((name,), order=order, **stamped)
        for name, order in (("ours", "17"), ("listed", ["16", "17"]), ("other", "18"))
    )
    plain = app.note.apply_async(("plain",), countdown=3600)
    app.app.control.revoke_by_stamped_headers({"order": "17"}, destination=["w@elsewhere"])
    assert server.dq("LEN", "celery") == 4  # meant for one worker
    app.app.control.revoke_by_stamped_headers({"order": "17"})
    assert (ours.state, listed.state, other.state, plain.state) == ("REVOKED", "REVOKED", "PENDING", "PENDING")
    assert server.dq("LEN", "celery") == 2
    app.app.control.revoke_by_stamped_headers(["order=18"])  # as the command line sends it
    assert (server.dq("LEN", "celery"), other.state) == (1, "REVOKED")


def test_a_revoke_by_stamps_finds_every_task_and_only_those(server, program):
    app = program()
    app.note.apply_async(("model",), stamped_headers=["order"], order="17", countdown=3600)
    [[_id, payload, due, *_]] = server.dq("PEEK", "celery", "DELAYED")
    pipe = server.db.pipeline(transaction=False)
    for number in range(600):
        pipe.execute_command("DQ.ADD", "celery", f"s{number}", payload, "AT", due)
        pipe.execute_command("DQ.ADD", "celery", f"n{number}", payload.replace(b'"17"', b'"18"'), "AT", due)
    pipe.execute_command("DQ.ADD", "celery", "other", b"no message", "AT", due)
    pipe.execute()
    app.app.control.revoke_by_stamped_headers({"order": ["17"]})
    assert server.dq("LEN", "celery") == 601


def test_a_chord_hears_that_one_of_its_tasks_was_revoked(server, worker, program):
    app = program()
    body = chord([app.note.s("a"), app.note.s("b").set(countdown=3600)])(app.note.si("body")).id
    worker()
    waiting = until(lambda: server.dq("PEEK", "celery", "DELAYED"), "the one that waits")
    until(lambda: server.ran("a"), "the other one")
    app.app.control.revoke(waiting[0][0].decode())
    until(lambda: app.app.backend.get_state(body) == "FAILURE", "the end of the chord")
    assert isinstance(app.app.backend.get_result(body), ChordError)
    assert server.ran("body") == 0


def test_a_task_that_is_dead_by_attempts_has_failed(server, worker, program):
    """The task kills each worker that runs it, and only the server sees its end."""
    app = program()
    server.dq("CFGSET", "celery", "ATTEMPTS", 1)
    result = app.hold.delay("poison")
    body = chord([app.note.s("a"), app.hold.s("part")])(app.note.si("body")).id
    lost = [worker(LEASE=2) for _ in range(2)]
    until(lambda: server.ran("poison") and server.ran("part"), "the starts")
    for each in lost:
        each.kill()
    alive = [worker(LEASE=2) for _ in range(2)]
    with pytest.raises(WorkerLostError, match="dead after 1 delivery: lease ended"):
        result.get(timeout=60)
    until(lambda: app.app.backend.get_state(body) == "FAILURE", "the end of the chord")
    until(lambda: server.ran("a"), "the other part")
    assert server.dq("LEN", "celery", "DEAD") == 2
    # Only one worker logs it, however many look.
    said = [each.log.read_text().count(f"[{result.id}] failed") for each in alive]
    assert sum(said) == 1
    server.trace.set("go:poison", 1)
    server.dq("KICK", "celery", "IDS", 1, result.id)
    until(lambda: app.app.backend.get_state(result.id) == "SUCCESS", "the run after all")


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_a_killer_is_dead_and_takes_nobody_along(server, worker, program, pool):
    app = program()
    killer = app.kill.delay()
    for _ in range(100):
        app.good.delay()
    running = None
    while server.dq("LEN", "celery"):
        if running is None or running.process.poll() is not None:
            with contextlib.suppress(AssertionError):  # it was killed before it was ready
                running = worker("-c", "4", pool=pool, LEASE=2)
        time.sleep(0.05)
    with pytest.raises(WorkerLostError, match="attempts used up; its workers were lost"):
        killer.get(timeout=60)
    # A worker without a processor for as long as a lease loses a delivery before the task begins.
    runs = server.trace.lrange("killed", 0, -1)
    assert len(runs) <= 3
    assert runs[2:] in ([], ["1"]), "the last time it had the process for itself"
    assert int(server.trace.get("good")) >= 100
    assert server.dq("LEN", "celery", "DEAD") == 1


@pytest.mark.parametrize("pool", ["threads", "prefork"], indirect=True)
def test_what_is_to_run_alone_keeps_its_last_attempt_when_its_worker_ends(server, worker, program, pool):
    app = program()
    suspect = app.good.delay().id
    server.suspect(suspect)
    app.hold.delay("killer")
    lost = worker("-c", "2", pool=pool, LEASE=2)
    until(lambda: server.ran("killer"), "the start")
    server.dq("RESCHEDULE", "celery", "DELAY", 0, suspect)
    until(lambda: lost.says("its last attempt runs alone"), "the suspicion")
    until(lambda: server.dq("GET", "celery", suspect)[b"state"] != b"reserved", "its return")
    lost.kill()
    assert server.dq("GET", "celery", suspect)[b"attempts"] == 2
    server.trace.set("go:killer", 1)
    worker("-c", "2", pool=pool, LEASE=2)
    until(lambda: server.dq("LEN", "celery") == 0, "the end of both")
    assert (server.trace.get("good"), server.dq("LEN", "celery", "DEAD")) == ("1", 0)


def test_killers_that_two_workers_get_are_dead_and_take_nobody_along(server, worker, program):
    """What a worker holds back for a run of its own does not die of a killer that still runs there."""
    app = program()
    killers = [app.kill.delay()]
    for _ in range(60):
        app.good.delay()
    running = [None, None]
    while server.dq("LEN", "celery"):
        if len(killers) < 4 and server.trace.llen("killed") >= 2 * len(killers):
            killers.append(app.kill.delay())  # when the first ones' victims have few attempts left
        for at, each in enumerate(running):
            if each is None or each.process.poll() is not None:
                with contextlib.suppress(AssertionError):
                    running[at] = worker("-c", "4", pool="threads", LEASE=2)
        time.sleep(0.05)
    for killer in killers:
        with pytest.raises(WorkerLostError, match="attempts used up; its workers were lost"):
            killer.get(timeout=60)
    assert server.trace.llen("killed") <= 3 * len(killers)
    assert int(server.trace.get("good")) >= 60
    assert server.dq("LEN", "celery", "DEAD") == len(killers)


def test_a_task_that_kills_the_processes_of_its_pool_is_dead(server, worker, program):
    app = program()
    killer = app.kill_process.delay()
    for _ in range(100):
        app.good.delay()
    worker("-c", "2", pool="prefork", LEASE=2)
    with pytest.raises(WorkerLostError, match="attempts used up; its workers were lost"):
        killer.get(timeout=60)
    until(lambda: server.dq("LEN", "celery") == 0, "the end of the others")
    assert server.trace.llen("killed") == 3
    assert int(server.trace.get("good")) == 100


def test_an_unknown_task_comes_again_later_and_is_dead_at_last(server, worker, program):
    app = program()
    result = app.app.send_task("new")
    worker(LEASE=2)
    for attempt in range(1, 14):
        until(lambda n=attempt: server.dq("GET", "celery", result.id)[b"attempts"] == n, "its delivery")
        until(lambda: server.dq("GET", "celery", result.id)[b"state"] == b"delayed", "its return")
        job = server.dq("GET", "celery", result.id)
        assert job[b"reason"] == b'unknown kind "new"'
        assert round((job[b"due"] - job[b"failed"]) / 1000) == min(60 * attempt, 3600)
        server.dq("RESCHEDULE", "celery", "DELAY", 0, "IDS", 1, result.id)
    with pytest.raises(WorkerLostError, match="dead after 14 deliveries: unknown kind"):
        result.get(timeout=60)


def test_the_dead_of_one_instant_are_all_taken_once(server, program, monkeypatch):
    app = program()
    monkeypatch.setattr(deaths, "PAGE", 3)
    ids = [b"%d" % number for number in range(20)]
    for id in ids:
        server.dq("ADD", "celery", id, "x", "ATTEMPTS", 1)
    server.dq("POP", "celery", "COUNT", 20, "TTR", 1)
    until(lambda: server.dq("LEN", "celery", "DEAD") == 20, "their deaths")
    with app.app.connection_for_read() as connection:
        channel = connection.default_channel
        assert sorted(id for id, *_ in deaths.take(channel, "celery")) == sorted(ids)
        assert list(deaths.take(channel, "celery")) == []
        server.dq("ADD", "celery", "late", "x")
        server.dq("POP", "celery")
        server.dq("NACK", "celery", "late", "FATAL")
        assert [id for id, *_ in deaths.take(channel, "celery")] == [b"late"]


def test_a_death_is_recorded_though_a_worker_dies_that_records_it(server, program, monkeypatch):
    app = program()
    monkeypatch.setattr(deaths, "CLAIM_MS", 10**9)
    server.dq("ADD", "celery", "a", "x")
    server.dq("POP", "celery")
    server.dq("NACK", "celery", "a", "FATAL")
    with app.app.connection_for_read() as connection:
        channel = connection.default_channel
        assert next(deaths.take(channel, "celery"))[0] == b"a"  # and no more is heard of who asked
        assert list(deaths.take(channel, "celery")) == [], "for a while it is left to that worker"
        monkeypatch.setattr(deaths, "CLAIM_MS", 1)
        assert [id for id, *_ in deaths.take(channel, "celery")] == [b"a"]
        assert list(deaths.take(channel, "celery")) == []


def test_the_dead_are_all_taken_where_one_reply_cannot_hold_them(server, program):
    app = program()
    for id in ("a", "b", "c"):
        server.dq("ADD", "celery", id, bytes(9 << 20))
        [_, _, token, *_] = server.dq("POP", "celery")
        server.dq("NACK", "celery", id, "TOKEN", token, "FATAL")
    with app.app.connection_for_read() as connection:
        assert [id for id, *_ in deaths.take(connection.default_channel, "celery")] == [b"a", b"b", b"c"]


def test_a_revoke_where_plain_content_is_disabled(server, program):
    """Celery disables plain content for signed messages, for example."""
    app = program()
    result = app.note.apply_async(("a",), countdown=3600)
    serialization.registry.disable("json")
    try:
        result.revoke()
    finally:
        serialization.registry.enable("json")
    assert server.dq("LEN", "celery") == 0


def test_what_a_worker_runs_is_revoked_by_the_worker(server, worker, program):
    app = program()
    running = worker("-c", "1", pool="prefork")
    result = app.hold.delay("a")
    until(lambda: server.ran("a"), "the start")
    result.revoke()
    assert server.dq("GET", "celery", result.id)[b"state"] == b"reserved"
    result.revoke(terminate=True, signal="SIGKILL")
    with pytest.raises(TaskRevokedError):
        result.get(timeout=60)
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")
    assert running.process.poll() is None


@pytest.mark.parametrize("pool", ["prefork", *EACH_GREEN], indirect=True)
def test_remote_control_shows_what_waits_in_the_server(server, worker, program, pool):
    app = program()
    running = worker(pool=pool)
    result = app.note.apply_async(("far",), countdown=3600)
    # In green pools the worker hears commands a little after it is ready.
    until(lambda: app.app.control.inspect(timeout=1, limit=1).ping(), "the worker's first answer")
    inspect = app.app.control.inspect(timeout=10, limit=1)
    [shown] = inspect.scheduled()[running.name]
    assert shown["request"]["id"] == result.id
    assert shown["request"]["args"] == ["far"]
    assert jobs.instant_ms(shown["eta"]) == server.dq("GET", "celery", result.id)[b"due"]
    assert inspect.ping() == {running.name: {"ok": "pong"}}
    app.app.control.add_consumer("other", reply=True, timeout=10, limit=1)
    app.note.apply_async(("other",), queue="other").get(timeout=60)


@pytest.mark.parametrize("pool", ["threads", *EACH_GREEN], indirect=True)
def test_a_running_task_survives_the_loss_of_the_connection(server, worker, program, pool):
    """The task's lease stays with the worker: no other worker runs it, and its acknowledgement counts."""
    app = program()
    busy = worker("-c", "1", pool=pool)
    app.hold.delay("a")
    until(lambda: server.ran("a"), "the start")
    kill_connections(server)
    until(lambda: busy.says("Connection to broker lost"), "the loss")
    # The worker is connected again.
    until(lambda: app.app.control.inspect(timeout=1, limit=1).ping(), "the new connection")
    assert (server.dq("LEN", "celery", "RESERVED"), server.dq("LEN", "celery")) == (1, 1)
    server.trace.set("go:a", 1)
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")
    assert server.ran("a") == 1


def kill_connections(server):
    waiting = [client["id"] for client in server.db.client_list() if client["cmd"] == "dq.bpop"]
    assert waiting
    for id in waiting:
        server.db.client_kill_filter(_id=id)


def test_a_worker_that_starts_while_the_memory_is_full_empties_its_queue(server, worker, program):
    app = program(BACKEND="disabled://")
    server.trace.set("hold:kept", 1)
    app.idle.delay("kept")
    server.db.config_set("maxmemory", 1)
    started = worker(BACKEND="disabled://")
    server.trace.delete("hold:kept")
    until(lambda: server.dq("LEN", "celery") == 0, "the end of its task")
    assert started.says("memory is full")
    server.db.config_set("maxmemory", 0)
    until(lambda: server.db.smembers("_kombu.binding.celery.pidbox"), "the late declaration")
    app.note.delay("next")
    until(lambda: server.ran("next"), "the next task")
