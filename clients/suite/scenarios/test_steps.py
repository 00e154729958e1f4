"""21: a handler's steps are kept, and signals wake it."""

import json
from threading import Event

from conftest import EACH, KEEP_MS, breaks, no_nack, scenario
from proxy import Held, Instead, held, named, swallow, when, without

no_step = breaks(swallow(b"DQ.STEP", b":1\r\n"))
no_sleep = breaks(swallow(b"EVAL", b"$7\r\ndelayed\r\n"))


def add_script(world, *actions, id="j", options=()):
    world.add(id, {"do": "script", "actions": list(actions)}, "KEEP", KEEP_MS, *options)


def result(world, id="j"):
    return json.loads(world.get(id)["result"])


def hurry(world, id="j"):
    """Makes the job due at once."""
    assert world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, id) == 1


def until_it_sleeps(world, id="j"):
    world.until(lambda: world.state(id) == "delayed", f"{id} waits")


# --- Steps


@scenario(21, no_step, gate=EACH)
def a_step_runs_once(world):
    value = {"charge": "ch_1", "n": [1, None]}
    add_script(
        world,
        {"step": "charge", "value": value},
        {"step": "nothing", "value": None},
        {"throw": "no network", "times": 2},
        {"step": "ship", "value": 0},
        {"return": "sent"},
        options=("BACKOFF", 1, 1),
    )
    probe = world.worker(concurrency=1)
    world.done("j")
    for name, expected, runs in (("charge", value, 3), ("nothing", None, 3), ("ship", 0, 1)):
        assert len(probe.events("stepped", job="j", name=name)) == 1, name
        seen = probe.events("step", job="j", name=name)
        assert [event["value"] for event in seen] == [expected] * runs, seen
    assert result(world) == "sent"


@scenario(21, no_step, gate=True)
def a_step_survives_the_worker(world):
    add_script(world, {"step": "charge", "value": 7}, {"step": "ship", "value": 8}, {"return": "sent"})
    stays, tokens = held(b"DQ.STEP"), []

    def of_the_first(command):
        if b"ship" not in command or tokens not in ([], [command[3]]):
            return None
        tokens[:] = [command[3]]
        return stays(command)

    world.proxy.rules.append(of_the_first)
    first = world.worker(concurrency=1, handlers=[{"lease_ms": 1500}])
    first.wait("stepped", job="j", name="ship", patience_s=world.patience_s)
    world.until(lambda: tokens, "its step is on the way")
    first.kill()
    second = world.worker(concurrency=1, handlers=[{"lease_ms": 1500}])
    world.done("j")
    second.finish()
    assert [event["value"] for event in second.events("step", job="j", name="charge")] == [7]
    assert not second.events("stepped", name="charge") and len(second.events("stepped", name="ship")) == 1


def stale(command):
    """With the token of another delivery."""
    if command[0].upper() == b"DQ.STEP":
        return Instead([*command[:3], b"1", *command[4:]])
    return None


@scenario(21, no_step, gate=True)
def a_job_that_is_lost_keeps_no_step(world):
    """The handler is told, as of any loss, and the job's end is not sent to the server."""
    world.proxy.rules.append(stale)
    add_script(world, {"step": "charge", "value": 7}, {"step": "ship", "value": 8}, {"return": "sent"})
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    probe.wait("lost", job="j", patience_s=world.patience_s)
    probe.wait("ended", job="j", patience_s=world.patience_s)
    probe.finish()
    assert not probe.events("step") and not probe.events("stepped", name="ship")
    assert not world.proxy.commands(b"DQ.ACK") and not world.proxy.commands(b"DQ.NACK")


@scenario(21, breaks(without(b"DQ.NACK", b"REASON")), gate=True)
def a_name_twice_in_one_attempt_is_a_mistake(world):
    """Names that the library itself uses are refused, too."""
    wrong = {
        "step-step": [{"step": "a", "value": 1}, {"step": "a", "value": 2}],
        "step-wait": [{"step": "a", "value": 1}, {"wait": "a"}],
        "own": [{"step": "dq:a", "value": 1}],
        "empty": [{"step": "", "value": 1}],
    }
    for id, actions in wrong.items():
        add_script(world, *actions, id=id, options=("BACKOFF", 1, 600_000))
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    for id in wrong:
        until_it_sleeps(world, id)
        assert world.get(id)["attempts"] == 1 and world.get(id)["reason"], id
    assert "a" in world.get("step-step")["reason"] and "dq:" in world.get("own")["reason"]
    assert not probe.events("stepped", job="own")


# --- Sleeping


@scenario(21, no_sleep, gate=EACH)
def a_sleep_ends_the_attempt(world):
    add_script(
        world,
        {"step": "one", "value": 1},
        {"sleep": "nap", "ms": 60_000},
        {"step": "two", "value": 2},
        {"return": 3},
        options=("ATTEMPTS", 1),
    )
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    until_it_sleeps(world)
    job = world.get("j")
    assert job["attempts"] == 0 and 0 < job["due"] - world.now_ms() <= 60_000, job
    world.add("other", {})
    world.gone("other")
    hurry(world)
    world.done("j")
    assert result(world) == 3
    assert len(probe.events("stepped", name="one")) == len(probe.events("stepped", name="two")) == 1
    assert [event["attempt"] for event in probe.events("started", job="j")] == [1, 1]
    assert not probe.events("failed") and not probe.events("lost")


def in_a_transaction(command):
    """As with MULTI and EXEC, which continue after a command that is refused."""
    if command[0].upper() != b"EVAL":
        return None
    return Instead([command[0], command[1].replace(b"reply.err then", b"false then"), *command[2:]])


@scenario(21, breaks(in_a_transaction), gate=EACH)
def a_sleep_for_which_there_is_no_room_is_an_attempt_that_failed(world):
    """Also a wait with a time limit. The attempt counts, so that the job dies in the end, with the reason."""
    for n, action in enumerate(({"sleep": "nap", "ms": 60_000}, {"wait": "signed", "ms": 60_000})):
        add_script(world, action, {"return": 1}, id=f"j{n}", options=("ATTEMPTS", 2, "BACKOFF", 1, 100))
    world.db.execute_command("DQ.CFGSET", "q", "MAXBYTES", 1)
    probe = world.worker(concurrency=1, hooks=True)
    for id in ("j0", "j1"):
        world.until(lambda id=id: world.state(id) == "dead", f"{id} has no attempts left")
        assert world.get(id)["attempts"] == 2 and "MAXBYTES queue is full" in world.get(id)["reason"], world.get(id)
    assert not probe.events("lost")
    world.db.execute_command("DQ.CFGSET", "q", "MAXBYTES", 0)
    world.db.execute_command("DQ.KICK", "q", "IDS", 1, "j0")
    world.until(lambda: world.state("j0") == "delayed", "it sleeps")


# --- Signals


@scenario(21, breaks(swallow(b"DQ.SIGNAL", b":1\r\n")), gate=EACH)
def a_signal_wakes_who_waits_for_it(world):
    add_script(world, {"wait": "signed"}, {"return": "on"}, options=("ATTEMPTS", 1))
    probe = world.worker(concurrency=1)
    until_it_sleeps(world)
    assert world.get("j")["awaits"] == "signed" and world.get("j")["attempts"] == 0
    assert probe.call("q", "signal", id="j", name="signed", value={"by": "Ada"}) is True
    world.done("j")
    (waited,) = probe.events("waited", job="j")
    assert waited["value"] == {"by": "Ada"} and not waited.get("timed_out"), waited
    assert probe.call("q", "signal", id="j", name="signed", value=1) is None


@scenario(21, breaks(swallow(b"DQ.SIGNAL", b":1\r\n")), gate=EACH)
def a_signal_may_come_first(world):
    add_script(world, {"wait": "signed", "ms": 60_000}, {"wait": "bare"}, {"return": "on"})
    probe = world.worker(start=False)
    assert probe.call("q", "signal", id="j", name="signed", value=1) is True
    assert probe.call("q", "signal", id="j", name="signed", value=2) is False
    assert probe.call("q", "signal", id="j", name="bare") is True
    world.start(probe, concurrency=1)
    world.done("j")
    assert [event.get("value") for event in probe.events("waited", job="j")] == [1, None]
    assert len(probe.events("started", job="j")) == 1 and not world.proxy.commands(b"DQ.NACK")


@scenario(21, no_sleep, gate=EACH)
def a_wait_for_a_signal_has_an_end(world):
    """And it stays so when the signal comes after all."""
    actions = [{"wait": "signed", "ms": 60_000}, {"throw": "later", "times": 2}, {"return": "off"}]
    add_script(world, *actions, options=("BACKOFF", 1, 600_000))
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    until_it_sleeps(world)
    assert world.get("j")["attempts"] == 0 and world.get("j")["due"] - world.now_ms() <= 60_000
    hurry(world)
    assert probe.wait("waited", job="j", patience_s=world.patience_s).get("timed_out") is True
    world.until(lambda: world.state("j") == "delayed" and world.get("j")["attempts"] == 1, "it waits for its retry")
    assert probe.call("q", "signal", id="j", name="signed", value="late") is True
    hurry(world)
    world.done("j")
    assert [event.get("timed_out") for event in probe.events("waited", job="j")] == [True, True]


@scenario(21, no_nack, gate=True)
def a_signal_between_the_look_and_the_wait_is_not_missed(world):
    """The signal comes after the delivery, and before the job is given back."""
    open_ = Event()
    world.proxy.rules.append(when(named(b"DQ.NACK"), Held(open_)))
    add_script(world, {"wait": "signed"}, {"return": "on"})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.proxy.commands(b"DQ.NACK"), "it gives the job back")
    assert world.db.execute_command("DQ.SIGNAL", "q", "j", "signed", '"now"') == 1
    open_.set()
    world.done("j")
    assert probe.wait("waited", job="j")["value"] == "now"
