"""Dramatiq's own tests of its Redis broker, restated, and what is different here."""

import threading
import time
from itertools import pairwise

import dramatiq
import pytest
import redis
from conftest import until
from dramatiq.errors import ConnectionClosed, QueueJoinTimeout, QueueNotFound
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from dq_dramatiq import DqBroker
from dq_dramatiq.consumer import Delivered


def job(broker, message, queue="default"):
    return broker.queue(queue).get(message.message_id)


def ended(broker, queue="default"):
    broker.join(queue, interval=10, timeout=60_000)


def kill_connections(client):
    own = client.client_id()
    for each in client.client_list():
        if int(each["id"]) != own:
            client.client_kill_filter(_id=each["id"])


# As with Dramatiq's Redis broker


def test_actors_can_be_sent_messages(broker, work):
    database = {}

    @dramatiq.actor
    def put(key, value):
        database[key] = value

    work(broker)
    for number in range(100):
        assert put.send(f"key-{number}", number)
    ended(broker)
    assert database == {f"key-{number}": number for number in range(100)}


def test_actors_retry_with_backoff(broker, work):
    times = []

    @dramatiq.actor(min_backoff=300, max_backoff=300)
    def fails_three_times():
        times.append(time.monotonic())
        if len(times) < 4:
            raise RuntimeError("not yet")

    work(broker)
    fails_three_times.send()
    ended(broker)
    assert len(times) == 4
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert min(waits) >= 0.15  # Dramatiq draws from half of the backoff on


def test_messages_are_not_delivered_before_their_delay(broker, work):
    results = []

    @dramatiq.actor
    def append(number, sent):
        results.append((number, time.monotonic() - sent))

    worker = work(broker, threads=1)
    worker.pause()
    for number, delay in ((1, 700), (2, 300)):
        append.send_with_options(args=(number, time.monotonic()), delay=delay)
    worker.resume()
    ended(broker)
    assert [number for number, _ in results] == [2, 1]
    assert results[0][1] >= 0.3
    assert results[1][1] >= 0.7


def test_messages_can_be_dead_lettered(broker, work):
    @dramatiq.actor(max_retries=0)
    def fails():
        raise RuntimeError("it is broken")

    work(broker)
    message = fails.send()
    ended(broker)
    assert (job(broker, message).state, job(broker, message).reason) == ("dead", "RuntimeError: it is broken")
    [dead] = broker.dead_letters("default")
    assert (dead.message_id, dead.actor_name) == (message.message_id, "fails")


def one_begins(broker, actor, ran, work):
    """Starts a worker of one thread on two messages: the one that runs, the one in the worker's memory, the worker."""
    sent = {name: actor.send(name) for name in ("a", "b")}
    worker = work(broker, threads=1)
    until(lambda: ran, "the start of one")
    running = sent.pop(ran[0])
    [waiting] = sent.values()
    until(lambda: job(broker, waiting).state == "reserved", "the other one's delivery")
    return running, waiting, worker


def test_a_worker_that_stops_gives_back_what_it_did_not_begin(broker, work):
    ran, go = [], threading.Event()

    @dramatiq.actor
    def hold(name):
        ran.append(name)
        assert go.wait(60)

    running, waiting, worker = one_begins(broker, hold, ran, work)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    until(lambda: not worker.workers[0].running, "the stop")
    go.set()
    stopping.join(60)
    until(lambda: job(broker, running) is None, "the acknowledgement")
    assert (job(broker, waiting).state, job(broker, waiting).attempts) == ("ready", 0)


def test_join_has_a_timeout_and_flush_empties(broker):
    @dramatiq.actor
    def waits():
        pass

    waits.send()
    waits.send_with_options(delay=60_000)
    with pytest.raises(QueueJoinTimeout):
        broker.join("default", interval=10, timeout=50)
    broker.flush_all()
    broker.join("default", timeout=1)


def test_urls_clients_and_namespaces(server):
    client = redis.Redis.from_url(server.url)
    broker = DqBroker(client=client, namespace="shop", middleware=[])
    assert broker.client is client
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}, message_id="m"))
    assert client.execute_command("DQ.LEN", "shop:default") == 1
    with pytest.raises(QueueNotFound):
        broker.enqueue(dramatiq.Message("other", "a", (), {}, {}))
    broker.close()


def test_results_and_pipelines(server, broker, work):
    broker.add_middleware(Results(backend=RedisBackend(url=server.url)))

    @dramatiq.actor(store_results=True)
    def add(left, right):
        return left + right

    work(broker)
    pipe = add.message(1, 2) | add.message(3)
    pipe.run()
    assert pipe.get_result(block=True, timeout=60_000) == 6
    # A constant pipeline is run again.
    pipe.run(delay=200)
    pipe.run()
    ended(broker)
    assert broker.queue("default").stats().totals["added"] == 6


# What a worker has in hand


def test_what_is_delayed_waits_in_the_server(broker, work):
    @dramatiq.actor
    def later():
        pass

    worker = work(broker)
    message = later.send_with_options(delay=3_600_000)
    now = later.send()
    until(lambda: job(broker, now) is None, "the other one")
    assert job(broker, message).state == "delayed"
    assert list(worker.consumers) == ["default"]  # no queue of delayed messages
    assert worker.consumers["default"].delay_queue.empty()
    # A delayed message can be rescheduled to an earlier time, and cancelled.
    broker.queue("default").reschedule(message.message_id, delay=0)
    until(lambda: job(broker, message) is None, "its run")
    assert broker.queue("default").delete(later.send_with_options(delay=3_600_000).message_id) == 1


def test_an_eta_among_the_options_is_a_delay(broker):
    broker.declare_queue("default")
    soon = int(time.time() * 1000) + 3_600_000
    message = broker.enqueue(dramatiq.Message("default", "a", (), {}, {"eta": soon}))
    assert job(broker, message).state == "delayed"
    assert abs(job(broker, message).due.timestamp() * 1000 - soon) < 600_000
    assert job(broker, message).label == message.actor_name


def test_smaller_priorities_are_served_first(broker, work):
    order = []

    @dramatiq.actor(priority=10)
    def rest(name):
        order.append(name)

    @dramatiq.actor(priority=1)
    def urgent(name):
        order.append(name)

    rest.send("rest")
    rest.send_with_options(args=("first",), priority=-5)
    urgent.send("urgent")
    consumer = broker.consume("default", prefetch=3, timeout=100)
    messages = [next(consumer) for _ in range(3)]
    assert [message.args[0] for message in messages] == ["first", "urgent", "rest"]
    consumer.requeue(messages)
    consumer.close()
    with pytest.raises(ConnectionClosed):
        next(consumer)


def test_a_lease_is_renewed_while_the_actor_runs(server, brokers, work):
    broker, go = brokers(server, lease=3_000), threading.Event()

    @dramatiq.actor
    def long():
        assert go.wait(60)

    work(broker)
    message = long.send()
    first = until(lambda: job(broker, message).deadline, "the start")
    until(lambda: job(broker, message).deadline > first, "the renewal")
    go.set()
    ended(broker)


def test_a_message_that_was_deleted_before_it_began_is_not_run(server, brokers, work):
    broker, ran, go = brokers(server, lease=6_000), [], threading.Event()

    @dramatiq.actor
    def hold(name):
        ran.append(name)
        assert go.wait(60)

    _, waiting, worker = one_begins(broker, hold, ran, work)
    [item] = list(worker.work_queue.queue)
    in_hand = getattr(item, "message", item)
    if not isinstance(in_hand, Delivered):
        [in_hand] = [part for part in item if isinstance(part, Delivered)]
    broker.queue("default").delete(waiting.message_id)
    until(lambda: in_hand.job.lost, "the worker hears of it")
    go.set()
    ended(broker)
    worker.join()
    assert len(ran) == 1


def test_a_consumer_that_is_closed_leaves_running_actors_alone(server, brokers, work):
    broker, running, go, ran = brokers(server), threading.Event(), threading.Event(), []

    @dramatiq.actor
    def hold():
        ran.append(1)
        running.set()
        assert go.wait(60)

    worker = work(broker, threads=1)
    message = hold.send()
    assert running.wait(60)
    consumer = worker.consumers["default"].consumer
    consumer.close()
    assert job(broker, message).state == "reserved"
    go.set()
    ended(broker)
    assert (ran, job(broker, message)) == ([1], None)


def test_an_actor_that_was_unknown_to_another_worker_runs(broker, work):
    ran = []
    broker.declare_queue("default")
    consumer = broker.consume("default", timeout=100)
    message = dramatiq.Message(queue_name="default", actor_name="once", args=(), kwargs={}, options={})
    broker.enqueue(message)
    until(lambda: next(consumer) is None and job(broker, message).reason, "the other worker")
    found = job(broker, message)
    assert (found.state, found.reason) == ("delayed", 'unknown kind "once"')
    assert round((found.due - found.failed).total_seconds()) == 60
    consumer.close()

    @dramatiq.actor(max_retries=0)
    def once():
        ran.append(1)

    broker.queue("default").reschedule(message.message_id, delay=0)
    work(broker)
    ended(broker)
    assert ran == [1] and job(broker, message) is None


def test_a_full_server_loses_nothing_and_keeps_nothing(server, broker, work):
    ran = []

    @dramatiq.actor(max_retries=2, min_backoff=50, max_backoff=50)
    def fails(name):
        ran.append(name)
        if name == "fails":
            raise RuntimeError("always")

    fails.send("done")
    message = fails.send("fails")
    server.client().config_set("maxmemory", 1)
    work(broker)  # it starts while the memory is full
    until(lambda: ran.count("fails") == 3, "its retries")
    until(lambda: broker.queue("default").len("reserved") == 0, "the end")
    assert ran.count("done") == 1
    found = job(broker, message)
    assert (found.state, found.attempts, found.reason) == ("dead", 3, "RuntimeError: always")
    server.client().config_set("maxmemory", 0)
    broker.queue("default").kick(message.message_id)
    until(lambda: ran.count("fails") == 4, "one more")


def test_a_killer_is_dead_and_takes_nobody_along(server, process, brokers):
    broker = brokers(server)
    broker.declare_queue("default")

    def send(actor):
        return broker.enqueue(dramatiq.Message("default", actor, (), {}, {}))

    killer = send("kill")
    for _ in range(100):
        send("good")
    worker = process(server, LEASE=1000)
    while broker.queue("default").len():
        if worker.process.poll() is not None:
            worker = process(server, LEASE=1000)
        time.sleep(0.05)
    found, trace = job(broker, killer), server.client(db=2)
    assert (found.state, found.reason) == ("dead", "attempts used up; its workers were lost")
    assert [int(each) for each in trace.lrange("killed", 0, -1)][-1] == 1, "the last time it had the process for itself"
    assert trace.llen("killed") == 3
    assert int(trace.get("good")) >= 100
    assert broker.queue("default").len("dead") == 1


def test_an_unreadable_message_is_dead_and_the_others_go_on(broker, work):
    ran = []

    @dramatiq.actor
    def fine():
        ran.append(1)

    broker.queue("default").add(b"\xff no message", id="bad")
    work(broker)
    fine.send()
    ended(broker)
    assert (ran, broker.queue("default").get("bad").state) == ([1], "dead")
    assert "unreadable" in broker.queue("default").get("bad").reason


def test_a_message_that_is_too_old_is_dead(broker, work):
    ran = []

    @dramatiq.actor(max_age=1)
    def late():
        ran.append(1)

    message = late.send_with_options(delay=50)
    work(broker)
    ended(broker)
    assert (ran, job(broker, message).state) == ([], "dead")


# Trouble


def test_the_message_of_a_killed_worker_comes_back_when_its_lease_ends(server, process):
    trace = server.client(db=2)
    broker = DqBroker(url=server.url, middleware=[])
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "hold", ("a",), {}, {}))
    lost = process(server, LEASE=3_000)
    until(lambda: trace.llen("ran"), "the start")
    lost.kill()
    trace.set("go:a", 1)
    process(server)
    until(lambda: trace.llen("done"), "the second run")
    assert trace.llen("ran") > 1
    ended(broker)
    broker.close()


def test_a_worker_that_stood_still_runs_nothing_that_it_had_fetched_and_lost(server, process):
    trace, db = server.client(db=2), server.client()
    broker = DqBroker(url=server.url, middleware=[])
    broker.declare_queue("default")
    for name in "abcd":  # two begin
        broker.enqueue(dramatiq.Message("default", "hold", (name,), {}, {}))
    still = process(server, LEASE=3_000)
    until(lambda: trace.llen("ran") == 2, "the start of two")
    until(lambda: db.execute_command("DQ.LEN", "default", "RESERVED") == 4, "the delivery of all")
    still.stand_still()
    until(lambda: db.execute_command("DQ.LEN", "default", "READY") == 4, "the end of the leases")
    for name in "abcde":
        trace.set(f"go:{name}", 1)
    other = process(server)
    ended(broker)
    other.stop()
    before = trace.llen("ran")
    still.go_on()
    broker.enqueue(dramatiq.Message("default", "hold", ("e",), {}, {}))
    ended(broker)
    assert (before, trace.llen("ran")) == (6, 7)
    broker.close()


def failing_once(running, go, ran):
    @dramatiq.actor(min_backoff=50, max_backoff=50, max_retries=3)
    def fails_once():
        ran.append(1)
        running.set()
        assert go.wait(60)
        if len(ran) == 1:
            raise RuntimeError("once")

    return fails_once


def test_connections_that_are_cut_lose_nothing(server, broker, work):
    running, go, ran = threading.Event(), threading.Event(), []

    fails_once = failing_once(running, go, ran)
    work(broker)
    fails_once.send()
    assert running.wait(60)
    kill_connections(server.client())
    go.set()
    ended(broker)
    assert len(ran) == 2


def test_a_retry_survives_a_server_that_is_away(durable, brokers, work):
    broker, running, go, ran = brokers(durable), threading.Event(), threading.Event(), []

    fails_once = failing_once(running, go, ran)
    worker = work(broker)
    fails_once.send()
    assert running.wait(60)
    durable.kill()
    go.set()
    worker.join()
    with pytest.raises(ConnectionClosed):
        fails_once.send()
    durable.start()
    until(lambda: len(ran) == 2, "the retry")
    ended(broker)
    assert len(ran) == 2
