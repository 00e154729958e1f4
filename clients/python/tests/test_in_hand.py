"""What a worker has in hand: how much, and for how long."""

import asyncio
import signal
import threading
import time

import pytest
from running import until

import dq
import dq.asyncio


def worker(*handlers, **options):
    made = dq.Worker(dq.Queue("redis://localhost:1", "q"), *handlers, **options)
    return made


def handle(job):
    pass


def test_how_much_may_be_in_hand():
    plain, batch = dq.Handler(handle), dq.Handler(handle, batch=100, kind="b")
    other = dq.Handler(handle, batch=10, kind="c")
    assert worker(plain, concurrency=3, prefetch=2)._free() == 5
    assert worker(batch, other, concurrency=3, prefetch=2)._free() == 302
    mixed = worker(plain, batch, concurrency=3, prefetch=1)
    assert mixed._free() == 4
    mixed._busy, mixed._in_hand = 2, 150  # two handlers run, one of them on a batch
    assert mixed._free() == 2
    mixed._backlog.append(None)
    assert mixed._free() == 1


def test_a_backlog_whose_lease_ended_while_the_loop_was_blocked_is_not_begun(dq_url):
    begun, lost = [], []

    class Hooks(dq.Hooks):
        def lost(self, job):
            lost.append(job.id)

    async def block(job):
        begun.append(job.id)
        if len(begun) == 1:
            await asyncio.sleep(0.05)  # the second one is fetched ahead
            time.sleep(1)  # nothing renews a lease now

    async def play():
        with dq.Queue(dq_url, "q") as producer:
            producer.add(1, id="a")
            producer.add(1, id="b")
        queue = dq.asyncio.Queue(dq_url, "q")
        async with dq.asyncio.Worker(queue, block, concurrency=1, prefetch=1, lease=0.4, hooks=[Hooks()]):
            await asyncio.wait_for(b_lost(), 30)
        await queue.close()

    async def b_lost():
        while "b" not in lost:
            await asyncio.sleep(0.01)

    asyncio.run(play())
    assert begun == ["a"]


def test_a_consumer_hears_that_a_lease_is_over_without_its_server(dq_server, queue):
    queue.add(1, id="a")
    consumer = dq.Consumer(queue, lease=0.9)
    (job,) = consumer.fetch()
    dq_server._process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: job.lost, "it is told")
        assert not consumer.holds(job)
    finally:
        dq_server._process.send_signal(signal.SIGCONT)
        consumer.close()


@pytest.mark.parametrize("size", [1, 3])
def test_who_still_runs_is_told_when_its_job_comes_again(queue, size):
    made = dq.Worker(queue, dq.Handler(handle, batch=0 if size == 1 else size), concurrency=2)
    made._links = made._make_links()
    (link,) = made._links
    queue.add(1, id="a")
    (older,) = made._screened(link.fetch(1, 0.001))
    assert queue.nack("a", older.job.token, mode="silent") == "ready"
    assert made._screened(link.fetch(1, 0.001)) == [] and older.job.lost
    link.flush()
    assert queue.get("a").state == "delayed" and queue.get("a").attempts == 0
    made._forget(older)
    assert made._begun == {}


def test_the_batcher_has_its_line_before_a_handler_asks(dq_url, monkeypatch):
    started, start = [], threading.Thread.start

    def noted(thread):
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    with dq.Queue(dq_url, "q") as queue, dq.Worker(queue, print, concurrency=2):
        pass
    assert started.index("dq-batcher") < started.index("dq-handler-0")
