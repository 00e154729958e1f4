"""A sorted set that is polled: the payload is the member, its score the due. ZREM decides who has the job;
a job whose worker dies is lost."""

import time

import redis

QUEUE = "jobs"
POLL_S = 0.1
BATCH = 100


class System:
    def __init__(self, port):
        self.server = redis.Redis(port=port, decode_responses=True)

    def add(self, number, payload, due_ms):
        self.server.zadd(QUEUE, {payload: due_ms or 0})

    def add_many(self, jobs):
        pipeline = self.server.pipeline(transaction=False)
        for _, payload, due_ms in jobs:
            pipeline.zadd(QUEUE, {payload: due_ms or 0})
        pipeline.execute()

    def work(self, seen, is_ready):
        is_ready()
        is_over = False
        while not is_over:
            due = self.server.zrangebyscore(QUEUE, "-inf", time.time() * 1000, start=0, num=BATCH)
            for payload in due:
                if self.server.zrem(QUEUE, payload):
                    is_over = seen.handle(payload) or is_over
            if not due:
                time.sleep(POLL_S)
