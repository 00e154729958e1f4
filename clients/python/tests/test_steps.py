"""Steps, signals, flows: without a server, in both faces, and what the core decides."""

import asyncio
from datetime import timedelta

import pytest
from redis.exceptions import ResponseError

import dq
import dq.asyncio
from dq import _ends
from dq._delivery import Delivery
from dq._listening import COVER_AFTER_S, Listening
from dq.testing import async_job, async_run, job, run


def delivery(id=b"j", since=0.0, key=b"q"):
    made = Delivery(key, (id, b"{}", b"7", 1, 0, 0, [], [], (60_000, 0, None)))
    made.since, made.lease_s = since, 30.0
    return made


# --- Inline


def order(job):
    seen.append("began")
    charge = job.step("charge", lambda: seen.append("charged") or "ch_1")
    job.sleep("nap", timedelta(days=30))
    signed = job.wait("signed", timeout=timedelta(days=3))
    return [charge, signed]


seen = []


def test_a_handler_goes_on_where_it_was():
    seen.clear()
    ended = run(order, attempts=1)
    assert (ended.state, ended.attempts, seen) == ("dead", 1, ["began", "charged", "began", "began"])
    assert ended.reason == "TimedOut: job '1': no signal 'signed' within 259200 s"
    assert ended.waits[:2] == [timedelta(days=30), timedelta(days=3)]
    seen.clear()
    ended = run(dq.Handler(order, kind="order"), signals={"signed": "Ada"})
    assert (ended.state, ended.result, seen.count("charged")) == ("done", ["ch_1", "Ada"], 1)
    assert [job.kind for job in ended.jobs] == ["order"] * 3
    assert run(lambda job: job.wait("signed")).state == "blocked"


def test_a_job_that_waits_is_ours_until_its_handler_has_ended():
    settled = []

    class Link:
        place = None

        def holds(self, delivery):
            return True

        def settle(self, delivery, decide, *rest):
            settled.append(decide(delivery, *rest).command)

    one = delivery()
    one.owner = Link()
    one.job = dq.Job(one, dq.codec.JsonCodec())
    with pytest.raises(dq.Suspended):
        one.job.sleep("nap", 0)
    assert settled == [], "another thread might take it while this one still runs"
    worker = dq.Worker(dq.Queue("redis://localhost:1", "q"), order)
    worker._settled(one, None, None)
    assert [command[0] for command in settled] == [b"EVAL"]


def test_the_same_with_asyncio():
    async def handle(job):
        async def charge():
            return "ch_1"

        return [await job.step("charge", charge), await job.wait("signed")]

    async def main():
        assert (await async_run(handle, signals={"signed": 5})).result == ["ch_1", 5]
        assert await async_job({"n": 1}).step("charge", dict) == {}
        with pytest.raises(dq.DqError, match="needs a server"):
            await async_run(lambda job: job.spawn([{"data": 1}]))

    asyncio.run(main())


def test_a_job_for_a_unit_test():
    one = job({"n": 1}, id="17", kind="order", attempt=3, attempts=3, results=[("a", "done", 5), ("b", "dead", "no")])
    assert (one.id, one.kind, one.data, one.attempt, one.is_last_attempt) == ("17", "order", {"n": 1}, 3, True)
    assert [(each.id, each.outcome, each.value) for each in one.results] == [("a", "done", 5), ("b", "dead", "no")]
    assert one.step("charge", lambda: 5) == 5 and one.steps == {"charge": b"5"} and one.check() is None
    assert job(signals={"signed": "Ada"}).wait("signed") == "Ada"
    with pytest.raises(dq.Suspended):
        one.sleep("nap", 5)
    for asks in lambda: job().once("a", "return 1"), lambda: job().spawn([{"data": 1}]):
        with pytest.raises(dq.DqError, match="needs a server: see dq"):
            asks()
    with pytest.raises(TypeError, match="no option 'ids': did you mean 'id'"):
        job(ids=3)


@pytest.mark.parametrize(
    ("handler", "options", "state", "reason", "attempts", "waits"),
    [
        (dq.Handler(lambda job: 1 / 0, attempts=4, backoff=[60, 300]), {}, "dead", ": division", 4, [60, 300, 300]),
        (
            dq.Handler(lambda job: 1 / 0, backoff=[60]),
            {"attempts": 4, "backoff": [5, 7]},
            "dead",
            ": div",
            4,
            [5, 7, 7],
        ),
        (lambda job: 1 / 0, {"attempts": 3}, "dead", ": division", 3, [None, None]),
        (dq.Handler(lambda job: 1 / 0, give_up_on=ZeroDivisionError), {}, "dead", ": division", 1, []),
        (lambda job: (_ for _ in ()).throw(dq.Retry(9, "busy")), {"attempts": 2}, "dead", "busy", 2, [9]),
        (lambda job: {1}, {}, "dead", "result cannot be encoded", 1, []),
        (lambda job: dq.GiveUp("no"), {}, "dead", "no", 1, []),
    ],
)
def test_a_run_walks_the_ladder(handler, options, state, reason, attempts, waits):
    ended = run(handler, **options)
    assert (ended.state, ended.attempts) == (state, attempts) and reason in ended.reason
    assert ended.waits == [each and timedelta(seconds=each) for each in waits]


def test_a_run_ends_though_its_job_does_not():
    ended = run(lambda job: 1 / 0)
    assert (ended.state, ended.attempts, ended.waits[-1]) == ("delayed", 100, None)
    ended = run(lambda job: dq.Snooze(60))
    assert (ended.state, ended.attempts, len(ended.waits)) == ("delayed", 0, 100)


def test_a_run_takes_a_worker():
    worker = dq.Worker(dq.Queue("redis://localhost:1", "q"))
    worker.job("double")(lambda job: job.data * 2)
    assert run(worker, 4, kind="double").result == 8
    for other in worker, dq.Handler(print, kind="double"):
        with pytest.raises(dq.DqError, match="of kind"):
            run(other, 4, kind="other")


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda job: (job.step("a", int), job.step("a", int)), "used twice in one attempt"),
        (lambda job: job.step("dq:a", int), "the library's"),
        (lambda job: job.step("", int), "the name of a step"),
        (lambda job: job.step("x" * 241, int), "at most 240 bytes"),
        (lambda job: job.wait_for("17"), "a list of ids"),
        (lambda job: job.wait_for(["a"], on_dead="cry"), "on_dead must be one of"),
        (lambda job: job.progress(1.5), "from 0 to 1"),
        (lambda job: job.progress(float("nan")), "from 0 to 1"),
        (lambda job: job.progress(0.5, 7), "the text of progress"),
    ],
)
def test_mistakes_are_told(wrong, said):
    with pytest.raises((TypeError, ValueError), match=said):
        wrong(job(1))


def test_who_swallows_the_end_of_an_attempt_changes_nothing():
    def handle(job):
        try:
            job.wait("signed")
        except dq.Suspended:
            with pytest.raises(dq.Suspended):
                job.step("late", int)
            raise

    assert run(handle, signals={"signed": 1}).state == "done"


# --- What the core decides


def test_an_ear_waits_for_jobs_that_last():
    listening, old, young = Listening(b"q"), delivery(since=1.0), delivery(b"k", since=1.01)
    assert listening.begin([old, young], 1.0 + COVER_AFTER_S) == (b"DQ.BTOUCH", b"q", "10.000", b"IDS", 1, b"j", b"7")
    assert listening.lacks_at([old, young, delivery(key=b"other")]) == pytest.approx(1.03)
    assert listening.heard([None], 1.0) == [old] and not listening.covered
    with pytest.raises(ResponseError):
        listening.heard(ResponseError("NOPERM no"), 1.0)
    assert listening.is_off and listening.begin([old], 9.0) is None


def test_a_sleep_is_one_command_that_does_all_or_fails():
    step, nack = (b"DQ.STEP", b"q"), (b"DQ.NACK", b"q", b"j")
    end = _ends.suspended(delivery(), "job.sleep", [step], nack)
    end.prepend([(b"DQ.TOUCH",)])
    name, _, *rest = end.command
    assert (end.ahead, name, rest) == (((b"DQ.TOUCH",),), b"EVAL", [1, b"q", 2, *step, 3, *nack])
    assert _ends.suspended(delivery(), "job.wait", [], nack).command == nack
    assert not end.refused(b"no") and end.command[0] == b"DQ.NACK" and b"no" in end.command and end.what is None


def test_without_a_server_a_cost_changes_nothing():
    assert run(lambda job: job.set_cost(7)).state == "done"


# --- On a server


def test_what_a_delivery_costs_is_said_afterwards(dq_url, queue):
    queue.configure(rate=0)
    assert queue.settings()["rate"] == [0, 0]
    queue.configure(rate=(10, 60))

    def work(job):
        with pytest.raises(TypeError, match="cost"):
            job.set_cost("\udc80")
        job.set_cost(10)

    queue.add_many([{"data": n} for n in range(3)])
    worker = dq.Worker(queue, work, concurrency=1)
    assert (worker.drain(), worker.drain()) == (1, 0)

    async def rest():
        other = dq.asyncio.Queue(dq_url, "q")

        async def awork(job):
            await job.set_cost(10)

        return await dq.asyncio.Worker(other, awork, concurrency=1).drain()

    dq.testing.server.Clock(queue.client).advance(seconds=60)
    assert asyncio.run(rest()) == 1
    dq.testing.server.Clock(queue.client).advance(seconds=60)
    (job,) = queue.pop()
    assert queue.touch(job.id, job.token, cost=10) is not None and queue.touch(job.id, "17", cost=1) is None


def test_a_script_takes_effect_once_in_the_life_of_its_job(queue):
    queue.client.set("ada", 100)
    ran = []

    def pay(job):
        ran.append(
            job.once(
                "pay",
                "redis.call('DECRBY', KEYS[1], ARGV[1]) redis.call('INCRBY', KEYS[2], ARGV[1])",
                ["ada", "bob"],
                [30],
            )
        )
        if len(ran) == 1:
            raise dq.Retry(0)

    queue.add(1)
    worker = dq.Worker(queue, pay)
    assert worker.drain() == 1
    dq.testing.server.Clock(queue.client).advance(seconds=1)
    assert worker.drain() == 1
    assert ran == [True, False] and queue.client.mget("ada", "bob") == [b"70", b"30"]


def test_a_script_does_nothing_for_who_lost_the_job(queue):

    def pay(job):
        queue.add(2, id=job.id, if_exists="replace", delay=60)
        job.once("pay", "redis.call('SET', KEYS[1], 1)", ["paid"])

    queue.add(1, id="j")
    assert dq.Worker(queue, pay).drain() == 1
    assert queue.client.get("paid") is None and queue.get("j").payload == b"2"


def test_a_script_that_fails_has_no_step(queue):
    queue.client.set("text", "a")
    script = "if ARGV[1] == 'mine' then error({err = 'MYERR no'}) end redis.call('INCR', KEYS[1])"
    ran = []

    def count(job):
        if job.attempt == 1:
            with pytest.raises(dq.Refused, match=r"job .* not an integer"):
                job.once("theirs", script, ["text"], [""])
            with pytest.raises(dq.Refused, match="MYERR no"):
                job.once("mine", script, ["text"], ["mine"])
            queue.client.set("text", 1)
            raise dq.Retry(0)
        ran.append(job.once("theirs", script, ["text"], [""]))
        ran.append(job.once("mine", script, ["text"], [""]))
        if job.attempt == 2:
            raise dq.Retry(0)

    queue.add(1)
    worker = dq.Worker(queue, count)
    for _ in range(3):
        assert worker.drain() == 1
        dq.testing.server.Clock(queue.client).advance(seconds=1)
    assert ran == [True, True, False, False] and queue.client.get("text") == b"3"
