"""Debounce, batches, moving a job, and a job that recurs."""

import redis

from support import Recipe, wait_until

import debounce, move_job, settle_batch
from commands import in_background


class Debounce(Recipe):
    def dues_after_edits(self, edit):
        """{due less the instant of the last edit} after many edits, and how many jobs there are."""
        queue = self.queue()
        for _ in range(50):
            edit(queue)
            last = self.server_ms()
        return queue.get("doc")["due"] - last, queue.run("LEN")

    def check(self, edit):
        off, jobs = self.dues_after_edits(edit)
        self.assertEqual(jobs, 1)
        self.assertGreaterEqual(off, 45_000, "the due follows the last edit")

    def test_many_edits_one_job(self):
        self.check(lambda queue: debounce.edited(queue, "doc", 60_000))
        self.db.flushall()
        self.check(lambda queue: debounce.edited_bounded(queue, "doc", 60_000, 600_000))

    def test_one_that_does_not_follow_is_seen(self):
        with self.assertRaises(AssertionError):
            self.check(lambda queue: queue.add("doc", "", "AT", self.server_ms() + 30_000))

    def test_not_put_off_for_ever(self):
        queue = self.queue()
        debounce.edited_bounded(queue, "doc", 60_000, 70_000)
        first = int(queue.get("doc")["payload"])
        queue.add("doc", first - 50_000, "DELAY", 60_000, "REPLACE")     # as if the first edit were 50 s ago
        debounce.edited_bounded(queue, "doc", 60_000, 70_000)
        self.assertEqual(queue.get("doc")["due"], first + 20_000)

    def test_an_edit_while_it_is_indexed_is_not_missed(self):
        queue = self.queue()
        queue.add("doc", self.server_ms() - 590_000)    # the first edit that this job is about
        job = queue.take()
        debounce.edited_bounded(queue, "doc", 60_000, 600_000)
        self.assertEqual(queue.ack(job), 0)
        self.assertEqual(queue.get("doc")["state"], "delayed")
        self.assertGreater(queue.get("doc")["due"], self.server_ms() + 50_000, "counted from that edit")


class SettleBatch(Recipe):
    def test_all_due_at_one_instant(self):
        queue, ledger = self.queue(), settle_batch.open_ledger(self.path)
        due = self.server_ms() + 200
        for n in range(250):
            queue.add(f"trade:{n}", n, "AT", due)
        queue.add("trade:bad", "no number", "AT", due)
        with in_background(settle_batch.settler, queue, self.path, batch=100, wait_s=0.1):
            self.wait_for_len(queue)
        self.assertEqual(ledger.execute("SELECT COUNT(*), SUM(amount) FROM settled").fetchone(), (250, 249 * 125))
        self.assertEqual(queue.get("trade:bad")["state"], "dead")

    def test_a_lost_ack_settles_nothing_twice(self):
        queue, ledger = self.queue(), settle_batch.open_ledger(self.path)
        for n in range(3):
            queue.add(f"trade:{n}", 10, "TTR", 30)
        stale = queue.take_many(10)
        again = wait_until("the end of the leases", lambda: queue.run("LEN", "READY") == 3) and queue.take_many(10)
        self.assertEqual(settle_batch.settle_batch(queue, ledger, stale), 0, "not ours any more")
        self.assertEqual(settle_batch.settle_batch(queue, ledger, again), 3)
        self.assertEqual(ledger.execute("SELECT COUNT(*), SUM(amount) FROM settled").fetchone(), (3, 30))


def lossy_move(source, target, id):
    """What the recipe warns of: the same in MULTI, where one command may fail and the next goes on."""
    job = source.get(id)
    pipe = source.db.pipeline(transaction=True)
    pipe.execute_command("DQ.ADD", target.key, id, job["payload"], "AT", job["due"])
    pipe.execute_command("DQ.DEL", source.key, "UNRESERVED", id)
    pipe.execute()


class MoveJob(Recipe):
    KEPT = ("id", "payload", "state", "due", "priority", "ttr")

    def pair(self):
        return self.queue("{m}:source"), self.queue("{m}:target")

    def test_all_fields(self):
        source, target = self.pair()
        target.run("CFGSET", "TTR", 1, "ATTEMPTS", 9)      # must not reach the job
        options = ("DELAY", 600_000, "PRIORITY", -2147483648, "TTR", 4_000_000_000, "TTL", 5_000_000)
        source.add("full", "\x00 payload \u00e9", *options, "ATTEMPTS", 4, "BACKOFF", 3, 11, 12, 13)
        source.add("bare", "")
        source.add("hot", "", "BACKOFF", 0)
        for id in ("full", "bare", "hot"):
            before = source.get(id)
            self.assertEqual(move_job.move(source, target, id), "moved")
            after = target.get(id)
            self.assertEqual([after[field] for field in self.KEPT], [before[field] for field in self.KEPT])
            self.assertEqual((after["max-attempts"], after["backoff"]), (before["max-attempts"], before["backoff"]))
            if before["expires"]:
                self.assertAlmostEqual(after["expires"], before["expires"], delta=1000)
            else:
                self.assertIsNone(after["expires"])
            self.assertIsNone(source.get(id))
            self.assertEqual(move_job.move(source, target, id), "absent")

    def failed(self, queue, times, *options):
        queue.add("a", "", *options)
        for _ in range(times):
            queue.nack(queue.take())
            queue.run("RESCHEDULE", "DELAY", 0, "a")

    def test_attempts_and_ladder_that_are_left(self):
        source, target = self.pair()
        for failures, left, steps in ((0, 5, [100, 200, 300]), (1, 4, [200, 300]), (2, 3, [300]), (4, 1, [300])):
            self.failed(source, failures, "ATTEMPTS", 5, "BACKOFF", 3, 100, 200, 300)
            self.assertEqual(move_job.move(source, target, "a"), "moved")
            job = target.get("a")
            self.assertEqual((job["max-attempts"], job["backoff"]), (left, steps))
            target.run("DEL", "a")
        self.failed(source, 2, "BACKOFF", 1, 7)
        move_job.move(source, target, "a")
        self.assertEqual((target.get("a")["max-attempts"], target.get("a")["backoff"]), (0, [7]))

    def test_refused_and_nothing_changed(self):
        source, target = self.pair()
        for id in ("there", "reserved", "dead"):
            source.add(id, id, "PRIORITY", {"there": 2, "reserved": 0, "dead": 1}[id])
        reserved, dead = source.take(), source.take()
        source.nack(dead, "FATAL")
        target.add("there", "another")
        answers = {id: move_job.move(source, target, id) for id in ("there", "reserved", "dead", "none")}
        self.assertEqual(answers, {"there": "refused", "reserved": "reserved", "dead": "dead", "none": "absent"})
        self.assertEqual((source.ack(reserved), target.get("there")["payload"]), (1, "another"))
        with self.assertRaises(ValueError):
            move_job.move(source, source, "there")

    def test_what_cannot_be_moved_whole_stays_and_the_sentence_says_why(self):
        source, target = self.pair()
        for id, *options in (["waits"], ["steps"], ["first"], ["grouped", "GROUP", "g"], ["labelled", "GROUP", "other", "COST", 3],
                             ["rule", "EVERY", 60_000], ["after", "AFTER", 1, "first"], ["last", "AFTER", "GROUP", "g"]):
            source.add(id, id, *options)
        for id, *end in (["waits", "SILENT", "AWAIT", "approved"], ["steps", "SILENT"]):
            job = source.run("POP", "ID", id)
            if id == "steps":
                source.run("STEP", id, job[2], "paid", "yes")
            source.run("NACK", id, "TOKEN", job[2], *end)
        for id, why in {"waits": "waits for a signal", "steps": "with steps", "first": "wait for it, and would die", "grouped": "wait for its group",
                        "rule": "a recurring job", "after": "blocked", "last": "blocked"}.items():
            before = source.get(id)
            self.assertIn(why, move_job.move(source, target, id))
            self.assertEqual((source.get(id), target.get(id)), (before, None), id)
        self.assertEqual(move_job.move(source, target, "labelled"), "moved")
        self.assertEqual([target.get("labelled")[field] for field in ("group", "cost")], ["other", 3])
        source.run("POP", "ID", "first")
        source.run("ACK", "first")
        self.assertEqual(source.get("after")["state"], "ready", "nothing died")
        done = source.run("POP", "ID", "after")
        self.assertEqual(move_job.move(source, target, "after"), "reserved")
        source.run("NACK", "after", "TOKEN", done[2], "SILENT")
        self.assertIn("results of others", move_job.move(source, target, "after"))

    def test_a_full_target_loses_nothing(self):
        source, target = self.pair()
        target.run("CFGSET", "MAXLEN", 1)
        target.add("first")
        for move, lost in ((move_job.move, False), (lossy_move, True)):
            source.add("a")
            with self.assertRaises(redis.ResponseError):
                move(source, target, "a")
            self.assertEqual((source.get("a") or target.get("a")) is None, lost, move.__name__)
