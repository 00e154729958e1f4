"""Acknowledgements whose answers are read later."""

import threading

import pytest
import redis
from conftest import until

from dq_celery.acks import AckStream, Delivery
from dq_celery.leases import Leases

COUNT = 5


@pytest.fixture
def deliveries(server):
    for number in range(COUNT):
        server.dq("ADD", "q", number, "x")
    return [Delivery("q", id, token) for id, _text, token, *_ in server.dq("POP", "q", "COUNT", COUNT)]


@pytest.fixture
def stream(server):
    return AckStream(redis.Redis(unix_socket_path=server.socket, client_name="stream"))


def hold_back(server):
    """The server takes acknowledgements, but does not answer them."""
    server.db.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")


def arrived(server):
    """The connection of the stream, once the server has read from it."""
    return until(
        lambda: [
            each["id"] for each in server.db.client_list() if each["name"] == "stream" and each["cmd"] == "dq.ack"
        ],
        "an acknowledgement",
    )


def test_nobody_waits_for_the_answers(server, stream, deliveries):
    hold_back(server)
    assert [stream.send(each) for each in deliveries] == [[]] * COUNT
    assert (len(stream), server.dq("LEN", "q")) == (COUNT, COUNT)
    server.db.execute_command("CLIENT", "UNPAUSE")
    assert stream.collect() == []
    assert (len(stream), server.dq("LEN", "q")) == (0, 0)


@pytest.mark.parametrize("waits", [True, False])
def test_the_server_is_being_told_until_it_answers(server, deliveries, waits):
    leases = Leases(redis.Redis(unix_socket_path=server.socket), 60_000)
    leases.waits_for_acks = waits
    leases.take("tag", deliveries[0], server.dq("GET", "q", deliveries[0].id)[b"deadline"], 60_000)
    assert not leases.is_telling
    hold_back(server)
    telling = threading.Thread(target=leases.ack, args=("tag",))
    telling.start()
    until(lambda: not leases.holds("tag"), "the acknowledgement")
    assert leases.is_telling
    server.db.execute_command("CLIENT", "UNPAUSE")
    until(lambda: not leases.is_telling, "the answer")
    assert server.dq("LEN", "q") == COUNT - 1
    telling.join()
    leases.close()


def test_answers_that_have_come_are_read_when_the_next_is_sent(server, stream, deliveries):
    for each in deliveries:
        assert stream.send(each) == []
        assert len(stream) == 1
        until(stream._has_answer, "the answer")
    assert server.dq("LEN", "q") == 0


def test_what_a_lost_connection_had_is_to_be_sent_again(server, stream, deliveries):
    hold_back(server)
    for each in deliveries[:-1]:
        stream.send(each)
    [id] = arrived(server)
    server.db.client_kill_filter(_id=id)
    server.db.execute_command("CLIENT", "UNPAUSE")
    assert stream.collect() == deliveries[:-1]
    assert (len(stream), server.dq("LEN", "q")) == (0, COUNT)
    # And the stream goes on.
    for each in deliveries:
        assert stream.send(each) == []
    assert stream.collect() == []
    assert server.dq("LEN", "q") == 0


def test_without_a_server(server, stream, deliveries):
    server.kill()
    assert stream.send(deliveries[0]) == [deliveries[0]]
    assert stream.collect() == []


def test_what_the_server_refuses_is_logged(server, deliveries, caplog):
    server.db.acl_setuser("worker", enabled=True, nopass=True, keys="*", commands=["+@all", "-dq.ack"])
    stream = AckStream(redis.Redis(unix_socket_path=server.socket, username="worker", password="any"))
    assert stream.send(deliveries[0]) == []
    assert stream.collect() == []
    assert "is not acknowledged" in caplog.text
    assert server.dq("LEN", "q", "RESERVED") == COUNT


def test_an_acknowledgement_that_comes_too_late_is_logged(server, stream, deliveries, caplog):
    server.dq("ACK", "q", "0")
    assert stream.send(deliveries[0]) == []
    assert stream.collect() == []
    assert "acknowledged too late" in caplog.text
