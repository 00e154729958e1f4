"""4, 5, 24: failures, what a handler may return or raise, and handlers that end their process."""

from conftest import EACH, breaks, no_nack, scenario
from proxy import Instead, not_fatal, without
from world import KEY

no_reason = breaks(without(b"DQ.NACK", b"REASON"))
no_delay = breaks(without(b"DQ.NACK", b"DELAY"))
counted = breaks(without(b"DQ.NACK", b"SILENT", 0))


def with_delay(command):
    return Instead([*command, b"DELAY", b"1"]) if command[0].upper() == b"DQ.NACK" else None


@scenario(4, no_reason, gate=EACH)
def a_failure_leaves_its_type_and_message(world):
    world.add("j", {"do": "throw", "message": "no paper"}, "BACKOFF", 1, 60_000)
    world.worker()
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    job = world.get("j")
    assert job["reason"] and "no paper" in job["reason"] and job["reason"] != "no paper", job["reason"]
    assert job["attempts"] == 1 and job["failed"]


@scenario(4, breaks(with_delay), gate=EACH)
def the_ladder_of_the_job_goes_first(world):
    world.add("j", {"do": "throw"}, "BACKOFF", 2, 50_000, 90_000)
    world.worker(handlers=[{"lease_ms": 3000, "backoff_ms": [1000]}])
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    wait = world.get("j")["due"] - world.now_ms()
    assert 40_000 < wait <= 50_000, wait


@scenario(4, no_delay, gate=EACH)
def the_ladder_of_the_handler_is_next(world):
    world.add("j", {"do": "throw"})
    world.worker(handlers=[{"lease_ms": 3000, "backoff_ms": [50_000, 90_000]}])
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    wait = world.get("j")["due"] - world.now_ms()
    assert 40_000 < wait <= 50_000, wait


@scenario(4, breaks(with_delay), gate=EACH)
def without_a_ladder_the_servers_holds(world):
    world.db.config_set("dq.default-backoff", "27000")  # no library's own
    world.add("j", {"do": "throw"})
    world.worker()
    world.until(lambda: world.get("j")["failed"], "it has failed")
    job = world.get("j")
    wait = job["due"] - job["failed"]
    assert 27_000 <= wait <= 29_701, wait


@scenario(4, breaks(not_fatal), gate=True)
def after_its_attempts_a_job_is_dead(world):
    world.add("j", {"do": "throw", "message": "again"})
    probe = world.worker(handlers=[{"lease_ms": 3000, "attempts": 2, "backoff_ms": [150]}])
    world.until(lambda: world.state("j") == "dead", "it is dead")
    probe.finish()
    assert len(probe.events("started", job="j")) == 2
    assert "again" in world.get("j")["reason"]


@scenario(4, no_nack, gate=EACH)
def a_handler_cannot_end_its_worker(world):
    world.add("j", {"do": "quit_thread"}, "BACKOFF", 1, 60_000)
    world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    world.add("next", {})
    world.gone("next")


@scenario(5, no_delay, gate=EACH)
def retry_in_counts(world):
    world.add("j", {"do": "retry", "ms": 60_000, "reason": "busy"}, "BACKOFF", 1, 1000)
    world.worker()
    world.until(lambda: world.state("j") == "delayed", "it waits")
    job = world.get("j")
    wait = job["due"] - world.now_ms()
    assert 50_000 < wait <= 60_000 and job["attempts"] == 1 and job["reason"] == "busy", job


@scenario(5, counted, gate=EACH)
def snooze_does_not_count(world):
    world.add("j", {"do": "snooze", "ms": 60_000}, "ATTEMPTS", 1)
    world.worker()
    world.until(lambda: world.state("j") == "delayed", "it waits")
    job = world.get("j")
    wait = job["due"] - world.now_ms()
    assert 50_000 < wait <= 60_000 and job["attempts"] == 0, job


@scenario(5, breaks(not_fatal), gate=EACH)
def give_up_is_final(world):
    world.add("j", {"do": "give_up", "reason": "no such order"}, "ATTEMPTS", 9, "BACKOFF", 1, 60_000)
    world.worker()
    world.until(lambda: world.state("j") == "dead", "it is dead")
    assert world.get("j")["reason"] == "no such order"


@scenario(5, no_delay, gate=True)
def no_answer_of_a_handler_makes_a_hot_loop(world):
    world.db.config_set("dq.default-backoff", "0")
    world.add("j", {"do": "retry", "ms": 0})
    world.add("k", {"do": "snooze", "ms": 0})
    probe = world.worker(concurrency=2)
    for id in "jk":
        probe.wait("started", job=id, count=8)
        dues = [event["due"] for event in probe.events("started", job=id)]
        waits = [later - earlier for earlier, later in zip(dues, dues[1:])]
        assert min(waits) >= 100, f"a hot loop: {waits}"


def no_limit(world):
    world.settings["worker"] = {"handlers": [{"lease_ms": 1500}]}


@scenario(24, no_limit, gate=EACH)
def a_killer_takes_nobody_along(world):
    """Its handler ends the process, so that no failure is heard of; each time another worker is started."""
    count = 100 if world.is_gate else 1000
    for n in range(count):
        world.add(f"j{n}", {"do": "sleep", "ms": 5})
        if n == 15:
            world.add("killer", {"do": "exit"})
    deaths = 0
    while world.state("killer") != "dead":
        world.until(lambda: world.len("RESERVED") == 0, "the dead worker's leases have ended")
        probe = world.worker(concurrency=10, handlers=[{"attempts": 3, "lease_ms": 1500}])
        is_dead = lambda probe=probe: probe.process.poll() is not None  # noqa: E731
        world.until(lambda is_dead=is_dead: is_dead() or world.state("killer") == "dead", "it kills, or is dead")
        deaths += is_dead()
        assert deaths <= 3, "its attempts are used up"
        assert not is_dead() or deaths < 3 or world.len("RESERVED") <= 1, "the last attempt took others along"
    assert world.get("killer")["reason"] == "attempts used up; its workers were lost", world.get("killer")["reason"]
    assert deaths == 3, deaths
    world.until(lambda: world.len() == 0, "all others are done")
    assert world.len("DEAD") == 1, world.len("DEAD")
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(24, counted, gate=True)
def several_killers_take_nobody_along(world):
    """A job that waits for a run of its own is not in hand, where the next killer would take its last attempt."""
    jobs = [f"j{n}" for n in range(60)]
    killers = jobs[6::12]
    for id in jobs:
        world.add(id, {"do": "exit"} if id in killers else {"do": "sleep", "ms": 100}, "ATTEMPTS", 3)
    while world.len():
        probe = world.worker(concurrency=4, handlers=[{"lease_ms": 1000}])
        is_over = lambda probe=probe: probe.process.poll() is not None or world.len() == 0  # noqa: E731
        world.until(is_over, "it is killed, or all jobs have ended")
    dead = [id for id in jobs if world.get(id)]
    assert dead == killers, dead


@scenario(24, counted, gate=EACH)
def what_waits_for_a_run_of_its_own_holds_nothing_up(world):
    """It waits in the server, so its attempt is not lost with the worker. A handler that goes on stops no fetches."""
    world.add("suspect", {}, "ATTEMPTS", 2)
    world.db.execute_command("DQ.POP", KEY, "ID", "suspect", "TTR", 1)
    delay = lambda ms: world.db.execute_command("DQ.RESCHEDULE", KEY, "DELAY", ms, "suspect")  # noqa: E731
    world.until(lambda: delay(3_600_000), "its lease has ended")
    world.add("long", {"do": "sleep", "ms": 3_600_000})
    probe = world.worker(drain_ms=1000)
    probe.wait("started", job="long")
    for n in range(3):
        world.until(lambda: delay(0), "it is in the server")
        world.add(f"good{n}", {})
        world.gone(f"good{n}")
    world.until(lambda: delay(3_600_000), "it was given back")
    assert not probe.events("started", job="suspect")
    probe.kill()
    world.until(lambda: world.waiting() == 0, "its fetch has ended, too")
    world.db.execute_command("DQ.DEL", KEY, "long")
    delay(0)
    world.worker()
    world.gone("suspect")
