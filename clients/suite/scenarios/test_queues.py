"""9, 10, 12, 15: several queues, shards, kinds, hooks, methods."""

import base64
import json
import zlib

from conftest import EACH, breaks, permitted, place_of, plain_client, scenario
from proxy import Instead, Reply, named, once, swallow, when, without
from servers import Cluster, wait_until
from world import payload_of


def worker_with(**settings):
    return lambda world: world.settings.update(worker=settings)


def place_with(**fields):
    return lambda world: world.settings.update(place=fields)


def two_queues(world, **settings):
    probe = world.worker(start=False)
    probe.ask("queue", "made", queue="r", name="r", url=world.url)
    for n in range(60):
        world.add(f"q{n}", {})
        world.add(f"r{n}", {}, key="r")
    world.start(probe, queues=["q", "r"], concurrency=1, **settings)
    return probe


@scenario(9, worker_with(queues=["r", "q"]), gate=True)
def several_queues_in_strict_order(world):
    probe = two_queues(world)
    probe.wait("started", count=120, patience_s=world.patience_s)
    order = [event["queue"] for event in probe.events("started")]
    assert order == ["q"] * 60 + ["r"] * 60, order


@scenario(9, worker_with(weights=None), gate=True)
def several_queues_by_weight(world):
    probe = two_queues(world, weights=[3, 1])
    probe.wait("started", count=60, patience_s=world.patience_s)
    first = [event["queue"] for event in probe.events("started")][:60]
    assert 1 <= first.count("r") < 30, first


def crc(id, shards, name="q"):
    return f"{name}:{{{zlib.crc32(id.encode()) % shards}}}"


@scenario(9, place_with(shards=11), gate=EACH)
def shards_by_crc32_of_the_id(world):
    probe = world.worker(start=False, shards=12)
    for n in range(40):
        assert probe.call("q", "add", id=f"order:{n}", data={"do": "sleep", "ms": 60_000}) == f"order:{n}"
    for n in range(40):
        assert world.get(f"order:{n}", crc(f"order:{n}", 12)), n
    assert probe.call("q", "len") == 40
    assert probe.call("q", "add", id="order:1", data={}) is None
    assert probe.call("q", "delete", ids=["order:1"]) == 1
    assert probe.call("q", "stats")["ready"] == 39
    world.start(probe, concurrency=3)
    probe.wait("started", count=3)
    world.never(lambda: len(probe.events("started")) > 3, "more than it may")


@scenario(9, plain_client)
def a_slot_that_moves_in_a_cluster(world):
    cluster = world.keep(Cluster())
    probe = world.worker(place=place_of(world, cluster), shards=4, concurrency=4, wait_ms=1000)
    db = cluster.client()
    keys = [f"q:{{{n}}}" for n in range(4)]

    def add_to_all(name):
        for n, key in enumerate(keys):
            db.execute_command("DQ.ADD", key, f"{name}{n}", json.dumps({"do": "stubborn", "ms": 200}))

    def all_done():
        return sum(db.execute_command("DQ.LEN", key) for key in keys) == 0

    add_to_all("before")
    wait_until(all_done, "jobs of all shards are worked on", world.patience_s)
    for key in keys[:2]:
        add_to_all(f"{key}:moving")
        cluster.move(key)
    add_to_all("after")
    wait_until(all_done, "jobs of all shards are worked on after the move", world.patience_s)
    ids = {event["job"] for event in probe.events("started")}
    assert len(ids) == 16, ids


def is_delayed(world, id, kind):
    world.until(lambda: world.state(id) == "delayed", f"{id} waits for a worker that knows it")
    job = world.get(id)
    assert job["reason"] == f'unknown kind "{kind}"', job
    return job["due"] - world.now_ms()


@scenario(25, breaks(without(b"DQ.NACK", b"REASON")), gate=EACH)
def a_deploy_with_old_and_new_workers_side_by_side(world):
    """An old worker gives back what only a new one knows: each time for a minute longer, and at last for good."""
    both = [{"kind": "known", "lease_ms": 60_000}, {"kind": "new", "lease_ms": 60_000}]
    world.add("nobodys", {"dq": 1, "kind": "gone", "data": {}})
    for _ in range(13):
        token = world.db.execute_command("DQ.POP", "q", "ID", "nobodys")[2]
        world.db.execute_command("DQ.NACK", "q", "nobodys", "TOKEN", token, "DELAY", 0)
    world.add("future", {"dq": 2, "kind": "known", "data": {}})
    ids = [f"new{n}" for n in range(4)]
    for n, id in enumerate(ids):
        world.add(id, {"dq": 1, "kind": "new", "data": {}})
        world.add(f"known{n}", {"dq": 1, "kind": "known", "data": {}})
    old = world.worker(handlers=both[:1])
    world.gone(*[f"known{n}" for n in range(4)])
    for id in ids:
        assert 40_000 < is_delayed(world, id, "new") <= 60_000
    world.until(lambda: world.state("future") == "delayed", "so does what has a later envelope")
    assert world.get("future")["attempts"] == 1
    world.until(lambda: world.state("nobodys") == "dead", "no worker is expected any more that knows it")
    assert world.get("nobodys")["reason"] == 'unknown kind "gone"'
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, ids[0])
    world.until(lambda: world.get(ids[0])["attempts"] == 2, "the old worker has it again")
    assert 100_000 < is_delayed(world, ids[0], "new") <= 120_000
    new = world.worker(handlers=both)
    world.until(lambda: world.waiting() == 2, "both wait")

    def all_are_gone():  # a minute later, each goes to whichever worker is free
        if world.waiting() == 2:
            world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, *ids)
        return all(world.get(id) is None for id in ids)

    world.until(all_are_gone, "the new worker has them all")
    for probe in (old, new):
        probe.finish()
        assert not probe.events("error"), probe.events("error")
    assert {event["job"] for event in old.events("started")} <= {f"known{n}" for n in range(4)}


@scenario(25, breaks(swallow(b"DQ.STEP", b":1\r\n")), gate=EACH)
def what_an_old_worker_gave_back_is_no_attempt_of_the_handler(world):
    """A handler with ``attempts`` has all of them, however often workers had the job that do not know its kind."""
    limited = {"kind": "new", "lease_ms": 60_000, "attempts": 2}
    old = world.worker(handlers=[{"kind": "known"}])
    world.add("good", {"dq": 1, "kind": "new", "data": {}})
    world.add("bad", {"dq": 1, "kind": "new", "data": {"do": "throw", "message": "as always"}}, "BACKOFF", 1, 10)
    for n in (1, 2, 3):
        for id in ("good", "bad"):
            world.until(lambda id=id, n=n: world.get(id)["attempts"] == n, f"the old worker has {id}, {n}")
            is_delayed(world, id, "new")
        if n < 3:
            world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "good", "bad")
    old.order("stop")
    old.wait("stopped")
    new = world.worker(handlers=[limited])
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "good", "bad")
    world.gone("good")
    world.until(lambda: world.state("bad") == "dead", "its handler has failed twice")
    assert [event["attempt"] for event in new.events("started", job="bad")] == [4, 5]
    assert world.get("bad")["reason"].endswith("as always"), world.get("bad")["reason"]


@scenario(32, permitted, gate=EACH)
def without_the_right_to_count_them_unknown_kinds_are_given_back(world):
    for n in range(3):
        world.add(f"j{n}", {"dq": 1, "kind": "new", "data": {}})
    probe = world.worker(place=world.without("-dq.step"), handlers=[{"kind": "known"}])
    for n in range(3):
        is_delayed(world, f"j{n}", "new")
    probe.finish()
    said = [line for line in world.log_text().splitlines() if "DQ.STEP" in line]
    assert len(said) == 1, said


WORDS = ["IDS", "ids", "WITHTOKENS", "RESULTS", "UNRESERVED", "PRIORITY", "DELAY", "TOKEN", "FATAL", "NX", "7"]


def as_words(command):
    """As libraries once sent it."""
    if command[0].upper() != b"DQ.RESCHEDULE" or b"IDS" not in command[2:]:
        return None
    at = command.index(b"IDS", 2)
    return Instead([*command[:at], *command[at + 2 :]])


@scenario(26, breaks(as_words), gate=EACH)
def ids_that_read_as_words_are_ids(world):
    asking = world.producer()
    call = lambda method, **args: asking.call("q", method, **args)  # noqa: E731
    for id in (*WORDS, "zz"):
        world.add(id, {"do": "return", "value": id}, "DELAY", 600_000, "KEEP", 600_000)
    assert call("reschedule", ids=["PRIORITY", "7", "zz"], delay=500_000) == 3
    assert call("reschedule", ids=["zz"], priority=9) == 1
    assert call("reschedule", ids=["IDS", "DELAY", "7"], priority=3) == 3
    found = {id: world.get(id)["priority"] for id in ("zz", "IDS", "DELAY", "7", "PRIORITY")}
    assert found == {"zz": 9, "IDS": 3, "DELAY": 3, "7": 3, "PRIORITY": 0}, found
    assert call("delete", ids=["UNRESERVED", "NX"]) == 2 and call("cancel", id="FATAL") is True
    assert call("reschedule", ids=["IDS", "TOKEN"], delay=0) == 2
    tokens = {job["id"]: job["token"] for job in call("pop", count=2)}
    assert all((call("touch_many", tokens=tokens) or {}).values())
    assert (call("touch", id="IDS", token=tokens["IDS"]) or 0) > 0
    assert call("nack", id="IDS", token=tokens["IDS"], delay=0, mode="silent") == "ready"
    assert call("ack", id="TOKEN", token=tokens["TOKEN"]) is True
    for method, args in {"add": {"data": 1}, "every": {"interval": 60_000}}.items():
        said = asking.ask("call", "refused", queue="q", method=method, args={"id": "*", **args})["error"]
        assert "*" in said, said
    left = [id for id in WORDS if id not in ("UNRESERVED", "NX", "FATAL", "TOKEN")]
    assert call("reschedule", ids=left, delay=0) == len(left)
    world.worker(concurrency=4)
    world.done(*left)
    for id in left:
        assert call("wait", id=id, timeout=10_000) == id


@scenario(15, breaks(when(named(b"DQ.ADD"), Reply(b"-ERR no\r\n"))), gate=EACH)
def a_refusal_names_job_argument_and_value(world):
    args = {"id": "nightly", "expression": "0 9 * * *", "tz": "Europe/Berln"}
    said = world.producer().ask("call", "refused", queue="q", method="cron", args=args)["error"]
    assert said.replace('"', "'").endswith(
        ": job 'nightly' of queue 'q': "
        "the server refused tz='Europe/Berln': ERR TZ is not the name of a known time zone"
    ), said


def rewritten(command):
    return Instead([*command[:3], b"{}", *command[4:]]) if command[0].upper() == b"DQ.ADD" else None


@scenario(10, breaks(rewritten), gate=EACH)
def kinds_and_headers_travel_in_the_envelope(world):
    probe = world.worker(start=False)
    probe.call("q", "add", id="k", data={"order": 17}, kind="close", headers={"a": "b"}, delay=0)
    probe.call("q", "add", id="plain", data={"order": 17})
    probe.call("q", "add", id="bytes", payload={"base64": "AP8="})
    assert json.loads(world.get("k")["payload"]) == {
        "dq": 1,
        "kind": "close",
        "data": {"order": 17},
        "headers": {"a": "b"},
    }
    assert json.loads(world.get("plain")["payload"]) == {"order": 17}
    world.start(probe, concurrency=1, handlers=[{"kind": "close"}, {}])
    event = probe.wait("started", job="k")
    assert event["kind"] == "close" and event["headers"] == {"a": "b"}
    assert probe.wait("started", job="plain")["kind"] is None
    assert payload_of(probe.wait("started", job="bytes")) == b"\x00\xff"


@scenario(29, breaks(without(b"DQ.ADD", b"LABEL")), gate=EACH)
def the_kind_is_the_label(world):
    probe = world.producer()
    probe.call("q", "add", id="kind", data={}, kind="close-order")
    probe.call("q", "add", id="own", data={}, kind="close-order", label="mine")
    probe.call("q", "add", id="none", data={})
    probe.call("q", "add", id="odd", data={}, kind="ä *\n\0")
    probe.call("q", "add", id="long", data={}, kind="k" * 257)
    probe.call("q", "add_many", jobs=[{"id": kind, "data": {}, "kind": kind} for kind in ("a", "b")])
    probe.call("q", "every", id="rule", interval=3_600_000, data={}, kind="report")
    labels = {id: world.get(id)["label"] for id in ("kind", "own", "none", "odd", "long", "a", "b", "rule")}
    assert labels == {
        "kind": "close-order",
        "own": "mine",
        "none": None,
        "odd": "ä *\n\0",
        "long": None,
        "a": "a",
        "b": "b",
        "rule": "report",
    }


@scenario(12, worker_with(hooks=False), gate=EACH)
def hooks_are_called(world):
    world.add("good", {})
    world.add("bad", {"do": "throw"}, "BACKOFF", 1, 60_000)
    probe = world.worker(concurrency=1, hooks=True)
    probe.wait("after", job="good", patience_s=world.patience_s)
    probe.wait("failed", job="bad", patience_s=world.patience_s)
    names = [event["event"] for event in probe.events(job="good")]
    assert names == ["before", "started", "ended", "after"], names


def other_tokens(command):
    """Tokens that were rounded by a number type with too few digits."""
    if command[0].upper() in (b"DQ.ACK", b"DQ.NACK", b"DQ.TOUCH"):
        return Instead([b"%d" % (int(word) ^ 1) if word.isdigit() and len(word) > 17 else word for word in command])
    return None


@scenario(15, breaks(other_tokens), gate=EACH)
def every_command_is_a_method(world):
    probe = world.worker(start=False)
    call = lambda method, **args: probe.call("q", method, **args)  # noqa: E731
    now = world.now_ms()
    assert (
        call("add", id="a", data={"n": 1}, priority=5, ttr=5000, attempts=3, backoff=[1000, 2000], ttl=600_000) == "a"
    )
    assert call("add", id="later", data=2, at=now + 3_600_000) == "later"
    assert call("add", id="a", data=3) is None
    assert call("add", id="a", data={"n": 4}, if_exists="replace") == "a"
    assert call("add", id="nobody", data=5, if_exists="only-replace") is None
    job = call("get", id="later")
    assert job["state"] == "delayed" and job["due"] == now + 3_600_000 and job["token"] is None
    assert call("get", id="nobody") is None
    assert call("len") == 2 and call("len", state="delayed") == 1
    assert [it["id"] for it in call("peek", state="delayed", count=5)] == ["later"]
    whole = call("get", id="a")
    (cut,) = call("peek", state="ready", prefix=0)
    assert cut["id"] == "a" and cut["payload_bytes"] == whole["payload_bytes"] > 2
    cut = call("get", id="a", prefix=2)
    assert cut["payload"] != whole["payload"] and cut["payload_bytes"] == whole["payload_bytes"]
    assert sorted(call("scan")[1]) == ["a", "later"]
    assert call("reschedule", ids=["later"], delay=60_000) == 1
    (popped,) = call("pop", count=5, ttr=30_000)
    assert popped["id"] == "a" and popped["attempt"] == 1 and popped["token"].isdigit()
    assert (call("touch", id="a", token=popped["token"], ttr=60_000) or 0) > now
    assert call("touch", id="a", token="17") is None
    assert call("touch_many", tokens={"a": popped["token"], "x": "1"})["x"] is None
    assert call("nack", id="a", token=popped["token"], delay=60_000, mode="silent") == "delayed"
    assert call("reschedule", ids=["a"], delay=0) == 1
    (popped,) = call("bpop", timeout=1000)
    assert call("nack_many", tokens={"a": popped["token"]}, mode="fatal") == {"a": "dead"}
    assert call("kick", ids=["a"]) == 1
    (popped,) = call("pop", id="a")
    assert call("ack", id="a", token=popped["token"]) is True
    assert call("ack", id="a", token=popped["token"]) is False
    call("configure", maxlen=1000, ttr=7000, rate=[100, 1000])
    assert call("settings")["maxlen"] == 1000
    call("pause", duration=60_000)
    assert call("pop") == []
    call("resume")
    stats = call("stats")
    assert stats["delayed"] == 1 and stats["totals"]["acked"] == 1
    assert call("delete", ids=["later", "nobody"]) == 1
    call("add", id="x", data=1, delay=1000)
    assert call("purge", state="all") == 1
    assert call("add", id="many", data={}, repeat=300)[299] == "many:299"
    assert call("len") == 300


@scenario(30, breaks(without(b"DQ.CFGSET", b"HISTORY")), gate=EACH)
def a_queue_explains_itself(world):
    probe = world.producer()
    call = lambda method, **args: probe.call("q", method, **args)  # noqa: E731

    def codes(**args):
        return [each["code"] for each in call("explain", **args)]

    assert call("explain") is None and call("explain", id="j") is None
    call("configure", history=2, backoff=[30_000])
    call("add", id="j", data={}, label="mail", group="eve")
    assert call("explain") == [{"code": "idle", "number": 1, "until": None}]
    call("pause", duration=60_000)
    (paused,) = call("explain")
    assert paused["code"] == "paused" and 0 < paused["until"] - world.now_ms() <= 60_001, paused
    assert codes(id="j") == ["paused"]
    call("resume")

    def fails(id, reason, wait_ms):
        (popped,) = call("pop", id=id)
        (explained,) = call("explain", id=id)
        assert explained == {"code": "reserved", "number": None, "until": popped["deadline"]}
        assert call("nack", id=id, token=popped["token"], reason=reason) == "delayed"
        (explained,), history = call("explain", id=id), call("get", id=id)["history"]
        assert history, "the attempt that failed"
        failed = history[-1]
        assert explained["code"] == "delayed", explained
        assert wait_ms <= explained["until"] - failed["ended"] <= 1.1 * wait_ms + 2, (explained, failed)
        assert failed["started"] <= failed["ended"] <= world.now_ms(), failed
        assert call("reschedule", ids=[id], delay=0) == 1

    for n in range(3):
        fails("j", f"full [{n}]", 30_000)
    history = [(each["attempts"], each["how"], each["reason"]) for each in call("get", id="j")["history"]]
    assert history == [(2, "nacked", "full [1]"), (3, "nacked", "full [2]")], history
    call("configure", backoff_default=True)
    call("add", id="k", data={})
    fails("k", "by the server's ladder", 1000)
    scans = [
        {"reason": r"full \[2\]"},
        {"reason": r"full \[1\]"},
        {"label": "m*"},
        {"label": "s*"},
        {"group": "eve"},
        {"awaits": "*"},
        {"recurring": True},
    ]
    assert [call("scan", cursor="0", count=100, **each)[1] for each in scans] == [["j"], [], ["j"], [], ["j"], [], []]
    call("every", id="daily", interval=86_400_000, data={})
    assert call("scan", cursor="0", count=100, recurring=True)[1] == ["daily"]
    probe.ask("queue", "made", queue="s", name="s", url=world.url, shards=3)
    call = lambda method, **args: probe.call("s", method, **args)  # noqa: E731
    assert call("explain") is None
    for n in range(20):
        call("add", id=f"j{n}", data={})
    assert call("explain") == [{"code": "idle", "number": 20, "until": None}]
    call("pop", count=20, ttr=60_000)
    (reserved,) = call("explain")
    assert reserved["code"] == "reserved" and reserved["number"] == 20, reserved


PROGRAM = b"bill*[a]?\\^:x\xff"
RULES = {
    "nightly": {"cron": "0 3 * * *", "tz": "Europe/Berlin", "kind": "report", "data": {"n": 1}, "attempts": 3},
    "hourly": {"every": 3_600_000, "data": [1], "headers": {"a": "b"}},
}


def said_long_ago(world, id):
    """As if the program had said this rule eleven minutes ago, and the checksum of it."""
    job = dict(world.db.execute_command("DQ.GET", "q", id))
    envelope = json.loads(job[b"payload"])
    at, _, crc = envelope["headers"]["dq:said"].partition(" ")
    envelope["headers"]["dq:said"] = f"{int(at) - 660_000} {crc}"
    rule = ["EVERY", job[b"every"]] if job[b"every"] else ["CRON", job[b"cron"], "TZ", job[b"tz"]]
    world.db.execute_command("DQ.ADD", "q", id, json.dumps(envelope), *rule, "REPLACE")


@scenario(30, breaks(without(b"DQ.SCAN", b"RECURRING", 0)), gate=EACH)
def rules_over_a_deploy(world):
    probe = world.producer()
    program = {"base64": base64.b64encode(PROGRAM).decode()}

    def rules(*names, **args):
        chosen = {name: RULES[name] for name in names} if names else {}
        return probe.call("q", "rules", program=program, rules={**chosen, **args.pop("others", {})}, **args)

    def changes(**names):
        return {name: names.get(name, []) for name in ("added", "changed", "kept", "removed", "unknown")}

    def of(name):
        reply = world.db.execute_command("DQ.GET", "q", PROGRAM + b":" + name.encode())
        return reply and dict(reply)

    assert rules(*RULES, dry_run=True) == changes(added=["hourly", "nightly"])
    assert world.len() == 0
    assert rules(*RULES) == changes(added=["hourly", "nightly"])
    job = of("nightly")
    assert (job[b"cron"], job[b"tz"], job[b"label"]) == (b"0 3 * * *", b"Europe/Berlin", b"report"), job
    assert of("hourly")[b"every"] == 3_600_000
    assert rules(*RULES, prune=True) == changes(kept=["hourly", "nightly"])
    others = [PROGRAM + b":deeper:hourly", PROGRAM.replace(b"*", b"anything") + b":hourly", PROGRAM + b":hand"]
    for id in others:
        world.add(id, {}, "EVERY", 3_600_000)
    others.append(PROGRAM + b":once")
    world.add(others[-1], {}, "DELAY", 3_600_000)

    # A new version, while workers of the old one have just said what they know.
    newer = {"nightly": {**RULES["nightly"], "data": {"n": 2}}}
    expected = changes(changed=["nightly"], unknown=["hand", "hourly"])
    assert rules(others=newer, prune=True, dry_run=True) == expected
    assert json.loads(of("nightly")[b"payload"])["data"] == {"n": 1}
    assert rules(others=newer, prune=True) == expected
    after = of("nightly")
    assert json.loads(after[b"payload"])["data"] == {"n": 2}
    assert (after[b"due"], after[b"max-attempts"], after[b"label"]) == (job[b"due"], 3, b"report"), after

    # Ten minutes later: not while it runs, not where nothing is said, not by a worker's start.
    id = PROGRAM + b":hourly"
    said_long_ago(world, id)
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, id)
    token = world.db.execute_command("DQ.POP", "q", "ID", id)[2]
    kept = changes(kept=["nightly"], unknown=["hand", "hourly"])
    assert rules(others=newer, prune=True) == kept
    world.db.execute_command("DQ.ACK", "q", "WITHTOKENS", id, token)
    assert rules(prune=True) == changes(unknown=["hand", "hourly", "nightly"])
    assert rules(others=newer) == kept
    gone = changes(kept=["nightly"], removed=["hourly"], unknown=["hand"])
    assert rules(others=newer, prune=True, dry_run=True) == gone
    assert of("hourly")
    assert rules(others=newer, prune=True) == gone
    assert of("hourly") is None
    said_long_ago(world, PROGRAM + b":nightly")
    assert rules(prune=True, allow_empty=True) == changes(removed=["nightly"], unknown=["hand"])
    assert all(world.db.execute_command("DQ.GET", "q", id) for id in others)
    assert "not in this set" in world.log_text()
    for name in ("", "a:b"):
        assert probe.ask(
            "call", "refused", queue="q", method="rules", args={"program": program, "rules": {name: RULES["hourly"]}}
        )

    # Over the shards of a queue.
    probe.ask("queue", "made", queue="s", name="s", url=world.url, shards=3)
    many = {f"r{n}": RULES["hourly"] for n in range(7)}
    for outcome in ("added", "kept"):
        assert probe.call("s", "rules", program=program, rules=many) == changes(**{outcome: sorted(many)})


def unchecked(command):
    """A rule: what would be removed if it is as it was read is removed anyway."""
    if command[0].upper() == b"EVAL" and b"UNRESERVED" in command[1]:
        return Instead([b"DQ.DEL", command[3], b"UNRESERVED", b"IDS", b"1", command[4]])
    return None


@scenario(30, breaks(unchecked), gate=EACH)
def a_rule_that_is_said_while_it_is_pruned_stays(world):
    probe = world.producer()
    rules = {name: RULES["hourly"] for name in ("left", "said")}
    program = {"base64": base64.b64encode(b"p").decode()}
    probe.call("q", "rules", program=program, rules=rules)
    fresh = dict(world.db.execute_command("DQ.GET", "q", "p:said"))[b"payload"]
    for id in ("p:left", "p:said"):
        said_long_ago(world, id)

    def say_again(command):
        if command[0].upper() == b"EVAL":
            world.db.execute_command("DQ.ADD", "q", "p:said", fresh, "EVERY", 3_600_000, "REPLACE")

    world.proxy.rules.insert(0, say_again)
    gone = probe.call("q", "rules", program=program, rules={}, prune=True, allow_empty=True)
    assert (gone["removed"], gone["unknown"]) == (["left"], ["said"]), gone
    assert world.len() == 1


@scenario(13, lambda world: setattr(world, "inline_kind", "other"), gate=EACH)
def a_handler_walks_its_ladder_without_a_server(world):
    probe = world.probe()
    ladder = [{"kind": getattr(world, "inline_kind", "AFTER"), "attempts": 3, "backoff_ms": [60_000, 300_000]}]
    run = lambda **data: probe.ask("inline", "answer", data=data, kind="AFTER", handlers=ladder)["value"]  # noqa: E731
    ended = {"state": "done", "result": 5, "reason": None, "attempts": 1, "waits": []}
    assert run(do="return", value=5) == ended
    failed = run(do="throw", message="bad")
    assert (failed["state"], failed["attempts"], failed["waits"]) == ("dead", 3, [60_000, 300_000])
    assert "bad" in failed["reason"] and len(probe.events("started")) == 4
    given_up = run(do="give_up", reason="no")
    assert (given_up["state"], given_up["reason"], given_up["attempts"]) == ("dead", "no", 1)


@scenario(9, breaks(without(b"DQ.ADD", b"GROUP")), gate=EACH)
def groups_take_turns(world):
    probe = world.worker(start=False)
    for n in range(20):
        probe.call("q", "add", id=f"many:{n}", data={}, group="many")
    for n in range(3):
        probe.call("q", "add", id=f"few:{n}", data={}, group="few")
    world.start(probe, concurrency=1)
    probe.wait("started", count=23, patience_s=world.patience_s)
    order = [event["job"].partition(":")[0] for event in probe.events("started")]
    assert order[:6].count("few") == 3, order


def refuses_one_add(world):
    refused = Reply(b"-ERR no room\r\n")
    breaks(once(when(named(b"DQ.ADD"), refused)))(world)


@scenario(15, refuses_one_add, gate=EACH)
def many_adds_at_the_same_time(world):
    """More than any client has connections: the library's, and the program's own. CLIENT PAUSE holds all in flight."""
    asking = world.producer()
    asking.ask("queue", "made", queue="r", name="r", url=world.url, own=True)
    ids = [f"{queue}{n}" for n in range(300) for queue in "qr"]
    world.db.execute_command("CLIENT", "PAUSE", 1000, "WRITE")
    for id in ids:
        asking.order("call", queue=id[0], method="add", args={"id": id, "data": {}}, tag=id)
    asking.wait("answer", count=len(ids), patience_s=world.patience_s)
    assert not asking.events("refused")
    assert world.len() == world.len(key="r") == 300
