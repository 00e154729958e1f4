"""Callbacks on a ladder, an account's lock, a partner's limits, and a reaction that happens once."""

import time

import redis

from support import PATIENCE_S, Recipe, at_once, wait_until

import callbacks, exactly_once, locked, partner
from commands import Later, in_background, settle, work


class Callbacks(Recipe):
    def receiver(self, status):
        receiver = callbacks.Receiver(status)
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        return receiver

    def test_the_ladder(self):
        """Each wait is the ladder's: 1, 5, 10, 30 minutes, 1 hour. The jobs are put forward, nobody waits."""
        queue, receiver = self.queue(), self.receiver(503)
        callbacks.send_later(queue, "a", receiver.url, {"n": 1})
        waits = []
        for attempt in range(1, 7):
            before = self.server_ms()
            settle(queue, queue.take(), callbacks.post)
            job = queue.get("a")
            self.assertEqual(job["attempts"], attempt)
            if job["state"] == "delayed":
                waits.append((job["due"] - before) // 60_000)
                self.assertGreaterEqual(job["due"], before + callbacks.LADDER_MS[attempt - 1])
                queue.run("RESCHEDULE", "DELAY", 0, "a")
        self.assertEqual((queue.get("a")["state"], len(receiver.got)), ("dead", 6))
        self.assertEqual(waits, [1, 5, 10, 30, 60])

    def test_dead_told_of_and_sent_again(self):
        queue, receiver, alerts = self.queue(), self.receiver(500), []
        self.db.config_set("notify-keyspace-events", "Kg")
        callbacks.switch_events_on(self.db)
        self.assertEqual({*self.db.config_get("notify-keyspace-events")["notify-keyspace-events"]}, {*"KEgd"})
        callbacks.send_later(queue, "old", receiver.url, {}, [1])
        with in_background(work, queue, callbacks.post, wait_s=0.1):
            wait_until("a death", lambda: queue.run("LEN", "DEAD") == 1)
            # From now on by events alone: the patience ends before a wait does.
            with in_background(self.watch_long, queue, alerts):
                wait_until("the first alert", lambda: alerts == ["old"])
                callbacks.send_later(queue, "new", receiver.url, {"n": 2}, [1, 1])
                wait_until("the second alert", lambda: alerts == ["old", "new"])
                receiver.status = 200
                self.assertEqual(callbacks.send_again(queue, "new"), 1)
                self.wait_for_len(queue)
                self.assertEqual(callbacks.send_again(queue), 1, "the other one")
                wait_until("both", lambda: queue.run("LEN") + queue.run("LEN", "DEAD") == 0)
                callbacks.send_later(queue, "last", receiver.url + "x", {}, [])
                self.wait_for_len(queue)
                receiver.status = 410
                callbacks.send_later(queue, "gone", receiver.url, {}, [60_000])
                wait_until("the alert, which ends the watch", lambda: "gone" in alerts)
                callbacks.send_later(queue, "more", receiver.url, {})       # an event that it wakes from
        self.assertEqual(alerts, ["old", "new", "gone"])
        tries = [(id, status) for id, _, status in receiver.got]
        self.assertEqual(tries.count(("new", 500)), 3, "one try, and one for each step")
        self.assertEqual((tries.count(("new", 200)), tries.count(("old", 200))), (1, 1))
        self.assertEqual(tries.count(("gone", 410)), 1, "what can never succeed is not tried again")

    def watch_long(self, queue, alerts, stop):
        def alert(id, payload):
            alerts.append(id)
            if id == "gone":
                stop.set()

        callbacks.watch(queue, alert, stop, wait_s=1.5 * PATIENCE_S)


class Work(Recipe):
    def test_it_goes_on_after_a_failover(self):
        """What a client that waits is told when its master is demoted."""
        queue, done = self.queue(), []
        with in_background(work, queue, lambda job: done.append(job.id)):
            def blocked():
                return [int(client["id"]) for client in self.db.client_list() if "b" in client["flags"]]

            for id in wait_until("the worker waits", blocked):
                self.assertEqual(self.db.client_unblock(id, error=True), 1)
            queue.add("after")
            self.wait_for_len(queue)
        self.assertEqual(done, ["after"])

    def test_bytes_that_are_no_text(self):
        queue, done, raw = self.queue(), [], redis.Redis.from_url(self.server.url)
        self.addCleanup(raw.close)
        raw.execute_command("DQ.ADD", queue.key, b"id\xff", b"\x80\xfe")
        with in_background(work, queue, lambda job: done.append(job.payload), wait_s=0.1):
            self.wait_for_len(queue)
        self.assertEqual([payload.encode(errors="surrogateescape") for payload in done], [b"\x80\xfe"])


class Locked(Recipe):
    def most_at_a_time(self, guard, inside=lambda most: time.sleep(0.03)):
        """Three workers, three jobs of each of three accounts. (The most at a time in one account, attempts.)"""
        queue, running, most, attempts = self.queue(), [], [], []

        def handle(job):
            running.append(job.payload)
            most.append(running.count(job.payload))
            attempts.append(job.attempts)
            inside(most)
            running.remove(job.payload)

        for n in range(9):
            queue.add(f"job:{n}", f"account:{n // 3}", "ATTEMPTS", 1)
        handler = guard(handle)
        with in_background(work, queue, handler, wait_s=0.1), in_background(work, queue, handler, wait_s=0.1), \
                in_background(work, queue, handler, wait_s=0.1):
            self.wait_for_len(queue)
        self.assertEqual(queue.run("LEN", "DEAD"), 0)
        return max(most), attempts

    def test_one_at_a_time(self):
        most, attempts = self.most_at_a_time(lambda handle: locked.one_at_a_time(self.db, handle, 5))
        self.assertEqual((most, attempts), (1, [1] * 9))

    def test_without_the_lock_it_is_seen(self):
        wait = lambda most: wait_until("another job of the account", lambda: max(most) > 1)
        self.assertGreater(self.most_at_a_time(lambda handle: handle, wait)[0], 1)

    def test_another_account_goes_on(self):
        queue, done = self.queue(), []
        with self.db.lock("lock:ada", timeout=600):
            queue.add("1", "ada")
            queue.add("2", "bob")
            handler = locked.one_at_a_time(self.db, lambda job: done.append(job.id), 600_000)
            settle(queue, queue.take(), handler)
            settle(queue, queue.take(), handler)
        job = queue.get("1")
        self.assertEqual((done, job["state"], job["attempts"]), (["2"], "delayed", 0))


class Partner(Recipe):
    def calls(self, allow, jobs=24):
        """The instants of the deliveries, by the server: a lease's end less its length."""
        queue, at = self.queue(), []
        allow(queue)
        for n in range(jobs):
            queue.add(f"call:{n}")
        call = lambda job: at.append(job.deadline - 60_000)
        with in_background(work, queue, call, wait_s=0.1), in_background(work, queue, call, wait_s=0.1):
            self.wait_for_len(queue)
        self.assertEqual(len(at), jobs)
        return sorted(at)

    def too_close(self, at, calls, per_ms):
        return [n for n in range(len(at) - calls) if at[n + calls] - at[n] < per_ms - 1]     # rounded to ms

    def test_never_more_than_allowed(self):
        at = self.calls(lambda queue: partner.allow(queue, 5, 200, 2))
        self.assertEqual(self.too_close(at, 5, 200), [])

    def test_without_a_rate_it_is_seen(self):
        self.assertNotEqual(self.too_close(self.calls(lambda queue: None), 5, 60_000), [])

    def test_at_a_time(self):
        queue = self.queue()
        partner.allow(queue, 100, 60_000, 4)
        for n in range(10):
            queue.add(f"call:{n}")
        jobs = queue.take_many(10, 0.01)
        self.assertEqual((len(jobs), queue.take_many(10, 0.01)), (4, []))
        queue.ack(jobs[0])
        self.assertEqual(len(queue.take_many(10, 0.01)), 1)

    def test_told_to_wait(self):
        queue = self.queue()
        queue.add("first", "", "AT", 1)
        queue.add("second", "", "AT", 2)

        def call(job):
            partner.told_to_wait(queue, 600_000)
            raise Later()

        settle(queue, queue.take(), call)
        self.assertIsNone(queue.take(0.01))
        self.assertEqual(queue.get("first")["attempts"], 0)
        queue.run("RESUME")
        self.assertEqual([job.id for job in queue.take_many(2)], ["first", "second"])


class ExactlyOnce(Recipe):
    def balance_after_a_death(self, credit):
        """A worker dies between its work and its ack; then another one gets the job."""
        queue, bank = self.queue(), exactly_once.open_bank(self.path)
        queue.add("payment:1", "ada 100", "TTR", 50)
        credit(bank, queue.take())
        settle(queue, queue.take(), lambda job: credit(bank, job))
        self.assertEqual(queue.run("LEN"), 0)
        return dict(bank.execute("SELECT * FROM accounts"))

    def test_once(self):
        self.assertEqual(self.balance_after_a_death(exactly_once.credit), {"ada": 100})

    def test_without_the_key_it_happens_twice(self):
        def credit(bank, job):
            with bank:
                bank.execute("DELETE FROM done")
            return exactly_once.credit(bank, job)

        self.assertEqual(self.balance_after_a_death(credit), {"ada": 200})

    def test_a_death_within_the_work_leaves_nothing(self):
        queue, bank = self.queue(), exactly_once.open_bank(self.path)
        bank.execute("CREATE TRIGGER crash BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'crash'); END")
        queue.add("payment:1", "ada 100")
        settle(queue, queue.take(), lambda job: exactly_once.credit(bank, job))
        self.assertEqual(bank.execute("SELECT COUNT(*) FROM done").fetchone(), (0,))
        bank.execute("DROP TRIGGER crash")
        settle(queue, queue.take(), lambda job: exactly_once.credit(bank, job))
        self.assertEqual(dict(bank.execute("SELECT * FROM accounts")), {"ada": 100})

    def test_two_workers_at_once(self):
        queue, bank = self.queue(), exactly_once.open_bank(self.path)
        for n in range(10):
            queue.add(f"payment:{n}", "ada 1", "TTR", 1)
            slow, other = queue.take(), queue.take()
            credit = lambda job: exactly_once.credit(exactly_once.open_bank(self.path), job)
            done = at_once(lambda: credit(slow), lambda: credit(other))
            self.assertEqual((sorted(done), queue.ack(slow, other)), ([False, True], 1))
        self.assertEqual(dict(bank.execute("SELECT * FROM accounts")), {"ada": 10})
