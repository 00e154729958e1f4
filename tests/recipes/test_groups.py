"""What docs/groups.md says of many tenants in one queue."""

import os
import re
import shlex

import redis

from support import HERE, Recipe, wait_until

PAGE = os.path.join(HERE, "../../docs/groups.md")


class ManyTenants(Recipe):
    def setUp(self):
        super().setUp()
        with open(PAGE) as page:
            self.page = page.read()

    def run_line(self, line):
        return self.db.execute_command(*shlex.split(line))

    def pop(self):
        job = self.db.execute_command("DQ.POP", "mails")
        return job and job[0]

    def play(self, lines):
        """Each line does what stands behind its arrow."""
        for line in lines:
            command, _, told = line.partition("->")
            reply = self.run_line(command)
            if told:
                self.assertEqual(reply[0], re.match(r"\s*(\w+)", told)[1], line)

    def lines(self):
        block = re.search(r"```\n(.*?)```", self.page, re.S)[1]
        return block.strip().splitlines()

    def test_the_page(self):
        lines = self.lines()
        self.assertEqual(sum("->" in line for line in lines), 3)
        self.play(lines)

    def test_without_groups_it_is_seen(self):
        with self.assertRaises(AssertionError):
            self.play([re.sub(r" GROUP \w+", "", line) for line in self.lines()])

    def settings(self):
        return re.findall(r"`(DQ\.CFGSET mails GROUP\w+ [\d ]+)`", self.page)

    def test_the_limits(self):
        most, rate, fifo = self.settings()
        for line, count in [(most, 5), (rate, 100), (fifo, 1)]:
            self.db.flushall()
            self.run_line(line)
            for n in range(110):
                self.run_line(f"DQ.ADD mails a{n} x GROUP acme")
            self.run_line("DQ.ADD mails b x GROUP beta")
            taken = []
            while job := self.pop():
                taken.append(job)
            self.assertEqual(len(taken), count + 1, line)
            self.assertIn("b", taken[:3], "the other tenant is not held")

    def test_a_worker_is_woken_when_its_tenant_may_go_on(self):
        self.run_line(self.settings()[0])
        for n in range(6):
            self.run_line(f"DQ.ADD mails a{n} x GROUP acme")
        first = [self.pop() for _ in range(5)]
        self.assertIsNone(self.pop())
        worker = redis.Redis.from_url(self.server.url, decode_responses=True)
        self.addCleanup(worker.close)
        waiting = worker.connection_pool.get_connection()
        waiting.send_command("DQ.BPOP", "mails", "0")
        wait_until("it waits", lambda: self.db.info("clients")["blocked_clients"])
        self.run_line(f"DQ.ACK mails {first[0]}")
        self.assertEqual(waiting.read_response()[1], "a5")

    def test_looking_at_them(self):
        self.play(self.lines())
        self.assertEqual(self.run_line("DQ.GROUPS mails 0")[0], "0")
        self.assertEqual(self.run_line("DQ.LEN mails GROUP acme"), 2)
        self.assertEqual(self.db.info("dq")["dq_groups"], 2)
