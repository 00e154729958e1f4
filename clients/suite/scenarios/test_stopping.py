"""6: stopping."""

import signal
import socket
import threading
import time

import redis
from conftest import EACH, breaks, permitted, scenario
from proxy import Instead, swallow


def given_back(command):
    if command[2].upper() == b"IDS":
        count = int(command[3])
        return b"*%d\r\n" % count + b"$5\r\nready\r\n" * count
    return b"$5\r\nready\r\n"


no_nack = breaks(swallow(b"DQ.NACK", given_back))


def deaf(world):
    """The probe is frozen before it is told to stop, for as long as a scenario waits."""

    def hold(probe):
        probe.stop_late = True

    world.on_stop = hold


def stopped_within(world, probe, limit_s, order=None):
    begin = time.monotonic()
    order() if order else probe.order("stop")
    if getattr(world, "on_stop", None):
        probe.signal(signal.SIGSTOP)
    event = probe.wait("stopped", patience_s=limit_s)
    return event["at"] - begin


@scenario(6, no_nack, gate=EACH)
def what_is_left_after_drain_is_given_back(world):
    for n in range(3):
        world.add(f"j{n}", {"do": "hang"})
    probe = world.worker(concurrency=3, drain_ms=500, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", count=3)
    took = stopped_within(world, probe, 30)
    assert 0.5 <= took <= 2.5, took
    for n in range(3):
        assert world.state(f"j{n}") == "ready"
        assert world.get(f"j{n}")["attempts"] == 0
    (nack,) = world.proxy.commands(b"DQ.NACK")
    assert nack[2].upper() == b"IDS" and int(nack[3]) == 3, nack


@scenario(6, lambda world: world.settings.update(worker={"drain_ms": 0}), gate=True)
def what_runs_may_end_within_drain(world):
    world.add("j", {"do": "sleep", "ms": 800})
    probe = world.worker(drain_ms=20_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    stopped_within(world, probe, 30)
    assert world.get("j") is None, "it was not acknowledged"


@scenario(6, deaf, gate=EACH)
def a_waiting_fetch_is_withdrawn_at_once(world):
    probe = world.worker(drain_ms=20_000, wait_ms=15_000)
    world.until(world.waiting, "it waits")
    took = stopped_within(world, probe, min(10, world.patience_s))
    assert took < 2, took
    assert not world.waiting(), "a client still waits"


@scenario(6, no_nack)
def no_job_is_stranded_by_a_deploy(world):
    """Jobs keep coming while workers stop: each is run, or given back at once."""
    stop = threading.Event()
    added = []

    def produce():
        db = world.server.client()
        while not stop.is_set():
            id = f"j{len(added)}"
            db.execute_command("DQ.ADD", "q", id, b'{"do":"sleep","ms":20}')
            added.append(id)
            time.sleep(0.002)

    world.db.ping()
    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for _ in range(4):
            probe = world.worker(concurrency=4, prefetch=4, drain_ms=0, handlers=[{"lease_ms": 600_000}])
            probe.wait("started", count=8)
            stopped_within(world, probe, 10)
            probe.close()
            assert world.len("RESERVED") == 0, f"{world.len('RESERVED')} jobs wait for the end of a lease"
    finally:
        stop.set()
        producer.join()


@scenario(6, no_nack, gate=True)
def handlers_are_told_after_drain(world):
    world.add("j", {"do": "sleep", "ms": 60_000})
    probe = world.worker(concurrency=1, drain_ms=300, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    probe.order("stop")
    assert probe.wait("told", job="j")["why"] == "stopping"
    probe.wait("stopped")
    assert world.state("j") == "ready"
    assert world.get("j")["attempts"] == 0


@scenario(6, deaf, gate=True)
def stops_in_time_when_the_server_is_gone(world):
    world.add("j", {"do": "sleep", "ms": 500})
    probe = world.worker(concurrency=2, drain_ms=1500, handlers=[{"lease_ms": 3000}])
    probe.wait("started", job="j")
    world.server.kill()
    took = stopped_within(world, probe, min(15, world.patience_s))
    assert took <= 5.0, took


def through_the_proxy(world):
    """It passes a command on only after the reply to the one before, and drops the rest when its client is gone."""
    world.is_direct = False


def dropped(world, probe):
    """A proxy drops what it holds while its client is gone, and not if that is still there when the server goes on."""
    if not getattr(world, "is_direct", True):
        probe.kill()


@scenario(6, through_the_proxy, gate=EACH)
def what_ended_in_a_standstill_is_written_before_the_stop(world):
    """While an answer is outstanding no ACK is sent. At the stop all are: the server may go on later."""
    ids = [f"j{n}" for n in range(6)]
    for n, id in enumerate(ids):
        world.add(id, {"do": "stubborn", "ms": 1000 + 200 * n})
    world.add("left", {"do": "hang"})
    place = {"url": world.server.url if getattr(world, "is_direct", True) else world.url}
    handlers = [{"lease_ms": 60_000}]
    probe = world.worker(place=place, concurrency=7, drain_ms=3000, handlers=handlers)
    probe.wait("started", count=7)
    world.server.stop()
    try:
        probe.wait("ended", count=6)
        took = stopped_within(world, probe, 15)
        dropped(world, probe)
    finally:
        world.server.go_on()
    assert took <= 5.0, took
    world.gone(*ids)  # the one that is left may go to the fetch that waited


@scenario(6, through_the_proxy, gate=EACH)
def what_is_given_back_in_a_standstill_goes_to_no_dead_worker(world):
    """In the standstill a heartbeat is sent on one connection, then a fetch with an ACK on the other. The server may
    read them in this order, and what is given back before the fetch: that must not find it."""
    ids = ["first", "second"]
    for n, id in enumerate(ids):
        world.add(id, {"do": "stubborn", "ms": 4500 + 200 * n})  # after the heartbeat
    world.add("left", {"do": "hang"})
    place = {"url": world.server.url if getattr(world, "is_direct", True) else world.url}
    probe = world.worker(place=place, concurrency=3, drain_ms=300, handlers=[{"lease_ms": 12_000}])
    probe.wait("started", count=3)
    world.until(lambda: world.waiting("dq.btouch"), "all connections are there")
    world.server.stop()
    try:
        probe.wait("ended", count=2)
        stopped_within(world, probe, 15)
        dropped(world, probe)
    finally:
        world.server.go_on()
    world.gone(*ids)
    world.until(lambda: world.state("left") == "ready", "it waits for another worker")
    assert world.get("left")["attempts"] == 0, "its lease had to end"


@scenario(6, through_the_proxy, gate=EACH)
def what_is_given_back_long_after_an_answer_was_due_is_read(world):
    """If a heartbeat gets no answer, the worker connects anew, and that waits. Its last words are read nevertheless."""
    world.add("short", {"do": "sleep", "ms": 600_000}, "TTR", 3000)
    world.add("left", {"do": "hang"})
    place = {"url": world.server.url if getattr(world, "is_direct", True) else world.url}
    probe = world.worker(place=place, concurrency=3, drain_ms=300, handlers=[{}])
    probe.wait("started", count=2)
    world.until(lambda: world.waiting("dq.btouch"), "all connections are there")
    world.server.stop()
    try:
        probe.wait("told", job="short")  # as its lease is over; an answer was due in a third of that
        stopped_within(world, probe, 15)
        dropped(world, probe)
    finally:
        world.server.go_on()
    world.until(lambda: world.state("left") == "ready", "it waits for another worker")


def spinning(world):
    """As many connections as a spinning worker makes."""

    def connect():
        for _ in range(200):
            socket.create_connection(("127.0.0.1", world.proxy.port)).close()

    world.on_drain = connect


@scenario(6, spinning, gate=True)
def a_drain_without_its_server_does_not_spin(world):
    world.add("short", {"do": "sleep", "ms": 500})
    world.add("long", {"do": "stubborn", "ms": 4000})
    probe = world.worker(drain_ms=20_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", count=2)
    world.server.kill()
    probe.wait("ended", job="short")
    probe.order("stop")
    getattr(world, "on_drain", lambda: None)()
    probe.wait("ended", job="long")
    # After each failure it waits twice as long, up to seconds.
    assert world.proxy.connections < 50, world.proxy.connections


@scenario(6, deaf, gate=True)
def sigterm_stops_it_in_good_order(world):
    world.add("j", {"do": "sleep", "ms": 500})
    probe = world.worker(concurrency=1, drain_ms=10_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    stopped_within(world, probe, min(15, world.patience_s), lambda: probe.signal(signal.SIGTERM))
    assert probe.exit_code() == 0
    assert world.get("j") is None


@scenario(6, no_nack, gate=True)
def what_was_fetched_ahead_is_given_back_at_once(world):
    for n in range(6):
        world.add(f"j{n}", {"do": "sleep", "ms": 3000})
    probe = world.worker(concurrency=2, prefetch=4, drain_ms=20_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", count=2)
    world.until(lambda: world.len("RESERVED") == 6, "all are in hand")
    probe.order("stop")
    world.until(lambda: world.len("READY") == 4, "four are given back")
    assert not probe.events("stopped")
    assert world.get("j5")["attempts"] == 0
    probe.wait("stopped")


@scenario(6, no_nack, gate=True)
def a_second_stop_ends_the_drain(world):
    world.add("j", {"do": "hang"})
    probe = world.worker(concurrency=1, drain_ms=60_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    probe.order("stop")
    world.until(lambda: not world.waiting(), "it fetches no more")
    took = stopped_within(world, probe, min(15, world.patience_s))
    assert took <= 2.5, took
    assert world.state("j") == "ready"


@scenario(6, no_nack, gate=EACH)
def a_second_sigterm_ends_it_at_once(world):
    world.add("j", {"do": "hang"})
    probe = world.worker(concurrency=2, drain_ms=60_000, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    world.until(world.waiting, "it waits for more")
    probe.signal(signal.SIGTERM)
    world.until(lambda: not world.waiting(), "it fetches no more")
    probe.signal(signal.SIGTERM)
    begin = time.monotonic()
    probe.exit_code()
    assert time.monotonic() - begin <= 3
    assert world.state("j") == "ready" and world.get("j")["attempts"] == 0


def only_one(world):
    world.second = 0


@scenario(6, only_one, gate=EACH)
def a_second_sigterm_ends_the_wait_for_the_last_answers(world):
    world.add("j", {"do": "stubborn", "ms": 300})
    probe = world.worker(concurrency=1, drain_ms=60_000, handlers=[{"lease_ms": 3000}])
    probe.wait("started", job="j")
    world.server.stop()
    try:
        probe.wait("ended", job="j")
        probe.signal(signal.SIGTERM)
        before = world.proxy.connections
        world.until(lambda: world.proxy.connections > before, "it has waited in vain, and tries again")
        begin = time.monotonic()
        probe.signal(getattr(world, "second", signal.SIGTERM))
        world.until(lambda: probe.process.poll() is not None, "it ends")
    finally:
        world.server.go_on()
    assert time.monotonic() - begin <= 3
    world.gone("j")


def with_client_unblock(command):
    return Instead([b"CLIENT", b"UNBLOCK", *command[1:]]) if command[0].upper() == b"DQ.UNBLOCK" else None


@scenario(32, breaks(with_client_unblock), gate=EACH)
def pauses_under_load_and_at_the_stop_harm_nobody(world):
    """CLIENT UNBLOCK of a client whose command CLIENT PAUSE holds back ends Redis up to 8.0 and Valkey up to 8.1."""

    def ask(*command, **options):
        try:
            return world.server.client(**options).execute_command(*command)
        except redis.ConnectionError as error:
            raise AssertionError("the server ended") from error

    stop, ended = threading.Event(), []

    def produce():
        n = 0
        while not stop.is_set() and not ended:
            try:
                for key, options in ("q", {}), ("r", {"db": 1}):
                    ask("DQ.ADD", key, f"j{n}", b'{"do":"sleep","ms":60}', **options)
            except AssertionError as error:
                ended.append(error)
            n += 1
            time.sleep(0.02)

    probe = world.worker(start=False)
    probe.ask("queue", "made", queue="r", name="r", url=f"{world.url}/1")
    # More places than jobs on a busy machine, too: at the stop a fetch waits.
    world.start(probe, queues=["q", "r"], concurrency=30, drain_ms=20_000, handlers=[{"lease_ms": 60_000}])
    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for pause_ms in (300, 300, 2500):  # the last one holds back the answers to ACKs, longer than it takes to tell
            probe.wait("started", count=len(probe.events("started")) + 20, patience_s=world.patience_s)
            ask("CLIENT", "PAUSE", pause_ms, "WRITE")
        took = stopped_within(world, probe, min(15, world.patience_s))
    finally:
        stop.set()
        producer.join()
    assert not ended and took < 10, (ended, took)
    sent = ask("INFO", "commandstats")
    assert "cmdstat_dq.unblock" in sent and "cmdstat_client|unblock" not in sent, sorted(sent)
    for key, options in ("q", {}), ("r", {"db": 1}):
        assert ask("DQ.LEN", key, "RESERVED", **options) == 0, "jobs wait for the ends of their leases"


@scenario(32, permitted, gate=EACH)
def without_the_right_to_end_waits_a_worker_closes_its_own(world):
    place = world.without("-dq.unblock", "-client|unblock")
    probe = world.worker(place=place, concurrency=2, drain_ms=20_000, wait_ms=15_000, handlers=[{"lease_ms": 60_000}])
    for n in range(5):
        world.add(f"j{n}", {"do": "sleep", "ms": 100})
    world.gone(*[f"j{n}" for n in range(5)])
    world.until(world.waiting, "it waits")
    took = stopped_within(world, probe, min(10, world.patience_s))
    assert took < 3, took
    said = [line for line in world.log_text().splitlines() if "UNBLOCK" in line.upper()]
    assert len(said) == 1, said
    assert not probe.events("error"), probe.events("error")
