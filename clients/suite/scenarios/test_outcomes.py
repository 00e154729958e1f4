"""16, 20: results and clients that wait for them, progress."""

import json
import threading

from conftest import EACH, acks_only_once, breaks, but_the_first, returns, scenario
from proxy import Cut, Held, Instead, Reply, ack_rows, held, named, not_fatal, once, when, without

KEPT = ("KEEP", 600_000)
DAY_MS = 86_400_000


def without_results(command):
    """Changes the ACK to one without results."""
    if command[0].upper() != b"DQ.ACK" or command[2].upper() != b"RESULTS":
        return None
    rows = ack_rows(command)
    words = [word for row in rows for word in row[:2]]
    return Instead(
        [*command[:2], b"WITHTOKENS", *([b"IDS", b"%d" % len(rows)] if command[3] == b"IDS" else []), *words]
    )


no_results = breaks(without_results)
deaf = breaks(held(b"DQ.AWAIT"))
no_reason = breaks(without(b"DQ.NACK", b"REASON"))


def result_of(world, id):
    result = world.get(id)["result"]
    assert result is not None, f"{id} has no result"
    return json.loads(result)


def failed(said):
    return said["error"], said.get("outcome"), said.get("reason") or None


def timeout_ms(world):
    return int(world.patience_s * 800)


# --- 16: results


@scenario(16, no_results, gate=EACH)
def what_a_handler_returns_is_the_result(world):
    values = {"object": {"n": [1, None, "ü"]}, "zero": 0, "false": False, "empty": ""}
    for id, value in values.items():
        world.add(id, returns(value), *KEPT)
    world.add("nothing", {}, *KEPT)
    world.worker()
    world.done(*values, "nothing")
    asking = world.producer()
    for id, value in values.items():
        assert result_of(world, id) == value
        assert asking.call("q", "result", id=id) == value
    assert world.get("nothing")["result"] is None
    assert asking.call("q", "result", id="nothing") is None
    assert asking.call("q", "result", id="never there") is None


@scenario(16, no_reason, gate=True)
def the_result_of_a_dead_job_is_its_reason(world):
    world.add("j", {"do": "give_up", "reason": "no such order"})
    world.worker()
    world.until(lambda: world.state("j") == "dead", "it is dead")
    said = world.producer().ask("call", "refused", queue="q", method="result", args={"id": "j"})
    assert failed(said) == ("JobFailed", "dead", "no such order"), said


@scenario(16, no_results, gate=True)
def each_job_of_a_batch_has_a_result_of_its_own(world):
    for n in range(5):
        world.add(f"j{n}", {"do": "throw"} if n == 3 else returns(n), *KEPT, "BACKOFF", 1, 600_000)
    world.worker(concurrency=1, handlers=[{"batch": 10, "lease_ms": 60_000}])
    world.done(*[f"j{n}" for n in range(5) if n != 3])
    world.until(lambda: world.state("j3") == "delayed", "it waits for its retry")
    assert [result_of(world, f"j{n}") for n in (0, 1, 2, 4)] == [0, 1, 2, 4]


@scenario(25, breaks(not_fatal), gate=EACH)
def a_result_that_cannot_be_encoded_ends_its_job(world):
    """Its handler has done its work: no other attempt would help."""
    world.add("bad", {"do": "unencodable"}, "ATTEMPTS", 9, "BACKOFF", 1, 600_000)
    world.add("good", returns(1), *KEPT)
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.done("good")
    world.until(lambda: world.state("bad") == "dead", "it is dead")
    assert world.get("bad")["reason"].startswith("result cannot be encoded: "), world.get("bad")["reason"]
    assert world.get("bad")["attempts"] == 1
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(16, acks_only_once, gate=True)
def a_result_that_the_connection_lost_is_sent_again(world):
    world.proxy.rules.append(once(when(named(b"DQ.ACK"), Cut())))
    world.add("j", returns(17), *KEPT)
    world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.done("j")
    assert result_of(world, "j") == 17


# --- 16: waiting


def waits(world, probe, *ids):
    """Waits in the background, until the server knows all the waits."""
    for id in ids:
        args = {"id": id, "timeout": timeout_ms(world)}
        probe.order("call", queue="q", method="wait", args=args, tag=id)
    if ids:
        known = lambda: set(ids) <= {_text(word) for each in world.proxy.commands(b"DQ.AWAIT") for word in each[3:]}  # noqa: E731
        world.until(known, "all are waited for")


def _text(word):
    return word.decode()


@scenario(16, deaf, gate=EACH)
def who_waits_is_told_the_result(world):
    asking = world.producer()
    world.add("j", returns({"n": 1}), "DELAY", DAY_MS)
    waits(world, asking, "j")
    world.worker()
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "j")
    answer = asking.wait("answer", tag="j", patience_s=world.patience_s)
    assert answer["value"] == {"n": 1}, answer


@scenario(16, deaf, gate=True)
def who_waits_is_told_why_there_is_no_result(world):
    """Waits one after the other: an end before the next DQ.AWAIT is unknown unless the job is kept."""
    asking = world.producer()
    world.worker()

    def told(id):
        said = asking.wait("refused", tag=id, patience_s=world.patience_s)
        return failed(said), said.get("message", "").lower()

    world.add("dead", {"do": "give_up", "reason": "no such order"}, "DELAY", DAY_MS)
    waits(world, asking, "dead")
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "dead")
    assert told("dead")[0] == ("JobFailed", "dead", "no such order")
    world.add("deleted", {}, "DELAY", DAY_MS)
    waits(world, asking, "deleted")
    world.db.execute_command("DQ.DEL", "q", "deleted")
    assert told("deleted")[0] == ("JobFailed", "deleted", None)
    world.add("expired", {}, "DELAY", DAY_MS, "TTL", 3000)
    waits(world, asking, "expired")
    assert told("expired")[0] == ("JobFailed", "expired", None)
    waits(world, asking, "never there")
    said, text = told("never there")
    assert said == ("JobFailed", "unknown", None) and "keep" in text, text


def soon_over(world):
    world.due = "READY"


@scenario(16, soon_over, gate=True)
def a_wait_has_an_end(world):
    """The next wait continues from there."""
    asking = world.producer()
    # Kept, as the job may end before the second wait reaches the server.
    world.add("j", returns(5), "DELAY", 0 if hasattr(world, "due") else DAY_MS, *KEPT)
    world.worker()
    if hasattr(world, "due"):
        world.done("j")
    args = {"id": "j", "timeout": 700}
    assert asking.ask("call", "refused", queue="q", method="wait", args=args)["error"] == "timeout"
    waits(world, asking, "j")
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "j")
    assert asking.wait("answer", tag="j", patience_s=world.patience_s)["value"] == 5


def counts_each_write_as_a_connection(world):
    class Apart(list):
        def append(self, write):
            super().append(type(write)(len(self), write.commands))

    world.prepare(lambda proxy: setattr(proxy, "writes", Apart()))


@scenario(16, counts_each_write_as_a_connection, gate=True)
def many_waits_share_one_connection(world):
    asking = world.producer()
    ids = [f"j{n}" for n in range(30)]
    for id in ids:
        world.add(id, returns(id), "DELAY", DAY_MS, *KEPT)
    waits(world, asking, *ids)
    world.worker(concurrency=10)
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, *ids)
    for id in ids:
        assert asking.wait("answer", tag=id, patience_s=world.patience_s)["value"] == id
    connections = {
        write.connection for write in world.proxy.writes for each in write.commands if each[0].upper() == b"DQ.AWAIT"
    }
    assert len(connections) == 1, f"{len(connections)} connections"


@scenario(16, but_the_first(held(b"DQ.AWAIT")), gate=True)
def a_wait_survives_a_lost_connection(world):
    asking = world.producer()
    world.add("j", returns(1), "DELAY", DAY_MS, *KEPT)
    waits(world, asking, "j")
    world.proxy.cut()
    world.worker()
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "j")
    assert asking.wait("answer", tag="j", patience_s=world.patience_s)["value"] == 1


@scenario(16, no_results, gate=True)
def a_request_has_its_reply(world):
    world.worker(concurrency=1)
    asking = world.producer()
    for n in range(5):
        args = {"data": returns(n), "timeout": timeout_ms(world)}
        assert asking.call("q", "add_and_wait", **args) == n
    (add, *_) = world.proxy.commands(b"DQ.ADD")
    words = [word.upper() for word in add]
    assert words[words.index(b"KEEP") + 1] == b"60000", add
    said = asking.ask(
        "call",
        "refused",
        queue="q",
        method="add_and_wait",
        args={"data": {"do": "give_up", "reason": "no"}, "timeout": timeout_ms(world), "id": "j"},
    )
    assert failed(said) == ("JobFailed", "dead", "no"), said


# --- 20: progress


def is_progress(command):
    return command[0].upper() == b"DQ.TOUCH" and b"PROGRESS" in [word.upper() for word in command]


no_progress = breaks(when(is_progress, Reply(b":4000000000000\r\n")))


@scenario(20, no_progress, gate=EACH)
def progress_is_shown_at_most_once_a_second(world):
    steps = [[n / 100, f"page {n}"] for n in range(1, 51)]
    world.add("j", {"do": "progress", "steps": steps, "ms": 600_000})
    world.worker(handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.get("j")["progress"] == "0.5 page 50", "the last one is shown")
    sent = [each for each in world.proxy.commands(b"DQ.TOUCH") if is_progress(each)]
    assert len(sent) <= 5, f"{len(sent)} writes for {len(steps)} reports at once"
    assert not any(word.upper() == b"TTR" for each in sent for word in each)


@scenario(20, no_progress, gate=True)
def the_last_progress_is_there_when_the_job_ends(world):
    world.add("done", {"do": "progress", "steps": [[0.1, ""], [0.25, "a"], [1, "all"]]}, *KEPT)
    world.worker(concurrency=1)
    world.done("done")
    assert world.get("done")["progress"] == "1 all", world.get("done")["progress"]


@scenario(20, no_progress, gate=EACH)
def progress_that_the_connection_lost_is_sent_again(world):
    world.proxy.rules.append(once(when(is_progress, Cut())))
    world.add("j", {"do": "progress", "steps": [[0.5, "half"]], "ms": 600_000})
    world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.get("j")["progress"] == "0.5 half", "it is sent again")


def lengthens(command):
    """The proxy's record is checked, not the server."""
    if is_progress(command):
        command[-1] *= 100


@scenario(20, breaks(lengthens), gate=EACH)
def progress_that_is_too_long_is_cut(world):
    world.add("j", {"do": "progress", "steps": [[0.5, "\u00fc" * 50_000]], "ms": 600_000})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.get("j")["progress"], "it is shown")
    (sent,) = [each[-1] for each in world.proxy.commands(b"DQ.TOUCH") if is_progress(each)]
    assert 1000 < len(sent) <= 1024 and sent.decode() == "0.5 " + "\u00fc" * ((len(sent) - 4) // 2), sent[:100]
    world.add("next", {})
    world.gone("next")
    probe.finish()
    assert not probe.events("error"), probe.events("error")


@scenario(20, but_the_first(when(is_progress, Reply(b":4000000000000\r\n"))), gate=EACH)
def an_end_that_overtakes_the_last_progress_takes_it_along(world):
    """The write of the progress is late, and the end is sent with the next fetch."""
    late = threading.Event()
    world.proxy.rules.append(once(when(is_progress, Held(late))))
    world.add("j", {"do": "progress", "steps": [[1, "all"]], "ms": 400}, *KEPT)
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.done("j")
    assert world.get("j")["progress"] == "1 all", world.get("j")["progress"]
    late.set()
    probe.finish()
    assert not probe.events("error"), probe.events("error")
