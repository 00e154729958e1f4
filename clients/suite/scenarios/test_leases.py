"""2, 3: leases are renewed, lost jobs are noticed, ends are reported."""

import signal
import time
from functools import partial

from conftest import EACH, acks_only_once, breaks, never_acks, no_heartbeats, scenario
from proxy import Cut, Instead, Reply, ack_reply, ack_rows, named, once, swallow, touched, when, with_value, without


@scenario(2, no_heartbeats, gate=True)
def a_slow_job_keeps_its_lease(world):
    world.add("slow", {"do": "sleep", "ms": 5000}, "TTR", 2000)
    probe = world.worker(handlers=[{"lease_ms": 2000}])
    world.gone("slow")
    probe.finish()
    assert len(probe.events("started")) == 1
    assert world.stats()["timed-out"] == 0 if world.stats() else True


@scenario(2, no_heartbeats, gate=True)
def one_heartbeat_for_all_jobs(world):
    for n in range(8):
        world.add(f"j{n}", {"do": "sleep", "ms": 60_000})
    probe = world.worker(concurrency=8, handlers=[{"lease_ms": 1800}])
    probe.wait("started", count=8)
    sent = len(world.proxy.commands(b"DQ.TOUCH"))
    world.until(lambda: len(world.proxy.commands(b"DQ.TOUCH")) >= sent + 5, "heartbeats are sent")
    last = world.proxy.commands(b"DQ.TOUCH")[-1]
    assert last[2].upper() == b"IDS" and int(last[3]) == 8, last
    assert world.stats()["timed-out"] == 0


@scenario(2, no_heartbeats, gate=EACH)
def a_lost_job_is_told_and_not_acknowledged(world):
    world.add("j", {"do": "sleep", "ms": 60_000, "times": 1})
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 900}])
    probe.wait("started", job="j")
    world.db.execute_command("DQ.ADD", "q", "j", b'{"do":"snooze","ms":60000}', "REPLACE", "DELAY", 60_000)
    assert probe.wait("told", job="j", patience_s=world.patience_s)["why"] == "lost"
    probe.wait("lost", job="j", patience_s=world.patience_s)
    probe.wait("ended", job="j")
    world.never(lambda: world.proxy.commands(b"DQ.ACK"), "a lost job was acknowledged", for_s=0.3)
    assert world.state("j") == "delayed"


def acks_whoever_has_it(world):
    def rule(command):
        if command[0].upper() == b"DQ.ACK" and command[2].upper() == b"WITHTOKENS":
            return Instead([*command[:2], *(row[0] for row in ack_rows(command))])
        return None

    no_heartbeats(world)
    # It takes its lease to be longer than it is: otherwise it would know that it has expired.
    world.settings["worker"] = {"handlers": [{"lease_ms": 600_000}]}
    for word in (b"TTR", b"LEASE"):
        breaks(with_value(b"DQ.BPOP", word, lambda _: b"600"))(world)
    breaks(rule)(world)


@scenario(2, acks_whoever_has_it)
def a_worker_stopped_for_longer_than_its_lease_harms_nobody(world):
    world.add("j", {"do": "stubborn", "ms": 1500})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 600}])
    probe.wait("started", job="j")
    probe.signal(signal.SIGSTOP)
    reply = world.until(lambda: world.db.execute_command("DQ.POP", "q", "TTR", 60_000), "its lease ends")
    token = reply[2]
    probe.signal(signal.SIGCONT)
    probe.wait("ended", job="j")
    world.never(lambda: world.get("j") is None, "the other worker's job was acknowledged")
    assert world.db.execute_command("DQ.ACK", "q", "WITHTOKENS", "j", token) == 1


def trusts_its_leases(world):
    no_heartbeats(world)
    world.settings["worker"] = {"handlers": [{"lease_ms": 600_000}]}
    for word in (b"TTR", b"LEASE"):
        breaks(with_value(b"DQ.BPOP", word, lambda _: b"2000"))(world)


@scenario(2, trusts_its_leases)
def a_worker_stopped_for_longer_than_its_lease_begins_nothing_that_it_has_lost(world):
    world.add("first", {"do": "stubborn", "ms": 5000})
    for n in range(3):
        world.add(f"j{n}", {})
    probe = world.worker(concurrency=1, prefetch=3, handlers=[{"lease_ms": 2000}])
    probe.wait("started", job="first")
    world.until(lambda: world.len("RESERVED") == 4, "all are in hand")
    probe.signal(signal.SIGSTOP)
    taken = []
    world.until(
        lambda: len(taken) == 4 or taken.extend(world.db.execute_command("DQ.POP", "q", "COUNT", 4, "TTR", 60_000)),
        "their leases end",
    )
    probe.signal(signal.SIGCONT)
    world.add("next", {})
    world.gone("next")
    assert [event["job"] for event in probe.events("started")] == ["first", "next"]


def refuse_acks_of(world, id):
    """Applies as long as the id is in the set that it returns."""
    refused = {id.encode()}
    busy = Reply(b"-BUSY try again\r\n")
    world.proxy.rules.append(when(lambda command: command[0].upper() == b"DQ.ACK" and refused & {*command[3:]}, busy))
    return refused


RENEWED_MS = 15_000
"""Heartbeats are sent at a third of that: a machine that is slow misses none."""


def is_renewed_twice(world, id):
    def is_renewed(since):
        return world.get(id)["deadline"] > since

    for _ in range(2):
        deadline = world.get(id)["deadline"]
        world.until(partial(is_renewed, deadline), f"the lease of {id} is renewed")


@scenario(2, no_heartbeats, gate=True)
def an_end_that_the_server_has_not_taken_keeps_its_lease(world):
    refused = refuse_acks_of(world, "j")
    world.add("j", {})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": RENEWED_MS}])
    probe.wait("ended", job="j")
    is_renewed_twice(world, "j")
    assert world.stats()["timed-out"] == 0
    refused.clear()
    world.gone("j")
    assert len(probe.events("started")) == 1


@scenario(2, no_heartbeats, gate=True)
def an_end_that_the_server_refuses_costs_no_other_job_its_lease(world):
    refuse_acks_of(world, "j")
    world.add("j", {})
    world.add("slow", {"do": "sleep", "ms": 60_000})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": RENEWED_MS}])
    probe.wait("ended", job="j")
    probe.wait("started", job="slow")
    is_renewed_twice(world, "slow")
    assert world.state("slow") == "reserved" and world.get("slow")["attempts"] == 1
    assert not probe.events("told")


SLACK_MS = 5000
"""By how much a worker waits longer for the answer of a fetch than the fetch may take."""


@scenario(1, never_acks)
def jobs_that_came_while_the_worker_stood_still_are_worked_on(world):
    probe = world.worker(wait_ms=1000, handlers=[{"lease_ms": 600_000}])
    id = caught_waiting(world, probe)
    end = world.now_ms() + 1000 + SLACK_MS + 500
    while world.now_ms() < end:
        time.sleep(0.05)
    probe.signal(signal.SIGCONT)
    world.gone(id)


def caught_waiting(world, probe):
    """Stops the probe, and has the server deliver a job to it."""
    for n in range(20):
        world.until(world.waiting, "it waits")
        probe.signal(signal.SIGSTOP)
        world.add(f"j{n}", {})
        if world.state(f"j{n}") == "reserved":
            return f"j{n}"
        probe.signal(signal.SIGCONT)
        world.gone(f"j{n}")
    raise AssertionError("it never waits")


def acks_without_token(command):
    """The proxy's record is checked, so it forgets the token."""
    if command[0].upper() == b"DQ.ACK":
        command[:] = [*command[:2], b"j"]


@scenario(3, breaks(acks_without_token), gate=EACH)
def acknowledges_with_the_token(world):
    world.add("j", {})
    world.worker()
    world.gone("j")
    (ack,) = world.proxy.commands(b"DQ.ACK")
    assert ack[2].upper() == b"WITHTOKENS", ack
    ((id, token),) = ack_rows(ack)
    assert id == b"j" and token.isdigit(), ack


@scenario(3, acks_only_once, gate=EACH)
def an_ack_that_the_connection_lost_is_sent_again(world):
    world.proxy.rules.append(once(when(named(b"DQ.ACK"), Cut())))
    world.add("j", {})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    world.gone("j")
    assert len(probe.events("started")) == 1


@scenario(3, lambda world: world.prepare(lambda proxy: proxy.replies.append(acked_anyway)), gate=True)
def an_ack_that_finds_nothing_is_reported_as_lost(world):
    # Otherwise a wait for the cancellation, or the heartbeat of a worker that may not wait, would notice it first.
    world.proxy.rules.append(swallow(b"DQ.BTOUCH", b"-NOPERM User worker has no permissions to run 'dq.btouch'\r\n"))
    world.proxy.rules.append(swallow(b"DQ.TOUCH", touched))
    world.add("j", {"do": "stubborn", "ms": 400})
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    world.db.execute_command("DQ.ADD", "q", "j", b"{}", "REPLACE", "DELAY", 60_000)
    probe.wait("lost", job="j", patience_s=world.patience_s)


def acked_anyway(command, reply):
    return ack_reply(command, 1) if command[0].upper() == b"DQ.ACK" else None


def long_lease(world):
    for command, word in ((b"DQ.BPOP", b"TTR"), (b"DQ.BPOP", b"LEASE"), (b"DQ.TOUCH", b"TTR")):
        breaks(with_value(command, word, lambda _: b"600000"))(world)


@scenario(2, long_lease, gate=True)
def a_handler_that_exits_the_process_costs_only_a_lease(world):
    world.add("j", {"do": "exit"})
    probe = world.worker(handlers=[{"lease_ms": 3000}])
    assert probe.exit_code(world.patience_s) == 3
    world.until(lambda: world.state("j") == "ready", "the job is ready again")
    assert world.get("j")["attempts"] == 1


@scenario(2, never_acks)
def a_lease_shorter_than_the_round_trip(world):
    """The job may be delivered more than once; the worker neither spins nor ends, and continues with the next job."""
    world.proxy.delay_s = 0.1
    world.add("j", {})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 50}])
    world.gone("j")
    started = len(probe.events("started"))
    assert started <= 5, f"{started} deliveries"
    world.add("next", {})
    world.gone("next")


@scenario(2, breaks(without(b"DQ.NACK", b"SILENT", 0)), gate=True)
def a_handler_that_forks_is_acknowledged_once(world):
    world.add("j", {"do": "fork"})
    world.add("after", {"do": "snooze", "ms": 60_000})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.gone("j")
    world.until(lambda: world.state("after") == "delayed", "the next job is worked on")
    assert world.get("after")["attempts"] == 0
    assert len(world.proxy.commands(b"DQ.ACK")) == 1
    assert len(probe.events("started", job="j")) == 1
