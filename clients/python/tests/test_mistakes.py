"""What callers get wrong: each is refused before anything is sent, in a sentence that says what to write."""

import asyncio
import inspect
import os
import subprocess
import time
from datetime import datetime, timedelta

import pytest
import redis

import dq
import dq.asyncio

NOWHERE = "redis://localhost:1"
QUEUE = dq.Queue(NOWHERE, "orders")
LADDER = r"^backoff must be a list of waits, such as \[60\], not 60$"
LEASE = "^lease must be more than 0 s: "


def work(job):
    pass


async def work_async(job):
    pass


MISTAKES = {
    "a delay in words": (r"^delay must be a number of seconds .* as timedelta\(minutes=30\), not '30m'$", TypeError,
                         lambda: QUEUE.add(1, delay="30m")),
    "a negative delay": ("^delay must be 0 or more seconds, not -5$", ValueError, lambda: QUEUE.add(1, delay=-5)),
    "a negative timedelta": ("^delay must be 0 or more seconds, not datetime.timedelta", ValueError,
                             lambda: QUEUE.add(1, delay=-timedelta(seconds=5))),
    "a delay without end": ("^delay must be 0 or more seconds, not inf$", ValueError,
                            lambda: QUEUE.add(1, delay=float("inf"))),
    "true for a delay": ("^delay must be a number of seconds", TypeError, lambda: QUEUE.add(1, delay=True)),
    "a number for an instant": ("^at must be a datetime, such as .*, not 5$", TypeError, lambda: QUEUE.add(1, at=5)),
    "an instant without a zone": ("^at needs a time zone", ValueError, lambda: QUEUE.add(1, at=datetime(2030, 1, 1))),
    "a ladder of one number": (LADDER, TypeError, lambda: QUEUE.add(1, backoff=60)),
    "a ladder in words": ("^backoff must be a list of waits", TypeError, lambda: QUEUE.add(1, backoff="60")),
    "a step in words": ("^a step of backoff must be a number", TypeError, lambda: QUEUE.add(1, backoff=["60"])),
    "a condition": ("^if_exists must be one of replace, .*, not 'skip'$", ValueError,
                    lambda: QUEUE.add(1, if_exists="skip")),
    "a number for an id": ("^an id must be text or bytes, such as '17', not 17$",
                           TypeError, lambda: QUEUE.add(1, id=17)),
    "a list of ids": ("^an id must be text or bytes", TypeError, lambda: QUEUE.delete(["a", "b"])),
    "nothing to reschedule": ("^reschedule needs a new delay, at or priority", TypeError,
                              lambda: QUEUE.reschedule("a")),
    "many jobs of data alone": (r"^a job is a mapping of what add takes, as {\"data\": .*, not 1$", TypeError,
                                lambda: QUEUE.add_many([1])),
    "one of many without data": ("^a job is a mapping", TypeError, lambda: QUEUE.add_many([{"id": "a"}])),
    "an option of one of many": ("^a job has no option 'dealy': did you mean 'delay'", TypeError,
                                 lambda: QUEUE.add_many([{"data": 1, "dealy": 5}])),
    "a mode": ("^mode must be one of fail, silent, fatal, not 'loud'$", ValueError,
               lambda: QUEUE.nack("a", "1", mode="loud")),
    "a number for a queue's name": ("^a queue's name is text, not 5$", TypeError, lambda: dq.Queue(NOWHERE, 5)),
    "a name for a queue": (r"^a worker of dq needs a Queue of dq, not 'jobs': Worker\(dq.Queue\(.*\"jobs\"", TypeError,
                           lambda: dq.Worker("jobs", work)),
    "a queue of asyncio": ("^a worker of dq needs a Queue of dq, not <Queue 'q'>", TypeError,
                           lambda: dq.Worker(dq.asyncio.Queue(NOWHERE, "q"), work)),
    "a queue of the other kind": (r"^a worker of dq.asyncio needs a Queue of dq.asyncio.*Worker\(dq.asyncio.Queue\(",
                                  TypeError, lambda: dq.asyncio.Worker(QUEUE, work_async)),
    "a lease of nothing": (LEASE, ValueError, lambda: dq.Worker(QUEUE, work, lease=0)),
    "a handler's lease of nothing": (LEASE, ValueError, lambda: dq.handler(lease=0)(work)),
    "a handler's ladder of one number": (LADDER, TypeError, lambda: dq.handler(backoff=60)(work)),
    "a handler's attempts": ("^attempts must be a whole number, 0 or more, not -1$", ValueError,
                             lambda: dq.handler(attempts=-1)(work)),
    "a name for a handler": ("^a handler must be a function, not 'close'$",
                             TypeError, lambda: dq.Worker(QUEUE, "close")),
    "text for a number": ("^concurrency must be a whole number, 1 or more, not '5'$", TypeError,
                          lambda: dq.Worker(QUEUE, work, concurrency="5")),
    "no room at all": ("^concurrency must be a whole number, 1 or more, not 0$", ValueError,
                       lambda: dq.Worker(QUEUE, work, concurrency=0)),
    "a drain in words": ("^drain must be a number of seconds", TypeError, lambda: dq.Worker(QUEUE, work, drain="5s")),
    "an option of add": ("^Queue.add has no option 'dealy': did you mean 'delay'[?] Its options are id, delay, at, ",
                         TypeError, lambda: QUEUE.add(1, dealy=5)),
    "an option of every": ("^Queue.every has no option 'untl': did you mean 'until'[?]", TypeError,
                           lambda: QUEUE.every(60, id="e", untl=5)),
    "an option of pop": ("^Queue.pop has no option 'cuont'", TypeError, lambda: QUEUE.pop(cuont=5)),
    "an option of a queue": ("^Queue has no option 'shard': did you mean 'shards'[?]", TypeError,
                             lambda: dq.Queue(NOWHERE, "q", shard=5)),
    "an option of a queue of asyncio": ("^Queue has no option 'shard': did you mean 'shards'[?]", TypeError,
                                        lambda: dq.asyncio.Queue(NOWHERE, "q", shard=5)),
    "an option of asyncio's add": ("^Queue.add has no option 'dealy': did you mean 'delay'[?]", TypeError,
                                   lambda: dq.asyncio.Queue(NOWHERE, "q").add(1, dealy=5)),
    "an option of a worker": ("^Worker has no option 'concurrencyy': did you mean 'concurrency'[?]", TypeError,
                              lambda: dq.Worker(QUEUE, work, concurrencyy=10)),
    "an option of a worker of asyncio": ("^Worker has no option 'concurrencyy'", TypeError,
                                         lambda: dq.asyncio.Worker(dq.asyncio.Queue(NOWHERE, "q"), concurrencyy=10)),
    "an option of a consumer": ("^Consumer has no option 'leese': did you mean 'lease'[?]", TypeError,
                                lambda: dq.Consumer(QUEUE, leese=10)),
    "an option of a handler": ("^Handler has no option 'attemptz': did you mean 'attempts'[?]", TypeError,
                               lambda: dq.Handler(work, attemptz=5)),
    "an option of the decorator, before it is applied": (
        "^handler has no option 'attemptz': did you mean 'attempts'[?]", TypeError, lambda: dq.handler(attemptz=5)),
    "an option of a worker's decorator, before it is applied": (
        "^Worker.job has no option 'bakoff': did you mean 'backoff'[?]", TypeError,
        lambda: dq.Worker(QUEUE).job("k", bakoff=[5])),
    "a rule without an id": ("^Queue.cron.. missing 1 required keyword-only argument: 'id'$", TypeError,
                             lambda: QUEUE.cron("* * * * *")),
    "a value of the decorator, before it is applied": (LADDER, TypeError, lambda: dq.handler(backoff=60)),
    "a decorator without its kind": (r"^the kind of jobs comes first, as @worker.job\(\"close-order\"\), not <function",
                                     TypeError, lambda: dq.Worker(QUEUE).job(work)),
    "a retry in words": ("^delay must be a number of seconds", TypeError, lambda: dq.Retry("30m")),
    "a snooze in words": ("^delay must be a number of seconds", TypeError, lambda: dq.Snooze("30m")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_refused(name):
    sentence, kind, mistake = MISTAKES[name]
    with pytest.raises(kind, match=sentence):
        mistake()


def test_a_handler_that_comes_after_the_start_is_refused(dq_url):
    queue = dq.Queue(dq_url, "q")
    sentence = "^the worker runs already: its handler of 'late' must be known before"
    with dq.Worker(queue, work, concurrency=1) as worker, pytest.raises(RuntimeError, match=sentence):
        worker.job("late")


def test_a_wait_that_is_over_when_a_handler_asks_for_it_means_soon(dq_url):
    with dq.Queue(dq_url, "q") as queue:
        queue.add(1, id="a")

        def over(job):
            raise dq.Snooze(-5)

        assert dq.Worker(queue, over).drain() == 1
        assert queue.get("a").state == "delayed"


@pytest.fixture
def bare_server(tmp_path):
    """A server that does not load the module."""
    socket = tmp_path / "socket"
    words = ["--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path), "--save", ""]
    with subprocess.Popen([os.environ.get("DQ_SERVER", "redis-server"), *words], stdout=subprocess.DEVNULL) as server:
        end = time.monotonic() + 60
        while not answers(socket):
            assert time.monotonic() < end and server.poll() is None, "the server starts"
            time.sleep(0.01)
        yield f"unix://{socket}"
        server.kill()


def answers(socket):
    try:
        return redis.Redis(unix_socket_path=str(socket)).ping()
    except redis.ConnectionError:
        return False


MISSING = "^the server does not have the dq module: load it, with 'loadmodule "


def test_a_producer_is_told_that_the_server_has_no_module(bare_server):
    with dq.Queue(bare_server, "q") as queue:
        for call in (
            lambda: queue.add(1),
            lambda: queue.add_many([{"data": 1}, {"data": 2}]),
            lambda: queue.bpop(0.01),
        ):
            with pytest.raises(dq.ConfigurationError, match=MISSING):
                call()


def test_one_with_asyncio_too(bare_server):
    async def add():
        async with dq.asyncio.Queue(bare_server, "q") as queue:
            for call in (queue.add(1), queue.add_many([{"data": 1}, {"data": 2}])):
                with pytest.raises(dq.ConfigurationError, match=MISSING):
                    await call

    asyncio.run(add())


@pytest.mark.parametrize("face", [dq, dq.asyncio])
def test_a_worker_says_it_in_its_log_and_not_that_it_tries_again(bare_server, caplog, face):
    queue = face.Queue(bare_server, "q")

    async def run():
        await face.Worker(queue, work_async).run()

    with pytest.raises(dq.ConfigurationError, match=MISSING):
        face.Worker(queue, work).run() if face is dq else asyncio.run(run())
    said = [each.getMessage() for each in caplog.records if each.levelname != "INFO"]
    assert len(said) == 1 and said[0].startswith("cannot go on: " + MISSING[1:]), said


def test_methods_are_named_as_callers_know_them():
    for face in dq, dq.asyncio:
        for made in face.Queue, face.Worker, face.Consumer, dq.Handler, face.Job:
            for name, method in inspect.getmembers(made, inspect.isfunction):
                if not name.startswith("_"):
                    assert method.__qualname__ == f"{made.__name__}.{name}"


def test_full_in_a_pipeline(dq_url):
    with dq.Queue(dq_url, "q") as queue:
        queue.cfgset(maxlen=1)
        with pytest.raises(dq.QueueFull, match="MAXLEN "):
            queue.add_many([{"data": 1}, {"data": 2}])


def test_other_errors_are_the_clients(dq_url):
    with dq.Queue(dq_url, "q") as queue:
        queue.client.set("q", "no queue")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            queue.add(1)
