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
from dq._many import MOST_JOBS, Added, Grouped
from dq._notes import Notes
from dq.testing import AsyncInlineQueue, InlineQueue


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
    queue = InlineQueue(order)
    queue.add(1, id="17")
    assert seen == ["began", "charged", "began"] and queue.result("17") is None
    with pytest.raises(dq.TimedOut):
        queue.wait("17")
    assert queue.signal("17", "signed", "Ada") is True
    assert queue.result("17") == queue.wait("17") == ["ch_1", "Ada"]
    assert seen.count("charged") == 1 and queue.signal("17", "signed", "Bob") is None


def test_a_signal_that_never_comes():
    queue = InlineQueue(order)
    queue.add(1, id="17")
    with pytest.raises(dq.TimedOut, match="no signal 'signed' within 259200 s"):
        queue.pass_time()
    with pytest.raises(dq.JobFailed, match="dead"):
        queue.result("17")


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
        queue = AsyncInlineQueue(handle)
        await queue.add(1, id="17")
        assert await queue.signal("17", "signed", 5) is True
        assert await queue.wait("17") == ["ch_1", 5]

    asyncio.run(main())


def test_children_are_spawned_and_those_that_die_are_told():
    def handle(job):
        if job.data == "parent":
            return [[each.id, each.outcome, each.value] for each in job.spawn([{"data": 2}, {"data": "bad"}])]
        return job.data * 2 if job.data != "bad" else 1 / 0

    queue = InlineQueue(handle)
    queue.add("parent", id="p")
    assert queue.result("p") == [["p/1/0", "done", 4], ["p/1/1", "dead", "ZeroDivisionError: division by zero"]]


def test_a_chain_runs_in_its_order():
    queue = InlineQueue(lambda job: [job.data, *(each.value for each in job.results)])
    first, second = queue.chain([{"data": 1}, {"data": 2}])
    assert queue.result(first) == [1] and queue.result(second) == [2, [1]]


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda job: (job.step("a", int), job.step("a", int)), "used twice in one attempt"),
        (lambda job: job.step("dq:a", int), "the library's"),
        (lambda job: job.step("", int), "the name of a step"),
        (lambda job: job.step("x" * 241, int), "at most 240 bytes"),
        (lambda job: job.wait_for("17"), "a list of ids"),
        (lambda job: job.spawn([{"dat": 1}]), "a job is a mapping"),
        (lambda job: job.wait_for(["a"], on_dead="cry"), "on_dead must be one of"),
        (lambda job: job.progress(1.5), "from 0 to 1"),
        (lambda job: job.progress(float("nan")), "from 0 to 1"),
        (lambda job: job.progress(0.5, 7), "the text of progress"),
    ],
)
def test_mistakes_are_told(wrong, said):
    with pytest.raises((TypeError, ValueError), match=said):
        InlineQueue(wrong).add(1)


def test_who_swallows_the_end_of_an_attempt_changes_nothing():
    def handle(job):
        try:
            job.wait("signed")
        except dq.Suspended:
            with pytest.raises(dq.Suspended):
                job.step("late", int)
            raise

    queue = InlineQueue(handle)
    queue.add(1, id="j")
    assert queue.signal("j", "signed") is True and queue.result("j") is None


# --- What the core decides


def test_progress_is_written_once_a_second_and_before_the_end():
    notes, job = Notes(), delivery()
    assert notes.say(job, b"0.1", 10.0) and [text for *_, text in notes.due(10.0)] == [b"0.1"]
    assert notes.say(job, b"0.2", 10.1) and not notes.due(10.5)
    notes.confirmed(job, b"0.1")
    assert [text for *_, text in notes.due(11.0)] == [b"0.2"]
    assert notes.end(job)[-1] == b"0.2", "its answer had not come"
    assert notes.end(job) is None


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


def test_jobs_of_equal_options_go_together():
    def added(n, *options, plain=True, key=b"q"):
        return Added(("DQ.ADD", key, b"%d" % n, b"x", *options), None, False, plain)

    made = [*(added(n) for n in range(MOST_JOBS + 1)), added(0, "TTR", 5), added(1, "TTR", 5), added(2, plain=False)]
    grouped = Grouped(made)
    commands = grouped.commands([each.call for each in made])
    assert [(command[0], command[2]) for command in commands] == [
        ("DQ.MADD", MOST_JOBS),
        ("DQ.ADD", b"1000"),
        ("DQ.MADD", 2),
        ("DQ.ADD", b"2"),
    ]
    replies = grouped.replies([[b"r"] * MOST_JOBS, b"s", [b"t", None], b"u"])
    assert replies == [b"r"] * MOST_JOBS + [b"s", b"t", None, b"u"]


def test_without_a_server_a_cost_changes_nothing():
    queue = InlineQueue(lambda job: job.set_cost(7))
    queue.add(1, id="a")
    assert queue.result("a") is None


# --- On a server


def test_what_a_delivery_costs_is_said_afterwards(dq_url):
    queue = dq.Queue(dq_url, "q")
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


def test_a_script_takes_effect_once_in_the_life_of_its_job(dq_url):
    queue = dq.Queue(dq_url, "q")
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


def test_a_script_does_nothing_for_who_lost_the_job(dq_url):
    queue = dq.Queue(dq_url, "q")

    def pay(job):
        queue.add(2, id=job.id, if_exists="replace", delay=60)
        job.once("pay", "redis.call('SET', KEYS[1], 1)", ["paid"])

    queue.add(1, id="j")
    assert dq.Worker(queue, pay).drain() == 1
    assert queue.client.get("paid") is None and queue.get("j").payload == b"2"


def test_a_script_that_fails_has_no_step(dq_url):
    queue = dq.Queue(dq_url, "q")
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
