"""What the recipes share: a queue's commands on redis-py, and the loop of a worker.

Nothing here is needed to use dq: each method is one command. Copy what you like.
"""

import argparse, contextlib, logging, threading, time
from typing import NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

WAIT_S = 5      # how long a worker waits in one DQ.BPOP before it looks whether it shall stop


class Later(Exception):
    """Raised by a handler: not now, through no fault of the job. The attempt is not counted. Without a delay the job
    keeps its place in line."""

    def __init__(self, delay_ms=None):
        self.options = [] if delay_ms is None else ["DELAY", delay_ms]


class Hopeless(Exception):
    """Raised by a handler: this will never succeed, so it is not tried again."""


class Job(NamedTuple):
    id: str
    payload: str
    token: str
    attempts: int
    deadline: int


def connect(url="redis://localhost"):
    # Ids and payloads are bytes: those that are no UTF-8 become texts from which the same bytes are sent again.
    # The socket must be more patient than DQ.BPOP (redis-py 8 gives up after 5 s if not told otherwise),
    # and redis-py must not send a command again by itself: a second DQ.BPOP would take a second job,
    # while the first waits for the end of a lease that nobody holds.
    return redis.Redis.from_url(url, decode_responses=True, encoding_errors="surrogateescape",
                                socket_timeout=WAIT_S + 10, retry=Retry(NoBackoff(), 0))


def now_ms():
    return int(time.time() * 1000)


class Queue:
    def __init__(self, db, key):
        self.db, self.key = db, key

    def run(self, command, *arguments):
        return self.db.execute_command(f"DQ.{command}", self.key, *arguments)

    def add(self, id, payload="", *options):
        """Whether it was added: without REPLACE a job of that id that is there stays as it is."""
        return self.run("ADD", id, payload, *options) is not None

    def cancel(self, id):
        """Whether it was cancelled: it is not if it is gone, or a worker is at it."""
        return self.run("DEL", "UNRESERVED", id) == 1

    def get(self, id):
        """All fields of a job as a dict, or None."""
        fields = self.run("GET", id)
        if isinstance(fields, list):        # RESP2 has no maps
            fields = dict(zip(fields[::2], fields[1::2]))
        return fields

    def take(self, wait_s=WAIT_S):
        """The next ready job, as soon as there is one; None if none came."""
        answer = self.run("BPOP", wait_s)
        return answer and Job(*answer[1:])

    def take_many(self, count, wait_s=WAIT_S):
        answer = self.run("BPOP", wait_s, "COUNT", count)
        return [Job(*job) for job in answer[1]] if answer else []

    def ack(self, *jobs):
        """How many of them were ours to finish: a job that took longer than its lease may be another worker's."""
        return self.run("ACK", "WITHTOKENS", *[part for job in jobs for part in (job.id, job.token)])

    def nack(self, job, *options):
        return self.run("NACK", job.id, "TOKEN", job.token, *options)


def work(queue, handle, stop=None, wait_s=WAIT_S):
    """A worker: hands each job to handle(), until `stop` (a threading.Event) is set."""
    while not (stop and stop.is_set()):
        try:
            if job := queue.take(wait_s):
                settle(queue, job, handle)
        except redis.RedisError as error:
            # A lost connection, UNBLOCKED or READONLY after a failover: what we had comes back with its lease's end.
            logging.warning("worker of %s: %r", queue.key, error)
            time.sleep(0.5)


def settle(queue, job, handle):
    try:
        handle(job)
    except Later as later:
        queue.nack(job, "SILENT", *later.options)
    except Hopeless:
        queue.nack(job, "FATAL")
    except Exception as error:
        logging.warning("job %s failed at attempt %d: %r", job.id, job.attempts, error)
        queue.nack(job)     # waits for its ladder's step; without a ladder it is ready again at once
    else:
        queue.ack(job)


def demo(about, **seconds):
    """The options of a recipe that is run as a program; (connection, options)."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--url", default="redis://localhost")
    for name, default in seconds.items():
        parser.add_argument(f"--{name}", type=float, default=default, metavar="S", help=f"default {default} s")
    options = parser.parse_args()
    return connect(options.url), options


@contextlib.contextmanager
def in_background(worker, *arguments, **options):
    """Runs a worker in a thread until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=worker, args=arguments, kwargs={"stop": stop, **options})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
