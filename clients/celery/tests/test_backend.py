"""Results and chords with ``dq://`` as the result backend."""

import os
import threading

import pytest
from celery import chain, chord, group, states
from celery.exceptions import ChordError, TimeoutError
from celery.result import GroupResult
from conftest import Server, until
from kombu.exceptions import EncodeError

from dq_celery.errors import NoModule

RESULTS = "celery-results"


@pytest.fixture
def app(server, program):
    return program(BACKEND=server.url())


@pytest.fixture
def running(server, worker):
    """Starts workers that store results in dq."""

    def start(**settings):
        return worker(BACKEND=server.url(), **settings)

    return start


def calls(server, command):
    return server.db.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def test_who_asks_first_waits_at_the_server_and_does_not_poll(server, app, running):
    result = app.hold.delay("a")
    got = []
    asks = threading.Thread(target=lambda: got.append(result.get(timeout=60)))
    asks.start()
    running()
    until(lambda: server.ran("a"), "the start")
    before = calls(server, "dq.get"), calls(server, "dq.await")
    server.trace.set("go:a", 1)
    asks.join()
    assert got == [None]
    assert calls(server, "dq.get") - before[0] <= 3 and calls(server, "dq.await") - before[1] <= 2
    assert result.state == states.SUCCESS


def test_results_states_and_errors(server, app, running):
    running()
    assert app.note.delay("b").get(timeout=60) == "b"
    failed = app.fail.delay("no")
    with pytest.raises(ValueError, match="no"):
        failed.get(timeout=60)
    assert failed.state == states.FAILURE and "ValueError" in failed.traceback
    never = app.note.AsyncResult("never")
    assert never.state == states.PENDING
    with pytest.raises(TimeoutError):
        never.get(timeout=0.05)
    assert never.state == states.PENDING
    result = app.note.delay("c")
    result.get(timeout=60)
    result.forget()
    assert server.dq("GET", RESULTS, f"celery-task-meta-{result.id}") is None


def test_a_result_that_can_never_be_stored_is_a_failure_and_not_run_again(server, app, running):
    server.db.config_set("proto-max-bulk-len", 1 << 20)
    running()
    with pytest.raises(EncodeError):
        app.returns.delay(0).get(timeout=60)
    with pytest.raises(EncodeError, match=r"result cannot be stored: \d+ bytes"):
        app.returns.delay(2 << 20).get(timeout=60)
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgements")
    assert server.ran("returns") == 2


@pytest.mark.parametrize("limit", ["maxmemory", "MAXBYTES"])
def test_a_result_that_finds_no_room_is_left_out(server, app, running, limit):
    worker = running()
    server.trace.set("hold:kept", 1)
    result = app.idle.delay("kept")
    until(lambda: server.dq("LEN", "celery", "RESERVED"), "its start")
    if limit == "maxmemory":
        server.db.config_set(limit, 1)
    else:
        server.dq("CFGSET", RESULTS, limit, 1)
    server.trace.delete("hold:kept")
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")
    assert worker.says(f"the result of task {result.id} is not stored")
    server.db.config_set("maxmemory", 0)
    server.dq("CFGSET", RESULTS, "MAXBYTES", 0)
    assert (result.state, server.dq("LEN", "celery", "DEAD")) == (states.PENDING, 0)
    assert app.note.delay("next").get(timeout=60) == "next"


def test_a_state_that_is_not_final_is_no_result(server, app):
    backend = app.app.backend
    waits = backend.get_many(["x"], timeout=30)
    backend.store_result("x", {"done": 7}, "PROGRESS")
    assert backend.get_state("x") == "PROGRESS"
    threading.Timer(0.2, backend.store_result, ("x", 1, states.SUCCESS)).start()
    assert [meta["result"] for _id, meta in waits] == [1]
    backend.store_result("x", "late", "PROGRESS")
    backend.store_result("x", ValueError(), states.FAILURE)
    assert backend.get_state("x") == states.SUCCESS


def test_results_are_kept_as_long_as_they_should_be(server, app):
    server_ms = int(server.db.time()[0]) * 1000
    app.app.backend.store_result("x", 1, states.SUCCESS)
    shown = server.dq("GET", RESULTS, "celery-task-meta-x")
    assert shown[b"state"] == b"done" and shown[b"keep"] == 86_400_000
    assert shown[b"finished"] >= server_ms


def test_a_group_is_joined_and_restored(server, app, running):
    running()
    result = group(app.note.s(str(n)) for n in range(30)).apply_async()
    result.save()
    assert result.join_native(timeout=60) == [str(n) for n in range(30)]
    restored = GroupResult.restore(result.id, app=app.app)
    assert restored.get(timeout=60) == [str(n) for n in range(30)]
    restored.delete()
    assert GroupResult.restore(result.id, app=app.app) is None


def test_a_chord_runs_its_body_with_what_its_header_returned(server, app, running):
    running()
    assert chord(app.note.s(str(n)) for n in range(25))(app.join.s()).get(timeout=60) == ",".join(map(str, range(25)))
    nested = chord([group(app.note.s("a"), app.note.s("b")), chain(app.note.s("c"), app.note.s())])
    # Celery takes a group's tasks into the header in the order that it likes.
    assert sorted(nested(app.join.s()).get(timeout=60).split(",")) == ["a", "b", "c"]
    inner = chord([app.note.s("d"), app.note.s("e")], app.join.s())
    assert chord([inner, app.note.s("f")])(app.join.s()).get(timeout=60) == "d,e,f"
    many = chord(app.note.s(str(n)) for n in range(1200))(app.join.s())
    assert many.get(timeout=60) == ",".join(map(str, range(1200)))
    until(lambda: server.dq("LEN", RESULTS) == 0, "the end of all chords")


def test_a_chord_whose_parts_ignore_their_results(server, app, running):
    running()
    body = chord([app.note.s("a").set(ignore_result=True), app.note.s("b")])(app.join.s())
    assert body.get(timeout=60) == "a,b"


def test_a_chord_fails_if_a_part_of_it_does(server, app, running):
    running()
    body = chord([app.note.s("a"), app.fail.s("no")])(app.join.s())
    error = body.get(timeout=60, propagate=False)
    assert isinstance(error, ChordError) and body.parent.results[1].id in str(error)


def test_a_chord_of_a_revoked_part_is_told(server, app, running):
    part = app.note.s("later").set(countdown=600).freeze()
    body = chord([app.note.s("a"), app.note.s("later").set(countdown=600, task_id=part.id)])(app.join.s())
    running()
    part.revoke()
    assert isinstance(body.get(timeout=60, propagate=False), ChordError)


@pytest.mark.parametrize("limit", ["maxmemory", "MAXBYTES"])
@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_chord_goes_on_without_a_result_that_finds_no_room(server, app, running, limit, is_ignored):
    running()
    server.trace.set("hold:kept", 1)
    parts = [app.note.s("a"), app.idle.s("kept").set(ignore_result=is_ignored)]
    body = chord(parts)(app.join.s().on_error(app.note.si("errback")))
    until(lambda: server.ran("a") and server.dq("LEN", "celery") == 1, "the start of the part")
    if limit == "maxmemory":
        server.db.config_set(limit, 1)
    else:
        server.dq("CFGSET", RESULTS, limit, 1)
        # Its end has room in its own place, unless somebody has taken that away.
        server.dq("DEL", RESULTS, f"celery-task-meta-{body.parent.results[1].id}")
    server.trace.delete("hold:kept")
    until(lambda: server.dq("LEN", "celery") == 0, "the acknowledgement")
    until(lambda: server.dq("LEN", RESULTS, "BLOCKED") == 0, "the end of the last part")
    assert server.ran("errback") == 0
    server.db.config_set("maxmemory", 0)
    server.dq("CFGSET", RESULTS, "MAXBYTES", 0)
    error = body.get(timeout=60, propagate=False)
    assert isinstance(error, ChordError) and f"{body.parent.results[1].id} has no result" in str(error)
    until(lambda: server.ran("errback"), "the error callback")
    until(lambda: server.dq("LEN", RESULTS) == 0, "the end of the chord")
    assert server.ran("errback") == 1


def test_the_chord_of_a_worker_that_is_killed_before_it_publishes_the_body_goes_on(server, app, running):
    """The lease of the chord's body expires, and another worker takes it."""
    backend = app.app.backend
    body = chord([app.note.s("a"), app.note.s("b")])(app.join.s())
    for part in body.parent.results:
        backend.store_result(part.id, "x", states.SUCCESS)
    [taken, *_] = server.dq("POP", RESULTS, "TTR", 500)
    assert taken.startswith(b"chord:")
    running()
    assert body.get(timeout=60) == "x,x"


def test_a_chord_that_grows_while_it_runs(server, app, running):
    running()
    body = chord([app.more.s("a")])(app.join.s())
    assert sorted(body.get(timeout=60).split(",")) == ["a"]
    assert until(lambda: server.ran("a:more"), "the added part")


def test_without_the_module_it_says_so(program):
    plain = Server(False)
    try:
        backend = program(BACKEND=plain.url()).app.backend
        with pytest.raises(NoModule):
            backend.store_result("x", 1, states.SUCCESS)
    finally:
        plain.close()


def test_a_process_that_forks_waits_on_a_connection_of_its_own(server, app):
    backend = app.app.backend
    backend.store_result("x", 1, states.SUCCESS)
    if (pid := os.fork()) == 0:
        os._exit(0 if backend.get_result("x") == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert backend.get_result("x") == 1
