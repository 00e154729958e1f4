"""The probe of the behaviour suite (clients/suite/README.md), of threads and of asyncio."""

import asyncio as aio
import contextlib
import json
import logging
import sys
import threading
from urllib.parse import urlsplit

import redis
import redis.asyncio
from acting import (
    ERRORS,
    HOSTILE,
    MS,
    around,
    around_async,
    emit,
    handle,
    handle_async,
    handle_batch,
    handle_batch_async,
    hostile_around,
    hostile_around_async,
)
from methods import method_call, to_json

import dq
import dq.asyncio
from dq.testing import async_run, run


class Reports(dq.Hooks):
    def before(self, job):
        emit("before", job=job.id)

    def after(self, job):
        emit("after", job=job.id)

    def failed(self, job, error):
        emit("failed", job=job.id, error=type(error).__name__)

    def lost(self, job):
        emit("lost", job=job.id)


class Deaths(dq.Hooks):
    def dead(self, queue, job):
        said = {name: getattr(job, name) for name in ("reason", "attempts", "kind", "data")}
        emit("dead", job=job.id, queue=queue, headers=dict(job.headers), **said)
        if isinstance(job.data, dict) and job.data.get("dead") == "hang":
            threading.Event().wait()


class Hostile(dq.Hooks):
    def _raise(self, *_):
        raise HOSTILE[1]

    before = after = failed = lost = dead = _raise


def ruled(worker, order, one):
    """Adds the handlers that have a rule."""
    for each in order.get("handlers") or []:
        if "cron" in each:
            worker.cron(each["cron"], tz=each.get("tz"), kind=each["kind"], lease=each["lease_ms"] * MS)(one)
        elif "every_ms" in each:
            worker.every(each["every_ms"] * MS, kind=each["kind"], lease=each["lease_ms"] * MS)(one)


def handlers(order, one, many):
    made = []
    for each in order.get("handlers") or [{}]:
        if "cron" in each or "every_ms" in each:
            continue
        backoff, lease = each.get("backoff_ms"), each.get("lease_ms")
        made.append(
            dq.Handler(
                many if each.get("batch") else one,
                kind=each.get("kind"),
                attempts=each.get("attempts") or 0,
                backoff=backoff and [ms * MS for ms in backoff],
                lease=lease and lease * MS,
                batch=each.get("batch") or 0,
                fill=(each["fill"][0], each["fill"][1] * MS) if each.get("fill") else None,
                timeout=each["timeout_ms"] * MS if each.get("timeout_ms") else None,
                retry_on=[ERRORS[name] for name in each.get("retry_on") or ()],
                give_up_on=[ERRORS[name] for name in each.get("give_up_on") or ()],
            )
        )
    return made


def options(order, around, hostile):
    dq._idle.IDLE_S = order.get("idle_ms", 60_000) / 1000
    given = {name: order[name] for name in ("concurrency", "prefetch", "weights") if order.get(name) is not None}
    for name in ("drain", "wait", "lease"):
        if order.get(f"{name}_ms") is not None:
            given[name] = order[f"{name}_ms"] * MS
    given["hooks"] = [Deaths()] if order.get("dead") else []
    if order.get("hooks"):
        given["hooks"].append(Hostile() if order["hooks"] == "hostile" else Reports())
    if order.get("around"):
        given["around"] = [hostile if order["around"] == "hostile" else around]
    return given


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


def ran(ended):
    """What became of a job without a server."""
    value = {name: getattr(ended, name) for name in ("state", "result", "reason", "attempts", "waits")}
    emit("answer", value=to_json(value))


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
        ruled(made, order, handle)
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
        ran(run(*handlers(order, handle, handle_batch), order["data"], kind=order.get("kind")))

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
        self.queues[order["queue"]] = dq.asyncio.Queue(client, order["name"], shards=order.get("shards") or 0)
        emit("made")

    async def do_worker(self, order):
        queues = [self.queues[name] for name in order["queues"]]
        given = options(order, around_async, hostile_around_async)
        self.worker = dq.asyncio.Worker(queues, *handlers(order, handle_async, handle_batch_async), **given)
        ruled(self.worker, order, handle_async)
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
        ran(await async_run(*handlers(order, handle_async, handle_batch_async), order["data"], kind=order.get("kind")))

    async def do_call(self, order):
        answered(order, to_json(await method_call(self.queues[order["queue"]], order)))


def main(face):
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    {"sync": Sync, "asyncio": Async}[face]().main()
