"""RQ with its SimpleWorker, which runs jobs in its own process instead of forking for each, one at a time."""

import logging
from datetime import datetime, timezone

import redis
import rq

SEEN = None


def handle(payload):
    SEEN.handle(payload)


class System:
    def __init__(self, port):
        self.server = redis.Redis(port=port)
        self.queue = rq.Queue("jobs", connection=self.server)

    def add(self, number, payload, due_ms):
        if due_ms is None:
            self.queue.enqueue(handle, payload, result_ttl=0)
        else:
            self.queue.enqueue_at(datetime.fromtimestamp(due_ms / 1000, timezone.utc), handle, payload, result_ttl=0)

    def add_many(self, jobs):
        self.queue.enqueue_many([rq.Queue.prepare_data(handle, (payload,), result_ttl=0) for _, payload, _ in jobs])

    def work(self, seen, is_ready):
        global SEEN
        SEEN = seen
        logging.getLogger("rq.worker").setLevel(logging.ERROR)
        worker = rq.SimpleWorker([self.queue], connection=self.server)
        is_ready()
        worker.work(with_scheduler=False, logging_level="ERROR")
