"""Rules beside their handlers, and the hook of dead jobs. What workers do with them is in the behaviour suite."""

import asyncio
import threading
from datetime import datetime, timezone

import pytest
import redis
from redis.exceptions import ResponseError
from running import PATIENCE_S, until

import dq
import dq.asyncio
from dq._deaths import KNOWN, MOST, PAGE, Deaths


class Dead(dq.Hooks):
    def __init__(self):
        self.jobs = []

    def dead(self, queue, job):
        self.jobs.append((queue, job))


class AsyncDead(Dead):
    async def dead(self, queue, job):
        super().dead(queue, job)


def test_a_rule_has_the_name_and_the_data_of_its_handler(queue, clock):
    ran = []
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


def test_what_is_no_rule_beside_a_handler(dq_url, queue):
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
    with pytest.raises(dq.ConfigurationError, match=r"job 'bad' of queue 'q': the server refused tz='Europe/Berln'"):
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
def test_the_hook_of_dead_jobs_has_their_records(dq_url, queue, clock, is_async):
    hooks = AsyncDead() if is_async else Dead()

    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            worker = dq.asyncio.Worker(queue, afail, hooks=[hooks], lease=30)
            await worker.drain()
            clock.advance(days=1)
            await worker.drain()

    def on_threads():
        with dq.Queue(dq_url, "q") as queue:
            worker = dq.Worker(queue, fail, hooks=[hooks], lease=30)
            worker.drain()
            clock.advance(days=1)
            worker.drain()

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


class Told:
    """A hook's list, and what is in the queue."""

    def __init__(self, room=MOST):
        self.room, self.waiting, self.server, self.seen = room, [], {}, []
        self.refusals = []
        self.refused = self.refusals.append
        self.deaths = Deaths(None, b"q", 60.0, self)

    def tell(self, death):
        if not self.room:
            return False
        self.room -= 1
        self.waiting.append(death)
        return True

    def look(self, now):
        while commands := self.deaths.asks(now):
            self.deaths.heard([self.answer(command) for command in commands], now)

    def answer(self, command):
        name, *words = command
        if name == "DQ.CLOCK":
            return ResponseError("ERR unknown command 'DQ.CLOCK'")
        if name == "TIME":
            return [b"%d" % self.time, b"500000"]
        if name == "DQ.GET":
            at, reason = self.server.get(words[1], (None, b""))
            return at and [b"id", words[1], b"state", b"dead", b"failed", at, b"reason", reason]
        dead = sorted((at, id) for id, (at, _) in self.server.items() if at >= words[3])
        return [[id, b"", at, 1, 0, 0] for at, id in dead[: words[5]]]

    def call(self, count=10**9):
        """The hook takes so many of the list."""
        for death in self.waiting[:count]:
            steps, replies = self.deaths.record(death), None
            try:
                while True:
                    replies = [self.answer(command) for command in steps.send(replies)]
            except StopIteration as ended:
                self.seen += [ended.value[b"id"]] if ended.value else []
        self.room += len(self.waiting[:count])
        del self.waiting[:count]


@pytest.fixture
def told():
    made = Told()
    made.time = 1000
    made.look(5.0)
    assert made.deaths.next_at == 65.0
    return made


def test_deaths_are_found_once_however_many_there_are_and_when(told):
    at = 1_000_600
    told.server = {b"%05d" % n: (at + n // 2500, b"lease ended") for n in range(4 * MOST + 1)}
    told.server[b"old"] = (999_000, b"lease ended")
    told.server[b"said"] = (at, b"no such order")
    told.time = 1060
    told.look(65.0)
    while told.waiting:
        assert len(told.waiting) <= MOST
        told.call(PAGE)
        told.look(65.0)
    assert told.seen == [id for id in told.server if id not in (b"old", b"said")], "a NACK told of said"
    # The server may find some late: those of the last minute are looked at again.
    told.server[b"late"] = (1_000_550, b"after x: dead")
    told.time = 1161
    told.look(130.0)
    told.call()
    assert told.seen[4 * MOST + 1 :] == [b"late"]
    told.time = 1300
    told.look(200.0)
    told.look(300.0)
    assert not told.waiting and not told.deaths._found and not told.deaths._called


def test_deaths_that_find_no_room_are_looked_for(told):
    told.room = 1
    for id in b"a", b"b":
        told.server[id] = (1_001_000, b"no such order")
        told.deaths.answered(id, 7)
    assert [death.ids for death in told.waiting] == [(b"a@7", b"a")] and told.deaths.next_at > 1e9
    told.server[b"other"] = (1_001_000, b"no such order")
    told.room, told.time = MOST - 1, 1002
    told.look(6.0)
    told.call()
    assert told.seen == [b"a", b"b", b"other"], "at least once, and once by this worker"
    told.server[b"c"] = (1_002_700, b"no such order")
    told.time = 1200
    told.look(67.0)
    told.call()
    assert len(told.seen) == 3, "all later ones found room"


def test_deaths_that_a_look_passed_before_it_was_for_them_are_told(told):
    told.server = {b"%05d" % n: (1_001_000, b"lease ended") for n in range(MOST + PAGE)}
    told.time = 1060
    told.look(65.0)
    assert told.deaths.next_at > 1e9, "it waits for room"
    told.server[b"x"] = (1_001_500, b"no such order")
    told.deaths.answered(b"x", 7)
    for _ in range(4):
        told.call()
        told.look(66.0)
    assert sorted(told.seen) == sorted(told.server)


def test_what_is_remembered_is_bounded(told):
    told.time = 1100
    for n in range(3 * KNOWN):
        told.server[b"%05d" % n] = (1_001_000 + n, b"lease ended")
    told.look(65.0)
    while told.waiting:
        told.call()
        told.look(65.0)
        assert max(len(told.deaths._found), len(told.deaths._called)) <= KNOWN + MOST
    assert len(told.seen) == len(told.server) == len(set(told.seen))


@pytest.mark.parametrize("by", [61, 90, 3600])
def test_deaths_are_found_by_a_clock_that_was_set_back(told, by):
    """As by a failover. The old clock's deaths are not told again."""
    told.time = 5000
    told.look(65.0)
    told.server[b"before"] = (5_001_000, b"lease ended")
    told.time = 5060
    told.look(125.0)
    told.server[b"first"] = (5_061_000 - by * 1000, b"lease ended")
    told.time = 5120 - by
    told.look(185.0)
    told.server[b"second"] = (5_121_000 - by * 1000, b"lease ended")
    told.time = 5180 - by
    told.look(245.0)
    told.call()
    assert told.seen == [b"before", b"first", b"second"]


def test_deaths_are_found_by_a_clock_that_was_set_back_right_after_the_first_look(told):
    told.server[b"first"] = (971_000, b"lease ended")
    told.time = 1030
    told.look(65.0)
    told.call()
    assert told.seen == [b"first"]


def test_what_is_remembered_of_a_clock_that_was_set_back_hides_no_death(told):
    told.time = 5000
    told.server = {b"%05d" % n: (5_000_000 + n, b"lease ended") for n in range(KNOWN + MOST)}
    for told.time, now in (5000, 65.0), (1000, 125.0):
        told.look(now)
        while told.waiting:
            told.call()
            told.look(now)
    told.server[b"late"] = (1_001_000, b"lease ended")
    told.time = 1060
    told.look(185.0)
    told.call()
    assert b"late" in told.seen


def test_who_is_kicked_is_passed_over_and_called_for_when_he_dies_again(told):
    told.server[b"a"] = (1_001_000, b"lease ended")
    told.look(65.0)
    told.server = {}
    told.call()
    assert not told.seen
    for at in 1_002_000, 1_003_000:
        told.server[b"a"] = (at, b"lease ended")
        told.look(told.deaths.look_at)
        told.call()
    assert told.seen == [b"a", b"a"]


def test_what_may_not_be_asked_is_not_asked_again():
    told = Told()
    refusal = ResponseError("NOPERM this user has no permissions to run the 'time' command")
    told.deaths.heard([refusal, refusal], 5.0)
    assert told.refusals == [refusal] and not told.deaths.asks(1e9)
    told.room = 0
    told.deaths.answered(b"a", 7)
    told.room = MOST
    assert not told.deaths.asks(1e9)


class Hanging(dq.Hooks):
    def __init__(self):
        self.began, self.end = threading.Event(), threading.Event()

    def dead(self, queue, job):
        self.began.set()
        self.end.wait()


class AsyncHanging(Hanging):
    async def dead(self, queue, job):
        self.began.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("face", ["threads", "asyncio", "asyncio, a coroutine function"])
def test_a_hook_that_hangs_holds_up_nothing_else(dq_url, caplog, face):
    """Neither handlers nor the stop, of however many connections."""
    hooks = AsyncHanging() if "coroutine" in face else Hanging()
    urls = [f"{dq_url}?db={n}" for n in range(3)]

    async def on_asyncio():
        queues = [dq.asyncio.Queue(url, "q") for url in urls]
        async with dq.asyncio.Worker(queues, adecide, hooks=[hooks], drain=0.1):
            await asyncio.to_thread(use)
        for each in queues:
            await each.close()

    def on_threads():
        with dq.Worker([dq.Queue(url, "q") for url in urls], decide, hooks=[hooks], drain=0.1):
            use()

    def use():
        for url in urls:
            with dq.Queue(url, "q") as queue:
                queue.add_many([{"data": "dead", "id": f"d{n}"} for n in range(3)])
                until(lambda: queue.len("dead") == 3, "they are dead")
                assert hooks.began.wait(PATIENCE_S)
                assert queue.add_and_wait("done", timeout=PATIENCE_S) == "done"

    try:
        on_threads() if face == "threads" else asyncio.run(on_asyncio())
    finally:
        hooks.end.set()
    assert caplog.text.count("stopped without the hook dead") == 1 and "CancelledError" not in caplog.text


def decide(job):
    if job.data == "dead":
        raise dq.GiveUp("no such order")
    return job.data


async def adecide(job):
    return decide(job)
