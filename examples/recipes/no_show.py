#!/usr/bin/env python3
"""Guests who have not checked in by the start of their booking are noted as no-shows.

Here all is in one Redis, so the job itself decides: who removes it, says what became of the booking, in
the same atomic step. (Where a database decides, see close_unpaid.py.) In a cluster the three keys need a
common hash tag, as {hotel}:guests.
"""

import time
from typing import Any

import redis

from commands import SETTLED, Job, Queue, demo, in_background, work

# Both return what the booking is afterwards, so to ask again gives the same answer.
CHECK_IN = """
if redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1]) == 1 then redis.call('HSET', KEYS[2], ARGV[1], 'came') end
return redis.call('HGET', KEYS[2], ARGV[1])
"""
NO_SHOW = """
if redis.call('DQ.ACK', KEYS[1], 'WITHTOKENS', 'IDS', 1, ARGV[1], ARGV[2])[1] == 1 then
    redis.call('HSET', KEYS[2], ARGV[1], 'no-show')
    redis.call('XADD', KEYS[3], '*', 'booking', ARGV[1])
end
return redis.call('HGET', KEYS[2], ARGV[1])
"""


class Hotel:
    def __init__(self, db: redis.Redis, name: str) -> None:
        self.queue, self.bookings, self.freed = Queue(db, f"{name}:guests"), f"{name}:bookings", f"{name}:freed"
        self.check_in_script, self.no_show_script = db.register_script(CHECK_IN), db.register_script(NO_SHOW)

    def book(self, booking: str, start_ms: int) -> None:
        pipe = self.queue.db.pipeline(transaction=True)
        pipe.hset(self.bookings, booking, "expected")
        pipe.execute_command("DQ.ADD", self.queue.key, booking, "", "AT", start_ms)
        pipe.execute()

    def check_in(self, booking: str) -> bool:
        """Whether the guest may come in. Not if the booking is a no-show, or is just being made one."""
        return bool(self.check_in_script(keys=[self.queue.key, self.bookings], args=[booking]) == "came")

    def note_no_show(self, job: Job) -> object:
        """The handler. It acknowledges by itself."""
        self.no_show_script(keys=[self.queue.key, self.bookings, self.freed], args=[job.id, job.token])
        return SETTLED


if __name__ == "__main__":
    db, options = demo(__doc__, start=1)
    hotel = Hotel(db, "{demo:hotel}")
    start = int((time.time() + options.start) * 1000)
    for guest in ("ada", "bob"):
        hotel.book(guest, start)
    print("ada may come in:", hotel.check_in("ada"))
    with in_background(work, hotel.queue, hotel.note_no_show, wait_s=1):
        while hotel.queue.run("LEN"):
            time.sleep(0.05)
    print("bob may come in:", hotel.check_in("bob"))
    freed: Any = db.xrange(hotel.freed)
    print(db.hgetall(hotel.bookings), "freed:", [entry["booking"] for _, entry in freed])
    db.delete(hotel.bookings, hotel.freed)
