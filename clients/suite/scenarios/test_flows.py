"""21: jobs after others, chains, and handlers that wait for other jobs. A language joins by its name in HAVE."""

from threading import Event
from zlib import crc32

from conftest import EACH, KEEP_MS, breaks, place_of, plain_client, returns, scenario
from proxy import Cut, CutBeforeReply, Held, Instead, Reply, once, swallow, when, without, without_list
from servers import Cluster

HAVE = {
    "cluster": {"go", "node", "python", "rust"},
}
no_after = breaks(without_list(None, b"AFTER"))
no_after_of_nack = breaks(without_list(b"DQ.NACK", b"AFTER"))


def spawns(command):
    """Matches the library's own NACK script, not scripts of a client."""
    return command[0].upper() == b"EVAL" and b"DQ.NACK" in command


no_spawn = breaks(when(spawns, Reply(b"$7\r\nblocked\r\n")))


def script(*actions):
    return {"do": "script", "actions": list(actions)}


def started(probe, id, world, count=1):
    return probe.wait("started", job=id, count=count, patience_s=world.patience_s)


def before(probe, *ids):
    """Asserts that each ended before the next one began."""
    for earlier, later in zip(ids, ids[1:]):
        ended, begun = (probe.events("ended", job=earlier), probe.events("started", job=later)[0])
        assert ended and ended[0]["at"] <= begun["at"], f"{later} began before {earlier} had ended"


# --- after


@scenario(21, no_after, gate=EACH)
def a_job_runs_after_others_and_has_their_results(world):
    probe = world.worker(start=False)
    probe.call("q", "add", id="a", data=returns({"n": 1}))
    probe.call("q", "add", id="b", data={"do": "stubborn", "ms": 300})
    probe.call("q", "add", id="c", data={}, after=["b", "a"])
    world.start(probe, concurrency=3)
    assert started(probe, "c", world)["results"] == [["b", "done", None], ["a", "done", {"n": 1}]]
    before(probe, "a", "c")
    before(probe, "b", "c")
    assert not started(probe, "a", world).get("results")


@scenario(21, breaks(without(b"DQ.ADD", b"ONDEAD")), gate=True)
def what_a_dead_job_means_to_those_after_it(world):
    probe = world.worker(start=False)
    probe.call("q", "add", id="a", data={"do": "give_up", "reason": "no room"})
    for on_dead in ("run", "die", "wait", None):
        probe.call("q", "add", id=on_dead or "default", data={}, after=["a"], on_dead=on_dead)
    world.start(probe)
    assert started(probe, "run", world)["results"] == [["a", "dead", "no room"]]
    world.until(lambda: world.state("die") == "dead", "it dies too")
    assert world.get("die")["reason"] == "after a: dead"
    assert world.state("wait") == world.state("default") == "blocked"


def no_group(command):
    if command[0].upper() == b"DQ.ADD" and b"AFTER" in command:
        at = command.index(b"AFTER")
        return Instead(command[:at] + command[at + 3 :])
    return None


@scenario(21, breaks(no_group), gate=True)
def a_job_runs_after_a_group(world):
    probe = world.worker(start=False)
    for n in range(4):
        probe.call("q", "add", id=f"m{n}", data={"do": "stubborn", "ms": 200}, group="mails")
    probe.call("q", "add", id="report", data={}, after_group="mails")
    world.start(probe, concurrency=5)
    started(probe, "report", world)
    for n in range(4):
        before(probe, f"m{n}", "report")


@scenario(21, no_after, gate=True)
def a_chain_runs_one_by_one(world):
    """Even if a worker takes the first job quickly: all are added at once."""
    probe = world.worker(concurrency=4)
    for _ in range(3):
        ids = probe.call("q", "chain", jobs=[{"do": "stubborn", "ms": 100}, returns(2), {}])
        assert len(ids) == 3
        assert started(probe, ids[2], world)["results"] == [[ids[1], "done", 2]]
        before(probe, *ids)


def one_by_one(command):
    """The proxy's record is checked, not the server."""
    if command[0].upper() == b"DQ.MADD":
        command[0] = b"DQ.ADD"


@scenario(21, breaks(one_by_one), gate=True)
def many_jobs_go_in_few_commands(world):
    probe = world.worker(start=False)
    jobs = [{"id": f"j{n}", "data": n, "delay": 60_000, "priority": 3} for n in range(2500)]
    ids = probe.call("q", "add_many", jobs=jobs)
    assert ids == [job["id"] for job in jobs]
    assert world.len("DELAYED") == 2500 and world.get("j2499")["priority"] == 3
    assert len(world.proxy.commands(b"DQ.MADD")) == 3 and not world.proxy.commands(b"DQ.ADD")
    assert probe.call("q", "add_many", jobs=[{**jobs[0], "if_exists": None}, {"id": "new", "data": 1}]) == [None, "new"]
    assert world.state("new") == "ready"


# --- join


PARTS = [{"id": f"p{n}", "data": returns(n)} for n in range(3)]


def cuts(world, verdict):
    """Loses the next transaction, or its answer."""
    world.proxy.rules.append(once(when(lambda command: command[0].upper() == b"EXEC", verdict)))


@scenario(21, no_after, gate=EACH)
def a_join_is_one_call(world):
    probe = world.worker(concurrency=3)
    parts = [{"data": {"do": "stubborn", "ms": 100}}, *PARTS]
    last = probe.call("q", "join", jobs=parts, then={"data": {}, "priority": 1})
    results = started(probe, last, world)["results"]
    assert [row[1:] for row in results] == [["done", None], ["done", 0], ["done", 1], ["done", 2]]
    before(probe, results[0][0], last)
    jobs = [{"data": {}} for _ in range(1001)]
    last = probe.call("q", "join", jobs=jobs, then={"data": returns(5), "keep": KEEP_MS})
    assert probe.call("q", "wait", id=last, timeout=30_000) == 5
    assert len(probe.events("ended")) >= 1006
    assert len([command for command in world.proxy.commands(b"DQ.MADD") if int(command[2]) == 1000]) == 1


def is_look(command):
    return command[0].upper() == b"DQ.GET"


NOTHING = Reply(b"$-1\r\n")
UNKNOWN = "it is not known whether the jobs"


def sees_nothing(world):
    world.seen = NOTHING


def looks_late(world, *verdicts):
    """A look is answered once all jobs have run, which a worker takes from the server itself."""
    left = [*verdicts]

    def rule(command):
        if not is_look(command):
            return None
        world.until(lambda: world.len() == 0, "all have ended")
        return left.pop(0) if left else getattr(world, "seen", None)

    world.proxy.rules.append(rule)
    return world.worker(concurrency=3, place={"url": f"redis://127.0.0.1:{world.server.port}"}), world.producer()


def first_sees_nothing(world):
    world.prepare(lambda proxy: proxy.rules.append(once(when(is_look, NOTHING))))


@scenario(21, sees_nothing, gate=EACH)
def a_join_whose_answer_is_lost_runs_once(world):
    probe, asking = looks_late(world)
    for n, verdict in enumerate((CutBeforeReply(), Cut())):
        cuts(world, verdict)
        parts = [{"id": f"{n}{part['id']}", "data": part["data"]} for part in PARTS]
        assert asking.call("q", "join", jobs=parts, then={"id": f"last{n}", "data": {}}) == f"last{n}"
        started(probe, f"last{n}", world)
    world.until(lambda: world.len() == 0, "all have ended")
    runs = [event["job"] for event in probe.events("started")]
    assert len(runs) == len(set(runs)) == 8, runs


@scenario(21, sees_nothing, gate=EACH)
def a_server_that_is_loading_says_nothing_of_a_join(world):
    probe, asking = looks_late(world, Reply(b"-LOADING it reads its data\r\n"))
    cuts(world, CutBeforeReply())
    last = asking.call("q", "join", jobs=PARTS, then={"data": {}})
    started(probe, last, world)
    world.until(lambda: world.len() == 0, "all have ended")
    runs = [event["job"] for event in probe.events("started")]
    assert len(runs) == len(set(runs)) == 4, runs


@scenario(21, first_sees_nothing, gate=EACH)
def a_join_is_not_taken_for_a_job_that_was_there(world):
    asking = world.producer()
    for verdict in Cut(), CutBeforeReply():
        for end in ("DQ.ACK", "q", "WITHTOKENS", "IDS", 1), ("DQ.NACK", "q", "IDS", 1):
            id = f"{type(verdict).__name__}{end[0]}"
            world.add(id, {}, "KEEP", KEEP_MS)
            token = world.db.execute_command("DQ.POP", "q", "ID", id)[2]
            world.db.execute_command(*end, id, token, *(["FATAL"] if end[0] == "DQ.NACK" else []))
            cuts(world, verdict)
            assert asking.call("q", "join", jobs=[{"data": {}}], then={"id": id, "data": {}}) == id
            assert world.state(id) == "blocked"
    assert world.len("READY") == world.len("BLOCKED") == 4


@scenario(21, first_sees_nothing, gate=EACH)
def nobody_knows_of_a_join_if_a_job_of_its_id_is_still_to_run(world):
    asking = world.producer()
    world.add("last", {})
    for verdict in CutBeforeReply(), Cut():
        cuts(world, verdict)
        args = {"jobs": [{"data": {}}], "then": {"id": "last", "data": {}}}
        assert UNKNOWN in asking.ask("call", "refused", queue="q", method="join", args=args)["error"]
    assert world.len() == 2


@scenario(21, breaks(when(is_look, Reply(b"*2\r\n$5\r\nstate\r\n$4\r\ndone\r\n"))), gate=True)
def jobs_of_a_join_that_ran_and_went_are_not_added_again(world):
    probe, asking = world.worker(concurrency=3), world.producer()
    gone = Event()
    world.proxy.rules.append(when(is_look, Held(gone)))
    cuts(world, CutBeforeReply())
    args = {"jobs": PARTS, "then": {"data": {}, "keep": 0}}
    asking.order("call", queue="q", method="join", args=args, tag="join")
    probe.wait("ended", count=4, patience_s=world.patience_s)
    world.until(lambda: world.len() == 0, "all have ended")
    gone.set()
    assert UNKNOWN in asking.wait("refused", tag="join", patience_s=world.patience_s)["error"]
    assert world.len() == 0 and len(probe.events("started")) == 4


@scenario(21, sees_nothing, gate=EACH)
def jobs_after_each_other_whose_answer_is_lost_run_once(world):
    probe, asking = looks_late(world)
    for n, verdict in enumerate((CutBeforeReply(), Cut())):
        cuts(world, verdict)
        jobs = [{"id": f"a{n}", "data": {}}, {"id": f"b{n}", "data": {}, "after": [f"a{n}"], "keep": KEEP_MS}]
        assert asking.call("q", "add_many", jobs=jobs) == [f"a{n}", f"b{n}"]
        world.done(f"b{n}")
    assert len(probe.events("started")) == 4


@scenario(21, breaks(when(lambda it: it[0].upper() == b"DQ.CFGGET", Reply(b"*0\r\n"))), gate=EACH)
def a_join_is_not_sent_again_where_others_may_have_pushed_it_out(world):
    asking = world.producer()
    args = {"jobs": PARTS, "then": {"data": {}}}
    for settings in ("DONELEN", 1), ("DONELEN", 0, "DEADLEN", 1):
        world.db.execute_command("DQ.CFGSET", "q", *settings)
        cuts(world, Cut())
        assert UNKNOWN in asking.ask("call", "refused", queue="q", method="join", args=args)["error"]
        assert world.len() == 0


# --- Handlers that wait for other jobs


def results(probe, world, id, count=1):
    return probe.wait("results", job=id, count=count, patience_s=world.patience_s)["results"]


def until_last(world, probe, expected):
    """The server may know the job's end before its probe has reported everything."""
    world.until(lambda: probe.events("results", job="j")[-1]["results"] == expected, f"the last results: {expected}")


@scenario(21, no_after_of_nack, gate=True)
def a_handler_waits_for_other_jobs(world):
    """The attempt ends without being counted; the next one gets the results."""
    world.add("a", returns(1), "DELAY", 86_400_000)
    world.add("b", {"do": "give_up", "reason": "no room"}, "DELAY", 86_400_000)
    world.add("j", script({"wait_for": ["b", "a"]}, {"return": "sum"}), "KEEP", KEEP_MS, "ATTEMPTS", 1)
    probe = world.worker(concurrency=1, hooks=True)
    world.until(lambda: world.state("j") == "blocked", "it waits for them")
    assert world.get("j")["attempts"] == 0
    world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "a", "b")
    world.done("j")
    assert results(probe, world, "j") == [["b", "dead", "no room"], ["a", "done", 1]]
    assert world.get("j")["result"] == '"sum"'
    assert [event["attempt"] for event in probe.events("started", job="j")] == [1, 1]
    assert not probe.events("failed", job="j") and len(probe.events("after", job="j")) <= 1


@scenario(21, breaks(swallow(b"DQ.STEP", b":1\r\n")), gate=True)
def what_was_waited_for_is_not_waited_for_again(world):
    """The results stay with the job, even when it waits for more jobs."""
    world.add("a", returns(1), "DELAY", 86_400_000)
    world.add("b", returns(2), "DELAY", 86_400_000)
    actions = [{"wait_for": ["a"]}, {"throw": "once", "times": 2}, {"wait_for": ["b"]}, {"return": 3}]
    world.add("j", script(*actions), "KEEP", KEEP_MS, "BACKOFF", 1, 1)
    probe = world.worker(concurrency=1)
    for id in "ab":
        world.until(lambda id=id: waits_for(world, id), f"it waits for {id}")
        world.db.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, id)
    world.done("j")
    assert results(probe, world, "j", 1) == results(probe, world, "j", 2) == [["a", "done", 1]]
    until_last(world, probe, [["b", "done", 2]])
    waits = [each for each in world.proxy.commands(b"DQ.NACK") if b"AFTER" in each]
    assert len(waits) == 2, waits


def waits_for(world, id):
    return id.encode() in (world.get("j").get("after") or [])


@scenario(21, no_spawn, gate=EACH)
def a_handler_spawns_jobs_and_waits_for_them(world):
    children = [{"data": returns(1)}, {"data": {"do": "give_up", "reason": "no"}}, {"data": returns([3])}]
    world.add("j", script({"spawn": children}, {"spawn": [{"data": returns(4)}]}, {"return": "ok"}), "KEEP", KEEP_MS)
    probe = world.worker(concurrency=2)
    world.done("j")
    assert results(probe, world, "j") == [["j/1/0", "done", 1], ["j/1/1", "dead", "no"], ["j/1/2", "done", [3]]]
    until_last(world, probe, [["j/2/0", "done", 4]])
    assert len(probe.events("started", job="j/1/0")) == 1 and len(probe.events("started", job="j")) == 3
    assert world.get("j")["result"] == '"ok"'


@scenario(21, no_spawn, gate=True)
def jobs_are_spawned_together_with_the_wait_for_them(world):
    """If the connection is lost before the command, nothing of it has happened, or all."""
    world.add("j", script({"spawn": [{"data": returns(n)} for n in range(3)]}, {"return": "ok"}), "KEEP", KEEP_MS)
    world.proxy.rules.append(once(when(spawns, Cut())))
    probe = world.worker(concurrency=1, handlers=[{"lease_ms": 10_000}])
    world.done("j")
    assert len([*filter(spawns, world.proxy.commands(b"EVAL"))]) >= 2, "it was not sent again"
    assert [row[2] for row in results(probe, world, "j")] == [0, 1, 2]
    assert len(probe.events("started", job="j/1/0")) == 1


# --- On a cluster


@scenario(21, plain_client, only=HAVE["cluster"])
def flows_and_waits_on_a_cluster_whose_slots_move(world):
    """Jobs that belong together are in one shard, and clients that wait follow it."""
    cluster = world.keep(Cluster())
    probe = world.worker(place=place_of(world, cluster), shards=4, start=False)
    probe.call("q", "chain", jobs=[{}, {}])  # of all that this client sends the first is a transaction
    world.start(probe, concurrency=4, wait_ms=1000)
    timeout_ms = int(world.patience_s * 1000)
    for time in ("before", "after"):
        for n in range(6):
            children = [{"data": returns(1)}, {"data": returns(2)}]
            data = script({"step": "a", "value": 1}, {"spawn": children}, {"sleep": "nap", "ms": 10}, {"return": n})
            id = f"{time}{n}"
            assert probe.call("q", "add_and_wait", id=id, data=data, timeout=timeout_ms) == n
            assert [row[1:] for row in results(probe, world, id)] == [["done", 1], ["done", 2]]
        ids = probe.call("q", "chain", jobs=[{}, returns(2), {}])
        assert started(probe, ids[2], world)["results"] == [[ids[1], "done", 2]]
        last = probe.call("q", "join", jobs=[{"data": returns(1)}, {"data": returns(2)}], then={"data": {}})
        assert [row[2] for row in started(probe, last, world)["results"]] == [1, 2]
        for n in range(4 if time == "before" else 0):
            cluster.move(f"q:{{{n}}}")


@scenario(21, plain_client, only=HAVE["cluster"])
def each_join_goes_to_the_node_that_has_its_shard(world):
    """Though the connection of the join before it leads to the other node: nothing is sent there in vain."""
    cluster = world.keep(Cluster())
    probe = world.worker(place=place_of(world, cluster), shards=4, start=False)
    nodes = {shard: cluster.owner(f"q:{{{shard}}}").client() for shard in (0, 2)}
    assert cluster.owner("q:{0}") is not cluster.owner("q:{2}")

    def misled():
        return sum(node.info("errorstats").get("errorstat_MOVED", {"count": 0})["count"] for node in nodes.values())

    probe.call("q", "chain", jobs=[{}, {}])  # the client learns where slots are
    before = misled()
    for n in range(8):
        shard = n % 2 * 2
        id = next(id for id in (f"last{n}-{m}" for m in range(99)) if crc32(id.encode()) % 4 == shard)
        assert probe.call("q", "join", jobs=[{"data": {}}, {"data": {}}], then={"id": id, "data": {}}) == id
        assert nodes[shard].execute_command("DQ.GET", f"q:{{{shard}}}", id)
    assert misled() == before
