"""11, 12: rules beside their handlers, and the hook of dead jobs."""

import json
import threading
import time

from conftest import EACH, breaks, permitted, scenario
from proxy import Held, Reply, held, named, swallow, when

# --- 11: the handlers of a worker may have a rule


NIGHTLY = {"kind": "nightly", "cron": "0 2 * * *", "tz": "Europe/Berlin", "lease_ms": 60_000}
OFTEN = {"kind": "often", "every_ms": 1000, "lease_ms": 60_000}
no_rule = breaks(when(named(b"DQ.ADD"), Reply(b"$5\r\nknown\r\n")))


@scenario(11, no_rule, gate=EACH)
def a_rule_beside_its_handler_is_said_at_start(world):
    """By each worker: a rule that has not changed goes on as it was."""
    for n in range(2):
        probe = world.worker(handlers=[NIGHTLY, OFTEN])
        started = probe.wait("started", job="often", count=2 - n, patience_s=world.patience_s)
        assert started["kind"] == "often"
        job = world.get("nightly")
        assert (job["state"], job["cron"], job["tz"], job["label"]) == (
            "delayed",
            "0 2 * * *",
            "Europe/Berlin",
            "nightly",
        )
        if n:
            world.until(lambda: len(world.proxy.commands(b"DQ.ADD")) == 4, "both have said both")
            assert world.get("nightly")["due"] == job["due"] and world.get("often")["runs"] >= 2
        probe.finish()


@scenario(11, no_rule, gate=True)
def a_rule_is_said_once_the_server_is_there(world):
    port = world.proxy.port
    world.server.kill()
    probe = world.worker(place={"url": f"redis://127.0.0.1:{port}"}, handlers=[NIGHTLY])
    world.until(lambda: world.proxy.connections > 1, "it has tried")
    world.server.start()
    world.until(lambda: world.state("nightly") == "delayed", "it is said")
    probe.finish()


def a_good_rule(world):
    world.rule = NIGHTLY


@scenario(11, a_good_rule, gate=EACH)
def a_rule_that_the_server_refuses_ends_the_worker(world):
    """It says which, and why: a rule that is not said would be missed at night."""
    probe = world.producer()
    probe.order("worker", queues=["q"], handlers=[getattr(world, "rule", {**NIGHTLY, "cron": "0 25 * * *"})])
    error = probe.wait("error", patience_s=world.patience_s)
    assert "nightly" in error["message"] and "0 25 * * *" in error["message"], error


# --- 12: what has died


LOST = {"do": "give_up", "reason": "no such order"}
sees_no_death = breaks(when(named(b"DQ.PEEK"), Reply(b"*0\r\n")))


def deaths(probe):
    return [(event["job"], event["reason"]) for event in probe.events("dead")]


@scenario(12, breaks(when(named(b"DQ.GET"), Reply(b"$-1\r\n"))), gate=EACH)
def the_worker_whose_answer_is_dead_calls_the_hook(world):
    """With the job as it is then, and its payload decoded; no other worker does."""
    for n in range(3):
        world.add(f"j{n}", {"dq": 1, "kind": "sell", "data": LOST, "headers": {"tenant": "acme"}})
    tried = {"dq": 1, "kind": "sell", "data": {"do": "throw", "message": "as always"}}
    world.add("tried", tried, "ATTEMPTS", 2, "BACKOFF", 1, 10)
    world.add("good", {"dq": 1, "kind": "sell", "data": {}})
    probes = [world.worker(dead=True, handlers=[{"kind": "sell", "lease_ms": 1000}]) for _ in range(2)]
    world.until(lambda: world.len("DEAD") == 4, "four are dead")
    world.until(lambda: sum(len(deaths(probe)) for probe in probes) >= 4, "all are told")
    # Each has looked for deaths by time since, and found none.
    looked = len(world.proxy.commands(b"DQ.PEEK"))
    world.until(lambda: len(world.proxy.commands(b"DQ.PEEK")) >= looked + 4, "they look again")
    for probe in probes:
        probe.finish()
    told = [event for probe in probes for event in probe.events("dead")]
    assert sorted(event["job"] for event in told) == ["j0", "j1", "j2", "tried"], told
    for event in told:
        is_tried = event["job"] == "tried"
        record = [event[name] for name in ("queue", "kind", "headers", "attempts")]
        assert record == ["q", "sell", {} if is_tried else {"tenant": "acme"}, 1 + is_tried], event
        assert event["data"] == (tried["data"] if is_tried else LOST), event
        assert event["reason"].endswith("as always" if is_tried else "no such order"), event


def lose(world, id, ttr_ms=1):
    """Another worker takes a job, and is lost: it dies with its lease, and with it what is after it."""
    with world.db.pipeline() as pipeline:  # none that waits is faster
        pipeline.execute_command("DQ.ADD", "q", id, json.dumps({"of": id}), "ATTEMPTS", 1, "TTR", ttr_ms)
        pipeline.execute_command("DQ.ADD", "q", f"after {id}", "{}", "AFTER", 1, id, "ONDEAD", "DIE")
        pipeline.execute_command("DQ.POP", "q", "ID", id)
        pipeline.execute()


def looking(world):
    """The connections that look for deaths: a worker may look twice before another one begins."""
    looks = named(b"DQ.PEEK")
    return {write.connection for write in world.proxy.writes if any(looks(each) for each in write.commands)}


@scenario(12, sees_no_death, gate=EACH)
def deaths_by_time_are_found_by_every_worker(world):
    """Once by each, however often it looks; none of before its start."""

    lose(world, "old")
    world.until(lambda: world.len("DEAD") == 2, "the old ones are dead")
    probes = [world.worker(dead=True, handlers=[{"lease_ms": 1000}]) for _ in range(2)]
    # Its first question is when it began.
    world.until(lambda: len(looking(world)) >= 2, "both look")
    for n in range(3):
        lose(world, f"j{n}")
        for probe in probes:
            probe.wait("dead", job=f"j{n}", patience_s=world.patience_s)
            probe.wait("dead", job=f"after j{n}", patience_s=world.patience_s)
    for probe in probes:
        probe.finish()
        assert sorted(deaths(probe)) == sorted(
            told for n in range(3) for told in ((f"j{n}", "lease ended"), (f"after j{n}", f"after j{n}: dead"))
        )
        assert probe.events("dead", job="j0")[0]["data"] == {"of": "j0"}


@scenario(12, sees_no_death)
def what_died_while_nobody_could_look_is_told_later(world):
    probe = world.worker(dead=True, handlers=[{"lease_ms": 1000}])
    world.until(lambda: world.proxy.commands(b"DQ.PEEK"), "it looks")
    lose(world, "j", ttr_ms=2000)
    world.server.kill()
    world.until(lambda: world.proxy.connections > 4, "it notices")
    world.server.start()
    assert probe.wait("dead", job="j", patience_s=world.patience_s)["reason"] == "lease ended"
    probe.finish()


def ahead(command):
    """The answer of a server whose clock is an hour ahead."""
    return Reply(b"*2\r\n$10\r\n%d\r\n$1\r\n0\r\n" % (time.time() + 3600)) if command[0].upper() == b"TIME" else None


@scenario(12, breaks(ahead), gate=EACH)
def deaths_are_found_by_a_clock_that_was_set_back(world):
    """As by a failover."""
    world.proxy.rules.append(ahead)
    probe = world.worker(dead=True, handlers=[{"lease_ms": 1000}])
    world.until(lambda: world.proxy.commands(b"DQ.PEEK"), "it looks")
    world.proxy.rules.remove(ahead)
    lose(world, "j")
    for job in "j", "after j":
        probe.wait("dead", job=job, patience_s=world.patience_s)
    probe.finish()


@scenario(32, permitted, gate=EACH)
def without_the_right_to_look_only_its_own_deaths_are_told(world):
    probe = world.worker(place=world.without("-dq.peek"), dead=True, handlers=[{"lease_ms": 1000}])
    world.until(lambda: len(world.proxy.commands(b"DQ.PEEK")) >= 1, "it looks")
    world.add("j", LOST)
    probe.wait("dead", job="j", patience_s=world.patience_s)
    probe.finish()
    said = [line for line in world.log_text().splitlines() if "dq.peek" in line.lower()]
    assert len(said) == 1, said


MANY = 1200
"""More deaths than wait for a hook."""


def lose_many(world, jobs):
    with world.db.pipeline() as pipeline:
        for id, data in jobs.items():
            pipeline.execute_command("DQ.ADD", "q", id, data, "ATTEMPTS", 1, "TTR", 1)
        for _ in range(0, len(jobs), 100):  # a reply ends after 16 MB
            pipeline.execute_command("DQ.POP", "q", "COUNT", 100)
        pipeline.execute()


@scenario(12, sees_no_death, gate=EACH)
def each_of_many_deaths_is_told_once(world):
    """Some of large jobs, whose payloads no look reads."""
    probe = world.worker(dead=True, handlers=[{"lease_ms": 1000}])
    world.until(lambda: world.proxy.commands(b"DQ.PEEK"), "it looks")
    lose_many(world, {f"j{n}": json.dumps({"n": n}) + " " * (0 if n % 400 else 4_000_000) for n in range(MANY)})
    probe.wait("dead", count=MANY, patience_s=4 * world.patience_s)
    looked = len(world.proxy.commands(b"DQ.PEEK"))
    world.until(lambda: len(world.proxy.commands(b"DQ.PEEK")) > looked + 1, "it looks again")
    probe.finish()
    assert {(event["job"], event["data"]["n"]) for event in probe.events("dead")} == {(f"j{n}", n) for n in range(MANY)}
    assert len(deaths(probe)) == MANY and all(b"PREFIX" in look for look in world.proxy.commands(b"DQ.PEEK"))


@scenario(12, sees_no_death, gate=EACH)
def a_hook_that_hangs_holds_up_neither_jobs_nor_the_stop(world):
    """It is called with one job at a time, which is read right before: so no more than one payload is in memory."""
    probe = world.worker(dead=True, drain_ms=500, handlers=[{"lease_ms": 1000}])
    world.until(lambda: world.proxy.commands(b"DQ.PEEK"), "it looks")
    lose_many(world, {f"j{n}": json.dumps({"dead": "hang"}) for n in range(MANY)})
    probe.wait("dead", patience_s=world.patience_s)
    world.add("lost", LOST)
    world.add("long", {"do": "sleep", "ms": 3000}, "KEEP", 60_000)  # as many heartbeats
    world.done("long")
    read = [words for words in world.proxy.commands(b"DQ.GET") if b"PREFIX" not in words]
    assert len(read) == 1 and len(deaths(probe)) == 1, read
    probe.finish()
    assert "stopped without the hook" in world.log_text(), world.log_text()
    assert (world.state("lost"), len(deaths(probe))) == ("dead", 1)


@scenario(12, breaks(held(b"DQ.TOUCH")), gate=EACH)
def a_dead_job_that_is_long_to_read_delays_no_heartbeat(world):
    is_read = threading.Event()
    world.proxy.rules.append(when(lambda command: named(b"DQ.GET")(command) and len(command) == 3, Held(is_read)))
    probe = world.worker(dead=True, handlers=[{"lease_ms": 1000}])
    world.add("lost", LOST)
    world.until(lambda: world.proxy.commands(b"DQ.GET"), "it reads")
    world.add("long", {"do": "sleep", "ms": 3000}, "KEEP", 60_000)
    world.done("long")
    assert world.get("long")["attempts"] == 1
    is_read.set()
    probe.wait("dead", job="lost", patience_s=world.patience_s)
    probe.finish()


@scenario(12, breaks(swallow(b"DQ.NACK", b"$5\r\nready\r\n")), gate=EACH)
def a_death_at_the_stop_is_told(world):
    world.add("j", {"do": "stubborn", "ms": 1000}, "ATTEMPTS", 1)
    world.add("k", {"do": "throw", "message": "no"}, "ATTEMPTS", 1)
    probe = world.worker(concurrency=2, dead=True, hooks=True, handlers=[{"lease_ms": 60_000, "timeout_ms": 500}])
    probe.wait("started", count=2)
    probe.finish()
    assert {job for job, _ in deaths(probe)} == {"j", "k"}, deaths(probe)
