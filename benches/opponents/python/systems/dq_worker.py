"""The Python library of dq: a worker with ten threads. Jobs are added as systems/dq.py does."""

import sys
from pathlib import Path

from systems import dq as plain

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "clients/python/src"))
sys.modules.pop("dq", None)

import dq  # noqa: E402


class System(plain.System):
    concurrency = 10

    def __init__(self, port):
        super().__init__(port)
        self.queue = dq.Queue(f"redis://127.0.0.1:{port}", plain.QUEUE)

    def work(self, seen, is_ready):
        def handle(job):  # without a result, as those of the others
            seen.handle(job.payload.decode())

        worker = dq.Worker(self.queue, handle, concurrency=self.concurrency)
        worker.start()
        is_ready()
        worker.join()
