"""Nothing is lost, and nothing acknowledged that was not answered 2xx, whichever process is killed: by the receiver's
ledger.

DQ_PUSH_SEED: repeats the run with that seed.
"""

import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import redis
from support import Push, PushTest, add, config, free_port, length, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = 1000
KILLS = 10


def seed_of_the_run():
    seed = int(os.environ.get("DQ_PUSH_SEED") or random.randrange(2**32))
    print(f"DQ_PUSH_SEED={seed}", file=sys.stderr)
    return seed


class Sink:
    def __init__(self, seed):
        self.seed = seed
        self.ledger = tempfile.NamedTemporaryFile()
        self.port = free_port()
        self.start()

    def start(self):
        self.seed += 1
        words = [sys.executable, os.path.join(HERE, "sink.py"), str(self.port), self.ledger.name, str(self.seed)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.url = f"http://localhost:{self.port}/"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        self.kill()
        self.ledger.close()

    def called(self):
        """Ids that the receiver answered 2xx, or was about to."""
        with open(self.ledger.name) as file:
            return [line.strip() for line in file]


class Hasty:
    """A fault that must be noticed: a worker that acknowledges before it calls."""

    def __init__(self, server, sink):
        self.server, self.sink = server, sink
        self.start()

    def start(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, args=[self.over], daemon=True)
        self.thread.start()

    def run(self, over):
        client = redis.Redis(port=self.server.port)
        while not over.is_set():
            try:
                jobs = client.execute_command("DQ.POP", "q", "COUNT", 10, "TTR", 1500)
                if jobs:
                    tokens = [word for id, _, token, _, _ in jobs for word in (id, token)]
                    client.execute_command("DQ.ACK", "q", "WITHTOKENS", *tokens)
                for id, payload, *_ in jobs:
                    request = urllib.request.Request(self.sink.url, payload, {"dq-id": id.decode()}, method="POST")
                    urllib.request.urlopen(request, timeout=10).close()
            except (OSError, redis.exceptions.RedisError):
                pass  # as urllib.error.HTTPError
        client.close()

    def kill(self):
        self.over.set()
        self.thread.join()

    close = kill


class Crashes(PushTest):
    def play(self, caller, seed):
        """Kills one of the three at random, repeatedly; returns ids that are neither in the queue nor in the ledger."""
        chance = random.Random(seed)
        server = self.server("--appendonly", "yes", "--appendfsync", "always")
        sink = Sink(seed)
        self.addCleanup(sink.close)
        ids = [f"job-{number}" for number in range(JOBS)]
        for id in ids:
            add(server, id)
        worker = caller(server, sink)
        self.addCleanup(worker.close)
        for _ in range(KILLS):
            goal = len(sink.called()) + chance.randrange(JOBS // KILLS)
            wait_until("calls", lambda: len(sink.called()) >= goal or length(server) == 0)
            victim = chance.choice(["worker", "server", "sink"])
            if victim == "server":
                server.stop()
                server.start()
            else:
                victim = worker if victim == "worker" else sink
                victim.kill()
                victim.start()
        wait_until("all called", lambda: length(server) == 0)
        self.assertEqual(length(server, "DEAD"), 0)
        return set(ids) - set(sink.called())

    def test_nothing_is_lost(self):
        def caller(server, sink):
            lines = ["concurrency = 20", "lease = 1.5", "backoff = [0.1]"]
            return Push(server, config(sink.url, *lines), metrics=False)

        self.assertEqual(self.play(caller, seed_of_the_run()), set())

    def test_haste_is_noticed(self):
        self.assertNotEqual(self.play(Hasty, seed_of_the_run()), set())


if __name__ == "__main__":
    unittest.main()
