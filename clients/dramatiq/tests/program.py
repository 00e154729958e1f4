"""A program with actors, as Dramatiq's command line runs it."""

import logging
import os
import threading
import time

import dramatiq
import redis

from dq_dramatiq import DqBroker

TRACE = redis.Redis.from_url(os.environ["TEST_URL"], db=2)

broker = DqBroker(url=os.environ["TEST_URL"], lease=int(os.environ.get("TEST_LEASE", "60000")))
dramatiq.set_broker(broker)


class Ready(logging.Handler):
    """A process that ends while it says so to its parent keeps the lock of that: the parent would wait forever."""

    said = threading.Event()

    def emit(self, record):
        if "is ready for action" in record.getMessage():
            self.said.set()


logging.getLogger("dramatiq").addHandler(Ready())


@dramatiq.actor(max_retries=2)
def kill():
    """Ends its worker, as the system does when memory is short."""
    Ready.said.wait()
    TRACE.rpush("killed", broker.queue("default").len("reserved"))
    os._exit(1)


@dramatiq.actor(max_retries=9)
def good():
    time.sleep(0.01)
    TRACE.incr("good")


@dramatiq.actor
def hold(name):
    """Runs until it is told to go on."""
    TRACE.rpush("ran", name)
    while not TRACE.get(f"go:{name}"):
        time.sleep(0.01)
    TRACE.rpush("done", name)
