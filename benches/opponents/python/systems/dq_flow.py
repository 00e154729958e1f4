"""A batch with a callback: children in a group, added by DQ.MADD, and a job AFTER GROUP. The worker is the Python library's."""

from systems import dq_worker
from systems.dq import QUEUE
from systems.dq_worker import dq

AT_A_TIME = 1000


class System(dq_worker.System):
    def add_batch(self, payloads, callback):
        for start in range(0, len(payloads), AT_A_TIME):
            some = payloads[start : start + AT_A_TIME]
            jobs = [word for at, payload in enumerate(some, start) for word in (f"child:{at}", payload)]
            self.server.execute_command("DQ.MADD", QUEUE, len(some), *jobs, "GROUP", "batch")
        self.server.execute_command("DQ.ADD", QUEUE, callback, callback, "AFTER", "GROUP", "batch")

    def work_batch(self, handle, is_ready):
        worker = dq.Worker(self.queue, lambda job: handle(job.payload.decode()), concurrency=self.concurrency)
        is_ready()
        worker.start()
        worker.join()
