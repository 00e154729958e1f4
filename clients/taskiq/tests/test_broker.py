"""taskiq-redis' tests of its brokers, restated, and what is different here."""

import asyncio
import json
import time

import dq
import pytest
from conftest import until
from taskiq import AckableMessage, BrokerMessage

from dq_taskiq import DqBroker


def message(id="a", argument="my_msg", task="tick", **labels):
    """A message as taskiq makes it."""
    sent = {"task_id": id, "task_name": task, "labels": labels, "args": [argument], "kwargs": {}}
    return BrokerMessage(task_id=id, task_name=task, message=json.dumps(sent).encode(), labels=labels)


def argument(found):
    return json.loads(found.data)["args"][0]


async def tick(argument=None, **rest): ...


def run(server, scenario, **options):
    """Runs a scenario with a broker, in an event loop of its own."""

    async def main():
        broker = DqBroker(server.url, **options)
        broker.register_task(tick, "tick")
        await broker.startup()
        try:
            await scenario(broker)
        finally:
            await broker.shutdown()

    asyncio.run(asyncio.wait_for(main(), 60))


async def when(condition):
    """Waits until the condition is true, and returns its value."""
    while not (value := await asyncio.to_thread(condition)):
        await asyncio.sleep(0.01)
    return value


def field(db, name, id="a", queue="taskiq"):
    found = dq.Queue(db, queue).get(id)
    return None if found is None else found.fields[name]


# As with taskiq's Redis brokers


def test_no_url_is_an_error():
    with pytest.raises(TypeError):
        DqBroker()


def test_one_worker_gets_the_message(server, db):
    async def scenario(broker):
        first, second = (asyncio.ensure_future(anext(broker.listen())) for _ in range(2))
        await when(lambda: sum("b" in each["flags"] for each in db.client_list()) == 2)
        await broker.kick(message())
        done, waiting = await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(waiting)) == (1, 1)
        found = done.pop().result()
        assert isinstance(found, AckableMessage)
        assert argument(found) == "my_msg"
        found.ack()
        await when(lambda: db.execute_command("DQ.LEN", "taskiq") == 0)
        waiting.pop().cancel()

    run(server, scenario)


def test_many_messages_come_in_order(server):
    async def scenario(broker):
        for number in range(50):
            await broker.kick(message(f"m{number}", number))
        listener = broker.listen()
        seen = []
        for _ in range(50):
            found = await anext(listener)
            seen.append(argument(found))
            found.ack()
        assert seen == list(range(50))

    run(server, scenario)


def test_labels_say_queue_delay_and_priority(server, db):
    async def scenario(broker):
        await broker.kick(message(queue_name="other", delay="3600", priority="-5"))
        assert field(db, "label", queue="other") == b"tick"
        assert (field(db, "state", queue="other"), field(db, "priority", queue="other")) == (b"delayed", -5)
        await broker.kick(message("b", delay=0.3))
        started = asyncio.get_running_loop().time()
        found = await anext(broker.listen())
        assert asyncio.get_running_loop().time() - started >= 0.2
        found.ack()

    run(server, scenario)


# What the broker has in hand


def test_a_task_that_waits_is_there_once_and_follows_itself(server, db):
    async def scenario(broker):
        await broker.kick(message(argument=1))
        await broker.kick(message(argument=2))
        listener = broker.listen()
        first = await anext(listener)
        await broker.kick(message(argument=3))  # as a retry
        assert (argument(first), field(db, "next")) == (1, message(argument=3).message)
        first.ack()
        second = await anext(listener)
        assert argument(second) == 3
        second.ack()
        await when(lambda: db.execute_command("DQ.LEN", "taskiq") == 0)

    run(server, scenario)


def test_a_lease_is_renewed_until_the_acknowledgement(server, db):
    async def scenario(broker):
        await broker.kick(message())
        found = await anext(broker.listen())
        first = field(db, "deadline")
        await when(lambda: field(db, "deadline") > first)
        found.ack()
        await when(lambda: field(db, "deadline") is None)

    run(server, scenario, lease=3)


def test_a_listener_that_is_cancelled_takes_nothing_with_it(server, db):
    async def scenario(broker):
        waiting = asyncio.ensure_future(anext(broker.listen()))
        await when(lambda: any("b" in each["flags"] for each in db.client_list()))
        waiting.cancel()
        await when(lambda: not any("b" in each["flags"] for each in db.client_list()))
        await broker.kick(message())
        assert field(db, "state") == b"ready"

    run(server, scenario)


def test_what_was_dropped_without_acknowledgement_comes_again_later(server, db):
    async def scenario(broker):
        await broker.kick(message())
        found, kept = await anext(broker.listen()), []

        async def begin():  # as taskiq does; it may keep what it took in a cycle of an exception
            kept.append(found.ack)

        await asyncio.create_task(begin())
        await when(lambda: field(db, "state") == b"delayed")
        assert field(db, "reason") == b"it ended without being acknowledged"

    run(server, scenario)


def test_what_cannot_be_run_is_not_lost(server, db):
    async def scenario(broker):
        await broker.queue().add(b"\xff", id="unreadable")
        await broker.kick(message("unknown", task="unknown"))
        await broker.kick(message("fine"))
        found = await anext(broker.listen())
        assert argument(found) == "my_msg"
        await when(lambda: field(db, "state", "unreadable") == b"dead")
        await when(lambda: field(db, "state", "unknown") == b"delayed")
        assert field(db, "reason", "unknown") == b'unknown kind "unknown"'
        assert field(db, "due", "unknown") > (time.time() + 30) * 1000
        found.ack()

    run(server, scenario)


def test_shutdown_gives_back_what_is_in_hand(server, db):
    kept = []

    async def scenario(broker):
        await broker.kick(message())
        kept.append(await anext(broker.listen()))

    run(server, scenario)
    assert (field(db, "state"), field(db, "attempts")) == (b"ready", 0)


# taskiq's own worker


def kick(server, *tasks, **labels):
    async def scenario(broker):
        for name, task in tasks:
            await broker.kick(message(name, name, task, **labels))

    run(server, scenario)


def test_a_worker_stops_when_its_tasks_have_ended(server, db, process):
    trace = server.client(db=2)
    kick(server, ("a", "hold"), ("b", "hold"), ("c", "hold"), ("d", "hold"))
    worker = process(server)
    until(lambda: trace.llen("ran") == 2, "the start of two")
    for name in "abcd":
        trace.set(f"go:{name}", 1)
    until(lambda: trace.llen("done") == 4, "the end of all")
    worker.stop()
    assert db.execute_command("DQ.LEN", "taskiq") == 0


def test_a_retry_runs(server, db, process):
    kick(server, ("a", "again"), retry_on_error="True", max_retries="3")
    process(server)
    trace = server.client(db=2)
    until(lambda: trace.llen("done"), "the second run")
    until(lambda: db.execute_command("DQ.LEN", "taskiq") == 0, "the acknowledgement")


def test_a_retry_that_the_full_server_refuses_comes_again_and_counts(server, db, process):
    trace = server.client(db=2)
    trace.set("hold:a", 1)
    db.config_set("dq.default-backoff", 60_000)
    kick(server, ("a", "never"), retry_on_error="True", max_retries="9", delay="0")
    process(server)
    until(lambda: trace.llen("retries"), "the start")
    db.config_set("maxmemory", 1)
    trace.delete("hold:a")
    until(lambda: field(db, "state") == b"delayed", "the return")
    assert field(db, "reason").startswith(b"retry 1 was not added: ")
    db.config_set("maxmemory", 0)
    dq.Queue(db, "taskiq").reschedule("a", delay=0)
    until(lambda: trace.lrange("retries", 0, 1) == [b"0", b"1"], "its second run")


def test_a_task_whose_middleware_fails_comes_again(server, db, process):
    db.config_set("dq.default-backoff", 60_000)
    kick(server, ("a", "fail"))
    process(server, BROKEN=1)
    until(lambda: field(db, "reason") == b"it ended without being acknowledged", "the return")
    assert field(db, "state") == b"delayed"


def test_a_worker_that_stood_still_runs_nothing_that_it_had_fetched_and_lost(server, db, process):
    trace = server.client(db=2)
    kick(server, *((name, "hold") for name in "abc"))  # two begin, and one more is fetched
    still = process(server, LEASE=3)
    until(lambda: trace.llen("ran") == 2, "the start of two")
    until(lambda: db.execute_command("DQ.LEN", "taskiq", "RESERVED") == 3, "the delivery of all")
    still.stand_still()
    until(lambda: db.execute_command("DQ.LEN", "taskiq", "READY") == 3, "the end of the leases")
    for name in "abcd":
        trace.set(f"go:{name}", 1)
    other = process(server)
    until(lambda: db.execute_command("DQ.LEN", "taskiq") == 0, "the run by the other worker")
    other.stop()
    before = trace.llen("ran")
    still.go_on()
    kick(server, ("d", "hold"))
    until(lambda: db.execute_command("DQ.LEN", "taskiq") == 0, "the next task")
    assert (before, trace.llen("ran")) == (5, 6)


def test_a_killer_is_dead_and_takes_nobody_along(server, db, process):
    trace, queue = server.client(db=2), dq.Queue(db, "taskiq")
    kick(server, ("killer", "kill"), max_retries="3")
    kick(server, *((f"good:{n}", "good") for n in range(100)))
    # taskiq's command line starts a worker again that ended.
    process(server, LEASE=1)
    until(lambda: queue.len() == 0, "the end of all")
    found = queue.get("killer")
    assert (found.state, found.reason) == ("dead", "attempts used up; its workers were lost")
    assert trace.llen("killed") == 3
    assert trace.lrange("killed", -1, -1) == [b"1"], "the last time it had the process for itself"
    assert int(trace.get("good")) >= 100
    assert queue.len("dead") == 1


def test_the_task_of_a_killed_worker_comes_back_when_its_lease_ends(server, process):
    trace = server.client(db=2)
    kick(server, ("a", "hold"))
    lost = process(server, LEASE=3)
    until(lambda: trace.llen("ran"), "the start")
    lost.kill()
    trace.set("go:a", 1)
    process(server)
    until(lambda: trace.llen("done"), "the second run")
    assert trace.llen("ran") > 1
