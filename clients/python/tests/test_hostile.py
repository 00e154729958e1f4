"""Nothing that a handler, a hook or a logger does ends a worker or holds it up: after each, 100 jobs are done.

The canaries remove parts of the guard (dq._guard): then the tests must fail.
"""

import asyncio
import itertools
import logging
import threading
import time

import hostile
import pytest
import redis
from running import running, until

import dq
import dq.asyncio
from dq import _guard, _running, _texts

GOOD = 100
SEED = 20261123


def is_json(value):
    try:
        return value is None or bool(dq.JsonCodec().encode(value) or True)
    except BaseException:
        return False


def unforeseen(self, batch, error):
    raise error


class Stalled(Exception):
    pass


class Silent(logging.Handler):
    def emit(self, record):
        record.getMessage()  # as a formatter does


class Play:
    """A worker that meets one hostile value after the other."""

    def __init__(self, url, patience_s=30, name="q"):
        self.queue = dq.Queue(url, name)
        self.patience_s = patience_s
        self.good = 0
        self.then = None
        self.log = logging.getLogger("hostile")
        self.log.handlers, self.log.propagate = [Silent()], False
        self.number = itertools.count()

    def act(self, job):
        if job.id.startswith("good"):
            self.good += 1
            return None
        return self.then(job)

    def until(self, condition, what):
        end = time.monotonic() + self.patience_s
        while not condition():
            if time.monotonic() > end:
                raise Stalled(what)
            time.sleep(0.0005)

    def meet(self, name, then):
        """Adds a job to which ``then`` happens, and good jobs after it."""
        id = f"{name}:{next(self.number)}"
        self.then = then
        self.queue.add(1, id=id)
        self.until(lambda: (found := self.queue.get(id)) is None or found.state in ("delayed", "dead"), id)
        before = self.good
        self.queue.add_many([{"data": n, "id": f"good:{next(self.number)}"} for n in range(GOOD)])
        self.until(lambda: self.good == before + GOOD, f"{GOOD} good jobs after {id}")
        found = self.queue.get(id)
        assert found is None or found.state == "delayed" or found.reason
        return found

    # What happens

    def raised(self, errors, **options):
        for error in errors:
            with self.worker(**options):
                self.meet("raised", raising(error))

    def all_raised(self):
        with self.worker():
            for error in [*hostile.ERRORS, *hostile.says(), *hostile.some_of_all(40, SEED)]:
                found = self.meet("raised", raising(error))
                assert found is not None, f"{type(error)} is done"

    def all_returned(self):
        with self.worker():
            for value in hostile.HARMLESS:
                found = self.meet("returned", lambda job, value=value: value)
                assert (found is None) == is_json(value), value
                assert found is None or found.reason.startswith("result cannot be encoded: "), found.reason
            for value in (dq.Retry(60), dq.GiveUp("never raised")):
                assert self.meet("returned", lambda job, value=value: value) is not None

    def all_failed_in_a_batch(self):
        def fail(job, error):
            job.fail(error)

        with self.worker(batch=10):
            for error in [*hostile.ERRORS, *hostile.says(), *hostile.REASONS, *hostile.RETURNED]:
                found = self.meet("failed", lambda job, error=error: fail(job, error))
                assert found is not None, f"{error} is done"

    def all_in_hooks(self, hooks):
        hooks = hooks()
        with self.worker(hooks=[hooks]):
            for error in hostile.ERRORS:
                hooks.error = error
                self.meet("hook", lambda job: None)
                self.meet("hook", raising(ValueError("for the hook failed")))
                self.meet("hook", self.lose)
        # Without asyncio no coroutine runs.
        runs = not (isinstance(self, Sync) and isinstance(hooks, AsyncHooks))
        assert hooks.seen == ({"before", "after", "failed", "lost"} if runs else set())

    def lose(self, job):
        self.queue.add(1, id=job.id, delay=60, if_exists="replace")

    def all_in_the_log(self):
        class Log(logging.Logger):
            error_now = None

            def log(self, *_, **__):
                raise self.error_now

        log = Log("broken")
        with self.worker(logger=log):
            for error in hostile.ERRORS:
                log.error_now = error
                self.meet("log", raising(ValueError()))


def raising(error):
    def handle(job):
        raise error

    return handle


class Hooks(dq.Hooks):
    """Hooks that all raise the same error."""

    error = None

    def __init__(self):
        self.seen = set()

    def _raise(self, name):
        self.seen.add(name)
        if self.error is not None:
            raise self.error

    def before(self, job):
        self._raise("before")

    def after(self, job):
        self._raise("after")

    def failed(self, job, error):
        self._raise("failed")

    def lost(self, job):
        self._raise("lost")


class AsyncHooks(Hooks):
    async def before(self, job):
        await asyncio.sleep(0)
        self._raise("before")

    async def after(self, job):
        await asyncio.sleep(0)
        self._raise("after")

    async def failed(self, job, error):
        await asyncio.sleep(0)
        self._raise("failed")

    async def lost(self, job):
        await asyncio.sleep(0)
        self._raise("lost")


class Sync(Play):
    def worker(self, batch=0, **options):
        options = {"logger": self.log, "concurrency": 2, "drain": 0.2, **options}
        return dq.Worker(self.queue, dq.Handler(self.acts if batch else self.act, batch=batch), **options)

    def acts(self, jobs):
        for job in jobs:
            self.act(job)


class Background:
    """A worker of asyncio in a thread with a loop of its own."""

    def __init__(self, play, **options):
        self.play, self.options = play, options

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.main(ready)), daemon=True)
        self.thread.start()
        assert ready.wait(30)

    async def main(self, ready):
        self.loop = asyncio.get_running_loop()
        batch = self.options.pop("batch", 0)
        queue = dq.asyncio.Queue(self.play.url, self.play.queue.name)
        handler = dq.Handler(self.play.acts_async if batch else self.play.act_async, batch=batch)
        self.worker = dq.asyncio.Worker(queue, handler, **self.options)
        self.worker._hears_signals = True  # as in the main thread
        await self.worker.start()
        ready.set()
        await self.worker.join()
        await queue.close()

    def __exit__(self, kind, *_):
        if kind is None or self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.worker.stop)
        self.thread.join(self.play.patience_s)
        if kind is None:
            assert not self.thread.is_alive(), "it stops"


class Async(Play):
    def __init__(self, url, *rest):
        super().__init__(url, *rest)
        self.url = url

    def worker(self, **options):
        return Background(self, **{"logger": self.log, "concurrency": 2, "drain": 0.2, **options})

    async def act_async(self, job):
        await asyncio.sleep(0)
        return self.act(job)

    async def acts_async(self, jobs):
        for job in jobs:
            await self.act_async(job)


FACES = pytest.mark.parametrize("face", [Sync, Async])


@FACES
def test_whatever_a_handler_raises(face, dq_url):
    face(dq_url).all_raised()


@FACES
def test_whatever_a_handler_returns(face, dq_url):
    face(dq_url).all_returned()


@FACES
def test_whatever_one_job_of_a_batch_fails_with(face, dq_url):
    face(dq_url).all_failed_in_a_batch()


@FACES
@pytest.mark.parametrize("hooks", [Hooks, AsyncHooks])
def test_whatever_a_hook_raises(face, hooks, dq_url):
    face(dq_url).all_in_hooks(hooks)


@FACES
def test_whatever_the_logger_raises(face, dq_url):
    face(dq_url).all_in_the_log()


NAIVE = {
    "verdict": lambda error, **_: _guard.DONE if error is None else _guard.Verdict("fail", f"{error}".encode()),
    "run": lambda function, argument, around: (function(argument), None),
    "arun": lambda function, argument, around: function(argument),
    "hook": lambda log, hooks, name, *rest: getattr(hooks, name)(*rest),
    "Log": lambda logger: NaiveLog(logger),
}


class NaiveLog:
    def __init__(self, logger):
        self.say = lambda level, text, *values, error=None: logger.log(level, text, *values)
        self.failed = lambda text, *values: logger.log(logging.ERROR, text, *values)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "face, gone, scene",
    [
        (Sync, "verdict", "all_raised"),
        (Async, "verdict", "all_raised"),
        (Sync, "run", "all_raised"),
        (Async, "arun", "all_raised"),
        (Sync, "hook", "all_in_hooks"),
        (Async, "hook", "all_in_hooks"),
        (Sync, "Log", "all_in_the_log"),
        (Async, "Log", "all_in_the_log"),
    ],
)
def test_canary_without_the_door(face, gone, scene, dq_url, monkeypatch):
    monkeypatch.setattr(_guard, gone, NAIVE[gone])
    monkeypatch.setattr(_running.BaseWorker, "_unforeseen", unforeseen)
    # A worker that the user's code has broken may go on fetching: it must not fetch the jobs of later tests.
    play = face(dq_url, 0.3, f"without {gone} of {face.__name__}")
    with pytest.raises(BaseException):  # noqa: B017
        getattr(play, scene)(*([Hooks] if scene == "all_in_hooks" else []))


# --- What the server does not take, and faults of our own


def test_a_result_too_large_for_the_server_is_left_out(dq_url):
    """The server says so, and closes the connection amid the command."""
    client = redis.Redis.from_url(dq_url)
    client.config_set("proto-max-bulk-len", 1 << 20)
    jobs = [{"data": n} for n in range(20)]
    try:
        queue = dq.Queue(dq_url, "q")
        queue.add_many(jobs)
        with dq.Worker(queue, lambda job: "x" * (5 << 20) if job.data % 7 == 0 else None, concurrency=2):
            until(lambda: not client.exists("q"), "the end of the queue")

        async def play():
            queue = dq.asyncio.Queue(dq_url, "q")
            await queue.add_many(jobs)

            async def handle(job):
                return "x" * (5 << 20) if job.data % 7 == 0 else None

            worker = dq.asyncio.Worker(queue, handle, concurrency=2)
            await worker.start()
            while client.exists("q"):
                await asyncio.sleep(0.01)
            worker.stop()
            await worker.join()

        asyncio.run(asyncio.wait_for(play(), 60))
    finally:
        client.config_set("proto-max-bulk-len", 512 << 20)


def test_a_fault_of_the_worker_ends_no_thread(dq_url, queue, monkeypatch):
    def broken(*_):
        raise RuntimeError("ours")

    client = redis.Redis.from_url(dq_url)
    monkeypatch.setattr(_running.BaseWorker, "_verdict", broken)
    queue.add_many([{"data": n, "id": f"j{n}", "attempts": 1} for n in range(6)])
    with dq.Worker(queue, raising(ValueError()), concurrency=2):
        until(lambda: queue.len("dead") == 6, "six dead jobs")
    assert queue.get("j0").reason == "the worker failed: RuntimeError"
    client.delete("q")


# --- Work that would not run


def test_a_generator_or_coroutine_of_which_nothing_ran_is_no_success(queue):
    for function in hostile.RETURNED:
        queue.add(1, id=function.__name__)
        assert dq.Worker(queue, lambda job, function=function: function(job), concurrency=1).drain() == 1
        assert "nothing of it ran" in queue.get(function.__name__).reason
        queue.delete(function.__name__)


def test_a_callable_whose_call_is_async_is_awaited_or_refused(dq_url):
    class Callable:
        ran = False

        async def __call__(self, job):
            await asyncio.sleep(0)
            self.ran = True

    with pytest.raises(TypeError, match=r"is a coroutine function: use dq\.asyncio\.Worker"):
        dq.Worker(dq.Queue(dq_url, "q"), Callable())

    async def play():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            await queue.add(1)
            handler = Callable()
            assert await dq.asyncio.Worker(queue, handler).drain() == 1
            assert handler.ran and await queue.len() == 0

    asyncio.run(play())


def test_one_that_cannot_be_read_dies_and_leaves_the_others_of_its_batch(queue):
    queue.add_many([{"data": b"\xff", "id": "bad"}, {"data": 1, "id": "good"}, {"data": b"[" * 100_000, "id": "deep"}])

    def read(jobs):
        for job in jobs:
            assert job.data

    worker = dq.Worker(queue, dq.Handler(read, batch=10))
    worker.drain()
    bad, good = queue.get("bad"), queue.get("good")
    assert bad.state == "dead" and bad.reason.startswith("payload cannot be decoded: UnicodeDecodeError")
    assert good.state == "delayed"
    assert queue.get("deep").state == "delayed"


# --- Texts of errors


def doubled(inner, make, times=40):
    for _ in range(times):
        inner = make(inner)
    return inner


class Itself(Exception):
    pass


ITSELF = Itself()
ITSELF.args = (ITSELF, [ITSELF])


class Large(Exception):
    def __str__(self):
        return "x" * 50_000_000


ENORMOUS = [
    ValueError(doubled([1], lambda x: [x, x])),
    ValueError(doubled({1: 2}, lambda x: {"a": x, "b": x})),
    doubled(ValueError(1), lambda x: ValueError(x, x)),
    ValueError(doubled((), lambda x: (x,), 100_000)),
    KeyError(doubled([1], lambda x: [x, x]), 1),
    dq.GiveUp(doubled([1], lambda x: [x, x])),
    ITSELF,
    Large(),
    ValueError("y" * 50_000_000),
]


@pytest.mark.parametrize("number", range(len(ENORMOUS)))
def test_texts_are_bounded(number):
    error = ENORMOUS[number]
    begun = time.monotonic()
    found = _texts.said(error)
    assert 0 < len(found.reason) <= 1024 and time.monotonic() - begun < 2
    assert len(_texts.show(error)) <= 200


def test_what_is_common_is_said_at_once():
    for error, said in (
        (ValueError("no"), b"ValueError: no"),
        (KeyError("a"), b"KeyError: 'a'"),
        (ValueError(1, "a"), b"ValueError: (1, 'a')"),
        (dq.GiveUp("no"), b"no"),
        (OSError(2, "No such file"), b"FileNotFoundError: [Errno 2] No such file"),
    ):
        assert _texts._at_once(error) == (said, True)
    assert _texts._at_once(ValueError(Large())) is None and _texts._at_once(Large()) is None
    assert _texts.said(ValueError({"a": [1]})) == (b"ValueError: {'a': [1]}", True)


class Slow(Exception):
    """Takes longer than the lease of its job."""

    def __str__(self):
        time.sleep(2.5)
        return "at last"


@pytest.mark.parametrize("module", [dq, dq.asyncio])
def test_leases_are_renewed_while_a_text_is_made(dq_url, caplog, module):
    """The clock of the server stands still here; the worker looks at its own."""

    def handle(job):
        raise Slow

    async def handle_async(job):
        raise Slow

    handler = dq.Handler(handle if module is dq else handle_async, lease=0.6, attempts=2)
    with dq.Queue(dq_url, "q") as queue, running(module, dq_url, handler):
        queue.add(1, id="j", backoff=[600])
        until(lambda: queue.get("j").state != "reserved" and queue.get("j").reason, "the failure")
        found = queue.get("j")
        assert (found.state, found.attempts, found.reason) == ("delayed", 1, "Slow: at last")
    assert "at last" in caplog.text and "in handle" in caplog.text and "lost" not in caplog.text


class Endless(Exception):
    def __str__(self):
        threading.Event().wait()


def test_a_text_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(_texts, "TEXT_S", 0.1)
    assert _texts.said(Endless()) == (b"Endless (no text within 0 s)", False)
    assert asyncio.run(_texts.asaid(Endless())).reason == b"Endless (no text within 0 s)"


# --- Results that the server does not take


@pytest.mark.parametrize("refusal", ["OOM command not allowed", "MAXBYTES queue is full", "ERR no"])
def test_a_result_that_is_refused_costs_no_job(queue, caplog, refusal):
    queue.add(1, id="j", keep=600)
    worker = dq.Worker(queue, lambda job: "x" * 1000)
    (link,) = worker._links = worker._make_links()
    answered = link._answered
    refusals = [redis.ResponseError(refusal)]
    link._answered = lambda outcome, reply: answered(outcome, refusals.pop() if refusals else reply)
    worker._settled(*link.fetch(1, 1), None, b"x" * 1000)
    ((told,),) = link._take_outcomes()
    assert link._answered(told, None) is None
    assert told.command[2:4] == (b"WITHTOKENS", b"IDS")
    link.flush()
    found = queue.get("j")
    assert (found.state, found.result) == ("done", None)
    assert f"job 'j': the server refused its result of 1000 bytes ({refusal}" in caplog.text


def test_a_result_that_cuts_the_connection_ends_its_job(dq_server, dq_url):
    runs = []

    def handle(job):
        runs.append(job.id)
        return "x" * 8_000_000 if job.id == "large" else None

    dq_server.client.config_set("proto-max-bulk-len", "1mb")
    try:
        with dq.Queue(dq_url, "q") as queue, dq.Worker(queue, handle, concurrency=2):
            for id in ("large", "a", "b"):
                queue.add(1, id=id, keep=600)
            until(lambda: {queue.get(id).state for id in ("large", "a", "b")} <= {"done", "dead"}, "the ends of all")
            found = queue.get("large")
            assert found.reason in (None, "result cannot be stored: 8000002 bytes") and found.result is None
            assert sorted(runs) == ["a", "b", "large"]
    finally:
        dq_server.client.config_set("proto-max-bulk-len", "512mb")


def test_jobs_that_are_done_share_one_ack_and_one_of_them_may_be_lost(queue):
    lost = []

    class Losses(dq.Hooks):
        def lost(self, job):
            lost.append((job.id, job.cancel_reason))

    queue.add_many([{"data": 1, "id": id} for id in "abcd"])
    worker = dq.Worker(queue, print, hooks=[Losses()])
    (link,) = worker._links = worker._make_links()
    found = link.fetch(4, 1)
    queue.delete("b")
    for delivery in found:
        worker._settled(delivery, None, b"1" if delivery.id == b"d" else None)
    parts = link._take_outcomes()
    assert [[each.delivery.id for each in part] for part in parts] == [[b"a", b"b", b"c"], [b"d"]]
    refused = redis.ResponseError("LOADING is loading")
    assert link._part_answered(parts[0], refused) is refused
    link._outcomes.extend(parts[1])
    assert len(link._outcomes) == 4
    link.flush()
    assert lost == [("b", "lost")] and not link.is_telling()
    assert queue.len() == 0


def test_a_batcher_is_not_woken_again_while_fetches_take_all(queue):
    """It stays armed until what came last is a millisecond old."""

    class Bell:
        times = 0

        def wait(self, left):
            self.times += 1
            link._outcomes.append(None) if self.times % 2 else link._outcomes.clear()
            link._outcomes.first_at = 1e9 if self.times < 5 else -1e9
            return False

    worker = dq.Worker(queue, print)
    (link,) = worker._make_links()
    link._armed, link._bell, link._outcomes.first_at = True, Bell(), 1e9
    link._outcomes.append(None)
    link._let_gather()
    assert link._bell.times == 5 and not link._armed
