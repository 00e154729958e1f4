"""Celery with Redis as its broker: a task with an eta. Acknowledged after the work (acks_late), no results kept."""

from datetime import datetime, timezone

from celery import Celery
from celery.signals import worker_ready


class System:
    add_many = None
    pool = ("solo",)

    def __init__(self, port):
        self.app = Celery("jobs", broker=f"redis://127.0.0.1:{port}/0")
        self.app.conf.update(task_ignore_result=True, task_acks_late=True, worker_redirect_stdouts=False)
        self.seen = None

        @self.app.task(name="handle")
        def handle(payload):
            self.seen.handle(payload)

        self.handle = handle

    def add(self, number, payload, due_ms):
        eta = None if due_ms is None else datetime.fromtimestamp(due_ms / 1000, timezone.utc)
        self.handle.apply_async((payload,), eta=eta)

    def work(self, seen, is_ready):
        self.seen = seen
        worker_ready.connect(lambda **_: is_ready(), weak=False)
        self.app.worker_main(["worker", "--pool", *self.pool, "--loglevel", "ERROR"])
