"""dq's steps and signals, through the Python library: ten threads."""

import sys
from pathlib import Path

from systems.durable import AT_ONCE, Durable

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "clients/python/src"))
sys.modules.pop("dq", None)

import dq  # noqa: E402


class System(Durable):
    def begin(self):
        self.queue = dq.Queue(f"redis://127.0.0.1:{self.port}", "jobs")
        dq.Worker(self.queue, self.handle, concurrency=AT_ONCE).start()

    def start(self, id, steps):
        self.queue.add(steps, id=id)

    def start_waiting(self, id):
        self.start(id, 0)

    def signal(self, id):
        self.queue.signal(id, "signed", "by Ada")

    def handle(self, job):
        for number in range(job.data):
            job.step(str(number), self.step_done)
        if job.data:
            return self.job_done()
        if "signed" not in job.steps:
            self.waits()
        job.wait("signed")
        self.resumed()
