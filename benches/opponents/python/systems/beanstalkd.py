"""beanstalkd, with greenstalk. Delays are whole seconds; the protocol has no bulk put."""

import time

import greenstalk


class System:
    add_many = None

    def __init__(self, port):
        self.client = greenstalk.Client(("127.0.0.1", port))

    def add(self, number, payload, due_ms):
        delay_s = 0 if due_ms is None else round(due_ms / 1000 - time.time())
        self.client.put(payload, delay=delay_s)

    def work(self, seen, is_ready):
        is_ready()
        is_over = False
        while not is_over:
            job = self.client.reserve()
            is_over = seen.handle(job.body)
            self.client.delete(job)
