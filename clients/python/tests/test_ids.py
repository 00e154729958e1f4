"""Ids that the library makes, and what is sent twice."""

import asyncio
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
import redis
import redis.asyncio

import dq
import dq.asyncio
from dq._adds import new_id


def test_later_ids_are_greater_and_none_is_made_twice():
    made = [new_id() for _ in range(10_000)]
    assert len(set(made)) == len(made) and {len(id) for id in made} == {32}
    assert [id[:12] for id in made] == sorted(id[:12] for id in made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_makes_ids_of_its_own():
    random.seed(17)
    before = random.random()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 32)[12:] != new_id()[12:]
    random.seed(17)
    assert random.random() == before


def test_many_jobs_whose_options_look_alike(queue):
    steps = [60]
    jobs = [
        {"data": 1, "id": "a", "delay": 60},
        {"data": 2, "id": "b", "delay": 60},
        {"data": 3, "id": "c", "delay": 60, "priority": 0},
        {"data": 4, "id": "d", "backoff": steps},
        {"data": 5, "id": "e", "delay": 60, "group": "g"},
        {"data": 6, "id": "f"},
    ]

    def changing():
        for job in jobs:
            yield job
            steps.append(60)

    last = {"data": 7, "id": "g", "backoff": steps}
    assert queue.add_many(chain(changing(), [last])) == list("abcdefg")
    found = [queue.get(id) for id in "abcdefg"]
    assert [job.state for job in found] == ["delayed"] * 3 + ["ready", "delayed", "ready", "ready"]
    assert [job.group for job in found] == [None] * 4 + ["g", None, None]
    assert (len(found[3].backoff), len(found[6].backoff)) == (4, 7)
    with pytest.raises(TypeError, match="delai"):
        queue.add_many([{"data": 1, "delay": 1}, {"data": 1, "delai": 1}])


class Twice(dq.Queue):
    """Sends each command twice, as a client does that got no reply to the first one."""

    def _pipelined(self, *words):
        super()._pipelined(*words)
        return super()._pipelined(*words)

    def _run(self, calls, combine, grouped=None):
        if grouped is None:
            super()._run(calls, lambda replies: None)
        return super()._run(calls, combine, grouped)


class AsyncTwice(dq.asyncio.Queue):
    async def _pipelined(self, *words):
        await super()._pipelined(*words)
        return await super()._pipelined(*words)

    async def _run(self, calls, combine, grouped=None):
        if grouped is None:
            await super()._run(calls, lambda replies: None)
        return await super()._run(calls, combine, grouped)


def test_an_add_that_is_sent_twice_adds_one_job_and_succeeds(dq_url):
    with Twice(dq_url, "q") as queue:
        id = queue.add(1)
        assert queue.get(id) and queue.len() == 1
        many = queue.add_many([{"data": 1}, {"data": 2, "id": "mine"}, {"data": 3, "if_exists": "next"}])
        assert many[0] and many[1] is None and many[2] and queue.len() == 4
        assert queue.add(1, if_exists="only-replace") is None

    async def add():
        async with AsyncTwice(dq_url, "r") as queue:
            assert await queue.add(1) and await queue.len() == 1

    asyncio.run(add())


@pytest.mark.parametrize("if_exists", [None, "replace", "next"])
def test_a_second_job_of_an_id_that_was_given_is_refused_as_before(queue, if_exists):
    queue.add(1, id="a", delay=60)
    assert queue.add(2, id="a", if_exists=if_exists) == ("a" if if_exists == "replace" else None)


# --- The hook adding


class Adding(dq.Hooks):
    def __init__(self, error=None):
        self.error = error

    def adding(self, queue, headers):
        headers["trace"] = "1"
        if self.error is not None:
            raise self.error


class Wrong(dq.Hooks):
    def adding(self, queue, headers):
        headers["trace"] = object()


class Awaited(Adding):
    async def adding(self, queue, headers):
        await asyncio.sleep(0)
        super().adding(queue, headers)


@pytest.mark.parametrize("broken", [Adding(ValueError("no")), Wrong(), Awaited()])
def test_a_hook_that_fails_changes_nothing(dq_url, caplog, broken):
    with dq.Queue(dq_url, "q", hooks=[Adding(), broken]) as queue:
        queue.add(1, id="a", headers={"mine": "x"})
        assert queue.get("a").payload == b'{"dq":1,"data":1,"headers":{"mine":"x","trace":"1"}}'
    assert "the hook adding of" in caplog.text


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_with_asyncio_a_hook_is_awaited(dq_url, caplog, error):
    async def add():
        async with dq.asyncio.Queue(dq_url, "q", hooks=[Awaited(error), Awaited()]) as queue:
            await queue.add(1, id="a")
            await queue.add_many([{"data": 2, "id": "b"}])
            return [(await queue.get(id)).payload for id in "ab"]

    one, two = asyncio.run(add())
    assert one == b'{"dq":1,"data":1,"headers":{"trace":"1"}}'
    assert two == b'{"dq":1,"data":2,"headers":{"trace":"1"}}'
    assert ("the hook adding of" in caplog.text) == (error is not None)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_who_stops_the_program_in_a_hook_stops_it(dq_url, error):
    with dq.Queue(dq_url, "q", hooks=[Adding(error)]) as queue, pytest.raises(type(error)):
        queue.add(1)


@pytest.mark.parametrize("kind", [None, "k"])
@pytest.mark.parametrize("data", [float("nan"), float("inf"), [-float("inf")]])
def test_what_json_does_not_have_is_an_error_of_the_producer(dq_url, data, kind):
    with dq.Queue(dq_url, "q") as queue, pytest.raises(ValueError, match="without NaN and Infinity"):
        queue.add(data, kind=kind)


def test_data_in_themselves(queue):
    circle = []
    circle.append({"again": circle})
    with pytest.raises(ValueError, match="in themselves"):
        queue.add_many([{"data": 1}, {"data": circle}])
    assert queue.len() == 0
    queue.add([[], [], {"a": [circle[:0]] * 2}], id="same")
    assert queue.get("same").payload == b'[[],[],{"a":[[],[]]}]'


@pytest.mark.parametrize("is_own", [True, False])
def test_more_adds_at_a_time_than_connections(dq_url, is_own):
    """Threads wait for a connection, and so do tasks of asyncio; with a client of the program's, too."""

    async def add_all():
        client = redis.asyncio.Redis.from_url(dq_url, max_connections=5)
        async with dq.asyncio.Queue(dq_url if is_own else client, "q") as queue:
            await asyncio.gather(*(queue.add(n) for n in range(150)), queue.add_many([{"data": n} for n in range(3)]))

    asyncio.run(add_all())
    with dq.Queue(dq_url if is_own else redis.Redis.from_url(dq_url, max_connections=5), "q") as queue:
        assert queue.len() == 153
        with ThreadPoolExecutor(300) as threads:
            assert len(set(threads.map(queue.add, range(600)))) == 600
        assert queue.len() == 753


def test_waits_are_ended_by_their_own_user(dq_server, dq_url):
    with dq.Queue(dq_url, "q") as queue, ThreadPoolExecutor(1) as threads:
        client = redis.Redis.from_url(dq_url, single_connection_client=True)
        id = client.client_id()
        waiting = threads.submit(dq.Queue(client, "q").bpop, 60)
        while not queue.unblock(id, 1 << 40):
            time.sleep(0.001)
        assert waiting.result(60) == []

        async def unblock():
            async with dq.asyncio.Queue(dq_url, "q") as same:
                return await same.unblock(id)

        assert asyncio.run(unblock()) == 0
