"""A program that uses Celery, as its users have it. What its tasks do, they note in a list of the server."""

import os
import time

import redis
from celery import Celery

TRACE = redis.Redis(unix_socket_path=os.environ["TEST_SOCKET"], db=2)
LATE = redis.Redis(unix_socket_path=os.environ["TEST_SOCKET"])
OPTIONS = {"visibility_timeout": float(os.environ["TEST_LEASE"])} if "TEST_LEASE" in os.environ else {}
if "TEST_EAGER" in os.environ:  # how often kombu's own transport looks for tasks whose time is over
    OPTIONS.update(unacked_restore_interval=0.2, unacked_restore_throttle=1)

app = Celery("program", broker=os.environ["TEST_BROKER"], backend=os.environ["TEST_BACKEND"])
app.conf.update(
    broker_transport_options=OPTIONS,
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=int(os.environ.get("TEST_PREFETCH", "4")),
    worker_cancel_long_running_tasks_on_connection_loss=False,
)


@app.task
def note(name):
    TRACE.rpush("ran", name)
    return name


@app.task
def measure(due_ms):
    """Says how late it begins."""
    late_ms = time.time() * 1000 - due_ms
    LATE.rpush("late:task", late_ms)


@app.task(bind=True, acks_late=True)
def hold(self, name):
    """Runs until the test lets it go."""
    TRACE.rpush("ran", name)
    TRACE.set(f"redelivered:{name}", int(bool(self.request.delivery_info.get("redelivered"))))
    TRACE.set(f"pid:{name}", os.getpid())
    while not TRACE.exists(f"go:{name}"):
        time.sleep(0.02)
    TRACE.rpush("done", name)


@app.task(acks_late=True)
def spin(name):
    """Runs like ``hold``, but never gives up the interpreter lock for long."""
    TRACE.rpush("ran", name)
    while not TRACE.exists(f"go:{name}"):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            pass


@app.task(bind=True, acks_late=True, max_retries=3)
def again(self, name):
    """Fails once, and is tried again by Celery's own policy."""
    TRACE.rpush("ran", name)
    if self.request.retries < 1:
        raise self.retry(countdown=0.1)


@app.task(acks_late=True)
def idle(name):
    """Writes nothing, so that it runs while the server's memory is full."""
    while TRACE.exists(f"hold:{name}"):
        time.sleep(0.02)


@app.task(bind=True, acks_late=True, max_retries=2)
def much_later(self, name):
    """Retries in an hour, until its third run."""
    TRACE.rpush("retries", self.request.retries)
    while TRACE.exists(f"hold:{name}"):
        time.sleep(0.02)
    if self.request.retries < 2:
        raise self.retry(countdown=3600)


@app.task(bind=True, acks_late=True)
def refuse(self, name, requeue):
    from celery.exceptions import Reject

    TRACE.rpush("ran", name)
    if not self.request.delivery_info.get("redelivered"):
        raise Reject("not now", requeue=requeue)


@app.task(bind=True, acks_late=True, max_retries=2)
def kill(self):
    """Ends its process, as the system does when memory is short."""
    from celery.worker import state

    TRACE.rpush("killed", len(state.reserved_requests))
    os._exit(1)


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True, max_retries=2)
def kill_process(self):
    TRACE.rpush("killed", 0)
    os.kill(os.getpid(), 9)


@app.task(acks_late=True, max_retries=2)
def good():
    time.sleep(0.01)
    TRACE.incr("good")


@app.task(acks_late=True)
def returns(size):
    TRACE.rpush("ran", "returns")
    return "x" * size if size else object()


@app.task
def fail(why):
    raise ValueError(why)


@app.task
def join(parts):
    return ",".join(map(str, parts))


@app.task(bind=True)
def more(self, name):
    """Adds to the chord that it is a part of."""
    self.add_to_chord(note.s(f"{name}:more"))
    return name
