"""The broker behind a Sentinel, in a cluster, with TLS, with a user of few rights."""

import threading

import dramatiq
from conftest import until
from dramatiq.errors import ConnectionClosed
from places import Place, place

from dq_dramatiq import DqBroker

__all__ = ["place"]


def broker_at(place: Place) -> DqBroker:
    way = place.way()
    made = DqBroker(url=way) if isinstance(way, str) else DqBroker(client=way)
    dramatiq.set_broker(made)
    made.emit_after("process_boot")
    return made


def sent(send):
    """Sends as a program does that tries again while the server is away."""

    def send_once():
        try:
            return send()
        except ConnectionClosed:
            return None

    return until(send_once, "the message's acceptance")


def test_a_worker_survives_what_happens_at_this_place(place, work):
    broker, ran, running, go = broker_at(place), [], threading.Event(), threading.Event()

    @dramatiq.actor(min_backoff=50, max_backoff=50, max_retries=5)
    def fails_once(name):
        ran.append(name)
        running.set()
        assert go.wait(60)
        if ran.count(name) == 1:
            raise RuntimeError("once")

    first = fails_once.send("first")
    if place.kind == "rights":
        place.fail_once("default", first.message_id)
    work(broker)
    far = fails_once.send_with_options(args=("far",), delay=3_600_000)
    fails_once.send_with_options(args=("near",), delay=200)
    assert running.wait(60)
    place.disturb("default")
    go.set()
    until(lambda: ran.count("near") >= 2, "the retry")
    sent(lambda: fails_once.send("later"))
    until(lambda: ran.count("later") >= 2, "the later one and its retry")
    until(lambda: broker.queue("default").len() == 1, "the acknowledgements")
    assert broker.queue("default").delete(far.message_id)
    assert "far" not in ran
    assert ran.count("first") >= 2
    assert not place.denied()
    broker.close()
