"""What the loop of a worker does when something goes wrong around it: commands.py, and the recipes with a loop of their own."""

import contextlib, logging, signal, threading, time

from support import WORDS, Recipe, Server, wait_until

import close_unpaid, settle_batch
from commands import Queue, connect, in_background, settle, work

STOPS_WITHIN_S = 6


@contextlib.contextmanager
def paused(server):
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


class Workers(Recipe):
    def setUp(self):
        super().setUp()
        logging.disable(logging.NOTSET)
        self.addCleanup(logging.disable, logging.WARNING)

    def loops(self, queue, done):
        """Each recipe's worker, and what gives it something to do."""
        handle = lambda job: done.set()
        ledger = settle_batch.open_ledger(self.path)
        return {
            "work": ((work, queue, handle), lambda: queue.add("a"), done.is_set),
            "settle_batch": ((settle_batch.settler, queue, self.path), lambda: queue.add("c", "5"),
                             lambda: ledger.execute("SELECT * FROM settled WHERE trade = 'c'").fetchone()),
        }

    def test_ids_that_read_as_options(self):
        queue = self.queue()
        for id in WORDS:
            self.assertTrue(queue.add(id), id)
            self.assertTrue(queue.cancel(id), id)
            queue.add(id)
            self.assertEqual(queue.nack(queue.take(), "SILENT"), "ready", id)
            job = queue.take()
            self.assertTrue(queue.touch(job), id)
            self.assertEqual((queue.ack(job), queue.ack(job)), (1, 0), id)
        self.assertEqual(queue.run("LEN"), 0)

    def test_a_server_that_comes_back_is_worked_for_again(self):
        server = Server()
        self.addCleanup(server.discard)
        queue, done = Queue(connect(server.url), "q"), threading.Event()
        for name, (worker, fill, is_done) in self.loops(queue, done).items():
            with self.subTest(name), self.assertLogs(level="WARNING") as logs, in_background(*worker):
                wait_until("it waits", lambda: queue.db.info("clients")["blocked_clients"] == 1)
                server.kill()
                wait_until("it has seen that", lambda: "ConnectionError" in str(logs.output))
                server.start()
                done.clear()
                fill()
                wait_until("it works on", is_done)

    def test_stops_whatever_the_server_does(self):
        ways = {"stopped": paused, "gone": lambda server: contextlib.nullcontext(server.kill())}
        for way, gone in ways.items():
            server = Server()
            self.addCleanup(server.discard)
            queue = Queue(connect(server.url), "q")
            for name, (worker, _, _) in self.loops(queue, threading.Event()).items():
                stop = threading.Event()
                thread = threading.Thread(target=worker[0], args=worker[1:], kwargs={"stop": stop})
                with self.subTest(way=way, loop=name), self.assertLogs(level="WARNING"):
                    thread.start()
                    wait_until("it waits", lambda: queue.db.info("clients")["blocked_clients"] == 1)
                    with gone(server):
                        stop.set()
                        thread.join(STOPS_WITHIN_S)
                        self.assertFalse(thread.is_alive())
                    thread.join()
                    if way == "gone":
                        server.start()

    def test_a_slow_handler_keeps_its_lease(self):
        queue, got = self.queue(), []
        queue.add("slow", "", "TTR", 800)

        def handle(job):
            got.append(job.attempts)
            time.sleep(2)

        with in_background(work, queue, handle, wait_s=0.1), in_background(work, queue, handle, wait_s=0.1):
            self.wait_for_len(queue)
        self.assertEqual(got, [1])

    def test_what_was_not_ours_any_more_is_told(self):
        queue = self.queue()
        queue.add("a")
        job = queue.take()
        queue.run("NACK", "a", "DELAY", 60_000)
        with self.assertLogs(level="WARNING") as logs:
            settle(queue, job, lambda job: None)
        self.assertIn("job a was not ours any more", logs.output[-1])
        self.assertIsNotNone(queue.get("a"))

    def test_a_database_that_is_away_makes_no_hot_loop(self):
        queue, shop, tries = self.queue(), close_unpaid.open_shop(self.path), []
        close_unpaid.place(queue, shop, "a", 1)
        shop.execute("DROP TABLE orders")
        waits = []
        for attempt in range(1, 5):
            with self.assertLogs(level="WARNING"):
                settle(queue, queue.take(), lambda job: close_unpaid.close(shop, job.id))
            job = queue.get("a")
            waits.append(int(job["due"]) - self.server_ms())
            self.assertEqual((job["state"], job["attempts"]), ("delayed", attempt))
            queue.run("RESCHEDULE", "DELAY", 0, "a")
        for wait, least in zip(waits, (500, 1_500, 3_500, 7_500)):
            self.assertGreater(wait, least)

    def test_a_ledger_that_is_away_makes_no_hot_loop(self):
        queue = self.queue()
        with self.assertLogs(level="WARNING"), in_background(settle_batch.settler, queue, self.path, wait_s=0.1):
            wait_until("it waits", lambda: self.db.info("clients")["blocked_clients"] == 1)
            settle_batch.open_ledger(self.path).execute("DROP TABLE settled")
            queue.add("a", "5")
            wait_until("it was given back", lambda: (queue.get("a") or {}).get("state") == "delayed")
