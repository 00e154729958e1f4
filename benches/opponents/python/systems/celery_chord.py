"""A batch with a callback: Celery's chord, whose results are in the same Redis, and a pool of ten threads."""

from celery import Celery, chord
from celery.signals import worker_ready


class System:
    def __init__(self, port):
        url = f"redis://127.0.0.1:{port}"
        self.app = Celery("jobs", broker=f"{url}/0", backend=f"{url}/1")
        self.app.conf.update(task_acks_late=True, worker_redirect_stdouts=False)
        self.seen = None

        @self.app.task(name="handle")
        def handle(payload):
            self.seen(payload)

        @self.app.task(name="callback")
        def callback(_, payload):
            self.seen(payload)

        self.child, self.callback = handle, callback

    def add_batch(self, payloads, callback):
        chord([self.child.s(payload) for payload in payloads])(self.callback.s(callback))

    def work_batch(self, handle, is_ready):
        self.seen = handle
        worker_ready.connect(lambda **_: is_ready(), weak=False)
        self.app.worker_main(["worker", "--pool", "threads", "--concurrency", "10", "--loglevel", "ERROR"])
