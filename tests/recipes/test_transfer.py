"""Money that is moved exactly once, while worker and server are killed; and without the fence it is not."""

import random, signal, subprocess, sys, unittest
from pathlib import Path

import redis

from support import MODULE, RECIPES, Server, wait_until

import transfer
from commands import Queue, connect, settle

KEY, HASHES = "{bank}:transfers", ("{bank}:checking", "{bank}:savings")
JOBS, AMOUNT, LEASE_MS, KILLS = 300, 10, 150, 8
# What the recipe is not: without the step, a job that is delivered again moves its money again.
UNFENCED = "\n".join(line for line in transfer.MOVE.splitlines() if "DQ." not in line)

# A worker of its own process, which dies between the move and its ack each time that chance has it so.
WORKER = """
import os, random, sys
sys.path.insert(0, sys.argv[1])
import transfer
from commands import Queue, connect, work
queue, hashes, script = Queue(connect(sys.argv[2]), sys.argv[3]), sys.argv[4:6], sys.argv[6]

def handle(job):
    transfer.move(queue, *hashes, job, script)
    if random.random() < 0.03:
        os.kill(os.getpid(), 9)

work(queue, handle, wait_s=0.1)
"""


class Transfer(unittest.TestCase):
    def setUp(self):
        self.server = Server(MODULE, None, "--appendonly", "yes", "--appendfsync", "always")
        self.addCleanup(self.server.discard)
        self.workers = []
        self.addCleanup(lambda: [self.end(each) for each in self.workers])

    def begin(self, script):
        command = [sys.executable, "-c", WORKER, RECIPES, self.server.url, KEY, *HASHES, script]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self, worker):
        worker.kill()
        worker.wait()

    def survivors(self, script):
        """Those that died are replaced."""
        self.workers = [each if each.poll() is None else self.begin(script) for each in self.workers]

    def left(self, db, script):
        self.survivors(script)
        try:
            return db.execute_command("DQ.LEN", KEY)
        except redis.RedisError:
            return JOBS

    def kill_server(self):
        """Between two system calls. SIGKILL can cut a write of the AOF short, within a transaction; servers before
        Valkey 9.1.2 then carry out the first half of it at the start after the next."""
        process, stat = self.server.process, Path(f"/proc/{self.server.process.pid}/stat")
        process.send_signal(signal.SIGSTOP)
        wait_until("it stands still", lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")
        self.server.kill()
        self.server.start()

    def balances(self, script):
        db = connect(self.server.url)
        queue = Queue(db, KEY)
        db.hset(HASHES[0], "ada", JOBS * AMOUNT)
        for n in range(JOBS):
            queue.add(f"transfer:{n}", f"ada {AMOUNT}", "TTR", LEASE_MS)
        self.workers = [self.begin(script) for _ in range(3)]
        for n in range(KILLS):
            goal = JOBS - (n + 1) * JOBS // (KILLS + 2)
            wait_until("some are done", lambda: self.left(db, script) <= goal)
            if n % 2:
                self.end(random.choice(self.workers))
            else:
                self.kill_server()
        wait_until("all are done", lambda: self.left(db, script) == 0)
        return [int(db.hget(each, "ada") or 0) for each in HASHES]

    def test_the_sum_is_right(self):
        self.assertEqual(self.balances(transfer.MOVE), [0, JOBS * AMOUNT])

    def test_a_lease_that_is_over_moves_nothing_and_ends_no_job(self):
        db = connect(self.server.url)
        queue = Queue(db, KEY)
        queue.add("transfer:1", f"ada {AMOUNT}", "TTR", 1)
        job = queue.take()
        wait_until("its lease is over", lambda: db.execute_command("DQ.LEN", KEY, "READY") == 1)
        settle(queue, job, lambda job: transfer.move(queue, *HASHES, job))
        self.assertEqual((db.execute_command("DQ.LEN", KEY), db.exists(*HASHES)), (1, 0))

    def test_without_the_fence_it_is_not(self):
        checking, savings = self.balances(UNFENCED)
        self.assertGreater(savings, JOBS * AMOUNT)
        self.assertEqual(checking + savings, JOBS * AMOUNT, "one script is still all or nothing")
