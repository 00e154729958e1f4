"""What the systems that keep the steps of a job have in common: ten jobs at a time, each of so many steps; and jobs that
wait for a signal, one after the other."""

import threading
import time

AT_ONCE = 10
VALUE = "x" * 64
ANNOUNCED_S = 0.1
"""From a handler's word that it will wait until it certainly does."""


class Durable:
    """A system implements ``begin``, ``start(id, steps)``, which runs a job that calls ``step_done`` and ``job_done``,
    ``start_waiting(id)``, whose job calls ``waits`` and then ``resumed``, and ``signal(id)``."""

    def __init__(self, port):
        self.port = port
        self.ended = threading.Semaphore(0)
        self.waiting = threading.Event()
        self.woken = threading.Event()
        self.woken_at = 0.0
        self.ran = 0
        self.lock = threading.Lock()

    def step_done(self):
        with self.lock:
            self.ran += 1
        return VALUE

    def job_done(self):
        self.ended.release()

    def waits(self):
        self.waiting.set()

    def resumed(self):
        self.woken_at = time.monotonic()
        self.woken.set()

    def steps(self, jobs, steps):
        """Seconds for all."""
        began = time.monotonic()
        for number in range(jobs):
            self.start(f"steps-{number}", steps)
        for _ in range(jobs):
            self.ended.acquire()
        took = time.monotonic() - began
        if self.ran != jobs * steps:
            raise RuntimeError(f"{self.ran} steps ran instead of {jobs * steps}")
        return took

    def signals(self, count):
        """Microseconds from sending each until the handler goes on."""
        late_us = []
        for number in range(count):
            self.waiting.clear()
            self.woken.clear()
            self.start_waiting(f"signal-{number}")
            self.waiting.wait()
            time.sleep(ANNOUNCED_S)
            sent = time.monotonic()
            self.signal(f"signal-{number}")
            self.woken.wait()
            late_us.append(round(1e6 * (self.woken_at - sent)))
        return late_us
