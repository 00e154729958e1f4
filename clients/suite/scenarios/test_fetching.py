"""1, 8, 14: which jobs a worker holds, how long it waits, and batches."""

import itertools
import json

from conftest import EACH, breaks, never_acks, scenario
from proxy import Cut, Instead, with_value, without
from servers import Server
from world import payload_of

fetches_twice_as_many = breaks(with_value(b"DQ.BPOP", b"COUNT", lambda n: b"%d" % (int(n) * 2)))


@scenario(1, fetches_twice_as_many, gate=True)
def holds_no_more_than_it_can_start(world):
    for n in range(9):
        world.add(f"j{n}", {"do": "sleep", "ms": 60_000})
    probe = world.worker(concurrency=3, prefetch=2)
    probe.wait("started", count=3)
    world.until(lambda: world.len("RESERVED") >= 3, "jobs are reserved")
    world.never(lambda: world.len("RESERVED") > 5, "more than concurrency + prefetch in hand")
    assert len(probe.events("started")) == 3


def withdraws_no_fetch(command):
    """Changes DQ.UNBLOCK so that it names a client that does not exist."""
    return Instead([command[0], b"0"]) if command[0].upper() == b"DQ.UNBLOCK" else None


@scenario(1, breaks(withdraws_no_fetch), gate=EACH)
def a_free_handler_waits_for_no_other_connection(world):
    """A waiting fetch keeps a place: here for a minute, while one handler is busy."""
    other = world.keep(Server().start())
    probe = world.worker(start=False)
    probe.ask("queue", "made", queue="r", name="r", url=other.url)
    world.start(probe, queues=["q", "r"], concurrency=2, wait_ms=60_000)
    world.until(lambda: world.waiting() == 1, "a fetch at the first server")
    db = other.client()
    db.execute_command("DQ.ADD", "r", "long", json.dumps({"do": "sleep", "ms": 60_000}))
    probe.wait("started", job="long", patience_s=world.patience_s)
    for n in range(2):
        db.execute_command("DQ.ADD", "r", f"r{n}", "{}")
        probe.wait("started", job=f"r{n}", patience_s=world.patience_s)
        world.add(f"q{n}", {})
        probe.wait("started", job=f"q{n}", patience_s=world.patience_s)


@scenario(7, never_acks, gate=EACH)
def a_server_that_is_away_holds_up_no_other(world):
    other = world.keep(Server().start())
    probe = world.worker(start=False)
    probe.ask("queue", "made", queue="r", name="r", url=other.url)
    other.kill()
    world.start(probe, queues=["q", "r"], concurrency=1)
    for n in range(20):
        world.add(f"q{n}", {"do": "sleep", "ms": 20})
    world.gone(*[f"q{n}" for n in range(20)])


def one_write_each(world):
    """Counts the commands of one write as several writes."""

    def split(proxy):
        class Split(list):
            def append(self, write):
                for command in write.commands:
                    super().append(type(write)(write.connection, [command]))

        proxy.writes = Split()

    world.prepare(split)


@scenario(1, one_write_each, gate=EACH)
def sends_ack_and_next_fetch_in_one_write(world):
    for n in range(50):
        world.add(f"j{n}", {})
    world.worker(concurrency=1)
    world.gone(*[f"j{n}" for n in range(50)])
    together = [
        write
        for write in world.proxy.writes
        if {b"DQ.ACK", b"DQ.BPOP"} <= {command[0].upper() for command in write.commands}
    ]
    assert len(together) >= 25, f"only {len(together)} of 50 acknowledgements went along with a fetch"


def polls(command):
    if command[0].upper() != b"DQ.BPOP":
        return None
    at = max(i for i, word in enumerate(command[:6]) if word.replace(b".", b"").isdigit())
    return Instead([*command[:at], b"0.01", *command[at + 1 :]])


@scenario(1, breaks(polls), gate=True)
def waits_at_the_server_without_polling(world):
    world.worker(concurrency=2)
    world.until(world.waiting, "a client waits")
    before = len(world.proxy.commands(b"DQ.BPOP"))
    world.never(lambda: False, "", for_s=1.0)
    assert len(world.proxy.commands(b"DQ.BPOP")) - before <= 1


def cuts_waits_off(world):
    """Each second one, as a client does whose timeout is shorter than the wait."""
    waits = itertools.count(1)
    breaks(lambda it: Cut() if it[0].upper() == b"DQ.BPOP" and next(waits) % 2 == 0 else None)(world)


@scenario(8, cuts_waits_off)
def no_wait_is_cut_off(world):
    probe = world.worker(concurrency=1)
    world.until(world.waiting, "a client waits")
    before = world.proxy.connections
    world.never(lambda: False, "", for_s=12)
    assert world.proxy.connections == before, "it connected anew"
    world.add("late", {})
    probe.wait("started", job="late", patience_s=world.patience_s)
    world.gone("late")


@scenario(14, lambda world: world.settings.update(worker={"handlers": [{"lease_ms": 3000}]}), gate=EACH)
def takes_many_jobs_at_a_time(world):
    for n in range(100):
        world.add(f"j{n}", {"do": "throw", "message": "alone"} if n == 7 else {}, "BACKOFF", 1, 60_000)
    probe = world.worker(concurrency=1, handlers=[{"batch": 100, "lease_ms": 3000}])
    event = probe.wait("started", batch=100, patience_s=world.patience_s)
    assert event["batch"] == 100
    world.gone(*[f"j{n}" for n in range(100) if n != 7])
    world.until(lambda: world.state("j7") == "delayed", "the one that failed waits for its retry")
    assert "alone" in world.get("j7")["reason"]


@scenario(14, never_acks)
def ten_thousand_jobs_in_one_batch(world):
    probe = world.worker(start=False)
    for part in range(10):
        probe.call("q", "add", id=f"p{part}", data={}, repeat=1000)
    world.start(probe, concurrency=1, handlers=[{"batch": 10_000, "lease_ms": 30_000}])
    probe.wait("started", batch=10_000, patience_s=world.patience_s * 2)
    world.until(lambda: world.len() == 0, "all are acknowledged")


unfilled = breaks(without(b"DQ.BPOP", b"FILL", 2))


@scenario(30, unfilled, gate=EACH)
def a_batch_waits_until_it_is_full(world):
    handlers = [{"batch": 10, "fill": [5, 600_000], "lease_ms": 3000}]
    world.add("j0", {"do": "sleep", "ms": 600_000})
    probe = world.worker(concurrency=2, drain_ms=100, handlers=handlers)
    world.until(world.waiting, "a client waits")
    for n in range(1, 4):
        world.add(f"j{n}", {})
    world.never(lambda: probe.events("started"), "it begins before its batch is full", for_s=0.5)
    world.add("j4", {})
    assert probe.wait("started", patience_s=world.patience_s)["batch"] == 5
    world.until(world.waiting, "a client waits again")
    world.add("left", {})
    probe.finish()
    assert (world.state("left"), world.get("left")["attempts"]) == ("ready", 0), "at a stop what is there is left"
    for words in world.proxy.commands(b"DQ.BPOP"):
        count, jobs = (int(words[words.index(word) + 1]) for word in (b"COUNT", b"FILL"))
        assert 2 <= jobs <= count, words


@scenario(30, unfilled, gate=EACH)
def a_batch_waits_only_so_long(world):
    probe = world.worker(concurrency=1, handlers=[{"batch": 10, "fill": [5, 1000]}])
    world.until(world.waiting, "a client waits")
    world.add("first", {})
    world.add("second", {})
    assert probe.wait("started", patience_s=world.patience_s)["batch"] == 2


@scenario(30, lambda world: world.settings.update(worker={"handlers": [{"batch": 10}]}), gate=EACH)
def batches_fill_only_where_all_kinds_run_in_batches(world):
    probe = world.worker(start=False)
    handlers = [{"kind": "many", "batch": 10, "fill": [5, 1000]}, {"kind": "one"}]
    probe.order("worker", **{"queues": ["q"], "handlers": handlers, **world.settings.get("worker", {})})
    world.until(lambda: probe.events("error") + probe.events("refused"), "it is refused")
    said = str(probe.events("error") + probe.events("refused")).lower()
    assert "fill" in said and "batch" in said, said
    assert not world.proxy.commands(b"DQ.BPOP")


def forgets_its_wait(world):
    """As if a fetch did not know how long those before it have waited."""

    class Forgetful(list):
        def append(self, write):
            for words in write.commands:
                if b"FILL" in words:
                    words[words.index(b"FILL") + 2] = b"3000"
            super().append(write)

    world.prepare(lambda proxy: setattr(proxy, "writes", Forgetful()))


@scenario(30, forgets_its_wait, gate=True)
def a_fetch_that_gives_way_goes_on_with_its_wait_for_a_batch(world):
    """The other server always has jobs, so this one's fetch is recalled again and again."""
    other = world.keep(Server().start())
    probe = world.worker(start=False)
    probe.ask("queue", "made", queue="r", name="r", url=other.url)
    world.start(probe, queues=["q", "r"], concurrency=3, handlers=[{"batch": 20, "fill": [10, 3000]}])
    world.until(world.waiting, "a fetch at the first server")
    rows = [word for n in range(400) for word in (f"r{n}", json.dumps({"do": "sleep", "ms": 20}))]
    other.client().execute_command("DQ.MADD", "r", 400, *rows)
    world.add("lonely", {})

    def least():
        fetches = [words for words in world.proxy.commands(b"DQ.BPOP") if b"FILL" in words]
        return min(int(words[words.index(b"FILL") + 2]) for words in fetches)

    world.until(lambda: least() < 3000, "a fetch goes on with the wait")
    probe.wait("started", job="lonely", patience_s=world.patience_s)


@scenario(3, never_acks, gate=True)
def payloads_and_ids_are_bytes(world):
    body, id = bytes(range(256)), b"\x00\xff{not text"
    world.add(id, payload=b'{"x":1}')
    world.add("body", payload=body)
    probe = world.worker()
    event = probe.wait("started", job="body")
    assert payload_of(event) == body
    world.gone(id)
