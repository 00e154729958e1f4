"""Dramatiq's own tests of its result backends, restated, and that waiting does not poll."""

import threading

import dramatiq
import pytest
from conftest import until
from dramatiq.middleware import CurrentMessage
from dramatiq.results import ResultFailure, ResultMissing, Results, ResultTimeout
from places import place

from dq_dramatiq import DqResultBackend

__all__ = ["place"]

RESULTS = "dramatiq-results"


@pytest.fixture
def backend(server, broker):
    made = DqResultBackend(url=server.url)
    broker.add_middleware(Results(backend=made))
    yield made
    made.queue.close()


@pytest.fixture
def add(backend):
    @dramatiq.actor(store_results=True)
    def add(left, right):
        return None if left is None else left + right

    return add


def calls(server, command):
    return server.client().info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def asked(message, **options):
    """A thread that waits for the result, and where it puts it."""
    got = []
    thread = threading.Thread(target=lambda: got.append(message.get_result(block=True, timeout=60_000, **options)))
    thread.start()
    return thread, got


# As with Dramatiq's own backends


def test_actors_store_results(add, work, broker):
    work(broker)
    assert add.send(1, 2).get_result(block=True) == 3
    message = add.send(None, 2)
    assert message.get_result(block=True) is None
    assert message.get_result() is None


def test_a_result_that_is_not_there(add):
    message = add.send(1, 2)
    with pytest.raises(ResultMissing):
        message.get_result()
    for timeout in (0, 50):
        with pytest.raises(ResultTimeout):
            message.get_result(block=True, timeout=timeout)
    with pytest.raises(ResultMissing):
        message.get_result()


def test_a_result_after_a_retry(backend, work, broker):
    ran = []

    @dramatiq.actor(store_results=True, min_backoff=20, max_backoff=20)
    def fails_once():
        ran.append(1)
        if len(ran) == 1:
            raise RuntimeError("once")
        return "done"

    work(broker)
    assert fails_once.send().get_result(block=True, timeout=60_000) == "done"


def test_failures(backend, work, broker):
    @dramatiq.actor(store_results=True, max_retries=0)
    def fails():
        raise ValueError("it is broken")

    work(broker)
    with pytest.raises(ResultFailure, match="it is broken") as found:
        fails.send().get_result(block=True, timeout=60_000)
    assert (found.value.orig_exc_type, found.value.orig_exc_msg) == ("ValueError", "it is broken")


def test_pipelines_and_groups(add, work, broker):
    pipe = add.message(1, 2) | add.message(3) | add.message(4)
    pipe.run()
    last, got = asked(pipe)  # its last message is sent later
    work(broker)
    last.join()
    assert got == [10]
    assert list(pipe.get_results(block=True)) == [3, 6, 10]
    group = dramatiq.group([add.message(n, n) for n in range(30)]).run()
    assert list(group.get_results(block=True, timeout=60_000)) == [2 * n for n in range(30)]
    assert group.completed


# What is different here


def test_who_waits_does_not_poll(server, add, work, broker, backend):
    message = add.send(1, 2)
    thread, got = asked(message)
    until(lambda: any(each["cmd"] == "dq.await" for each in server.client().client_list()), "the wait")
    before = calls(server, "dq.get")
    work(broker)
    thread.join()
    assert got == [3]
    assert calls(server, "dq.get") == before


def test_results_are_done_jobs_that_expire(server, add, work, broker, backend):
    @dramatiq.actor(store_results=True, result_ttl=50)
    def soon():
        return 1

    work(broker)
    message = add.send(1, 2)
    message.get_result(block=True)
    shown = backend.queue.get(message.message_id)
    assert (shown.state, shown.fields["keep"]) == ("done", 600_000)
    gone = soon.send()
    gone.get_result(block=True)
    until(lambda: backend.queue.get(gone.message_id) is None, "its end")
    assert server.client().execute_command("DQ.LEN", RESULTS) == 0


def test_a_wait_survives_the_end_of_what_it_waits_for(add, work, broker, backend):
    message = add.send(1, 2)
    thread, got = asked(message)
    until(lambda: backend.queue.delete(message.message_id), "the wait")
    work(broker)
    thread.join()
    assert got == [3]


@pytest.mark.parametrize("fails", [True, False])
def test_a_worker_that_lost_its_message_stores_nothing(server, brokers, work, fails):
    broker, go, running = brokers(server, lease=3_000), threading.Event(), []
    backend = DqResultBackend(url=server.url)
    broker.add_middleware(Results(backend=backend))
    broker.add_middleware(CurrentMessage())

    @dramatiq.actor(store_results=True, max_retries=0)
    def slow():
        running.append(CurrentMessage.get_current_message().job)
        assert go.wait(60)
        if fails:
            raise ValueError("late")

    worker = work(broker, threads=1)
    message = slow.send()
    job = until(lambda: running, "the start")[0]
    broker.queue("default").delete(message.message_id)
    until(lambda: job.lost, "the worker hears of it")
    go.set()
    worker.stop()
    with pytest.raises(ResultMissing):
        message.get_result(backend=backend)


def test_a_result_that_cannot_be_encoded_ends_its_message(server, work, broker, backend):
    ran = []

    class Unsaid:
        def __repr__(self):
            raise RuntimeError("no text")

    @dramatiq.actor(store_results=True)
    def returns(kind):
        ran.append(kind)
        if kind == "deep":
            found = []
            for _ in range(100_000):
                found = [found]
            return found
        return {"plain": 1, "object": Unsaid()}.get(kind)

    work(broker)
    for kind, why in ("object", "TypeError: Object of type Unsaid"), ("deep", "RecursionError"):
        message = returns.send(kind)
        with pytest.raises(ResultFailure, match="result cannot be encoded: " + why):
            message.get_result(block=True, timeout=60_000)
        until(lambda n=message.message_id: broker.queue("default").get(n).state == "dead", "its end")
        assert broker.queue("default").get(message.message_id).reason.startswith("result cannot be encoded: " + why)
    assert returns.send("plain").get_result(block=True, timeout=60_000) == 1
    assert ran == ["object", "deep", "plain"]


def test_an_error_without_a_text_ends_its_message(server, work, broker, backend):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    @dramatiq.actor(max_retries=0)
    def fails():
        raise Mute()

    work(broker)
    message = fails.send()
    until(lambda: broker.queue("default").len("dead"), "its end")
    assert broker.queue("default").get(message.message_id).reason == "Mute (no text: RuntimeError)"


@pytest.mark.parametrize("largest", [1_000_000, 512 << 20])
def test_a_result_that_is_too_large_for_the_server_ends_its_message(
    server, work, broker, backend, monkeypatch, largest
):
    @dramatiq.actor(store_results=True)
    def returns():
        return "x" * (2 << 20)

    monkeypatch.setattr("dq.kept.LARGEST_BYTES", largest)
    server.client().config_set("proto-max-bulk-len", 1 << 20)
    work(broker)
    message = returns.send()
    with pytest.raises(ResultFailure, match=r"result cannot be stored: \d+ bytes"):
        message.get_result(block=True, timeout=60_000)
    dead = until(lambda: broker.queue("default").peek("dead"), "its end")
    assert (dead[0].attempts, dead[0].id) == (1, message.message_id)
    assert broker.queue("default").get(message.message_id).reason.startswith("result cannot be stored: 20971")


@pytest.mark.parametrize("limit", ["maxmemory", "MAXBYTES"])
def test_a_result_that_finds_no_room_is_left_out(server, work, broker, backend, limit):
    @dramatiq.actor(store_results=True)
    def returns():
        return "x" * 10_000

    message = returns.send()
    if limit == "maxmemory":
        server.client().config_set(limit, 1)
    else:
        server.client().execute_command("DQ.CFGSET", RESULTS, limit, 1)
    work(broker)
    until(lambda: broker.queue("default").len() == 0, "the acknowledgement")
    server.client().config_set("maxmemory", 0)
    assert backend.queue.stats() is None or backend.queue.stats().done == 0
    assert broker.queue("default").len("dead") == 0
    with pytest.raises(ResultMissing):
        message.get_result()


def test_a_lost_server_is_asked_again(durable, brokers):
    broker, backend = brokers(durable), DqResultBackend(url=durable.url)
    broker.declare_queue("default")
    message = dramatiq.Message("default", "a", (), {}, {})
    thread, got = asked(message, backend=backend)
    until(lambda: backend.queue.get(message.message_id), "the wait")
    durable.kill()
    durable.start()
    backend.store_result(message, "there", 60_000)
    thread.join()
    assert got == ["there"]


def test_results_at_every_place(place):
    way = place.way(results=True)
    backend = DqResultBackend(url=way) if isinstance(way, str) else DqResultBackend(client=way)
    message = dramatiq.Message("default", "a", (), {}, {})
    thread, got = asked(message, backend=backend)
    until(lambda: backend.queue.get(message.message_id), "the wait")
    backend.store_result(message, "there", 60_000)
    thread.join()
    assert got == ["there"]
