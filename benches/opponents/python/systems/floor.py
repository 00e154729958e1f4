"""No queue at all: a client that sleeps until an instant and then asks the server something."""

import time

import redis

from program import now_ms, payload

STEP_MS = 5


class System:
    def __init__(self, port):
        self.server = redis.Redis(port=port)

    def work(self, seen, is_ready):
        is_ready()
        first = int(now_ms()) + 100
        for number in range(seen.wanted):
            due_ms = first + number * STEP_MS
            time.sleep(max(0, due_ms - now_ms()) / 1000)
            self.server.ping()
            seen.handle(payload(due_ms, number))
