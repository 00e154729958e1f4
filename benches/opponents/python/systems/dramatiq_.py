"""Dramatiq with Redis as its broker: a worker with ten threads."""

import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker


class System:
    add_many = None

    def __init__(self, port):
        self.broker = RedisBroker(port=port)
        dramatiq.set_broker(self.broker)
        self.seen = None

        @dramatiq.actor
        def handle(payload):
            self.seen.handle(payload)

        self.handle = handle

    def add(self, number, payload, due_ms):
        delay = None if due_ms is None else max(0, due_ms - time.time() * 1000)
        self.handle.send_with_options(args=(payload,), delay=delay)

    def work(self, seen, is_ready):
        self.seen = seen
        dramatiq.Worker(self.broker, worker_threads=10).start()
        is_ready()
