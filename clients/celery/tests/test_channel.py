"""The transport below Celery: kombu's connections, producers and consumers."""

import contextlib
import socket
import threading

import kombu
import pytest
from conftest import Server, until
from kombu.exceptions import KombuError

import dq_celery  # kombu alone does not load entry points before its first connection

assert dq_celery.LOADED


@pytest.fixture
def connect(server):
    opened = []

    def make(url=None, **options):
        opened.append(kombu.Connection(url or server.url(), transport_options=options))
        return opened[-1]

    yield make
    for connection in opened:
        connection.release()


def queue_of(channel, name="q", **options):
    queue = kombu.Queue(name, kombu.Exchange(name), routing_key=name, **options)(channel)
    queue.declare()
    return queue


def publish(channel, body, name="q", **options):
    kombu.Producer(channel).publish(body, exchange=name, routing_key=name, **options)


def consume(connection, channel, *queues, prefetch=0, no_ack=False):
    """Begins to consume, and returns a list that fills while ``drain`` is called."""
    got = []
    channel.basic_qos(0, prefetch, False)
    consumer = kombu.Consumer(channel, queues, callbacks=[lambda body, message: got.append((body, message))])
    consumer.consume(no_ack=no_ack)
    return got, consumer


def drain(connection, got, count):
    def enough():
        with contextlib.suppress(socket.timeout):
            connection.drain_events(timeout=0.1)
        return len(got) >= count

    until(enough, f"the arrival of {count} messages")


def nothing_more(connection):
    with pytest.raises(socket.timeout):
        connection.drain_events(timeout=0.3)


def test_a_queue_is_a_key_and_a_task_a_job(server, connect):
    channel = connect().channel()
    queue_of(channel)
    publish(channel, {"a": 1}, headers={"id": "task-1", "task": "t"}, priority=4)
    assert server.db.type("q") == b"dq-queue1"
    job = server.dq("GET", "q", "task-1")
    assert (job[b"state"], job[b"priority"]) == (b"ready", 4)
    assert channel.basic_get("q").payload == {"a": 1}
    assert server.dq("GET", "q", "task-1")[b"state"] == b"reserved"


def test_what_is_acknowledged_is_gone(server, connect):
    connection = connect()
    channel = connection.channel()
    queue = queue_of(channel)
    got, _ = consume(connection, channel, queue)
    publish(channel, 17)
    drain(connection, got, 1)
    assert server.dq("LEN", "q", "RESERVED") == 1
    got[0][1].ack()
    assert server.dq("LEN", "q") == 0
    nothing_more(connection)


def test_requeued_means_delivered_again_and_says_so(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    publish(channel, 17)
    drain(connection, got, 1)
    assert not got[0][1].delivery_info.get("redelivered")
    got[0][1].requeue()
    drain(connection, got, 2)
    assert got[1][1].delivery_info["redelivered"] is True
    got[1][1].reject()
    assert server.dq("LEN", "q") == 0 == server.dq("LEN", "q", "DEAD")


def test_what_is_rejected_is_kept_as_dead_if_asked(server, connect):
    connection = connect(dead_letters=True)
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    publish(channel, 17, headers={"id": "bad", "task": "t"})
    drain(connection, got, 1)
    got[0][1].reject()
    assert server.dq("GET", "q", "bad")[b"state"] == b"dead"
    assert server.dq("KICK", "q", "COUNT", 1) == 1
    drain(connection, got, 2)


def test_the_prefetch_count_is_the_limit(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel), prefetch=2)
    for number in range(5):
        publish(channel, number)
    drain(connection, got, 2)
    nothing_more(connection)
    assert (len(got), server.dq("LEN", "q", "RESERVED")) == (2, 2)
    got[0][1].ack()
    drain(connection, got, 3)
    nothing_more(connection)
    assert [body for body, _ in got] == [0, 1, 2]


def test_one_wait_for_all_queues_and_priorities_within_each(server, connect):
    connection = connect()
    channel = connection.channel()
    queues = [queue_of(channel, name) for name in ("a", "b")]
    for number, priority in enumerate((9, 0, 5)):
        publish(channel, number, "a", priority=priority)
    publish(channel, 3, "b")
    got, _ = consume(connection, channel, *queues)
    drain(connection, got, 4)
    assert [body for body, message in got if message.delivery_info["exchange"] == "a"] == [1, 2, 0]
    # Busy queues take turns.
    assert [body for body, _ in got].index(3) < 3
    nothing_more(connection)
    waiting = server.db.client_list()
    assert [client["cmd"] for client in waiting].count("dq.bpop") == 1


def test_messages_of_no_ack_s_are_gone_when_they_come(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel, "plain"), no_ack=True)
    publish(channel, 1, "plain")
    drain(connection, got, 1)
    assert server.dq("LEN", "plain") == 0
    # In one wait with a queue that is acknowledged.
    more, _ = consume(connection, channel, queue_of(channel, "careful"))
    publish(channel, 2, "plain")
    publish(channel, 3, "careful")
    drain(connection, more, 1)
    drain(connection, got, 2)
    assert (server.dq("LEN", "plain"), server.dq("LEN", "careful", "RESERVED")) == (0, 1)
    queue_of(channel, "asked")
    publish(channel, 4, "asked")
    assert channel.basic_get("asked", no_ack=True).payload == 4
    assert channel.basic_get("asked") is None
    assert server.dq("LEN", "asked") == 0


def test_a_new__is_served_by_a_wait_that_had_begun(server, connect):
    connection = connect()
    channel = connection.channel()
    consume(connection, channel, queue_of(channel, "first"))
    nothing_more(connection)  # a wait has begun
    more, consumer = consume(connection, channel, queue_of(channel, "second"))
    publish(channel, 1, "second")
    drain(connection, more, 1)
    consumer.cancel()
    publish(channel, 2, "second")
    nothing_more(connection)
    assert server.dq("LEN", "second", "READY") == 1


def test_a_job_that_came_while_the_wait_was_withdrawn_keeps_its_place(server, connect):
    connection = connect()
    channel = connection.channel()
    _, consumer = consume(connection, channel, queue_of(channel))
    nothing_more(connection)
    publish(channel, 17, headers={"id": "a", "task": "t"})
    until(lambda: server.dq("LEN", "q", "RESERVED"), "the delivery that nobody reads")
    consumer.cancel()
    job = server.dq("GET", "q", "a")
    assert (job[b"state"], job[b"attempts"]) == (b"ready", 0)


def test_without_client_unblock_the_wait_is_withdrawn_too(server, connect):
    server.db.execute_command("ACL", "SETUSER", "default", "-client|id", "-client|unblock")
    connection = connect(visibility_timeout=1)
    channel = connection.channel()
    consume(connection, channel, queue_of(channel, "first"))
    nothing_more(connection)
    more, _ = consume(connection, channel, queue_of(channel, "second"))
    publish(channel, 1, "second")
    drain(connection, more, 1)


def test_leases_are_renewed_while_the_message_is_in_hand(server, connect):
    connection = connect(visibility_timeout=6)
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    publish(channel, 17, headers={"id": "long", "task": "t"})
    drain(connection, got, 1)
    deadline = server.dq("GET", "q", "long")[b"deadline"]

    def renewed():
        job = server.dq("GET", "q", "long")
        return job[b"deadline"] and job[b"deadline"] > deadline

    until(renewed, "the renewal")


def test_a_closed_channel_gives_back_what_it_has(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel), prefetch=3)
    for number in range(3):
        publish(channel, number)
    drain(connection, got, 3)
    got[0][1].ack()
    connection.release()
    assert (server.dq("LEN", "q", "READY"), server.dq("LEN", "q", "RESERVED")) == (2, 0)
    other = connect().channel()
    message = other.basic_get("q")
    # It was never looked at, so it was not delivered before.
    assert (message.payload, message.delivery_info.get("redelivered")) == (1, None)


def test_an_acknowledgement_that_the_server_did_not_get_is_sent_again(durable, connect):
    connection = connect(durable.url(), visibility_timeout=600)
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    publish(channel, 17)
    drain(connection, got, 1)
    durable.kill()
    got[0][1].ack()
    durable.start()
    until(lambda: durable.dq("LEN", "q") == 0, "the acknowledgement")


def test_what_is_no_message_is_kept_as_dead_and_holds_nobody_up(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    bodies = [b"hello", b"[]", b'{"properties": {"body_encoding": "base64", "delivery_info": {}}, "body": "A"}']
    for number, payload in enumerate(bodies):
        server.dq("ADD", "q", f"bad{number}", payload)
    publish(channel, 17)
    drain(connection, got, 1)
    assert got[0][0] == 17
    assert server.dq("LEN", "q", "DEAD") == len(bodies)
    assert b"unreadable" in server.dq("GET", "q", "bad0")[b"reason"]


def test_fanout_reaches_all_that_listen(server, connect):
    exchange = kombu.Exchange("news", type="fanout")
    listeners = []
    for number in range(2):
        connection = connect()
        channel = connection.channel()
        got, _ = consume(connection, channel, kombu.Queue(f"listener{number}", exchange)(channel))
        listeners.append((connection, got))
        drain(connection, got, 0)
    until(lambda: [client["psub"] for client in server.db.client_list()].count("1") == 2, "the subscriptions")
    kombu.Producer(connect().channel()).publish("hello", exchange=exchange, declare=[exchange])
    for connection, got in listeners:
        drain(connection, got, 1)
        got[0][1].ack()


def test_size_purge_and_deletion(server, connect):
    channel = connect().channel()
    queue = queue_of(channel)
    publish(channel, 1)
    publish(channel, 2, headers={"eta": "2090-01-01T00:00:00+00:00", "id": "later", "task": "t"})
    # As with AMQP the size is what could be delivered.
    assert queue.queue_declare(passive=True).message_count == 1
    queue.delete(if_empty=True)
    assert server.dq("LEN", "q") == 2
    assert queue.purge() == 2
    queue.delete()
    assert not server.db.exists("q")
    assert not server.db.sismember("_kombu.dq.queues", "q")


def test_a_prefix_for_all_keys(server, connect):
    connection = connect(global_keyprefix="mine:")
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    publish(channel, 17, headers={"id": "a", "task": "t"})
    drain(connection, got, 1)
    assert server.dq("LEN", "mine:q", "RESERVED") == 1
    assert channel.delete_tasks(["a"]) == []
    got[0][1].requeue()
    assert channel.delete_tasks(["a", "unknown"]) == ["a"]
    assert all(key.startswith(b"mine:") for key in server.db.scan_iter())


def test_a_server_without_the_module_says_so():
    plain = Server(False)
    try:
        with kombu.Connection(plain.url()) as connection, pytest.raises(KombuError, match="no dq module"):
            publish(connection.channel(), 1, "")
    finally:
        plain.close()


def test_a_list_of_the_redis_transport_says_so(server, connect):
    channel = connect().channel()
    queue_of(channel)
    server.db.lpush("q", "old")
    with pytest.raises(KombuError, match="another database"):
        publish(channel, 1)


def test_acknowledging_from_many_threads(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    for number in range(40):
        publish(channel, number)
    drain(connection, got, 40)
    threads = [threading.Thread(target=message.ack) for _, message in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.dq("LEN", "q") == 0


@pytest.mark.parametrize(
    "url, host, secure",
    [
        ("dqs://somewhere:7000/3", "somewhere", True),
        ("dq://somewhere:7000/3", "somewhere", False),
    ],
)
def test_addresses(url, host, secure):
    connection = kombu.Connection(url)
    assert (connection.hostname, connection.port, connection.virtual_host) == (host, 7000, "3")
    transport = connection.transport
    assert transport.driver_type == "dq"
    assert bool(connection.ssl) is secure
