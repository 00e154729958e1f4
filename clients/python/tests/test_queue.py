"""Queues and workers against a server whose clock the tests move."""

import asyncio
import threading
from datetime import datetime, timedelta, timezone

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

import dq
import dq.asyncio
from dq._many import Added, Grouped, sent_once


class Recorded(dq.Queue):
    """Remembers its calls instead of making them."""

    def __init__(self, **options):
        super().__init__("redis://localhost:1", "q", **options)
        self.calls = []

    def _run(self, calls, combine):
        self.calls += calls
        return None


AT = datetime(2030, 1, 1, tzinfo=timezone.utc)
AT_MS = 1893456000000


def call(method, *args, **options):
    queue = Recorded()
    getattr(queue, method)(*args, **options)
    return queue.calls[0]


def test_recurring_jobs_are_what_the_contract_says():
    assert call("every", 60, {"a": 1}, id="e", until=AT, times=3, grace=5, jitter=1, first=AT) == (
        "DQ.ADD", b"q", b"e", b'{"a":1}', "EVERY", 60_000, "AT", AT_MS, "UNTIL", AT_MS, "TIMES", 3, "GRACE", 5000,
        "JITTER", 1000, "REPLACE",
    )  # fmt: skip
    assert call("cron", "0 9 * * MON-FRI", b"x", id="c", tz="Europe/Berlin", attempts=2) == (
        "DQ.ADD", b"q", b"c", b"x", "CRON", "0 9 * * MON-FRI", "TZ", "Europe/Berlin", "ATTEMPTS", 2, "REPLACE",
    )  # fmt: skip
    assert call("next", "c", 3) == ("DQ.NEXT", b"q", b"c", "COUNT", 3)


def test_groups_are_what_the_contract_says():
    assert call("add", b"x", id="a", group="tenant")[4:] == ("GROUP", "tenant")
    assert call("groups", match="t*", count=5) == ("DQ.GROUPS", b"q", "0", "MATCH", "t*", "COUNT", 5)
    assert call("len", group="tenant") == ("DQ.LEN", b"q", "GROUP", "tenant")
    assert call("configure", groupmax=1, grouprate=(5, 1), groupfifo=True) == (
        "DQ.CFGSET", b"q", "GROUPMAX", 1, "GROUPRATE", 5, 1000, "GROUPFIFO", 1,
    )  # fmt: skip


def test_a_kind_that_can_be_no_label_is_none():
    for kind, label in (("close", ("LABEL", "close")), ("ä" * 128, ("LABEL", "ä" * 128))):
        assert call("add", 1, kind=kind)[4:] == label
    for kind in ("", "ä" * 129, 7):
        assert call("add", 1, kind=kind)[4:] == ()
    assert call("add", 1, kind="close", label="mine", group="LABEL")[4:] == ("GROUP", "LABEL", "LABEL", "mine")
    assert call("cron", "@daily", id="c", kind="close")[6:] == ("LABEL", "close", "REPLACE")


def test_forecast_and_limits_are_what_the_contract_says():
    assert call("forecast", AT, AT + timedelta(days=1), 24)[2:] == (
        "FROM", AT_MS, "TO", AT_MS + 86_400_000, "BUCKETS", 24,
    )  # fmt: skip
    assert call("configure", maxbytes=10, backoff=[]) == ("DQ.CFGSET", b"q", "BACKOFF", 0, "MAXBYTES", 10)
    assert call("add", b"x", if_exists="next")[4] == "NEXT"


def test_a_worker_takes_the_functions_of_its_face():
    async def coroutine(job): ...

    def function(job): ...

    with pytest.raises(TypeError, match="coroutine"):
        dq.Worker(Recorded(), coroutine)
    with pytest.raises(TypeError, match="coroutine"):
        dq.asyncio.Worker(dq.asyncio.Queue("redis://localhost:1", "q"), function)


def test_a_blocked_job_shows_what_it_waits_for(queue):
    queue.add(1, id="a", group="g", keep=60)
    queue.add(2, id="b", after=["a"], on_dead="run")
    queue.add(3, id="c", after_group="g")
    a, b, c = map(queue.get, "abc")
    assert (b.after, b.after_group, b.on_dead) == (["a"], None, "run")
    assert (c.after, c.after_group, c.on_dead) == ([], "g", None)
    assert (a.keep, b.keep) == (timedelta(minutes=1), None)
    assert [each.id for each in queue.peek("blocked", count=2)] == ["b", "c"]


def test_a_delay_and_a_drain(queue, clock):
    queue.add({"n": 1}, id="a", delay=timedelta(hours=1))
    seen = []
    worker = dq.Worker(queue, lambda job: seen.append((job.id, job.data, job.due)))
    due = queue.get("a").due
    assert worker.drain() == 0
    clock.advance(hours=1)
    assert worker.drain() == 1
    assert seen == [("a", {"n": 1}, due)]
    assert queue.len() == 0


def test_a_limit_of_time_holds_where_a_test_drains(dq_url, queue):
    queue.add(1, id="a")

    @dq.handler(timeout=0.02, backoff=[60])
    def slow(job):
        job.pause(60)
        raise AssertionError("it was not told")

    assert dq.Worker(queue, slow).drain() == 1
    assert queue.get("a").reason == "timeout after 0.02 s"

    async def play():
        async with dq.asyncio.Queue(dq_url, "r") as queue:
            await queue.add(1, id="a")

            @dq.handler(timeout=0.02, backoff=[60])
            async def slow(job):
                await asyncio.sleep(60)

            assert await dq.asyncio.Worker(queue, slow).drain() == 1
            assert (await queue.get("a")).reason == "timeout after 0.02 s"

    asyncio.run(play())


def test_a_drain_of_the_asyncio_face(dq_url, clock):
    async def play():
        queue = dq.asyncio.Queue(dq_url, "q")
        seen = []

        @dq.handler(attempts=1)
        async def handle(job):
            seen.append(job.data)
            if job.data == 2:
                raise ValueError("two")

        worker = dq.asyncio.Worker(queue, handle)
        await queue.add_many([{"data": n, "id": str(n)} for n in range(5)])
        assert await worker.drain() == 5
        assert seen == [0, 1, 2, 3, 4]
        assert (await queue.get("2")).reason == "ValueError: two"
        assert [id async for id in queue.ids()] == ["2"]
        await queue.close()

    asyncio.run(play())


def test_shards_are_one_queue(dq_url, clock):
    queue = dq.Queue(dq_url, "q", shards=5)
    queue.add_many([{"data": n, "id": f"j{n}"} for n in range(50)])
    assert queue.add(1, id="j7") is None
    assert queue.len() == 50
    assert queue.stats().ready == 50
    assert sorted(queue.ids()) == sorted(f"j{n}" for n in range(50))
    assert queue.delete("j1", "j2", "nobody") == 2
    assert len(queue.add(b"x")) == 32
    assert dq.Worker(queue, lambda job: None).drain() == 49


def test_children_of_a_sharded_queue_are_where_their_ids_say(dq_url, clock):
    queue = dq.Queue(dq_url, "q", shards=7)

    @dq.handler
    def work(job):
        if job.data == "child":
            return 1
        elsewhere = next(id for id in map(str, range(99)) if queue._key(id.encode()) != job._delivery.key)
        with pytest.raises(ValueError, match="must be in the shard of the job that spawns it"):
            job.spawn([{"data": "child", "id": elsewhere}], name="stray")
        return [each.id for each in job.spawn([{"data": "child", "keep": 60}] * 9)]

    worker = dq.Worker(queue, work)
    for n in range(5):
        queue.add("parent", id=f"parent:{n}", keep=60)
        assert worker.drain() == 11
        children = queue.result(f"parent:{n}")
        assert len(children) == 9
        assert [queue.get(id).state for id in children] == ["done"] * 9


def test_jobs_after_others_are_in_their_shard(dq_url):
    queue = dq.Queue(dq_url, "q", shards=7)
    for n in range(9):
        queue.add(1, id=f"a{n}")
        made = queue.add(2, after=[f"a{n}"])
        first, last = queue.chain([{"data": 3, "after": [made]}, {"data": 4}])
        *_, many = queue.add_many([{"data": 5, "id": f"b{n}"}, {"data": 6, "after": [f"b{n}"]}])
        assert [queue.get(id).state for id in (made, first, last, many)] == ["blocked"] * 4
    count = queue.len()
    elsewhere = next(id for id in map(str, range(99)) if queue._key(id.encode()) != queue._key(b"a0"))
    with pytest.raises(ValueError, match="must be in the shard of the jobs that it is after: leave its id out"):
        queue.add(1, id=elsewhere, after=["a0"])
    with pytest.raises(ValueError, match="must be in the shard of the jobs that it is after"):
        queue.chain([{"data": 1, "id": "a0"}, {"data": 2, "id": elsewhere}])
    with pytest.raises(ValueError, match="cannot be after jobs of different shards"):
        queue.add(1, after=["a0", elsewhere])
    with pytest.raises(ValueError, match="after_group does not work in a sharded queue"):
        queue.add(1, after_group="g")
    assert queue.len() == count, "nothing was added"


def test_a_worker_as_a_context(queue):
    done = threading.Event()
    with dq.Worker(queue, lambda job: done.set(), concurrency=3):
        queue.add(b"x")
        assert done.wait(30)
    assert queue.len() == 0


def test_a_wanted_cancel_is_no_warning(dq_url, caplog):
    begun = threading.Event()

    def work(job):
        begun.set()
        job.pause(60)

    caplog.set_level("INFO", "dq")
    with dq.Queue(dq_url, "q") as queue, dq.Worker(queue, work):
        queue.add(1, id="a")
        assert begun.wait(30) and queue.cancel("a")
    found = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert ("INFO", "job 'a' was cancelled") in found and all(level == "INFO" for level, _ in found), found


@pytest.mark.parametrize("lost", [redis.ConnectionError("lost"), redis.TimeoutError("late")])
def test_the_loss_of_one_shard_is_raised(lost):
    """A cluster's pipeline returns it as a value."""

    class Cluster:
        def pipeline(self, transaction):
            return self

        def execute_command(self, *words, **options):
            pass

        def execute(self, raise_on_error):
            return [b"OK", lost, b"OK"]

    class AsyncCluster(Cluster):
        async def execute(self, raise_on_error):
            return super().execute(raise_on_error)

    many = [{"data": n, "id": f"{n}", "priority": n} for n in range(3)]
    queue, other = dq.Queue(Cluster(), "q", shards=3), dq.asyncio.Queue(AsyncCluster(), "q", shards=3)
    for method, *given in ("pause",), ("resume",), ("add_many", many):
        with pytest.raises(type(lost), match=str(lost)):
            getattr(queue, method)(*given)
        with pytest.raises(type(lost), match=str(lost)):
            asyncio.run(getattr(other, method)(*given))


def test_a_join_is_in_one_shard_and_has_all_results(dq_url):
    class Hooked(dq.Hooks):
        async def adding(self, queue, headers):
            headers["by"] = "hook"

    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q", shards=5, hooks=[Hooked()]) as queue:
            return await queue.join([{"data": 3}], then={"data": 4, "id": "later"})

    with dq.Queue(dq_url, "q", shards=5) as queue:
        last = queue.join([{"data": n, "kind": "part"} for n in range(3)], then={"data": "sum", "on_dead": "run"})
        assert queue.get(last).on_dead == "run" and asyncio.run(on_asyncio()) == "later"
        assert queue.join([{"data": 5}], then={"data": 6, "id": "later"}) is None
        assert queue.join([{"data": 5}], then={"data": 6, "if_exists": "only-replace"}) is None
        dq.Worker(queue, lambda job: [job.data, *(each.value for each in job.results)]).drain()
        assert queue.result(last) == ["sum", [0], [1], [2]] and queue.result("later") == [4, [3]]


def test_what_is_no_join():
    queue = dq.Queue("redis://localhost:1", "q", shards=5)
    many = [{"data": 1}] * 1001
    for mistake, jobs, then in (
        ("needs jobs", [], {}),
        ("then takes neither", [{"data": 1}], {"after": ["a"]}),
        ("in one shard", [{"data": 1, "id": f"{n}"} for n in range(9)], {}),
        ("joined by their group: give", [*many, {"data": 1, "group": "other"}], {}),
        ("it needs after", many, {"on_dead": "run"}),
    ):
        with pytest.raises(ValueError, match=mistake):
            queue.join(jobs, then={"data": 2, **then})


def test_a_join_whose_other_jobs_ran_is_not_sent_again():
    grouped = Grouped([Added(("DQ.ADD", b"q", id, b"1"), None, False, True) for id in (b"a", b"last")])
    for found, again, settings in ([None, None], True, None), (
        [None, [b"attempts", 0, b"state", b"ready"]], True, [b"donelen", 0, b"donebytes", 0],
    ), ([None, [b"attempts", 1, b"state", b"ready"]], False, None):  # fmt: skip
        steps = sent_once(grouped, None, 60.0, lambda: 0.0)
        assert next(steps) is grouped and steps.throw(redis.ConnectionError("lost")) > 0
        assert [call[2] for call in steps.send(None)] == [b"last", b"a"]
        if again:
            assert steps.send(found) == [("DQ.CFGGET", b"q")] and steps.send([settings]) is grouped
        else:
            with pytest.raises(redis.ConnectionError, match=r"^lost: it is not known"):
                steps.send(found)


def test_nobody_knows_where_the_server_does_not_tell():
    adds = [Added(("DQ.ADD", b"q", id, b"1"), None, False, True) for id in (b"a", b"last")]
    steps = sent_once(Grouped(adds), None, 60.0, lambda: 0.0)
    next(steps), steps.throw(redis.ConnectionError("lost")), steps.send(None)
    with pytest.raises(redis.ConnectionError, match=r"^lost: it is not known"):
        steps.throw(dq.Refused("no"))


def test_a_chain_has_none_for_a_job_that_is_refused(queue):
    queue.add(0, id="a")
    jobs = [{"data": 1, "id": "a"}, {"data": 2, "id": "b"}, {"data": 3}, {"data": 4, "if_exists": "only-replace"}]
    *given, made, replaced = queue.chain(jobs)
    assert given == [None, "b"] and queue.get(made).state == "blocked" and replaced is None


def losing(queue, meanwhile):
    """Has the queue's client lose the answer to its first transaction, after what is called meanwhile."""
    left, made = [meanwhile], queue.client.pipeline

    def pipeline(transaction):
        found = made(transaction=transaction)
        send = found._execute_transaction

        def lose(answer):
            if left:
                left.pop()()
                raise redis.ConnectionError("lost")
            return answer

        def sending(*args):
            return lose(send(*args))

        async def sending_async(*args):
            return lose(await send(*args))

        found._execute_transaction = sending_async if asyncio.iscoroutinefunction(send) else sending
        return found

    queue.client.pipeline = pipeline
    return queue


def chained(queue, keep):
    return queue.chain([{"data": 1}, {"data": 2}, {"data": 3, "keep": keep}])


def joined(queue, keep):
    return queue.join([{"data": 1}, {"data": 2}], then={"data": 3, "keep": keep})


def grouped(queue, keep):
    jobs = [{"data": n, "group": "g"} for n in (1, 2)]
    return queue.add_many([*jobs, {"data": 3, "after_group": "g", "keep": keep}])


@pytest.mark.parametrize("add", [chained, joined, grouped])
@pytest.mark.parametrize("keep, donelen", [(60, None), (0, None), (None, None), (60, 1)])
def test_what_is_added_at_once_is_not_sent_again_by_the_client_itself(dq_url, add, keep, donelen):
    """It sends pipelines again by default; the jobs have run and are gone by then, pushed out by others if kept."""
    runs = []

    def work():
        with dq.Queue(dq_url, "q") as other:
            dq.Worker(other, lambda job: runs.append(job.data)).drain()
            if donelen:
                other.add("another", keep=60)
                dq.Worker(other, lambda job: None).drain()

    def lasts(queue):
        return add(losing(queue, work), keep)

    async def on_asyncio():
        async with dq.asyncio.Queue(
            redis.asyncio.Redis.from_url(dq_url, retry=AsyncRetry(NoBackoff(), 3)), "q"
        ) as queue:
            return await lasts(queue)

    with dq.Queue(redis.Redis.from_url(dq_url, retry=Retry(NoBackoff(), 3)), "q") as queue:
        queue.configure(donelen=donelen)
        for send in (lambda: lasts(queue)), (lambda: asyncio.run(on_asyncio())):
            is_kept = keep or (keep is None and add is joined)  # a join keeps its last job where it is not told to
            if is_kept and not donelen:
                assert queue.get(send() if add is joined else send()[-1]).state == "done"
            else:
                with pytest.raises(redis.ConnectionError, match=r"^lost: it is not known whether"):
                    send()
            assert runs == [1, 2, 3] and not queue.len("ready") and not queue.len("blocked"), "none was added again"
            runs.clear()


def test_a_join_of_many_has_a_group_whatever_the_id_of_the_last(queue):
    last = queue.join([{"data": 1}] * 1001, then={"data": 2, "id": "x" * 1024})
    assert queue.get(last).after_group.startswith("join:") and queue.len() == 1002


def test_all_figures_and_rules_are_typed(dq_url, clock):
    queue = dq.Queue(dq_url, "q", shards=3)
    queue.add_many([{"data": n, "id": f"j{n}", "group": "g"} for n in range(9)])
    stats = queue.stats()
    assert (stats.ready, stats.blocked, stats.done, stats.done_bytes) == (9, 0, 0, 0)
    assert stats.bytes > 0 and stats.groups > 0 and stats.recurring == 0 and stats.paused is None
    assert stats.totals["added"] == 9 and "bytes" not in stats.totals
    queue.pause()
    assert queue.stats().paused == datetime.max.replace(tzinfo=timezone.utc)
    queue.pause(60)
    assert queue.stats().paused == clock.now() + timedelta(seconds=60)
    queue.resume()
    assert queue.get("j1").group == "g" and queue.get("j1").rule is None and queue.get("j1").next is None
    tokens = {job.id: job.token for job in queue.pop(9)}
    assert queue.ack_many({**tokens, "nobody": "1", "j3": "2"}) == 8
    queue.every(60, id="e", times=5, jitter=2, first=clock.now())
    queue.cron("0 9 * * *", id="c", tz="Europe/Berlin", until=clock.now() + timedelta(days=9))
    every, cron = queue.get("e").rule, queue.get("c").rule
    assert (every.every, every.cron, every.times, every.jitter) == (timedelta(minutes=1), None, 5, timedelta(seconds=2))
    assert (cron.every, cron.cron, cron.tz, cron.runs) == (None, "0 9 * * *", "Europe/Berlin", 0)
    assert cron.until and cron.occurrence and cron.occurrence > clock.now()


def test_fields_that_this_library_or_the_server_does_not_know_are_no_trouble():
    from dq.records import add_up

    known = dict.fromkeys((b"delayed", b"ready", b"lateness-count", b"lateness-sum", b"lateness-max", b"paused"), 0)
    reply = {**known, b"next-due": None, b"oldest-ready-ms": None, b"lateness-buckets": [], b"new": 5, b"odd": [1]}
    stats = add_up([reply, reply])
    assert stats.totals == {"new": 10} and stats.blocked == 0
