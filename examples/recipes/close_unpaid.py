#!/usr/bin/env python3
"""Orders that are closed when they are not paid within 30 minutes.

The shop's database decides, the queue says when to look: paying and closing are one conditional UPDATE
each, so exactly one of the two happens, whoever comes first and whoever dies on the way.
"""

import os, sqlite3, tempfile, threading, time
from typing import Any, Optional

import redis

from commands import Queue, demo, in_background, work

PAY_WITHIN_MS = 30 * 60 * 1000


def open_shop(path: str) -> sqlite3.Connection:
    shop = sqlite3.connect(path, timeout=30)
    shop.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
    return shop


def state(shop: sqlite3.Connection, order: str) -> Any:
    row = shop.execute("SELECT state FROM orders WHERE id = ?", (order,)).fetchone()
    return row and row[0]


def place(queue: Queue, shop: sqlite3.Connection, order: str, pay_within_ms: int = PAY_WITHIN_MS) -> None:
    # In this order: a job without an order harms nobody, an order without a job would never be closed.
    queue.add(order, "", "DELAY", pay_within_ms)
    with shop:
        shop.execute("INSERT INTO orders VALUES (?, 'unpaid')", (order,))


def pay(queue: Queue, shop: sqlite3.Connection, order: str) -> bool:
    """True if the order is paid; False if it is too late, and the money must go back."""
    with shop:
        shop.execute("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'unpaid'", (order,))
    if state(shop, order) != "paid":
        return False
    try:
        queue.cancel(order)     # saves the worker a look, no more: nothing depends on the answer
    except (redis.ConnectionError, redis.TimeoutError):
        pass
    return True


def close(shop: sqlite3.Connection, order: str) -> bool:
    """Whether the order was closed just now. To be asked twice does no harm."""
    with shop:
        done = shop.execute("UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'", (order,))
    return done.rowcount == 1


def closer(queue: Queue, path: str, stop: Optional[threading.Event] = None, **waits: float) -> None:
    """The worker."""
    shop = open_shop(path)
    work(queue, lambda job: close(shop, job.id), stop, **waits)


if __name__ == "__main__":
    db, options = demo(__doc__, within=2)
    queue = Queue(db, "demo:orders")
    with tempfile.TemporaryDirectory() as folder, in_background(closer, queue, os.path.join(folder, "shop"), wait_s=1):
        shop = open_shop(os.path.join(folder, "shop"))
        for order in ("book", "lamp"):
            place(queue, shop, order, int(options.within * 1000))
        print("book paid:", pay(queue, shop, "book"))
        while state(shop, "lamp") == "unpaid":
            time.sleep(0.1)
        print("lamp paid:", pay(queue, shop, "lamp"))
        print(dict(shop.execute("SELECT * FROM orders")))
