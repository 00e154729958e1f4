"""What callers get wrong: each is refused before anything is sent, in a sentence that says what to write."""

import asyncio
import inspect
import os
import pickle
import subprocess
import time
from datetime import datetime, timedelta, timezone

import pytest
import redis

import dq
import dq.asyncio
from dq._trouble import refused

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
    "both a delay and an instant": ("^delay and at cannot be combined$", ValueError,
                                    lambda: QUEUE.add(1, delay=1, at=datetime(2030, 1, 1, tzinfo=timezone.utc))),
    "what JSON cannot hold": ("what JSON can hold: JSON cannot hold an object of set$", TypeError,
                              lambda: QUEUE.add({1, 2}, kind="k")),
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
    "less than no shards": ("^shards is 0", ValueError, lambda: dq.Queue(NOWHERE, "q", shards=-1)),
    "more weights than queues": ("^weights: one for each queue$", ValueError,
                                 lambda: dq.Worker(QUEUE, work, weights=[1, 2])),
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
    "a delay of 200 years": ("^delay: 6311390400000 ms is not between 0 and 4398046511103$", ValueError,
                             lambda: QUEUE.add(1, delay=timedelta(milliseconds=6311390400000))),
    "no end": ("^ttl: [0-9]+ ms is not between 0 and 4398046511103$", ValueError,
               lambda: QUEUE.add_many([{"data": 1, "ttl": timedelta.max}])),
    "a drain without end": ("^drain: .* ms is not between 0 and 4398046511103$", ValueError,
                            lambda: dq.Worker(QUEUE, work, drain=timedelta.max)),
    "a wait without end": ("^timeout: .* ms is not between", ValueError, lambda: QUEUE.wait("a", timedelta.max)),
    "the year 9999": ("^at: 253402300799000 ms is not between 0 and 4398046511103$", ValueError,
                      lambda: QUEUE.add(1, at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc))),
    "half a priority": ("^priority: 1.5 is not a whole number between -2147483648 and 2147483647$", TypeError,
                        lambda: QUEUE.add(1, priority=1.5)),
    "too high a priority": ("^priority: 2147483648 is not between -2147483648 and 2147483647$", ValueError,
                            lambda: QUEUE.reschedule("a", priority=1 << 31)),
    "no time at all": ("^ttr: 0 ms is not between 1 and 4398046511103$", ValueError, lambda: QUEUE.add(1, ttr=0)),
    "no attempts to speak of": ("^attempts: -1 is not between 0 and 4294967295$", ValueError,
                                lambda: QUEUE.configure(attempts=-1)),
    "a rate of nothing": ("^rate: 0 is not between 1 and 4294967295$", ValueError,
                          lambda: QUEUE.configure(rate=(0, 60))),
    "half a rate": (r"^rate must be a number of jobs and a window, such as \(100, 60\), or 0, not 5$", TypeError,
                    lambda: QUEUE.configure(rate=5)),
    "a long group": ("^group: 257 bytes is not between 1 and 256$", ValueError, lambda: QUEUE.add(1, group="g" * 257)),
    "a long id": ("^id: 1025 bytes is not between 1 and 1024$", ValueError, lambda: QUEUE.add(1, id="i" * 1025)),
    **{f"a star as the id of {name}": (r'^id: "\*" is not an id; leave it out for a new one$', ValueError, mistake)
       for name, mistake in {
           "a job": lambda: QUEUE.add(1, id="*"), "one of many": lambda: QUEUE.add_many([{"data": 1, "id": b"*"}]),
           "a rule": lambda: QUEUE.every(60, id="*"), "a cron rule": lambda: QUEUE.cron("* * * * *", id="*"),
           "a link": lambda: QUEUE.chain([{"data": 1, "id": "*"}])}.items()},
    **{f"a {option} of a {rule}": (f"^Queue.{rule} has no option '{option}'", TypeError,
                                   lambda rule=rule, option=option: getattr(QUEUE, rule)("x", id="a", **{option: 5}))
       for rule in ("cron", "every") for option in ("delay", "at")},
    "a URL for a queue": ("^a worker of dq needs a Queue of dq, not a URL: [^:]*://localhost", TypeError,
                          lambda: dq.Worker("redis://me:secret@host", work)),
    "a URL that cannot be read": ("^the server's URL cannot be read: redis://user:password@host", ValueError,
                                  lambda: dq.Queue("redis://me:se/cret@host", "q")),
    "a retry in words": ("^delay must be a number of seconds", TypeError, lambda: dq.Retry("30m")),
    "a snooze in words": ("^delay must be a number of seconds", TypeError, lambda: dq.Snooze("30m")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_refused(name):
    sentence, kind, mistake = MISTAKES[name]
    with pytest.raises(kind, match=sentence) as raised:
        mistake()
    assert "se/cret" not in repr(raised.value) and "secret" not in repr(raised.value)


def test_a_handler_that_comes_after_the_start_is_refused(queue):
    sentence = "^the worker runs already: its handler of 'late' must be known before"
    with dq.Worker(queue, work, concurrency=1) as worker, pytest.raises(RuntimeError, match=sentence):
        worker.job("late")


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


def test_full_in_a_pipeline(queue):
    queue.configure(maxlen=1)
    with pytest.raises(dq.QueueFull, match="MAXLEN "):
        queue.add_many([{"data": 1}, {"data": 2}])
    with pytest.raises(dq.QueueFull, match=r"full; 1 of 2 jobs were added$"):
        queue.join([{"data": 1}], then={"data": 2})


REFUSALS = {
    "an argument": (lambda queue: queue.cron("0 9 * * *", id="c", tz="Europe/Berln"), "c", "tz", "Europe/Berln",
                    "tz='Europe/Berln': ERR TZ is not the name of a known time zone"),
    "one of many": (lambda queue: queue.add_many([{"data": 1}, {"data": 1, "id": "a", "after": ["a"]}]),
                    "a", "after", 1, "after=1: ERR AFTER would wait for itself"),
    "a full queue": (lambda queue: (queue.configure(maxlen=1), queue.add(1), queue.add(1, id="b")),
                     "b", None, None, "DQ.ADD: MAXLEN queue is full"),
    "no queue": (lambda queue: (queue.client.set("q", "x"), queue.len()),
                 None, None, None, "DQ.LEN: WRONGTYPE Operation against a key holding the wrong kind of value"),
    "many deliveries": (lambda queue: (queue.client.set("q", "x"), queue.nack_many({"a": "1"})), None, None, None,
                        "DQ.NACK: WRONGTYPE Operation against a key holding the wrong kind of value"),
    "no memory": (lambda queue: queue.client.config_set("maxmemory", 1) and queue.add_many([{"data": 1, "id": "a"}]),
                  "a", None, None, "DQ.ADD: OOM command not allowed when used memory > 'maxmemory'."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_what_is_refused(dq_url, queue, case):
    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            await queue.add(1, id="b")

    refuse, id, argument, value, text = REFUSALS[case]
    try:
        with pytest.raises(dq.Refused) as raised:
            refuse(queue)
        error = raised.value
        assert (
            str(error).partition("; ")[0] == (f"job {id!r} of " if id else "") + f"queue 'q': the server refused {text}"
        )
        assert f"{error.code} {error.said}" == text.partition(": ")[2]
        assert (error.id, error.argument, error.value) == (id, argument, value)
        assert (error.__suppress_context__ or error.__context__ is None) and len(raised.traceback) < 8, (
            "frames of the client"
        )
        assert repr(pickle.loads(pickle.dumps(error))) == repr(error)
        if error.code != "ERR":
            with pytest.raises(dq.Refused, match=f"^job 'b' of queue 'q': the server refused DQ.ADD: {error.code}"):
                asyncio.run(on_asyncio())
    finally:
        queue.client.config_set("maxmemory", 0)


def test_a_refusal_of_many_jobs_names_none():
    for words, id in ((b"IDS", 1, b"a", b"1"), None), (("IDS", 1, b"a", "1"), None), ((b"IDS", "FAIL"), "IDS"):
        assert refused(redis.ResponseError("OOM"), (b"DQ.NACK", b"q", *words)).id == id


def test_a_wait_that_timed_out_says_for_which_job_and_how_long(dq_url, queue):
    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            await queue.wait("a", 0.05)

    queue.add(1, id="a", delay=60)
    for wait in (
        lambda: queue.wait("a", 0.05),
        lambda: queue.add_and_wait(1, id="b", delay=60, timeout=0.05),
        lambda: asyncio.run(on_asyncio()),
    ):
        with pytest.raises(dq.TimedOut, match=r"^job '[ab]' did not end within 0.05 s$") as raised:
            wait()
        assert raised.value.id in ("a", "b") and raised.value.timeout == 0.05
        assert isinstance(raised.value, TimeoutError)


def test_no_printed_form_shows_the_password(caplog):
    async def handle(job): ...

    url = "redis://me:secret@localhost:1"
    queue, of_asyncio = dq.Queue(url, "q"), dq.asyncio.Queue(url, "q")
    things = [queue, of_asyncio, dq.Worker(queue, work), dq.asyncio.Worker(of_asyncio, handle), dq.Consumer(queue)]
    for each in (queue, of_asyncio):
        things += [each.client, each.client.connection_pool, *each.client.connection_pool.connection_kwargs.items()]
    for thing in things:
        assert "secret" not in repr(thing) + str(thing) + f"{thing}", thing
    with pytest.raises(redis.ConnectionError) as raised:
        queue.add(1)
    assert "secret" not in repr(raised.value) + caplog.text


def test_the_password_is_used(dq_server, dq_url):
    dq_server.client.execute_command("ACL", "SETUSER", "me", "reset", "on", ">secret", "~*", "&*", "+@all")
    url = dq_url.replace("unix://", "unix://me:secret@")

    async def add():
        async with dq.asyncio.Queue(url, "q") as queue:
            await queue.add(1)

    try:
        asyncio.run(add())
        with dq.Queue(url, "q") as queue:
            assert dq.Worker(queue, work).drain() == 1
        with dq.Queue(url.replace("secret", "wrong"), "q") as queue, pytest.raises(redis.AuthenticationError):
            queue.len()
    finally:
        dq_server.client.execute_command("ACL", "DELUSER", "me")


def test_after_what_is_not_there_names_it_and_the_way_out(dq_url, queue):
    sentence = "^after: the queue does not hold 'b', 'c': it has ended, or was never added. Add .* one add_many, or"

    async def add():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            await queue.add(1, after=["a", "b", "c"])

    queue.add(1, id="a", delay=60)
    for mistake in (
        lambda: queue.add(1, after=["a", "b", "c"]),
        lambda: queue.add_many([{"data": 1, "id": "x"}, {"data": 2, "after": ["x", "b", "a", "c"]}]),
        lambda: asyncio.run(add()),
    ):
        with pytest.raises(dq.UnknownJob, match=sentence) as raised:
            mistake()
        assert raised.value.ids == ["b", "c"]
    with pytest.raises(dq.UnknownJob, match=r"hold '0', .* '9' and 15 more: it"):
        queue.add(1, after=[*map(str, range(25))])


def test_after_what_cannot_be_looked_up_is_told_in_the_servers_words(dq_url):
    with redis.from_url(dq_url) as admin:
        admin.execute_command("ACL SETUSER blind on >p ~* +dq.add +@connection")
    blind = redis.from_url(dq_url, username="blind", password="p")
    refusal = pytest.raises(dq.Refused, match=r"AFTER names a job that the queue does not hold$")
    with dq.Queue(blind, "q") as queue, refusal:
        queue.add(1, after=["gone"])


def test_a_wait_for_what_is_not_there_names_it_and_the_way_out(queue):
    queue.add(1, id="w", attempts=1)
    dq.Worker(queue, lambda job: job.wait_for(["gone", "gone", "too"])).drain()
    assert queue.get("w").reason.endswith("Add it with keep, or by spawn (waited for: 'gone', 'too')")
    queue.add(1, id="s", attempts=1)
    children = [{"data": 1, "id": "b"}, {"data": 2, "after": ["b", "gone"]}]
    dq.Worker(queue, lambda job: job.spawn(children)).drain()
    assert queue.get("s").reason.endswith("Add it with keep, or by spawn (waited for: 'gone')")
