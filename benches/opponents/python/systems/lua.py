"""What careful people write by hand: a sorted set of dues and a hash of payloads, kept together by scripts; a job
that was taken stands in a second sorted set, by the end of its lease, until it is acknowledged. Polled."""

import time

import redis

KEYS = ["{jobs}due", "{jobs}data", "{jobs}taken"]
POLL_S = 0.1
LEASE_MS = 60_000

ADD = """redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])"""

POP = """local job = redis.call('ZPOPMIN', KEYS[1])
if not job[1] then return false end
if tonumber(job[2]) > tonumber(ARGV[1]) then
    redis.call('ZADD', KEYS[1], job[2], job[1])
    return false
end
redis.call('ZADD', KEYS[3], ARGV[2], job[1])
return {job[1], redis.call('HGET', KEYS[2], job[1])}"""

ACK = """redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[3], ARGV[1])"""


class System:
    def __init__(self, port):
        self.server = redis.Redis(port=port, decode_responses=True)
        self.add_script = self.server.register_script(ADD)
        self.pop = self.server.register_script(POP)
        self.ack = self.server.register_script(ACK)

    def add(self, number, payload, due_ms):
        self.add_script(KEYS, [due_ms or 0, number, payload])

    def add_many(self, jobs):
        pipeline = self.server.pipeline(transaction=False)
        for number, payload, due_ms in jobs:
            self.add_script(KEYS, [due_ms or 0, number, payload], client=pipeline)
        pipeline.execute()

    def work(self, seen, is_ready):
        is_ready()
        is_over = False
        while not is_over:
            now_ms = int(time.time() * 1000)
            job = self.pop(KEYS, [now_ms, now_ms + LEASE_MS])
            if job:
                is_over = seen.handle(job[1])
                self.ack(KEYS, [job[0]])
            else:
                time.sleep(POLL_S)
