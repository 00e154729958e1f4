"""taskiq-redis' tests of its result backends, restated, and that waiting does not poll."""

import asyncio
import re

import dq
import pytest
from conftest import until
from places import place
from taskiq import AsyncTaskiqTask, TaskiqResult, TaskiqResultTimeoutError
from test_broker import field, kick, when

from dq_taskiq import DqBroker, DqResultBackend

__all__ = ["place"]

RESULTS = "taskiq-results"


def run(server, scenario, **options):
    """The scenario with a backend, in an event loop of its own."""

    async def main():
        backend = DqResultBackend(server.url, **options)
        try:
            await scenario(backend)
        finally:
            await backend.shutdown()

    asyncio.run(asyncio.wait_for(main(), 60))


def result(value=None, error=None, log=None):
    return TaskiqResult(is_err=error is not None, return_value=value, error=error, execution_time=0.5, log=log)


def task(backend, id="a"):
    return AsyncTaskiqTask(id, backend)


def calls(db, command):
    return db.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def test_results_are_stored_with_errors_and_logs(server):
    async def scenario(backend):
        await backend.set_result("a", result({"n": [1, None, "ü"]}, log="said"))
        assert await backend.get_result("a", with_logs=True) == result({"n": [1, None, "ü"]}, log="said")
        assert (await backend.get_result("a")).log is None
        await backend.set_result("a", result(error=ValueError("no", 3)))
        assert repr((await backend.get_result("a")).error) == "ValueError('no', 3)"

    run(server, scenario)


@pytest.mark.parametrize("what", ["object", "large"])
def test_a_result_that_can_never_be_stored_is_an_error_and_ends_its_task(server, db, process, what):
    db.config_set("proto-max-bulk-len", 1 << 20)
    kick(server, (what, "returns"))
    process(server, RESULTS=1)

    async def scenario(backend):
        why = "result cannot be encoded: " if what == "object" else r"result cannot be stored: \d+ bytes"
        with pytest.raises(ValueError, match=why):
            (await task(backend, what).wait_result()).raise_for_error()
        await when(lambda: field(db, "state", id=what) == b"dead")
        assert re.match(why.encode(), field(db, "reason", id=what))
        assert field(db, "attempts", id=what) == 1

    run(server, scenario)


@pytest.mark.parametrize("limit", ["maxmemory", "MAXBYTES"])
def test_a_result_that_finds_no_room_is_left_out(server, db, process, limit):
    trace = server.client(db=2)
    trace.set("hold:a", 1)
    kick(server, ("a", "returns"))
    process(server, RESULTS=1)
    until(lambda: trace.llen("ran"), "the start")
    if limit == "maxmemory":
        db.config_set(limit, 1)
    else:
        db.execute_command("DQ.ADD", RESULTS, "other", "x", "DELAY", 60_000)
        db.execute_command("DQ.CFGSET", RESULTS, limit, 1)
    trace.delete("hold:a")
    until(lambda: db.execute_command("DQ.LEN", "taskiq") == 0, "the acknowledgement")
    assert db.execute_command("DQ.LEN", RESULTS, "DONE") == db.execute_command("DQ.LEN", "taskiq", "DEAD") == 0
    assert trace.llen("ran") == 1


def test_a_result_that_is_not_there(server):
    async def scenario(backend):
        assert not await backend.is_result_ready("a")
        with pytest.raises(dq.DqError, match="no result"):
            await backend.get_result("a")
        with pytest.raises(TaskiqResultTimeoutError):
            await task(backend).wait_result(timeout=0.05)

    run(server, scenario, wait=0.1)


def test_without_a_wait_it_only_looks(server, db):
    async def scenario(backend):
        assert not await backend.is_result_ready("a")
        assert (calls(db, "dq.await"), db.exists(RESULTS)) == (0, 0)

    run(server, scenario, wait=0)


def test_who_waits_does_not_poll(server, db):
    async def scenario(backend):
        waiting = [asyncio.ensure_future(task(backend, id).wait_result()) for id in "abc"]
        await when(lambda: db.execute_command("DQ.LEN", RESULTS) == 3)
        before = calls(db, "dq.get")
        for id in "abc":
            await backend.set_result(id, result(id))
        assert [each.return_value for each in await asyncio.gather(*waiting)] == ["a", "b", "c"]
        assert calls(db, "dq.get") == before + 3  # each result is read once

    run(server, scenario, wait=60)


def test_results_expire(server, db):
    async def scenario(backend):
        await backend.set_result("a", result(1))
        await when(lambda: db.execute_command("DQ.GET", RESULTS, "a") is None)
        assert not await backend.is_result_ready("a")

    run(server, scenario, keep=0.05, wait=0.01)


def test_a_wait_survives_the_end_of_what_it_waits_for(server, db):
    async def scenario(backend):
        waiting = asyncio.ensure_future(task(backend).wait_result(check_interval=0.01))
        await when(lambda: db.execute_command("DQ.DEL", RESULTS, "a"))
        await backend.set_result("a", result(1))
        assert (await waiting).return_value == 1

    run(server, scenario, wait=60)


def test_the_worker_of_taskiq_stores_them(server, process):
    async def main():
        broker = DqBroker(server.url).with_result_backend(DqResultBackend(server.url))
        await broker.startup()

        @broker.task(task_name="double")
        async def double(n: int) -> int: ...

        @broker.task(task_name="fail")
        async def fail() -> None: ...

        try:
            assert (await (await double.kiq(4)).wait_result(timeout=60)).return_value == 8
            with pytest.raises(ValueError, match="no"):
                (await (await fail.kiq()).wait_result(timeout=60)).raise_for_error()
        finally:
            await broker.shutdown()

    process(server, RESULTS=1)
    asyncio.run(asyncio.wait_for(main(), 120))


def test_results_at_every_place(place):
    async def main():
        backend = DqResultBackend(place.way("redis.asyncio", results=True))
        waiting = asyncio.ensure_future(task(backend).wait_result(timeout=60))
        await asyncio.sleep(0)
        await backend.set_result("a", result("there"))
        assert (await waiting).return_value == "there"
        await backend.shutdown()

    asyncio.run(asyncio.wait_for(main(), 60))
