"""Consumers: for programs that run jobs themselves."""

import asyncio
import threading
import time

import pytest
from running import PATIENCE_S, until

import dq
import dq.asyncio
from dq.company import Company


@pytest.fixture
def queue(dq_url):
    with dq.Queue(dq_url, "orders") as made:
        yield made


@pytest.fixture
def consumer(queue):
    made = dq.Consumer(queue, lease=30)
    yield made
    made.close()


def test_jobs_are_acknowledged_dead_or_given_back(queue, consumer):
    for id in ("done", "dead", "back"):
        queue.add({"n": id}, id=id)
    done, dead, back = consumer.fetch(5)
    assert (done.data, done.attempt) == ({"n": "done"}, 1)
    consumer.ack(done)
    consumer.nack(dead, mode="fatal", reason="it is \udcff wrong")
    consumer.release([back])
    until(lambda: queue.len("reserved") == 0, "the server hears of all")
    assert queue.get("done") is None
    assert (queue.get("dead").state, queue.get("dead").reason) == ("dead", "it is ? wrong")
    assert (queue.get("back").state, queue.get("back").attempts) == ("ready", 0)


def test_a_job_runs_again_with_something_else(queue, consumer):
    queue.add("first", id="a")
    (job,) = consumer.fetch()
    consumer.ack(job, again={"data": "second", "delay": 60, "priority": 3})
    until(lambda: (queue.get("a") or job).payload == b'"second"', "the second one takes its place")
    found = queue.get("a")
    assert (found.state, found.priority, found.attempts) == ("delayed", 3, 0)


def test_what_it_is_told_survives_the_loss_of_its_connections(queue, consumer):
    queue.add("first", id="a")
    queue.add("first", id="b")
    a, b = consumer.fetch(2)
    for client in queue.client.client_list():
        if int(client["id"]) != queue.client.client_id():
            queue.client.client_kill_filter(_id=client["id"])
    consumer.ack(a, again={"data": "second"})
    consumer.ack(b)
    until(lambda: queue.len("reserved") == 0, "the server hears of both")
    assert (queue.get("a").payload, queue.get("b")) == (b'"second"', None)


def test_leases_are_renewed(queue, dq_server, clock):
    queue.add("long", id="a")
    consumer = dq.Consumer(queue, lease=1.5)  # its heart beats twice a second; the server's clock stands still
    try:
        (job,) = consumer.fetch()
        first = queue.get("a").deadline
        clock.advance(seconds=1)
        until(lambda: queue.get("a").deadline > first, "the renewal")
        clock.advance(seconds=2)
        until(lambda: job.lost, "the consumer hears that the lease ended")
    finally:
        consumer.close()


def test_a_job_is_held_until_its_lease_is_over_whoever_has_looked(queue, consumer):
    queue.add("first")
    (job,) = consumer.fetch()
    assert consumer.holds(job)
    # The state after the process was blocked, before its batcher has looked.
    job._delivery.lease_until = time.monotonic()
    assert not consumer.holds(job)
    assert job.lost


def test_close_gives_back_what_is_in_hand(queue):
    queue.add("x", id="a")
    consumer = dq.Consumer(queue)
    consumer.fetch()
    consumer.close()
    assert (queue.get("a").state, queue.get("a").attempts) == ("ready", 0)


def test_an_end_that_a_fetch_takes_along_is_not_lost_by_closing(queue):
    queue.add("x", id="a")
    consumer = dq.Consumer(queue, lease=30)
    (job,) = consumer.fetch()
    link, taken = consumer._link, threading.Event()
    send, gather = link._waiting.send, link._let_gather

    # On a busy machine the batcher may be between two steps, and a fetch in flight, when the consumer is closed.
    def late_gather():
        assert taken.wait(PATIENCE_S)
        gather()

    def late_send(*words):
        taken.set()
        until(lambda: link._finish_by is not None, "the close")
        return send(*words)

    link._let_gather, link._waiting.send = late_gather, late_send

    def ack_and_fetch():
        consumer.ack(job)
        consumer.fetch(wait=5)

    fetching = threading.Thread(target=ack_and_fetch)
    fetching.start()
    assert taken.wait(PATIENCE_S)
    consumer.close(patience=PATIENCE_S)
    fetching.join(PATIENCE_S)
    assert not fetching.is_alive()
    assert queue.get("a") is None


def test_an_end_is_not_lost_by_a_fetch_that_begins_while_the_consumer_is_closed(queue):
    queue.add("x", id="a")
    consumer = dq.Consumer(queue, lease=30)
    (job,) = consumer.fetch()
    link, met = consumer._link, threading.Event()
    end_fetch, take = link._end_fetch, link._take_outcomes

    def fetch():
        consumer.fetch()
        met.set()

    # A fetch begins between two steps of the batcher's last work. It keeps its outcomes until the batcher has ended.
    def end_fetch_and_fetch():
        end_fetch()
        consumer.ack(job)
        threading.Thread(target=fetch, daemon=True).start()
        assert met.wait(PATIENCE_S)

    def take_and_keep(*count):
        taken = take(*count)
        if threading.current_thread() is not link.batcher:
            met.set()
            link.batcher.join(PATIENCE_S)
        return taken

    link._end_fetch, link._take_outcomes = end_fetch_and_fetch, take_and_keep
    consumer.close(patience=PATIENCE_S)
    assert queue.get("a") is None


def test_a_fetch_has_not_ended_before_it_puts_back_what_it_took_along(queue, consumer):
    queue.add("x", id="a")
    (job,) = consumer.fetch()
    link, ended = consumer._link, []
    send, put_back, gather = link._waiting.send, link._put_back, link._let_gather
    free = threading.Event()

    def cut(*words):
        link._waiting.send = send
        raise ConnectionError("cut")

    def put_back_and_say(told):
        ended.append(not link._fetching)
        put_back(told)
        free.set()

    def wait_and_gather():
        assert free.wait(PATIENCE_S)
        gather()

    link._waiting.send, link._put_back, link._let_gather = cut, put_back_and_say, wait_and_gather
    consumer.ack(job)
    assert consumer.fetch(wait=0.01) == []
    until(lambda: queue.get("a") is None, "the acknowledgement")
    assert ended[0] is False


def test_a_server_without_the_module_is_an_error(queue, consumer):
    queue.client.set("orders", "taken")
    with pytest.raises(dq.ConfigurationError, match="another type"):
        consumer.fetch()
    queue.client.delete("orders")
    queue.add("x")
    assert consumer.fetch()


def test_queues_of_two_servers_are_refused():
    queues = [dq.Queue("redis://localhost:1", "a"), dq.Queue("redis://localhost:2", "b")]
    with pytest.raises(dq.ConfigurationError, match="on one server"):
        dq.Consumer(queues)


def test_asyncio_a_fetch_that_is_cancelled_keeps_no_job(dq_url, queue):
    async def main():
        async with dq.asyncio.Queue(dq_url, "orders") as there:
            consumer = dq.asyncio.Consumer(there)
            waiting = asyncio.create_task(consumer.fetch())
            while not waits(queue):
                await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])
            while waits(queue):
                await asyncio.sleep(0.01)
            await there.add("x", id="a")
            assert (await there.get("a")).state == "ready"
            (job,) = await consumer.fetch()
            consumer.ack(job, again={"data": "second"})
            (job,) = await consumer.fetch()
            assert job.data == "second"
            consumer.nack(job, mode="fatal", reason="no")
            while await there.len("reserved"):
                await asyncio.sleep(0.01)
            await there.add("y", id="b")
            await consumer.fetch()
            await consumer.close(PATIENCE_S)
            assert (await there.get("b")).state == "ready"

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_asyncio_a_fetch_may_follow_one_that_was_cancelled(dq_url, queue):
    async def main():
        async with dq.asyncio.Queue(dq_url, "orders") as there:
            consumer = dq.asyncio.Consumer(there, wait=PATIENCE_S)
            for _ in range(20):
                waiting = asyncio.create_task(consumer.fetch())
                while not waits(queue):
                    await asyncio.sleep(0.01)
                waiting.cancel()
                await asyncio.wait([waiting])
                fetching = asyncio.create_task(consumer.fetch())
                await asyncio.sleep(0)
                await there.add("x")
                (job,) = await fetching
                consumer.ack(job)
            await consumer.close(PATIENCE_S)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def waits(queue):
    """Whether a client waits for a job."""
    return any("b" in client["flags"] for client in queue.client.client_list())


# Jobs that may have ended their workers


def lose(queue, clock, *ids):
    """Has the jobs delivered to a worker of which nothing more is heard."""
    for id in ids:
        queue.client.execute_command("DQ.POP", queue.name, "ID", id, "TTR", 1000)
    clock.advance(seconds=2)
    until(lambda: queue.len("reserved") == 0, "the end of the leases")


def test_one_whose_workers_were_lost_is_handed_out_when_nothing_else_is_in_hand(queue, dq_url, clock):
    for id in ("killer", "other"):
        queue.add("x", id=id, attempts=2)
    lose(queue, clock, "killer", "other")
    queue.add("x", id="good")
    company = Company()
    with dq.Queue(dq_url, "more") as more:
        more.add("x", id="more")
        first = dq.Consumer(queue, lease=30, company=company)
        second = dq.Consumer(more, lease=30, company=company)
        try:
            (beside,) = second.fetch()
            (good,) = first.fetch(5)
            assert good.id == "good"
            assert queue.len("ready") == 2, "both went back: here they could be lost along with the good one"
            first.ack(good)
            assert first.fetch(5, wait=0.1) == [], "the other consumer has one"
            assert second.fetch(5, wait=0.1) == [], "no more is fetched"
            second.ack(beside)
            (killer,) = until(lambda: first.fetch(5, wait=0.1), "its turn")
            assert killer.id == "killer"
            assert first.fetch(5, wait=0.1) == [], "nothing is fetched beside it"
            first.ack(killer)
            (other,) = until(lambda: first.fetch(5, wait=0.1), "the next one")
            assert other.id == "other"
        finally:
            first.close()
            second.close()
    assert queue.get("killer") is None


def test_one_above_its_limit_is_dead_unless_others_did_not_know_it(queue, clock):
    consumer = dq.Consumer(queue, lease=30, limits=lambda job: 1)
    try:
        queue.add("x", id="lost")
        queue.add("x", id="new")
        jobs = consumer.fetch(2)
        assert [consumer.reason(job) for job in jobs] == [None, None]
        consumer.unknown(jobs[1], "mail")
        consumer.release(jobs[:1])
        until(lambda: queue.len("reserved") == 0, "the returns")
        lose(queue, clock, "lost")
        queue.reschedule("new", delay=0)
        (new,) = until(lambda: consumer.fetch(2, wait=0.1), "the one that may run")
        assert (new.id, consumer.reason(new)) == ("new", b'unknown kind "mail"')
        until(lambda: queue.len("dead") == 1, "the end of the other one")
        assert queue.get("lost").reason == "attempts used up; its workers were lost"
    finally:
        consumer.close()


def test_asyncio_one_whose_workers_were_lost_is_handed_out_alone(queue, dq_url, clock):
    queue.add("x", id="killer", attempts=2)
    lose(queue, clock, "killer")
    queue.add("x", id="good")

    async def main():
        async with dq.asyncio.Queue(dq_url, "orders") as there:
            consumer = dq.asyncio.Consumer(there, lease=30)
            (good,) = await consumer.fetch(5)
            assert await consumer.fetch(5, wait=0.1) == []
            consumer.ack(good)
            while not (found := await consumer.fetch(5, wait=0.1)):
                pass
            assert [job.id for job in found] == ["killer"]
            await there.add("y", id="next")
            assert await consumer.fetch(5, wait=0.1) == []
            consumer.ack(found[0])
            while not (found := await consumer.fetch(5, wait=0.1)):
                pass
            assert [job.id for job in found] == ["next"]
            await consumer.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_what_a_full_server_does_not_add_comes_again_after_its_delay(queue, consumer, dq_server):
    queue.add("first", id="a")
    (job,) = consumer.fetch()
    queue.client.config_set("maxmemory", 1)
    try:
        consumer.ack(job, again={"data": "second", "delay": 60}, otherwise="retry 1 was not added")
        until(lambda: queue.len("reserved") == 0, "the return")
    finally:
        queue.client.config_set("maxmemory", 0)
    found = queue.get("a")
    assert (found.state, found.payload) == ("delayed", b'"first"')
    assert found.reason.startswith("retry 1 was not added: OOM")
    assert round((found.due - found.failed).total_seconds()) == 60
