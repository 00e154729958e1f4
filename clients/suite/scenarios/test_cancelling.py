"""17: a worker notices that a job was cancelled."""

import statistics
import time

from conftest import EACH, breaks, but_the_first, no_heartbeats, scenario
from proxy import held, swallow

LEASE_MS = 30_000
BEAT_S = LEASE_MS / 3 / 1000
no_listener = breaks(swallow(b"DQ.BTOUCH", b"-ERR unknown command 'DQ.BTOUCH'\r\n"))


@scenario(17, no_listener, gate=EACH)
def a_cancel_is_heard(world):
    """At once, and not only at the next heartbeat. No command about the job is sent afterwards."""
    asking = world.producer()
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": LEASE_MS}])
    took = []
    for n in range(7):
        world.add(f"j{n}", {"do": "sleep", "ms": 600_000})
        probe.wait("started", job=f"j{n}")
        world.ear_is_open(n + 1)
        world.until(lambda: is_listened_for(world, f"j{n}"), "it is waited for")  # noqa: B023 # called at once
        begin = time.monotonic()
        if n == 0:
            assert asking.call("q", "cancel", id="j0") is True
        else:
            world.db.execute_command("DQ.DEL", "q", f"j{n}")
        told = probe.wait("told", job=f"j{n}", patience_s=world.patience_s)
        assert told["why"] == "lost", told
        took.append(told["at"] - begin)
        probe.wait("lost", job=f"j{n}", patience_s=world.patience_s)
    assert asking.call("q", "cancel", id="j0") is False
    median = statistics.median(took)
    assert median < BEAT_S / 10, f"{took}: no faster than heartbeats, which come each {BEAT_S} s"
    probe.finish()
    assert not world.proxy.commands(b"DQ.ACK") and not world.proxy.commands(b"DQ.NACK")


def is_listened_for(world, id):
    """Whether a BTOUCH for this job is waiting at the server."""
    commands = [each for each in world.proxy.commands(b"DQ.BTOUCH") if id.encode() in each]
    return commands and world.waiting("dq.btouch")


@scenario(17, but_the_first(held(b"DQ.BTOUCH")), gate=True)
def a_cancel_of_a_job_that_came_later_is_heard(world):
    """The wait for the first job is replaced by one for both."""
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": LEASE_MS}])
    for id in ("first", "later"):
        world.add(id, {"do": "sleep", "ms": 600_000})
        probe.wait("started", job=id)
        world.until(lambda id=id: is_listened_for(world, id), f"{id} is waited for")
    begin = time.monotonic()
    world.db.execute_command("DQ.DEL", "q", "later")
    told = probe.wait("told", job="later", patience_s=world.patience_s)
    assert told["at"] - begin < BEAT_S / 3, told["at"] - begin
    assert not probe.events("told", job="first") and world.state("first") == "reserved"


@scenario(17, no_heartbeats, gate=True)
def without_the_right_to_hear_heartbeats_do(world):
    world.proxy.rules.append(swallow(b"DQ.BTOUCH", b"-NOPERM User worker has no permissions to run 'dq.btouch'\r\n"))
    world.add("j", {"do": "sleep", "ms": 600_000})
    world.add("k", {"do": "sleep", "ms": 600_000})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 1500}])
    probe.wait("started", count=2)
    world.ear_is_open()
    world.db.execute_command("DQ.DEL", "q", "j")
    assert probe.wait("told", job="j", patience_s=world.patience_s)["why"] == "lost"
    world.until(lambda: len(world.proxy.commands(b"DQ.TOUCH")) >= 5, "heartbeats")
    assert world.state("k") == "reserved" and world.get("k")["attempts"] == 1
    assert len(world.proxy.commands(b"DQ.BTOUCH")) == 1, "it asks again for what it may not"
    said = [line for line in world.log_text().splitlines() if "BTOUCH" in line.upper()]
    assert len(said) == 1, said
    assert not probe.events("error"), probe.events("error")


def seems_to_listen(command):
    if command[0].upper() == b"DQ.ACK":
        command[0] = b"DQ.BTOUCH"


@scenario(17, breaks(seems_to_listen), gate=True)
def short_jobs_pay_nothing_for_it(world):
    ids = [f"j{n}" for n in range(300)]
    for id in ids:
        world.add(id, {})
    world.worker(concurrency=1)
    world.until(lambda: world.len() == 0, "all are acknowledged")
    # On a busy machine a job may stay longer than its handler takes.
    assert len(world.proxy.commands(b"DQ.BTOUCH")) < len(ids) / 10
