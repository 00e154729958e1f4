"""7: the server fails, and permanent errors are reported."""

import threading
import time

import redis
from conftest import EACH, never_acks, says, scenario, seems_transient
from proxy import Held, named, when
from servers import PATIENCE_S, Sentinels, wait_until

# A passing error looks like a server without the module.
seems_fatal = says(b"-ERR unknown command 'DQ.BPOP'\r\n")


def held_up(world):
    """The worker is frozen from the fault on."""
    world.on_fault = lambda probe: probe.signal(19)


def fault(world, probe):
    if hasattr(world, "on_fault"):
        world.on_fault(probe)


@scenario(7, held_up, gate=EACH)
def a_killed_server_comes_back(world):
    # Otherwise writes made while the disk is busy, and with them the lease, may be lost.
    world.db.config_set("appendfsync", "always")
    world.add("before", {"do": "stubborn", "ms": 2000})
    probe = world.worker(concurrency=2, handlers=[{"lease_ms": 60_000}])
    probe.wait("started", job="before")
    # It is fetched with the worker's lease, which would end before the server is back.
    world.until(lambda: world.get("before")["deadline"] > world.now_ms() + 30_000, "its kind's lease is the server's")
    world.server.kill()
    fault(world, probe)
    world.server.start()
    world.add("after", {})
    world.gone("before", "after")
    probe.finish()
    assert len(probe.events("started")) == 2


@scenario(7, held_up, gate=True)
def a_worker_starts_before_its_server(world):
    world.db.ping()
    world.server.kill()
    probe = world.worker()
    fault(world, probe)
    time.sleep(0.3)
    world.server.start()
    world.add("j", {})
    world.gone("j")


@scenario(7, seems_fatal, gate=True)
def unblocked_and_killed_clients_go_on(world):
    probe = world.worker(concurrency=1)
    for how in ("UNBLOCK", "KILL"):
        world.until(world.waiting, "it waits")
        client = next(it["id"] for it in world.db.client_list() if it["cmd"].lower() == "dq.bpop")
        if how == "UNBLOCK":
            world.db.execute_command("CLIENT", "UNBLOCK", client, "ERROR")
        else:
            world.db.execute_command("CLIENT", "KILL", "ID", client)
        world.add(how, {})
        probe.wait("started", job=how, patience_s=world.patience_s)
        world.gone(how)


@scenario(7, seems_fatal, gate=True)
def a_master_that_becomes_a_replica_and_a_master_again(world):
    probe = world.worker(concurrency=1)
    world.until(world.waiting, "it waits")
    world.db.execute_command("REPLICAOF", "127.0.0.1", 1)
    world.until(lambda: not world.waiting(), "nobody waits at a replica")
    world.db.execute_command("REPLICAOF", "NO", "ONE")
    world.add("j", {})
    probe.wait("started", job="j", patience_s=world.patience_s)
    world.gone("j")


@scenario(7, never_acks, gate=True)
def a_full_memory_stops_producers_but_not_workers(world):
    for n in range(5):
        world.add(f"j{n}", {})
    world.db.config_set("maxmemory", 1)
    probe = world.worker()
    world.gone(*[f"j{n}" for n in range(5)])
    probe.order("call", queue="q", method="add", args={"id": "x", "data": {}})
    probe.wait("refused", patience_s=world.patience_s)
    world.db.config_set("maxmemory", 0)
    probe.call("q", "add", id="y", data={})
    world.gone("y")


is_ack = named(b"DQ.ACK")


@scenario(7, seems_fatal, gate=True)
def a_full_disk_is_waited_out(world):
    world.serve("--appendonly", "no", "--enable-protected-configs", "yes", "--save", "3600 1000000")
    is_full, acks = threading.Event(), []
    world.proxy.rules.append(when(is_ack, Held(is_full)))
    world.proxy.replies.append(lambda command, reply: acks.append(reply) if is_ack(command) else None)
    world.add("j", {})
    world.worker(concurrency=1, handlers=[{"lease_ms": 60_000}])
    world.until(lambda: world.proxy.commands(b"DQ.ACK"), "it acknowledges")
    world.db.config_set("dir", "/proc")
    write_snapshot(world)
    refused(world)
    is_full.set()
    world.until(lambda: acks, "it is answered")
    assert acks[0].startswith(b"-"), acks
    said = len(world.proxy.commands())
    world.until(lambda: len(world.proxy.commands()) > said, "it tries again")
    world.db.config_set("dir", str(world.server.folder))
    write_snapshot(world)
    world.gone("j")
    world.add("next", {})
    world.gone("next")


def write_snapshot(world):
    world.db.bgsave()
    world.until(lambda: not world.db.info("persistence")["rdb_bgsave_in_progress"], "the snapshot ends")


def refused(world):
    try:
        world.add("refused", {})
    except redis.ResponseError as error:
        assert "MISCONF" in str(error), error
        return
    raise RuntimeError("the server takes writes with a full disk: the scenario is broken")


@scenario(7, held_up)
def a_connection_that_hangs_is_given_up(world):
    world.add("slow", {"do": "stubborn", "ms": 1000})
    probe = world.worker(concurrency=2, wait_ms=1000, handlers=[{"lease_ms": 20_000}])
    probe.wait("started", job="slow")
    world.until(world.waiting, "it waits")
    world.proxy.hang()
    fault(world, probe)
    world.gone("slow")
    world.add("j", {})
    probe.wait("ended", job="j", patience_s=world.patience_s)
    world.gone("j")
    assert len(probe.events("started", job="slow")) == 1


def ends_with(world, probe, *words):
    event = probe.wait("error", patience_s=min(10, world.patience_s))
    text = event["message"].lower()
    assert all(word in text for word in words), text
    probe.wait("stopped", patience_s=world.patience_s)


@scenario(7, seems_transient, gate=EACH)
def without_the_module_it_says_so(world):
    world.serve(module=False)
    ends_with(world, world.worker(), "module", "loadmodule")


@scenario(7, seems_transient, gate=EACH)
def a_producer_without_the_module_is_told(world):
    world.serve(module=False)
    probe = world.worker(start=False)
    for args in {"data": 1}, {"data": 1, "id": "many", "repeat": 3}:
        refused = len(probe.events("refused"))
        probe.order("call", queue="q", method="add", args=args)
        text = probe.wait("refused", refused + 1)["error"]
        assert "does not have the dq module: load it, with 'loadmodule" in text, text


@scenario(7, seems_transient, gate=True)
def with_a_key_of_another_type_it_says_so(world):
    world.db.set("q", "no queue")
    ends_with(world, world.worker(), "another type")


def fixed_address(world):
    """A client that asks no Sentinel stays with the failed master."""
    world.follows = False


@scenario(7, fixed_address)
def a_failover_by_sentinel_is_followed(world):
    sentinels = world.keep(Sentinels())
    place = {"sentinels": [sentinels.address], "master": "dq"}
    if not getattr(world, "follows", True):
        place = {"url": sentinels.master.url}
    add(sentinels.master, "before")
    probe = world.worker(place=place, concurrency=2, wait_ms=1000)
    probe.wait("ended", job="before")
    old = sentinels.current()
    sentinels.master.kill()
    wait_until(lambda: sentinels.current() != old, "the failover", PATIENCE_S)
    wait_until(lambda: sentinels.replica.client().info("replication")["role"] == "master", "the promotion")
    add(sentinels.replica, "after")
    probe.wait("ended", job="after", patience_s=world.patience_s)
    wait_until(lambda: not sentinels.replica.client().execute_command("DQ.LEN", "q"), "it is acknowledged")


def add(server, id):
    server.client().execute_command("DQ.ADD", "q", id, b"{}")
