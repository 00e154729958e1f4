"""The transport below Celery: kombu's connections, producers and consumers."""

import contextlib
import socket
import threading
import time

import kombu
import pytest
import redis
from conftest import Server, until
from kombu.exceptions import KombuError
from places import Place
from servers import Sentinels, free_port

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
    assert (job[b"state"], job[b"priority"], job[b"label"]) == (b"ready", 4, b"t")
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
    # One wait also covers a queue whose messages are acknowledged.
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


def test_a_wait_ends_on_its_connection_without_client_unblock_even_while_writes_are_paused(server, connect):
    server.db.execute_command("ACL", "SETUSER", "default", "-client|unblock")
    connection = connect()
    channel = connection.channel()
    _, consumer = consume(connection, channel, queue_of(channel))
    server.db.execute_command("CLIENT", "PAUSE", 300, "WRITE")
    nothing_more(connection)  # the server holds the wait back
    waiting = channel.client.connection._sock
    consumer.cancel()
    assert channel.client.connection._sock is waiting
    assert "client|unblock" not in [entry["object"] for entry in server.db.acl_log()]


@pytest.mark.parametrize("right", ["client|id", "dq.unblock"])
def test_without_the_right_to_end_it_the_wait_is_withdrawn_too(server, connect, right):
    server.db.execute_command("ACL", "SETUSER", "default", f"-{right}")
    connection = connect(visibility_timeout=1)
    channel = connection.channel()
    consume(connection, channel, queue_of(channel, "first"))
    nothing_more(connection)
    more, _ = consume(connection, channel, queue_of(channel, "second"))
    publish(channel, 1, "second")
    drain(connection, more, 1)


def test_the_queue_of_a_reader_that_died_goes_with_its_binding(server, connect):
    def declare(name):
        events = kombu.Exchange("ev", type="topic")
        kombu.Queue(name, events, routing_key="#", expires=1.0, message_ttl=20.0)(connect().channel()).declare()

    declare("viewer")
    publisher = connect().channel()
    kombu.Producer(publisher, kombu.Exchange("ev", type="topic")).publish(1, routing_key="a.b")
    [[id, *_]] = server.dq("PEEK", "viewer", "READY")
    assert server.dq("GET", "viewer", id)[b"expires"] < (time.time() + 30) * 1000
    until(lambda: not server.db.exists("viewer"), "the end of the queue")
    kombu.Producer(publisher, kombu.Exchange("ev", type="topic")).publish(2, routing_key="a.b")
    assert server.db.keys("*viewer*") == []
    assert server.db.smembers("_kombu.binding.ev") == set()
    declare("first")
    until(lambda: not server.db.exists("first"), "the end of the queue")
    declare("second")
    assert len(server.db.smembers("_kombu.binding.ev")) == 1


def test_ids_are_never_words(server, connect):
    connection = connect()
    channel = connection.channel()
    got, _ = consume(connection, channel, queue_of(channel))
    for id in ("IDS", "WITHTOKENS", "UNRESERVED"):
        publish(channel, 1, headers={"id": id, "task": "t"})
        drain(connection, got, 1)
        got.pop()[1].ack()
        until(lambda: server.dq("LEN", "q") == 0, "the acknowledgement")
        publish(channel, 1, headers={"id": id, "task": "t"})
        drain(connection, got, 1)
        got.pop()[1].reject(requeue=True)
        drain(connection, got, 1)
        got.pop()[1].ack()
        publish(channel, 1, headers={"id": id, "task": "t", "eta": "2100-01-01T00:00:00+00:00"})
        assert set(channel.delete_tasks([id])) == {id}
    with pytest.raises(ValueError, match="is not an id"):
        publish(channel, 1, headers={"id": "*", "task": "t"})


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


def test_the_ttr_of_a_queue_holds_and_is_renewed(server, connect):
    channel = connect(visibility_timeout=600).channel()
    queue_of(channel)
    ttrs = {"own": 900_000, "short": 3000, "none": 60_000}
    for id, ttr in ttrs.items():
        server.dq("CFGSET", "q", "TTR", ttr)
        publish(channel, 17, headers={"id": id, "task": "t"})
    # The first job comes by DQ.BPOP, the others by DQ.POP.
    got, _ = consume(channel.connection.client, channel, queue_of(channel), prefetch=1)
    drain(channel.connection.client, got, 1)
    held = [channel.basic_get("q") for _ in range(2)]
    assert all(held)

    def deadline(id):
        return server.dq("GET", "q", id)[b"deadline"]

    def left(id):
        at = deadline(id)
        seconds, micros = server.db.time()
        return at - (seconds * 1000 + micros // 1000)

    assert 600_000 < left("own") < 901_000
    assert 60_000 < left("none") < 601_000
    assert left("short") < 4000
    for _ in range(2):
        before = {id: deadline(id) for id in ttrs}
        until(lambda before=before: all(deadline(id) > at for id, at in before.items()), "the renewal of all")
    assert server.dq("GET", "q", "short")[b"attempts"] == 1
    assert 600_000 < left("own") < 901_000
    assert 60_000 < left("none") < 601_000
    assert left("short") < 4000


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
    # No consumer has seen it, so it does not count as delivered before.
    assert (message.payload, message.delivery_info.get("redelivered")) == (1, None)


@pytest.mark.parametrize("waits", [True, False], ids=["waited for", "read later"])
def test_an_acknowledgement_that_the_server_did_not_get_is_sent_again(durable, connect, waits):
    connection = connect(durable.url(), visibility_timeout=600)
    channel = connection.channel()
    channel.leases.waits_for_acks = waits
    got, _ = consume(connection, channel, queue_of(channel), prefetch=2)
    publish(channel, 17)
    publish(channel, 18)
    drain(connection, got, 2)
    got[0][1].ack()
    until(lambda: durable.dq("LEN", "q") == 1, "the first acknowledgement")
    durable.kill()
    got[1][1].ack()
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
    # As with AMQP, the size is the number of messages that could be delivered.
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
    assert channel.delete_tasks(["a"]) == {}
    got[0][1].requeue()
    assert list(channel.delete_tasks(["a", "unknown"])) == ["a"]
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


@pytest.fixture
def sentinels():
    made = Sentinels()
    yield made
    made.close()


def test_the_master_that_a_sentinel_names(sentinels, connect):
    at = f"dq+sentinel://{sentinels.address}/3"
    for url, options in [
        (f"{at}?master_name=dq", {}),
        (f"dq+sentinel://127.0.0.1:{free_port()};{at}", {"master_name": "dq"}),
    ]:
        connection = connect(url, **options)
        channel = connection.channel()
        got, _ = consume(connection, channel, queue_of(channel))
        publish(channel, 17)
        drain(connection, got, 1)
        got[0][1].ack()
        inside = {client["db"] for client in sentinels.master.client().client_list() if client["cmd"] == "dq.bpop"}
        assert inside <= {"3"}
        # As after a failover, when kombu takes the next address.
        connection.maybe_switch_next()
        publish(connection.channel(), 18)
        connection.release()
    assert sentinels.master.client(db=3).execute_command("DQ.LEN", "q") == 2


def test_a_sentinel_without_a_name_of_the_master(connect):
    with pytest.raises(ValueError, match="master_name"):
        connect("dq+sentinel://127.0.0.1:1/0").channel()


def test_tls_verifies_the_certificate_unless_told_otherwise(connect):
    place = Place("tls")
    try:
        url, _, verified = place.way().replace("rediss:", "dqs:").partition("?")
        for allowed in verified, "ssl_cert_reqs=none":
            channel = connect(f"{url}?{allowed}").channel()
            queue_of(channel)
            publish(channel, 17)
            assert channel.basic_get("q").payload == 17
        with pytest.raises(redis.ConnectionError, match="certificate"):
            connect(url).channel()
    finally:
        place.close()
