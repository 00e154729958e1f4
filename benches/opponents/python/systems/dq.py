"""dq through redis-py: one job at a time. Without the client's own timeout, which would cut a wait short and send the
command again."""

import redis

QUEUE = "jobs"


class System:
    def __init__(self, port):
        self.server = redis.Redis(port=port, decode_responses=True, socket_timeout=None)

    def add(self, number, payload, due_ms):
        self.server.execute_command(*command(number, payload, due_ms))

    def add_many(self, jobs):
        pipeline = self.server.pipeline(transaction=False)
        for job in jobs:
            pipeline.execute_command(*command(*job))
        pipeline.execute()

    def work(self, seen, is_ready):
        is_ready()
        is_over = False
        while not is_over:
            _, name, payload, token, _, _ = self.server.execute_command("DQ.BPOP", QUEUE, 0)
            is_over = seen.handle(payload)
            self.server.execute_command("DQ.ACK", QUEUE, "WITHTOKENS", name, token)


def command(number, payload, due_ms):
    when = [] if due_ms is None else ["AT", due_ms]
    return ["DQ.ADD", QUEUE, number, payload, *when]
