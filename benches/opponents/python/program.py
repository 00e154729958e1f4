"""What the harness has a system do, for systems that are used from Python.

    program.py SYSTEM add single|bulk SECONDS    far jobs, for so long
    program.py SYSTEM fill COUNT BYTES           so many far jobs with payloads of so many bytes
    program.py SYSTEM ready COUNT WARM           so many jobs that are due at once; WARM more before, then it waits for a line
    program.py SYSTEM paced COUNT SECONDS WARM   jobs added over so long, each due 2 s after it was added; WARM as above
    program.py SYSTEM work COUNT WARM            a worker; it tells when it has seen COUNT jobs, and when it has seen WARM
    program.py SYSTEM durable JOBS STEPS SIGNALS jobs with steps, then jobs that wait for a signal, all in this process
    program.py SYSTEM batch_fill COUNT           so many jobs, and one that runs after all of them
    program.py SYSTEM batch_work COUNT           a worker of that batch; it tells how long it took, and how it ended

Each prints one line of JSON, the worker a first one when it is ready; it stays until it is killed. The server's
port is in BENCH_PORT. A payload begins with the due (unix-ms) and the job's number. The programs in other languages do the same.
"""

import importlib
import json
import os
import signal
import sys
import time

PAYLOAD_BYTES = 64
BATCH = 100
WARM_UP_S = 0.5
AHEAD_MS = 2000
HOUR_MS = 3_600_000


def now_ms():
    return time.time() * 1000


def payload(due_ms, number, size=PAYLOAD_BYTES):
    return f"{due_ms} {number} ".ljust(size, "x")


def tell(**facts):
    print(json.dumps(facts), flush=True)


def far(number, size=PAYLOAD_BYTES):
    due_ms = int(now_ms()) + HOUR_MS + number % HOUR_MS
    return number, payload(due_ms, number, size), due_ms


def batches(jobs):
    batch = []
    for job in jobs:
        batch.append(job)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def add_all(system, jobs):
    """In bulk where the system has a way to do that."""
    if system.add_many:
        for batch in batches(jobs):
            system.add_many(batch)
    else:
        for job in jobs:
            system.add(*job)


def add(system, how, seconds):
    number, before = 0, 0
    began, end = None, time.monotonic() + WARM_UP_S
    while True:
        if how == "single":
            system.add(*far(number))
            number += 1
        else:
            system.add_many([far(number + more) for more in range(BATCH)])
            number += BATCH
        now = time.monotonic()
        if now >= end:
            if began is not None:
                break
            before, began, end = number, now, now + float(seconds)
    tell(jobs=number - before, seconds=now - began, jobs_in_all=number)


def fill(system, count, size):
    add_all(system, (far(number, int(size)) for number in range(int(count))))
    tell(jobs=int(count))


def warm_up(system, count):
    add_all(system, due(range(count)))
    if count:
        sys.stdin.readline()


def ready(system, count, warm):
    count, warm = int(count), int(warm)
    warm_up(system, warm)
    began = time.time()
    add_all(system, due(range(warm, warm + count)))
    tell(began=began)


def due(numbers):
    return ((number, payload(0, number), None) for number in numbers)


def paced(system, count, seconds, warm):
    count, step_ms = int(count), 1000 * float(seconds) / int(count)
    warm_up(system, int(warm))
    first = int(now_ms()) + 100
    for number in range(count):
        at = first + int(number * step_ms)
        time.sleep(max(0, at - now_ms()) / 1000)
        system.add(int(warm) + number, payload(at + AHEAD_MS, int(warm) + number), at + AHEAD_MS)
    tell(jobs=count)


class Seen:
    """What a worker has been given."""

    def __init__(self, wanted, warm=0):
        self.wanted = wanted
        self.warm = warm
        self.numbers = set()
        self.twice = 0
        self.late_us = []

    def handle(self, payload):
        """True when that was the last job."""
        now_us = time.time() * 1e6
        due_ms, number, _ = payload.split(" ", 2)
        if number in self.numbers:
            self.twice += 1
            return False
        self.numbers.add(number)
        if int(due_ms):
            self.late_us.append(round(now_us - int(due_ms) * 1000))
        if len(self.numbers) == self.warm:
            tell(warm=True)
        is_last = len(self.numbers) == self.wanted
        if is_last:
            tell(ended=time.time(), twice=self.twice, late_us=self.late_us)
        return is_last


def work(system, count, warm):
    seen = Seen(int(count), int(warm))
    system.work(seen, lambda: tell(ready=True))
    signal.pause()  # whoever measures looks at it yet


CALLBACK = "callback"


def batch_fill(system, count):
    payloads = [payload(0, number) for number in range(int(count))]
    began = time.monotonic()
    system.add_batch(payloads, CALLBACK)
    tell(seconds=time.monotonic() - began)


def batch_work(system, count):
    """It begins when it is ready; the end is that of the callback. All children must have run before it, each once."""
    began = [0.0]
    numbers = []

    def handle(payload):
        if payload != CALLBACK:
            numbers.append(payload.split(" ", 2)[1])
            return
        took = time.monotonic() - began[0]
        tell(seconds=took, missing=int(count) - len(set(numbers)), twice=len(numbers) - len(set(numbers)))

    def is_ready():
        tell(ready=True)
        began[0] = time.monotonic()

    system.work_batch(handle, is_ready)
    signal.pause()


def durable(system, jobs, steps, signals):
    system.begin()
    tell(ready=True)
    tell(seconds=system.steps(int(jobs), int(steps)))
    tell(late_us=system.signals(int(signals)))


def main():
    name, task, *arguments = sys.argv[1:]
    system = importlib.import_module(f"systems.{name}").System(int(os.environ["BENCH_PORT"]))
    tasks = [add, fill, ready, paced, work, batch_fill, batch_work, durable]
    {each.__name__: each for each in tasks}[task](system, *arguments)


if __name__ == "__main__":
    main()
