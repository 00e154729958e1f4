"""Faults that reviewers and attacks found. A language joins a scenario by adding its name to HAVE."""

import json

from conftest import EACH, breaks, never_acks, no_heartbeats, no_nack, scenario, seems_transient
from places import printed
from proxy import CutAfterTwo, CutBeforeReply, Instead, acks, named, not_fatal, once, swallow, when, with_value
from servers import Cluster, wait_until

HAVE = {
    "negative": {"go", "java", "node", "python"},
    "durations": {"go", "java", "node", "python"},
}
BESIDES = {"java-lettuce": ["+cluster|nodes"], "java-redisson": ["+cluster|nodes"]}
CENTURY_MS = 3_155_760_000_000

# --- 4, 5, 12: nothing that users' code does may stop or stall a worker


@scenario(4, no_nack, gate=EACH)
def whatever_a_handler_does_the_others_go_on(world):
    for n in range(30):
        world.add(f"bad{n}", {"do": "hostile", "n": n}, "BACKOFF", 1, 600_000)
    for n in range(100):
        world.add(f"good{n}", {})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 60_000}])
    world.gone(*[f"good{n}" for n in range(100)])
    for n in range(30):
        world.until(lambda n=n: world.state(f"bad{n}") in ("delayed", "dead"), f"bad{n} failed")
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(12, never_acks, gate=EACH)
def whatever_a_hook_does_the_jobs_go_on(world):
    for n in range(100):
        world.add(f"j{n}", {})
    world.add("bad", {"do": "throw"}, "BACKOFF", 1, 600_000)
    probe = world.worker(concurrency=2, hooks="hostile")
    world.gone(*[f"j{n}" for n in range(100)])
    world.until(lambda: world.state("bad") == "delayed", "it waits for its retry")
    probe.finish()
    assert not probe.events("error"), probe.events("error")


def always_refused(world):
    refusal = b"-ERR value is not an integer or out of range\r\n"
    change = lambda command, reply: refusal if command[0].upper() == b"DQ.NACK" else None  # noqa: E731
    world.prepare(lambda proxy: proxy.replies.append(change))
    world.prepare(lambda proxy: proxy.rules.append(swallow(b"DQ.NACK", refusal)))


@scenario(4, always_refused, gate=EACH)
def a_delay_that_the_server_refuses_is_left_out(world):
    """A delay of a hundred years: the job's backoff, or the worker's, is used instead."""
    world.add("snoozed-job", {"do": "snooze", "ms": CENTURY_MS}, "BACKOFF", 1, 600_000)
    world.add("retried-job", {"do": "retry", "ms": CENTURY_MS, "reason": "busy", "times": 1})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 60_000, "backoff_ms": [600_000]}])
    for id in ("snoozed-job", "retried-job"):
        world.until(lambda id=id: world.state(id) == "delayed", f"{id} waits for its retry")
        job = world.get(id)
        assert job["attempts"] == 1 and job["due"] - world.now_ms() <= 600_000, job
        assert id in world.log_text(), "the log names the job"
    assert world.get("retried-job")["reason"] == "busy"
    probe.finish()
    assert not probe.events("error"), probe.events("error")


def soon(command):
    """As libraries once did with a negative delay."""
    if command[0].upper() != b"DQ.NACK":
        return None
    words = list(command)
    if b"DELAY" in words:
        at = words.index(b"DELAY")
        del words[at : at + 2]
    return Instead([*words, b"DELAY", b"100"])


@scenario(4, breaks(soon), gate=EACH, only=HAVE["negative"])
def a_negative_delay_is_none(world):
    """It does not count as a snooze either: a handler with a wrong calculation must not run in a loop. Zero is a valid
    delay."""
    world.add("snoozed-job", {"do": "snooze", "ms": -1000}, "BACKOFF", 1, 600_000)
    world.add("retried-job", {"do": "retry", "ms": -1000, "reason": "busy"})
    world.add("zero", {"do": "snooze", "ms": 0, "times": 1}, "BACKOFF", 1, 600_000)
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 60_000, "backoff_ms": [600_000]}])
    world.gone("zero")
    for id in ("snoozed-job", "retried-job"):
        world.until(lambda id=id: world.state(id) == "delayed", f"{id} waits for its retry")
        job = world.get(id)
        assert job["attempts"] == 1 and job["due"] - world.now_ms() > 500_000, job
        said = [line for line in world.log_text().splitlines() if id in line and "delay" in line]
        assert len(said) == 1, said
    assert world.get("retried-job")["reason"] == "busy"
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(4, breaks(not_fatal), gate=EACH)
def what_cannot_be_decoded_is_dead_at_once(world):
    world.add("bad", None, "ATTEMPTS", 9, "BACKOFF", 1, 60_000, payload=b"\xff\x00 no JSON")
    world.worker()
    world.until(lambda: world.state("bad") == "dead", "it is dead")
    assert world.get("bad")["reason"].startswith("payload cannot be decoded: "), world.get("bad")["reason"]


def seems_to_ask(command):
    """The proxy's record is checked, not the server."""
    if command[0].upper() == b"DQ.NACK":
        command[0] = b"DQ.GET"


@scenario(4, breaks(seems_to_ask), gate=EACH)
def a_failure_asks_for_nothing(world):
    for id in ("own", "last"):
        world.add(id, {"dq": 1, "kind": id, "data": {"do": "throw"}}, "BACKOFF", 1, 600_000, "ATTEMPTS", 9)
    world.worker(handlers=[{"kind": "own", "lease_ms": 60_000}, {"kind": "last", "lease_ms": 60_000, "attempts": 1}])
    world.until(lambda: world.state("own") == "delayed", "it waits for its retry")
    world.until(lambda: world.state("last") == "dead", "its handler allows one attempt")
    assert not world.proxy.commands(b"DQ.GET")


# --- 2: leases


def own_lease_for_all(command):
    """As workers did that always sent their own lease."""
    if command[0].upper() != b"DQ.BPOP":
        return None
    words = list(command)
    while b"LEASE" in words:
        at = words.index(b"LEASE")
        del words[at : at + 2]
    return Instead([*words, b"TTR", b"3000"])


def lease(world, id):
    return world.get(id)["deadline"] - world.now_ms()


@scenario(2, breaks(own_lease_for_all), gate=EACH)
def the_ttr_of_a_job_or_its_queue_holds(world):
    world.add("own", {"do": "sleep", "ms": 60_000}, "TTR", 200_000)
    world.db.execute_command("DQ.CFGSET", "q", "TTR", 300_000)
    world.add("queue", {"do": "sleep", "ms": 60_000})
    world.db.execute_command("DQ.CFGSET", "q", "TTR", 60_000)
    world.add("none", {"do": "sleep", "ms": 60_000})
    probe = world.worker(concurrency=3, lease_ms=3000, handlers=[{}])
    probe.wait("started", count=3)
    first = world.get("none")["deadline"]
    assert lease(world, "none") <= 3000 and 100_000 < lease(world, "own") <= 200_000 < lease(world, "queue")
    world.until(lambda: world.get("none")["deadline"] > first, "a heartbeat")
    assert lease(world, "none") <= 3000 and 100_000 < lease(world, "own") <= 200_000 < lease(world, "queue")


@scenario(2, no_heartbeats, gate=True)
def the_lease_that_is_said_for_a_kind_holds_for_it(world):
    for id, kind in ("long", "slow"), ("short", "fast"):
        world.add(id, {"dq": 1, "kind": kind, "data": {"do": "sleep", "ms": 60_000}})
    probe = world.worker(concurrency=2, handlers=[{"kind": "slow", "lease_ms": 600_000}, {"kind": "fast"}])
    probe.wait("started", count=2)
    world.until(lambda: lease(world, "long") > 300_000, "it has the lease of its kind")
    assert lease(world, "short") <= 60_000


@scenario(2, no_heartbeats, gate=EACH)
def a_lease_that_ends_without_the_server_is_told(world):
    world.add("j", {"do": "sleep", "ms": 600_000})
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 1500}])
    probe.wait("started", job="j")
    if world.proxy.rules:  # the canary: its proxy answers
        world.until(lambda: world.proxy.commands(b"DQ.TOUCH"), "a heartbeat")
    world.server.stop()
    try:
        assert probe.wait("told", job="j", patience_s=world.patience_s)["why"] == "lost"
        probe.wait("ended", job="j")
    finally:
        world.server.go_on()
    world.until(lambda: len(probe.events("started", job="j")) == 2, "it is delivered again")
    assert not world.proxy.commands(b"DQ.ACK") and not world.proxy.commands(b"DQ.NACK")


def stays_connected(world):
    world.is_cut = False


@scenario(2, stays_connected, gate=EACH)
def after_a_reconnect_a_heartbeat_goes_out_at_once(world):
    world.add("j", {"do": "sleep", "ms": 600_000})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 600_000}])
    probe.wait("started", job="j")
    world.until(world.waiting, "it waits")
    if getattr(world, "is_cut", True):
        world.proxy.cut()
    world.until(lambda: world.proxy.commands(b"DQ.TOUCH"), "a heartbeat, long before its time")
    assert world.state("j") == "reserved"


@scenario(2, no_nack, gate=EACH)
def a_job_that_still_runs_here_is_not_begun_again(world):
    """Its lease ended unnoticed, as in a failover, and this process gets its next delivery."""
    world.add("j", {"do": "stubborn", "ms": 2500, "times": 1})
    probe = world.worker(concurrency=2, hooks=True, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    world.until(world.waiting, "the other handler waits")
    world.db.execute_command("DQ.NACK", "q", "j", "TOKEN", world.get("j")["token"], "SILENT")
    probe.wait("lost", job="j", patience_s=world.patience_s)
    probe.wait("started", count=2, job="j", patience_s=world.patience_s)
    names = [event["event"] for event in probe.events(job="j") if event["event"] in ("started", "ended")]
    assert names[:3] == ["started", "ended", "started"], names
    world.gone("j")


@scenario(2, no_nack, gate=EACH)
def a_job_that_another_worker_of_the_process_runs_is_not_begun_again(world):
    """Each worker has a queue object of its own, as programs make them."""
    world.add("j", {"do": "stubborn", "ms": 2500, "times": 1})
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="j")
    probe.ask("queue", "made", queue="other", name="q", url=world.url)
    world.start(probe, queues=["other"], concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    world.until(world.waiting, "the other worker waits")
    world.db.execute_command("DQ.NACK", "q", "j", "TOKEN", world.get("j")["token"], "SILENT")
    probe.wait("started", count=2, job="j", patience_s=world.patience_s)
    names = [event["event"] for event in probe.events(job="j") if event["event"] in ("started", "ended")]
    assert names[:3] == ["started", "ended", "started"], names
    world.gone("j")


# --- 3, 23: commands that are sent twice


@scenario(3, breaks(acks(0)), gate=EACH)
def an_ack_that_is_sent_again_and_finds_nothing_is_no_loss(world):
    world.proxy.rules.append(once(when(named(b"DQ.ACK"), CutBeforeReply())))
    world.add("j", {})
    world.add("next", {}, "DELAY", 300)
    probe = world.worker(concurrency=1, hooks=True, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: len(world.proxy.commands(b"DQ.ACK")) >= 2, "the first one is sent again")
    world.gone("j", "next")
    probe.finish()
    assert len(probe.events("started")) == 2 and not probe.events("lost"), probe.events("lost")


def ids_of_the_server(world):
    world.id_of = lambda id: b"*"


@scenario(23, ids_of_the_server, gate=EACH)
def an_add_whose_answer_was_lost_adds_one_job(world):
    """With a client made by the program. Whether or not it repeats unanswered commands, the command is repeated
    once."""
    id_of = getattr(world, "id_of", lambda id: id)

    def lost(command):
        if command[0].upper() == b"DQ.ADD":
            return CutAfterTwo([*command[:2], id_of(command[2]), *command[3:]])
        return None

    for n in range(3):
        world.proxy.rules.insert(0, once(lost))
        probe = world.probe()
        probe.ask("queue", "made", queue="q", name=f"q{n}", url=world.url, own=True)
        probe.order("call", queue="q", method="add", args={"data": 1})
        answer = probe._await(lambda p=probe: p._first(("answer", "refused"), {}), "an answer to add", world.patience_s)
        assert world.len(key=f"q{n}") == 1, f"{world.len(key=f'q{n}')} jobs"
        if answer["event"] == "answer":
            assert world.get(answer["value"], f"q{n}"), answer


def right_durations(world):
    world.wrong_ms = 1


@scenario(15, right_durations, gate=EACH, only=HAVE["durations"])
def a_negative_duration_is_a_mistake_of_the_caller(world):
    """The user is told before anything is sent."""
    wrong = getattr(world, "wrong_ms", -1)
    probe = world.worker(start=False)
    for name in ("delay", "ttr", "ttl", "backoff"):
        value = [1000, wrong] if name == "backoff" else wrong
        said = probe.ask("call", "refused", queue="q", method="add", args={"data": 1, name: value})["error"].lower()
        assert name in said or "duration" in said or "negative" in said, said
    assert not world.proxy.commands(b"DQ.ADD")


# --- 7: errors that do not pass with time


@scenario(7, seems_transient, gate=EACH)
def what_the_acl_forbids_ends_a_worker_at_once(world):
    """Neither a hanging job nor a drain of a minute delays it."""
    world.add("slow", {"do": "hang"})
    probe = world.worker(
        place=world.without("-dq.nack"), concurrency=2, drain_ms=60_000, handlers=[{"lease_ms": 60_000}]
    )
    probe.wait("started", job="slow")
    world.add("bad", {"do": "throw"})
    text = probe.wait("error", patience_s=world.patience_s)["message"].lower()
    assert "acl" in text or "permi" in text, text
    probe.wait("stopped", patience_s=world.patience_s)


def without_bpop(world):
    world.withheld = {"+dq.bpop"}


@scenario(7, without_bpop)
def the_rights_of_the_docs_are_enough_in_a_cluster(world):
    """Lines of docs/operations.md, with what a cluster needs besides."""
    cluster = world.keep(Cluster())
    besides = ["+cluster|slots", "+cluster|shards", "+command", "+asking", *BESIDES.get(world.language, [])]
    rights = [word.replace("~orders*", "~q*") for word in printed("library-worker")] + besides
    rights = [word for word in rights if word not in getattr(world, "withheld", ())]
    for node in cluster.nodes:
        node.client().execute_command("ACL", "SETUSER", "worker", "reset", *rights)
    place = {"cluster": cluster.url.replace("//", "//worker:CHANGE-ME@")}
    probe = world.worker(place=place, shards=4, concurrency=4, handlers=[{"lease_ms": 3000}])
    db = cluster.client()
    keys = [f"q:{{{n}}}" for n in range(4)]
    dos = {"done": {"do": "stubborn", "ms": 2000}, "failed": {"do": "throw"}, "dead": {"do": "give_up"}}
    for key in keys:
        for id, data in dos.items():
            db.execute_command("DQ.ADD", key, id + key, json.dumps(data), "BACKOFF", 1, 600_000)

    def counts():
        return [sum(db.execute_command("DQ.LEN", key, *state) for key in keys) for state in ([], ["DEAD"])]

    wait_until(lambda: counts() == [4, 4], "all are settled", world.patience_s)
    cluster.move(keys[0])
    db.execute_command("DQ.ADD", keys[0], "moved", "{}")
    probe.wait("started", job="moved", patience_s=world.patience_s)
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(7, seems_transient, gate=EACH)
def a_missing_password_is_not_called_a_wrong_one(world):
    server = world.serve("--requirepass", "right")
    server.password = "right"
    texts = []
    for user in ("", ":wrong@"):
        probe = world.worker(place={"url": f"redis://{user}127.0.0.1:{world.proxy.port}"})
        texts.append(probe.wait("error", patience_s=world.patience_s)["message"].lower().partition("(")[0])
        assert "password" in texts[-1], texts
        probe.wait("stopped", patience_s=world.patience_s)
    assert texts[0] != texts[1], texts


# --- 1, 14: jobs held by a worker


@scenario(1, breaks(with_value(b"DQ.BPOP", b"COUNT", lambda n: b"%d" % (int(n) * 50))), gate=EACH)
def no_job_waits_for_a_handler_that_another_kind_has(world):
    def add(kind, count):
        for n in range(count):
            world.add(f"{kind}{n}", {"dq": 1, "kind": kind, "data": {"do": "sleep", "ms": 60_000}})

    add("batch", 200)
    add("plain", 5)
    handlers = [{"kind": "batch", "batch": 100, "lease_ms": 60_000}, {"kind": "plain", "lease_ms": 60_000}]
    probe = world.worker(concurrency=2, handlers=handlers)
    probe.wait("started", count=2, patience_s=world.patience_s)
    # While two handlers run, the worker holds only their jobs. A job just fetched starts in a moment.
    world.until(
        lambda: world.lasts(lambda: world.len("RESERVED") == len(probe.events("started")), for_s=0.5),
        "no job in hand waits for a handler",
    )
    assert world.len("RESERVED") <= 4, world.len("RESERVED")
