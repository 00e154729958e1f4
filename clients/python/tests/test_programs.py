"""Rules beside their handlers, and the hook of dead jobs. What workers do with them is in the behaviour suite."""

import asyncio
from datetime import datetime, timezone

import pytest
import redis
from redis.exceptions import ResponseError

import dq
import dq.asyncio
from dq._deaths import MOST, Deaths


class Dead(dq.Hooks):
    def __init__(self):
        self.jobs = []

    def dead(self, queue, job):
        self.jobs.append((queue, job))


class AsyncDead(Dead):
    async def dead(self, queue, job):
        super().dead(queue, job)


def test_a_rule_has_the_name_and_the_data_of_its_handler(dq_url, clock):
    ran = []
    with dq.Queue(dq_url, "q") as queue:
        worker = dq.Worker(queue)

        @worker.cron("30 2 * * *", tz="Europe/Berlin", times=3, attempts=2, defaults={"keep": 60})
        def nightly(job):
            ran.append(job.kind)

        @worker.every(60, id="each minute", data={"of": "orders", "at": "2026-01-01T00:00:00Z"})
        @queue.kind("count")
        def counted(job, of: str, at: datetime):
            ran.append((of, at))

        assert worker.drain() == 0 and not ran
        assert queue.next("nightly")[0].astimezone(timezone.utc).minute == 30
        rule = queue.get("nightly").rule
        assert (rule.cron, rule.tz, rule.times) == ("30 2 * * *", "Europe/Berlin", 3) and queue.get("nightly").keep
        clock.advance(minutes=1)
        assert worker.drain() == 1 and ran == [("orders", datetime(2026, 1, 1, tzinfo=timezone.utc))]
        clock.advance(days=1)
        worker.drain()
        assert ran.count("nightly") == 1


def test_a_rule_that_is_over_or_finds_no_room_ends_no_worker(dq_url, clock, caplog):
    with dq.Queue(dq_url, "q") as queue, redis.Redis.from_url(dq_url) as client:
        worker = dq.Worker(queue)
        worker.every(60, until=datetime(2001, 1, 1, tzinfo=timezone.utc))(over)
        assert worker.drain() == 0 and queue.get("over") is None
        worker = dq.Worker(queue)
        worker.every(60)(over)
        client.config_set("maxmemory", 1)
        try:
            assert worker.drain() == 0
        finally:
            client.config_set("maxmemory", 0)
        assert "a rule is not said until the next start" in caplog.text and queue.get("over") is None


def over(job):
    pass


def test_what_is_no_rule_beside_a_handler(dq_url):
    with dq.Queue(dq_url, "q") as queue:
        worker = dq.Worker(queue)
        with pytest.raises(TypeError, match=r"Worker\.cron has no option 'zone'"):
            worker.cron("* * * * *", zone="UTC")
        with pytest.raises(TypeError, match=r"Worker\.every has no option 'attempt': did you mean 'attempts'"):
            worker.every(60, attempt=1)
        with pytest.raises(TypeError, match="has a kind and options of its own"):
            worker.every(60)(dq.handler(lambda job: None))
        with pytest.raises(TypeError, match="has a kind and options of its own"):
            worker.every(60, attempts=2)(dq.handler(kind="a")(lambda job: None))
        worker.cron("* * * * *", kind="bad", tz="Europe/Berln")(lambda job: None)
        with pytest.raises(
            dq.ConfigurationError, match=r"job 'bad' of queue 'q': the server refused tz='Europe/Berln'"
        ):
            worker.drain()

    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            worker = dq.asyncio.Worker(queue)

            @worker.cron("0 25 * * *")
            async def bad(job): ...

            await worker.drain()

    with pytest.raises(dq.ConfigurationError, match=r"job 'bad' of queue 'q': the server refused cron='0 25 \* \* \*'"):
        asyncio.run(on_asyncio())


def fail(job):
    raise dq.GiveUp("no such order")


async def afail(job):
    fail(job)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_hook_of_dead_jobs_has_their_records(dq_url, clock, is_async):
    hooks = AsyncDead() if is_async else Dead()

    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            worker = dq.asyncio.Worker(queue, afail, hooks=[hooks], lease=30)
            await worker.drain()
            await asyncio.gather(*worker._hooking)
            clock.advance(days=1)
            await worker.drain()
            await asyncio.gather(*worker._hooking)

    def on_threads():
        with dq.Queue(dq_url, "q") as queue:
            worker = dq.Worker(queue, fail, hooks=[hooks], lease=30)
            worker.drain()
            clock.advance(days=1)
            worker.drain()

    with dq.Queue(dq_url, "q") as queue:
        queue.add({"order": 17}, id="a", kind="sell", headers={"by": "ann"}, label="other")
        queue.cron("0 3 * * *", {"n": 1}, id="daily")
        asyncio.run(on_asyncio()) if is_async else on_threads()
        (one, job), (_, daily) = hooks.jobs
        assert (one, job.id, job.state, job.reason) == ("q", "a", "dead", "no such order")
        assert (job.kind, job.data, job.headers, job.label) == ("sell", {"order": 17}, {"by": "ann"}, "other")
        assert "label='other'" in repr(job) and "JsonCodec" not in repr(job)
        assert daily.id.startswith("daily@") and daily.data == {"n": 1} and daily.state == "dead"
        assert queue.get("a") == job


def test_a_record_says_what_its_payload_holds(dq_url):
    with dq.Queue(dq_url, "q") as queue:
        queue.add(b"\xff", id="a")
        queue.add([1, 2], id="b")
        assert (queue.get("b").data, queue.get("b").kind, queue.get("b").headers) == ([1, 2], None, {})
        with pytest.raises(dq.PayloadError, match="payload cannot be decoded"):
            _ = queue.get("a").data
    with dq.Queue(dq_url, "q", codec=dq.BytesCodec()) as queue:
        assert queue.get("a").data == b"\xff"


UNKNOWN = ResponseError("ERR unknown command 'DQ.CLOCK'")


def rows(*deaths):
    return [[id, b"", at, 1, 0, 0] for id, at in deaths]


def dead(id, reason):
    return [b"id", id, b"state", b"dead", b"reason", reason]


def test_deaths_are_found_once_however_many_there_are():
    deaths = Deaths([b"q"], 60.0)
    assert deaths.asks(5.0) == [("DQ.CLOCK", "GET"), ("TIME",)]
    assert not deaths.heard([UNKNOWN, [b"1000", b"500000"]], 5.0)
    look = ("DQ.PEEK", b"q", "DEAD", "FROM", 1_000_500, "COUNT", MOST, "PREFIX", 0)
    assert deaths.asks(5.0)[2:] == [look]
    many = [(b"%d" % n, 1_000_600) for n in range(MOST + 1)]
    told = []
    for found in many[:MOST], many:
        deaths.heard([UNKNOWN, [b"1001", b"0"], rows(*found)], 6.0)
        while [asked for asked in deaths.asks(6.0) if asked[0] == "DQ.GET"]:
            replies = [dead(call[2], b"lease ended") for call in deaths.asks(6.0)]
            told += [job[b"id"] for _, job in deaths.heard(replies, 6.0)]
        assert (deaths.look_at == 66.0) == (found is many)  # a full answer is not the last
    assert told == [id for id, _ in many] and not deaths.asks(65.0)
    # The server may find some late: those of the last minute are looked at again.
    assert deaths.asks(66.0)[2][4] == 1_000_500
    deaths.heard([UNKNOWN, [b"1061", b"0"], rows(*many, (b"late", 1_000_550))], 66.0)
    (get,) = deaths.asks(66.0)
    assert get == ("DQ.GET", b"q", b"late")
    assert not deaths.heard([dead(b"late", b"no such order")], 66.0), "whom a NACK told has called the hook"
    assert deaths.asks(126.0)[2][4] == 1_001_000
    assert not deaths.heard([UNKNOWN, [b"1121", b"0"], rows()], 126.0) and not deaths._seen[b"q"]


def test_what_may_not_be_asked_is_not_asked_again():
    deaths = Deaths([b"q"], 60.0)
    refusal = ResponseError("NOPERM this user has no permissions to run the 'time' command")
    deaths.asks(5.0)
    with pytest.raises(redis.ResponseError, match="NOPERM"):
        deaths.heard([UNKNOWN, refusal], 5.0)
    assert not deaths.asks(1e9)
    deaths.answered(b"q", b"a", 7)
    assert [call[2] for call in deaths.asks(5.0)] == [b"a@7", b"a"]
    assert [job[b"id"] for _, job in deaths.heard([None, dead(b"a", b"x")], 5.0)] == [b"a"]
