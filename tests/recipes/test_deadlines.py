"""Orders that are not paid, guests who do not come, reminders: something is due unless something happens first."""

import time

from support import WORDS, Recipe, at_once, wait_until

import close_unpaid, no_show, reminders
from commands import Queue, connect, in_background, now_ms, settle, work


class CloseUnpaid(Recipe):
    ORDERS = 60

    def race(self, pay):
        """Places orders, and pays each at the moment at which it is closed. {order: (was told, state)}."""
        queue, shop, told = self.queue(), close_unpaid.open_shop(self.path), {}
        orders = [f"order:{n}" for n in range(self.ORDERS)]
        for order in orders:
            close_unpaid.place(queue, shop, order, 300)
        due = queue.get(orders[-1])["due"]

        def pay_them(orders):
            mine, queue = close_unpaid.open_shop(self.path), Queue(connect(self.server.url), self.queue().key)
            time.sleep(max(0, due - 30 - self.server_ms()) / 1000)
            told.update({order: pay(queue, mine, order) for order in orders})

        with in_background(close_unpaid.closer, queue, self.path, wait_s=0.1):
            at_once(*(lambda part=part: pay_them(orders[part::3]) for part in range(3)))
            self.wait_for_len(queue)
        return {order: (told[order], close_unpaid.state(shop, order)) for order in orders}

    def wrong(self, outcome):
        return [order for order, ends in outcome.items() if ends not in {(True, "paid"), (False, "closed")}]

    def test_paid_or_closed_and_told_so(self):
        self.assertEqual(self.wrong(self.race(close_unpaid.pay)), [])

    def test_a_payment_that_looks_first_is_caught(self):
        def look_then_pay(queue, shop, order):
            unpaid = close_unpaid.state(shop, order) == "unpaid"
            wait_until("the order's end", lambda: close_unpaid.state(shop, order) == "closed" or not unpaid)
            with shop:
                shop.execute("UPDATE orders SET state = 'paid' WHERE id = ?", (order,))
            return unpaid

        self.assertNotEqual(self.wrong(self.race(look_then_pay)), [])

    def test_paid_in_time_there_is_nothing_to_do(self):
        queue, shop = self.queue(), close_unpaid.open_shop(self.path)
        close_unpaid.place(queue, shop, "a")
        self.assertGreater(queue.get("a")["due"], self.server_ms() + close_unpaid.PAY_WITHIN_MS - 300_000)
        self.assertTrue(close_unpaid.pay(queue, shop, "a"))
        self.assertIsNone(queue.get("a"))
        self.assertTrue(close_unpaid.pay(queue, shop, "a"), "asked again, the answer is the same")
        self.assertFalse(close_unpaid.pay(queue, shop, "unknown"))


class NoShow(Recipe):
    def test_each_guest_came_or_did_not(self):
        hotel, other = no_show.Hotel(self.db, "{hotel}"), no_show.Hotel(connect(self.server.url), "{hotel}")
        start = self.server_ms() + 300
        guests = [f"guest:{n}" for n in range(60)]
        for guest in guests:
            hotel.book(guest, start)
        early, in_the_last_moment = guests[:20], guests[20:40]
        may = {guest: hotel.check_in(guest) for guest in early}

        def check_in():
            time.sleep(max(0, start - 5 - self.server_ms()) / 1000)
            may.update({guest: other.check_in(guest) for guest in in_the_last_moment})

        with in_background(work, hotel.queue, hotel.note_no_show, wait_s=0.1):
            at_once(check_in)
            self.wait_for_len(hotel.queue)
        states = self.db.hgetall(hotel.bookings)
        freed = [entry["booking"] for _, entry in self.db.xrange(hotel.freed)]
        self.assertEqual({states[guest] for guest in early}, {"came"})
        self.assertEqual({states[guest] for guest in guests[40:]}, {"no-show"})
        for guest in early + in_the_last_moment:
            self.assertEqual(may[guest], states[guest] == "came", guest)
        self.assertEqual(sorted(freed), sorted(guest for guest in guests if states[guest] == "no-show"), "each once")

    def test_while_a_worker_is_at_it_it_is_too_late(self):
        hotel = no_show.Hotel(self.db, "{hotel}")
        hotel.book("late", self.server_ms())
        job = hotel.queue.take()
        self.assertFalse(hotel.check_in("late"))
        hotel.note_no_show(job)
        hotel.note_no_show(job)
        self.assertFalse(hotel.check_in("late"))
        self.assertEqual(self.db.xlen(hotel.freed), 1)

    def test_guests_who_are_called_like_options(self):
        hotel = no_show.Hotel(self.db, "{hotel}")
        for guest in WORDS:
            hotel.book(guest, self.server_ms() + 60_000)
            self.assertTrue(hotel.check_in(guest), guest)
            hotel.book(guest.swapcase(), self.server_ms())
            hotel.note_no_show(hotel.queue.take())
        self.assertEqual((hotel.queue.run("LEN"), self.db.xlen(hotel.freed)), (0, len(WORDS)))


class Reminders(Recipe):
    BEFORE_MS = 1_000

    def setUp(self):
        super().setUp()
        self.reminders, self.sent = self.queue(), []

    def schedule(self, meeting, start):
        reminders.schedule(self.reminders, "calendar", meeting, start, self.BEFORE_MS)

    def remind(self, job):
        send = lambda meeting, start: self.sent.append((meeting, start, now_ms()))
        settle(self.reminders, job, lambda job: reminders.remind(self.reminders, "calendar", job, send, self.BEFORE_MS))

    def test_moved_and_cancelled(self):
        start = now_ms() + self.BEFORE_MS + 300
        for meeting in ("kept", "later", "earlier", "cancelled"):
            self.schedule(meeting, start)
        self.schedule("later", start + 200)
        self.schedule("earlier", start - 200)
        reminders.cancel(self.reminders, "calendar", "cancelled")
        while len(self.sent) < 3:
            self.remind(self.reminders.take())
        self.assertEqual([(meeting, at) for meeting, at, _ in self.sent],
                         [("earlier", start - 200), ("kept", start), ("later", start + 200)])
        for meeting, at, sent_at in self.sent:
            self.assertGreaterEqual(sent_at, at - self.BEFORE_MS, meeting)
        self.assertEqual(self.reminders.run("LEN"), 0)

    def test_meetings_that_are_called_like_options(self):
        for meeting in WORDS:
            self.schedule(meeting, now_ms() + 5_000_000)
            self.schedule(meeting, now_ms() + 9_000_000)
            self.assertGreater(self.reminders.get(meeting)["due"], now_ms() + 6_000_000, meeting)
            reminders.cancel(self.reminders, "calendar", meeting)
            self.assertIsNone(self.reminders.get(meeting), meeting)

    def test_moved_while_the_worker_has_it(self):
        start = now_ms()
        self.schedule("a", start)
        job = self.reminders.take()
        self.schedule("a", start + 5_000_000)
        self.remind(job)
        self.assertEqual((self.sent, self.reminders.get("a")["state"]), ([], "delayed"))
        self.assertEqual(self.reminders.get("a")["due"], start + 5_000_000 - self.BEFORE_MS)

    def test_moved_between_delivery_and_the_new_job(self):
        """The calendar says a later time already, the queue not yet."""
        self.schedule("a", now_ms())
        self.db.hset("calendar", "a", now_ms() + 5_000_000)
        self.remind(self.reminders.take())
        job = self.reminders.get("a")
        self.assertEqual((self.sent, job["state"], job["attempts"]), ([], "delayed", 0))

    def test_moved_after_it_was_sent(self):
        start = now_ms()
        self.schedule("a", start)
        self.remind(self.reminders.take())
        self.schedule("a", start + 1)
        self.remind(self.reminders.take())
        self.assertEqual([at for _, at, _ in self.sent], [start, start + 1])

    def test_cancelled_while_the_worker_has_it(self):
        self.schedule("a", now_ms())
        job = self.reminders.take()
        reminders.cancel(self.reminders, "calendar", "a")
        self.remind(job)
        self.assertEqual((self.sent, self.reminders.get("a")), ([], None))
