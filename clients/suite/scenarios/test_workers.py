"""18, 19, 22: time limits, final errors, middleware, health."""

from conftest import EACH, breaks, no_nack, permitted, scenario
from proxy import held, not_fatal, swallow, without

# --- 18


@scenario(18, breaks(without(b"DQ.NACK", b"REASON")), gate=EACH)
def a_handler_has_only_so_much_time(world):
    world.add("j", {"do": "sleep", "ms": 600_000}, "BACKOFF", 1, 600_000)
    world.add("quick", {})
    probe = world.worker(concurrency=2, hooks=True, handlers=[{"lease_ms": 60_000, "timeout_ms": 1000}])
    assert probe.wait("told", job="j", patience_s=world.patience_s)["why"] == "timeout"
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    assert (world.get("j")["reason"], world.get("j")["attempts"]) == ("timeout after 1 s", 1), world.get("j")
    world.gone("quick")
    probe.wait("failed", job="j", patience_s=world.patience_s)
    probe.finish()
    assert not probe.events("lost") and not probe.events("told", job="quick")


@scenario(18, no_nack, gate=EACH)
def what_a_handler_does_after_its_time_is_dropped(world):
    """The job fails at once; the handler's place stays taken until it ends."""
    world.add("j", {"do": "stubborn", "ms": 4000}, "BACKOFF", 1, 600_000)
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000, "timeout_ms": 1000}])
    probe.wait("started", job="j")
    world.add("next", {})
    world.until(lambda: world.state("j") == "delayed", "it waits for its retry")
    assert not probe.events("ended", job="j") and not probe.events("started", job="next")
    world.gone("next")
    probe.wait("ended", job="next", patience_s=world.patience_s)
    names = [event["event"] for event in probe.events() if event["event"] in ("started", "ended")]
    assert names[:3] == ["started", "ended", "started"], names
    assert not [each for each in world.proxy.commands(b"DQ.ACK") if b"j" in each]
    assert world.state("j") == "delayed" and world.get("j")["reason"] == "timeout after 1 s"


@scenario(18, breaks(not_fatal), gate=True)
def which_errors_are_final(world):
    """``retry_on``: all other errors are final; ``give_up_on``: these errors are."""
    for kind in ("retry", "give up"):
        for type in ("Flaky", "Broken", None):
            data = {"do": "throw", "type": type, "message": f"of type {type}"}
            envelope = {"dq": 1, "kind": kind, "data": data}
            world.add(f"{kind} {type}", envelope, "ATTEMPTS", 9, "BACKOFF", 1, 600_000)
    rules = [{"kind": "retry", "retry_on": ["Flaky"]}, {"kind": "give up", "give_up_on": ["Broken"]}]
    world.worker(handlers=[{"lease_ms": 60_000, **rule} for rule in rules])
    retried = {"retry Flaky", "give up Flaky", "give up None"}
    given_up = {"retry Broken", "retry None", "give up Broken"}
    for ids, state in (retried, "delayed"), (given_up, "dead"):
        for id in ids:
            world.until(lambda id=id, state=state: world.state(id) == state, f"{id} is {state}")
            assert f"of type {id.split()[-1]}" in world.get(id)["reason"], world.get(id)["reason"]


# --- 19


@scenario(19, lambda world: world.settings.update(worker={"around": None}), gate=EACH)
def middleware_is_around_the_handler(world):
    world.add("good", {"do": "return", "value": 1}, "KEEP", 600_000)
    world.add("bad", {"do": "throw"}, "BACKOFF", 1, 600_000)
    probe = world.worker(concurrency=1, around=True)
    world.done("good")
    world.until(lambda: world.state("bad") == "delayed", "it waits for its retry")
    probe.finish()
    for id in ("good", "bad"):
        seen = [event.get("phase") or event["event"] for event in probe.events(job=id)]
        assert seen == ["entered", "started", "ended", "left"], seen
    assert world.get("good")["result"] == "1"


@scenario(19, no_nack, gate=True)
def what_middleware_throws_is_the_handlers_error(world):
    for n in range(5):
        world.add(f"j{n}", {}, "BACKOFF", 1, 600_000)
    probe = world.worker(concurrency=2, around="hostile", hooks=True)
    for n in range(5):
        world.until(lambda n=n: world.state(f"j{n}") == "delayed", "it waits for its retry")
        assert world.get(f"j{n}")["reason"] and world.get(f"j{n}")["attempts"] == 1
    probe.finish()
    assert len(probe.events("failed")) == 5 and not probe.events("started") and not probe.events("error")


# --- 22


@scenario(22, breaks(held(b"DQ.BPOP")), gate=EACH)
def a_worker_says_whether_it_is_healthy(world):
    probe = world.worker(concurrency=1, wait_ms=500)

    def is_healthy():
        return probe.ask("health", "answer")["value"]

    world.until(is_healthy, "it is healthy")
    world.server.kill()
    world.until(lambda: not is_healthy(), "without a server it is not")
    world.server.start()
    world.until(is_healthy, "it is healthy again")
    world.add("j", {"do": "sleep", "ms": 600_000})
    probe.wait("started", job="j")
    assert is_healthy(), "a worker whose handlers are all busy"


# --- 30


def lines_of(world, word):
    return [line for line in world.log_text().splitlines() if word in line]


@scenario(30, breaks(swallow(b"DQ.EXPLAIN", b"*0\r\n")), gate=EACH)
def an_idle_worker_says_once_why_it_gets_nothing(world):
    asked = lambda: len(world.proxy.commands(b"DQ.EXPLAIN"))  # noqa: E731
    world.db.execute_command("DQ.CFGSET", "q", "GROUPMAX", 1)
    for id in ("mine", "held"):
        world.add(id, {}, "GROUP", "g")
    token = world.db.execute_command("DQ.POP", "q", "TTR", 600_000)[2]
    probe = world.worker(wait_ms=100, idle_ms=300)
    world.until(lambda: lines_of(world, "although some are ready"), "it says why")
    (said,) = lines_of(world, "although some are ready")
    assert "groups 1" in said and "q" in said, said
    first = asked()
    world.never(lambda: asked() > first, "it asks again for what it said")
    world.db.execute_command("DQ.ACK", "q", "WITHTOKENS", "mine", token)
    world.gone("held")
    world.until(lambda: asked() > first + 1, "it asks again after jobs, and again while none is ready")
    assert lines_of(world, "although some are ready") == [said]
    probe.finish()


@scenario(30, breaks(swallow(b"DQ.EXPLAIN", b"*0\r\n")), gate=EACH)
def an_idle_worker_that_may_not_ask_says_so_once(world):
    probe = world.worker(place=world.without("-dq.explain"), wait_ms=100, idle_ms=300)
    world.until(lambda: lines_of(world, "DQ.EXPLAIN"), "it says that it may not ask")
    asked = len(world.proxy.commands(b"DQ.EXPLAIN"))
    world.add("j", {})
    world.gone("j")
    world.never(lambda: len(world.proxy.commands(b"DQ.EXPLAIN")) > asked, "it asks again")
    assert len(lines_of(world, "DQ.EXPLAIN")) == 1, world.log_text()
    probe.finish()


@scenario(30, breaks(swallow(b"DQ.GROUPSET", b"+OK\r\n")), gate=EACH)
def a_group_has_settings_of_its_own(world):
    """A free tenant may run one job at a time, a paying one two."""
    probe = world.producer()

    def paying(method, **args):
        return probe.call("q", f"group_{method}", group="paying", **args)

    world.db.execute_command("DQ.CFGSET", "q", "GROUPMAX", 1)
    assert paying("stats") is None
    assert paying("set", weight=3, max=2, rate=[100, 60_000], maxlen=3) is True
    for n in range(3):
        for group in ("free", "paying"):
            world.add(f"{group}:{n}", {"do": "sleep", "ms": 600_000}, "GROUP", group)
    more = {"id": "paying:3", "data": {}, "group": "paying"}
    assert "MAXLEN group" in probe.ask("call", "refused", queue="q", method="add", args=more)["error"]
    world.start(probe, concurrency=6)
    probe.wait("started", count=3, patience_s=world.patience_s)
    world.never(lambda: len(probe.events("started")) > 3, "more than they may")
    assert sorted(event["job"] for event in probe.events("started")) == ["free:0", "paying:0", "paying:1"]
    found = paying("stats")
    expected = {"weight": 3, "max": 2, "rate": [100, 60_000], "maxlen": 3}
    expected |= {"waiting": 1, "reserved": 2, "rate_used": 2}
    assert expected.items() <= found.items() and not found["paused"], found
    for method, args, is_paused in ("pause", {"duration": 600_000}, True), ("resume", {}, False):
        assert paying(method, **args) is True
        assert bool(paying("stats")["paused"]) == is_paused, method
    assert paying("clear") is True and paying("stats")["weight"] is None


@scenario(30, permitted, gate=EACH)
def without_the_right_groups_have_no_settings_which_is_said_once(world):
    probe = world.worker(start=False, place=world.without("-dq.groupset", "-dq.pause"))
    for _ in range(2):
        assert probe.call("q", "group_set", group="g", weight=3) is False
        assert probe.call("q", "group_pause", group="g", duration=1000) is False
    for command in ("DQ.GROUPSET", "DQ.PAUSE"):
        assert len(lines_of(world, command)) == 1, world.log_text()
    world.start(probe)
    world.add("j", {}, "GROUP", "g")
    world.gone("j")
