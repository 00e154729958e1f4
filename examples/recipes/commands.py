"""What the recipes share: a queue's commands on redis-py, and the loop of a worker.

Nothing here is needed to use dq: each method is one command. Copy what you like.
"""

from __future__ import annotations

import argparse, contextlib, logging, threading, time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# How long a worker waits in one DQ.BPOP before it looks whether it shall stop, and how much longer it waits for a
# server that says nothing: together they are the longest that a worker needs to stop.
WAIT_S, PATIENCE_S = 2, 2


SETTLED = object()      # returned by a handler that has ended the delivery itself


class Later(Exception):
    """Raised by a handler: not now, through no fault of the job. The attempt is not counted. Without a delay the job
    keeps its place in line."""

    def __init__(self, delay_ms: Optional[int] = None) -> None:
        self.options: list[Any] = [] if delay_ms is None else ["DELAY", delay_ms]


class Hopeless(Exception):
    """Raised by a handler: this will never succeed, so it is not tried again."""


class Job(NamedTuple):
    id: str
    payload: str
    token: str
    attempts: int
    deadline: int


Handler = Callable[[Job], Any]


def connect(url: str = "redis://localhost") -> redis.Redis:
    # Ids and payloads are bytes: those that are no UTF-8 become texts from which the same bytes are sent again.
    # The socket must be more patient than DQ.BPOP, and redis-py must not send a command again by itself: a second DQ.BPOP would take a second job,
    # while the first waits for the end of a lease that nobody holds.
    return redis.Redis.from_url(url, decode_responses=True, encoding_errors="surrogateescape",
                                socket_timeout=WAIT_S + PATIENCE_S, retry=Retry(NoBackoff(), 0))


def now_ms() -> int:
    return int(time.time() * 1000)


class Queue:
    """Ids come from users: after IDS and their number nothing reads one as an option."""

    def __init__(self, db: redis.Redis, key: str) -> None:
        self.db, self.key = db, key

    def run(self, command: str, *arguments: Any) -> Any:
        return self.db.execute_command(f"DQ.{command}", self.key, *arguments)

    def add(self, id: str, payload: Any = "", *options: Any) -> bool:
        """Whether it was added: without REPLACE a job of that id that is there stays as it is."""
        return self.run("ADD", id, payload, *options) is not None

    def cancel(self, id: str) -> bool:
        """Whether it was cancelled: it is not if it is gone, or a worker is at it."""
        return bool(self.run("DEL", "UNRESERVED", "IDS", 1, id) == 1)

    def get(self, id: str) -> Any:
        """All fields of a job as a dict, or None."""
        fields = self.run("GET", id)
        if isinstance(fields, list):        # RESP2 has no maps
            fields = dict(zip(fields[::2], fields[1::2]))
        return fields

    def take(self, wait_s: float = WAIT_S) -> Optional[Job]:
        """The next ready job, as soon as there is one; None if none came."""
        answer = self.run("BPOP", wait_s)
        return Job(*answer[1:]) if answer else None

    def take_many(self, count: int, wait_s: float = WAIT_S) -> list[Job]:
        answer = self.run("BPOP", wait_s, "COUNT", count)
        return [Job(*job) for job in answer[1]] if answer else []

    def ack(self, *jobs: Job) -> int:
        """How many of them were ours to finish: a job that took longer than its lease may be another worker's."""
        ids_and_tokens = [part for job in jobs for part in (job.id, job.token)]
        return sum(self.run("ACK", "WITHTOKENS", "IDS", len(jobs), *ids_and_tokens))

    def touch(self, job: Job) -> bool:
        """Begins its lease anew; False if the job is no longer ours."""
        return self.run("TOUCH", job.id, "TOKEN", job.token) is not None

    def nack(self, job: Job, *options: Any) -> Any:
        return self.run("NACK", job.id, "TOKEN", job.token, *options)


def work(queue: Queue, handle: Handler, stop: Optional[threading.Event] = None, wait_s: float = WAIT_S) -> None:
    """A worker: hands each job to handle(), until `stop` (a threading.Event) is set."""

    def next_job() -> None:
        if job := queue.take(wait_s):
            settle(queue, job, handle)

    keep_on(queue, next_job, stop)


def keep_on(queue: Queue, step: Callable[[], None], stop: Optional[threading.Event] = None) -> None:
    """Calls step() again and again, until `stop` is set, whatever becomes of the server."""
    stop = stop or threading.Event()
    while not stop.is_set():
        try:
            step()
        except redis.RedisError as error:
            # A lost connection, UNBLOCKED or READONLY after a failover: what we had comes back with its lease's end.
            logging.warning("worker of %s: %r", queue.key, error)
            stop.wait(0.5)


@contextlib.contextmanager
def heartbeat(queue: Queue, job: Job) -> Iterator[None]:
    """Begins the job's lease anew at each third of it, until the block ends: for handlers that may take longer. The
    clocks of worker and server should agree."""
    done, every_s = threading.Event(), max(0.02, (job.deadline - now_ms()) / 3000)

    def beat() -> None:
        while not done.wait(every_s):
            try:
                # One that was settled just now is gone, too.
                if not queue.touch(job) and not done.wait(0.1):
                    return logging.warning("job %s is no longer ours, and its handler is still at it", job.id)
            except redis.RedisError as error:
                logging.warning("heartbeat of job %s: %r", job.id, error)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def settle(queue: Queue, job: Job, handle: Handler) -> None:
    try:
        with heartbeat(queue, job):
            settled = handle(job) is SETTLED
    except Later as later:
        queue.nack(job, "SILENT", *later.options)
    except Hopeless:
        queue.nack(job, "FATAL")
    except Exception as error:
        logging.warning("job %s failed at attempt %d: %r", job.id, job.attempts, error)
        queue.nack(job)         # its ladder says for how long, else the server's
    else:
        if not settled and queue.ack(job) == 0:
            logging.warning("job %s was not ours any more when it was done: it may be done twice", job.id)


def demo(about: str, **seconds: float) -> tuple[redis.Redis, argparse.Namespace]:
    """The options of a recipe that is run as a program; (connection, options)."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--url", default="redis://localhost")
    for name, default in seconds.items():
        parser.add_argument(f"--{name}", type=float, default=default, metavar="S", help=f"default {default} s")
    options = parser.parse_args()
    return connect(options.url), options


@contextlib.contextmanager
def in_background(worker: Callable[..., None], *arguments: Any, **options: Any) -> Iterator[None]:
    """Runs a worker in a thread until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=worker, args=arguments, kwargs={"stop": stop, **options})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
