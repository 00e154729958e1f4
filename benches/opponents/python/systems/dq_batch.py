"""dq through redis-py: the worker takes and acknowledges up to 100 jobs at a time."""

from systems import dq

BATCH = 100


class System(dq.System):
    def work(self, seen, is_ready):
        is_ready()
        is_over = False
        while not is_over:
            _, jobs = self.server.execute_command("DQ.BPOP", dq.QUEUE, 0, "COUNT", BATCH)
            finished = []
            for name, payload, token, _, _ in jobs:
                is_over = seen.handle(payload) or is_over
                finished += [name, token]
            self.server.execute_command("DQ.ACK", dq.QUEUE, "WITHTOKENS", *finished)
