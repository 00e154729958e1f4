"""The probe of the behaviour suite (clients/suite/README.md): probe.py sync | asyncio."""

import asyncio as aio
import base64
import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

import redis
import redis.asyncio

import dq
import dq.asyncio
from dq.testing import AsyncInlineQueue, InlineQueue
from dq.times import instant_to_ms, to_ms

MS = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
runs = Counter()
_writing = threading.Lock()


def emit(event, **fields):
    with _writing:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()


# --- Handlers


def announce(jobs):
    for job in jobs:
        runs[job.id] += 1
        emit(
            "started",
            job=job.id,
            queue=job.queue,
            attempt=job.attempt,
            payload=base64.b64encode(job.payload).decode(),
            kind=job.kind,
            headers=dict(job.headers),
            due=job.due and instant_to_ms(job.due),
            batch=len(jobs),
            results=shown(job.results),
        )


def shown(results):
    return [[each.id, each.outcome, each.value] for each in results]


def script(job):
    data = job.data
    if not isinstance(data, dict) or runs[job.id] > data.get("times", float("inf")):
        return {}
    return data


class Flaky(Exception):
    pass


class Broken(Exception):
    pass


ERRORS = {"Flaky": Flaky, "Broken": Broken}


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def said(made, **fields):
    for name, value in fields.items():
        setattr(made, name, value)
    return made


HOSTILE = [
    ValueError("\udc80"),
    Unprintable(),
    dq.Retry(float("inf")),
    dq.Retry(float("nan")),
    dq.Snooze(float("inf")),
    dq.Snooze(1e9, "\udc80"),
    dq.Snooze(1e9, ValueError()),
    dq.GiveUp(ValueError()),
    dq.GiveUp(404),
    dq.GiveUp(Unprintable()),
    said(dq.Retry(5), delay="soon"),
    said(dq.Snooze(5), delay=None),
    said(dq.Retry(1e9), reason=object()),
    SystemExit(3),
    GeneratorExit(),
    BaseException("base"),
    aio.CancelledError(),
    dq.Cancelled(),
]


def act(todo):
    """What every face does alike."""
    do = todo.get("do")
    if do == "throw":
        raise ERRORS.get(todo.get("type"), RuntimeError)(todo.get("message", "thrown"))
    if do == "retry":
        raise dq.Retry(todo["ms"] * MS, todo.get("reason"))
    if do == "snooze":
        raise dq.Snooze(todo["ms"] * MS, todo.get("reason"))
    if do == "give_up":
        raise dq.GiveUp(todo.get("reason"))
    if do == "hostile":
        raise HOSTILE[todo["n"] % len(HOSTILE)]
    if do == "exit":
        os._exit(3)
    if do == "fork":
        os.fork()
    if do == "quit_thread":
        sys.exit(7)


def result(job, todo):
    """What the handler returns."""
    if todo.get("do") == "return":
        return todo["value"]
    return object() if todo.get("do") == "unencodable" else None


def report(job, todo):
    for fraction, text in todo["steps"]:
        job.progress(fraction, text)


def work(job, todo):
    do = todo.get("do")
    if do == "progress":
        report(job, todo)
    if do == "sleep" or (do == "progress" and todo.get("ms")):
        try:
            job.pause(todo["ms"] / 1000)
        except dq.Cancelled as cancelled:
            emit("told", job=job.id, why=cancelled.reason)
            raise
    elif do == "stubborn":
        time.sleep(todo["ms"] / 1000)
    elif do == "hang":
        threading.Event().wait()
    elif do == "script":
        return carry_out(job, todo["actions"])
    act(todo)
    return result(job, todo)


async def work_async(job, todo):
    do = todo.get("do")
    if do == "progress":
        report(job, todo)
    if do == "sleep" or (do == "progress" and todo.get("ms")):
        try:
            await aio.sleep(todo["ms"] / 1000)
        except aio.CancelledError:
            emit("told", job=job.id, why=job.why_cancelled)
            raise
    elif do in ("stubborn", "hang"):
        end = time.monotonic() + todo.get("ms", 10**9) / 1000
        while time.monotonic() < end:
            with contextlib.suppress(aio.CancelledError):
                await aio.sleep(end - time.monotonic())
    elif do == "script":
        return await carry_out_async(job, todo["actions"])
    act(todo)
    return result(job, todo)


# --- Scripts: each action is what to call, and what to report of its answer


def called(job, action):
    """A method of the job, and what it is given."""
    if "step" in action:
        name, value = action["step"], action.get("value")

        def stepped():
            emit("stepped", job=job.id, name=name)
            return value

        return job.step, (name, stepped)
    if "sleep" in action:
        return job.sleep, (action["sleep"], action["ms"] * MS)
    if "wait" in action:
        return job.wait, (action["wait"], None if action.get("ms") is None else action["ms"] * MS)
    return (job.wait_for, (action["wait_for"],)) if "wait_for" in action else (job.spawn, (action["spawn"],))


def told(job, action, answer):
    if "step" in action:
        emit("step", job=job.id, name=action["step"], value=answer)
    if "wait" in action:
        fields = {"timed_out": True} if isinstance(answer, dq.TimedOut) else {"value": answer}
        emit("waited", job=job.id, name=action["wait"], **fields)
    if "wait_for" in action or "spawn" in action:
        emit("results", job=job.id, results=shown(answer))


def ended(job, action):
    """Whether the action is one that ends the handler; it may do so."""
    is_now = runs[job.id] <= action.get("times", float("inf"))
    if "throw" in action and is_now:
        raise RuntimeError(action["throw"])
    if "exit" in action and is_now:
        os._exit(3)
    return "throw" in action or "exit" in action


def carry_out(job, actions):
    for action in actions:
        if "return" in action:
            return action["return"]
        if not ended(job, action):
            method, given = called(job, action)
            try:
                answer = method(*given)
            except dq.TimedOut as error:
                answer = error
            told(job, action, answer)
    return None


async def carry_out_async(job, actions):
    for action in actions:
        if "return" in action:
            return action["return"]
        if not ended(job, action):
            method, given = called(job, action)
            try:
                answer = await method(*given)
            except dq.TimedOut as error:
                answer = error
            told(job, action, answer)
    return None


def handle(job):
    announce([job])
    try:
        return work(job, script(job))
    finally:
        emit("ended", job=job.id)


async def handle_async(job):
    announce([job])
    try:
        return await work_async(job, script(job))
    finally:
        emit("ended", job=job.id)


def handle_batch(jobs):
    announce(jobs)
    for job in jobs:
        try:
            job.succeed(work(job, script(job)))
        except Exception as error:
            job.fail(error)


async def handle_batch_async(jobs):
    announce(jobs)
    for job in jobs:
        try:
            job.succeed(await work_async(job, script(job)))
        except Exception as error:
            job.fail(error)


def around(job, next):
    emit("around", job=job.id, phase="entered")
    try:
        return next()
    finally:
        emit("around", job=job.id, phase="left")


async def around_async(job, next):
    emit("around", job=job.id, phase="entered")
    try:
        return await next()
    finally:
        emit("around", job=job.id, phase="left")


def hostile_around(job, next):
    raise HOSTILE[1]


async def hostile_around_async(job, next):
    raise HOSTILE[1]


class Reports(dq.Hooks):
    def before(self, job):
        emit("before", job=job.id)

    def after(self, job):
        emit("after", job=job.id)

    def failed(self, job, error):
        emit("failed", job=job.id, error=type(error).__name__)

    def lost(self, job):
        emit("lost", job=job.id)


class Hostile(dq.Hooks):
    def _raise(self, *_):
        raise HOSTILE[1]

    before = after = failed = lost = _raise


def handlers(order, one, many):
    made = []
    for each in order.get("handlers") or [{}]:
        backoff, lease = each.get("backoff_ms"), each.get("lease_ms")
        made.append(
            dq.Handler(
                many if each.get("batch") else one,
                kind=each.get("kind"),
                attempts=each.get("attempts") or 0,
                backoff=backoff and [ms * MS for ms in backoff],
                lease=lease and lease * MS,
                batch=each.get("batch") or 0,
                timeout=each["timeout_ms"] * MS if each.get("timeout_ms") else None,
                retry_on=[ERRORS[name] for name in each.get("retry_on") or ()],
                give_up_on=[ERRORS[name] for name in each.get("give_up_on") or ()],
            )
        )
    return made


def options(order, around, hostile):
    given = {name: order[name] for name in ("concurrency", "prefetch", "weights") if order.get(name) is not None}
    for name in ("drain", "wait", "lease"):
        if order.get(f"{name}_ms") is not None:
            given[name] = order[f"{name}_ms"] * MS
    if order.get("hooks"):
        given["hooks"] = [Hostile() if order["hooks"] == "hostile" else Reports()]
    if order.get("around"):
        given["around"] = [hostile if order["around"] == "hostile" else around]
    return given


# --- Methods

DURATIONS = {"delay", "ttr", "ttl", "keep", "dedupe", "duration", "interval", "grace", "jitter", "timeout"}
INSTANTS = {"at", "since", "until", "first"}


def from_json(name, value):
    if name in DURATIONS:
        return value * MS
    if name in INSTANTS:
        return EPOCH + value * MS
    if name == "jobs":
        is_data = not all(isinstance(each, dict) and "data" in each for each in value)
        return [{"data": each} if is_data else job_from_json(each) for each in value]
    if name == "backoff":
        return [ms * MS for ms in value]
    if name in ("rate", "grouprate"):
        return (value[0], value[1] * MS)
    if name == "payload":
        return base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode()
    return value


def job_from_json(job):
    return {name: from_json(name, value) for name, value in job.items() if value is not None}


def to_json(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return instant_to_ms(value)
    if isinstance(value, timedelta):
        return to_ms(value)
    if isinstance(value, dict):
        return {to_name(name): to_json(each) for name, each in value.items() if name != "fields"}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return to_json({name: getattr(value, name) for name in value.__dataclass_fields__})
    return value


def to_name(name):
    return name.decode() if isinstance(name, bytes) else name


def method_call(queue, order):
    args = {name: from_json(name, value) for name, value in (order.get("args") or {}).items() if value is not None}
    method = order["method"]
    if method in ("result", "wait", "add_and_wait", "cancel", "signal", "chain", "add_many"):
        first = [args.pop(name) for name in ("jobs", "data") if name in args]
        return getattr(queue, method)(*first, **args)
    if "payload" in args:
        args["data"] = args.pop("payload")
    if method == "add" and "repeat" in args:
        count, id = args.pop("repeat"), args.pop("id")
        return queue.add_many([{**args, "id": f"{id}:{n}"} for n in range(count)])
    positional = []
    for name in ("expression", "interval", "data", "timeout", "tokens", "id", "ids", "cursor", "duration", "buckets"):
        named = (name == "id" and method in ("add", "every", "cron", "pop")) or name in (
            "cursor",
            "buckets",
            "duration",
        )
        if name in args and not named:
            value = args.pop(name)
            positional += value if name == "ids" else [value]
    if "token" in args:
        positional.append(args.pop("token"))
    if method in ("peek", "purge", "len") and "state" in args:
        positional.append(args.pop("state"))
    return getattr(queue, method)(*positional, **args)


# --- The two faces


def connect(order, module):
    if order.get("cluster"):
        return module.RedisCluster.from_url(order["cluster"])
    if order.get("sentinels"):
        hosts = [tuple(each.rsplit(":", 1)) for each in order["sentinels"]]
        sentinel = module.sentinel.Sentinel([(host, int(port)) for host, port in hosts], socket_timeout=5)
        return sentinel.master_for(order["master"], socket_timeout=5)
    if order.get("own"):
        place = urlsplit(order["url"])
        return module.Redis(host=place.hostname, port=place.port)
    return order["url"]


def refused(order, error):
    tag = {} if order.get("tag") is None else {"tag": order["tag"]}
    if isinstance(error, dq.JobFailed):
        emit("refused", error="JobFailed", outcome=error.outcome, reason=error.reason, message=str(error), **tag)
    elif isinstance(error, dq.TimedOut):
        emit("refused", error="timeout", **tag)
    else:
        emit("refused", error=f"{type(error).__name__}: {error}", **tag)


def answered(order, value):
    tag = {} if order.get("tag") is None else {"tag": order["tag"]}
    emit("answer", value=value, **tag)


def failed(error):
    emit("error", type=type(error).__name__, message=str(error))


class Sync:
    def __init__(self):
        self.queues = {}
        self.worker = None

    def main(self):
        emit("ready", language="python", version=sys.version.split()[0])
        # The worker runs in the main thread, where signals arrive; orders are read beside it.
        self.begin = threading.Event()
        threading.Thread(target=self.obey, daemon=True).start()
        self.begin.wait()
        if self.worker is None:
            return
        try:
            self.worker.run()
        except dq.DqError as error:
            failed(error)
        emit("stopped")
        if self.terminated:
            return
        self.closed.wait()

    def obey(self):
        self.closed = threading.Event()
        self.terminated = True
        for line in sys.stdin:
            order = json.loads(line)
            if order.get("tag") is not None:
                threading.Thread(target=self.do, args=(order,), daemon=True).start()
            else:
                self.do(order)
        self.closed.set()
        self.begin.set()

    def do(self, order):
        try:
            getattr(self, "do_" + order["do"])(order)
        except Exception as error:
            refused(order, error)

    def do_health(self, order):
        emit("answer", value=self.worker.is_healthy)

    def do_queue(self, order):
        client = connect(order, redis)
        self.queues[order["queue"]] = dq.Queue(client, order["name"], shards=order.get("shards") or 0)
        emit("made")

    def do_worker(self, order):
        queues = [self.queues[name] for name in order["queues"]]
        made = dq.Worker(queues, *handlers(order, handle, handle_batch), **options(order, around, hostile_around))
        emit("running")
        if self.worker is not None:
            threading.Thread(target=made.run, kwargs={"signals": False}, daemon=True).start()
            return
        self.worker = made
        self.begin.set()

    def do_stop(self, order):
        self.terminated = False
        self.worker.stop()

    def do_inline(self, order):
        InlineQueue(*handlers(order, handle, handle_batch)).add(order["data"], kind=order.get("kind"))
        emit("answer", value=None)

    def do_call(self, order):
        answered(order, to_json(method_call(self.queues[order["queue"]], order)))


class Async:
    def __init__(self):
        self.queues = {}
        self.worker = None
        self.running = None
        self.beside = set()

    def main(self):
        with contextlib.suppress(aio.CancelledError):
            aio.run(self.obey())

    async def obey(self):
        emit("ready", language="python-asyncio", version=sys.version.split()[0])
        reader = aio.StreamReader(limit=1 << 26)
        await aio.get_running_loop().connect_read_pipe(lambda: aio.StreamReaderProtocol(reader), sys.stdin)
        self.task = aio.current_task()
        self.terminated = True
        while True:
            line = await reader.readline()
            if not line:
                return
            order = json.loads(line)
            doing = aio.create_task(self.do(order))
            if order.get("tag") is None:
                await doing
            else:
                self.beside.add(doing)
                doing.add_done_callback(self.beside.discard)

    async def do(self, order):
        try:
            await getattr(self, "do_" + order["do"])(order)
        except Exception as error:
            refused(order, error)

    async def do_health(self, order):
        emit("answer", value=self.worker.is_healthy)

    async def do_queue(self, order):
        client = connect(order, redis.asyncio)
        if isinstance(client, redis.asyncio.RedisCluster):
            await client.initialize()
        self.queues[order["queue"]] = dq.asyncio.Queue(client, order["name"], shards=order.get("shards") or 0)
        emit("made")

    async def do_worker(self, order):
        queues = [self.queues[name] for name in order["queues"]]
        given = options(order, around_async, hostile_around_async)
        self.worker = dq.asyncio.Worker(queues, *handlers(order, handle_async, handle_batch_async), **given)
        emit("running")
        self.running = aio.create_task(self.run())

    async def run(self):
        try:
            await self.worker.run()
        except dq.DqError as error:
            failed(error)
        emit("stopped")
        if self.terminated:
            self.task.cancel()

    async def do_stop(self, order):
        self.terminated = False
        self.worker.stop()

    async def do_inline(self, order):
        inline = AsyncInlineQueue(*handlers(order, handle_async, handle_batch_async))
        await inline.add(order["data"], kind=order.get("kind"))
        emit("answer", value=None)

    async def do_call(self, order):
        answered(order, to_json(await method_call(self.queues[order["queue"]], order)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    {"sync": Sync, "asyncio": Async}[sys.argv[1]]().main()
