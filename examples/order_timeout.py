#!/usr/bin/env python3
"""Orders that are closed when they are not paid in time: the main job of a delay queue.

100,000 orders are placed. Each is to be closed after its own delay of a few seconds; a fifth are paid
first, which cancels that. Four workers close what becomes due. On the way one worker dies with orders
in hand, and the server is killed and started again on its append-only file. At the end every order is
accounted for from what the shops and the workers themselves have noted down.

    make demo        or: DQ_MODULE=libdq.so DQ_SERVER=redis-server python3 examples/order_timeout.py

The three functions to learn from are shop(), ask() and worker().
"""

from __future__ import annotations

import argparse, heapq, json, os, random, signal, subprocess, sys, tempfile, time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Event, Process
from typing import Any, Optional

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

QUEUE = "orders"
LEASE_MS = 3_000    # a worker that says nothing for so long has lost its orders to another one
GRACE_MS = 500      # a payment may come so much too late, if no worker has the order yet
BATCH = 100         # commands or jobs per round trip

# Takes an order out of the queue because it was paid, unless a worker has it, had it, or may have had
# it: a lease is longer than the grace, so what is there within the grace and not reserved was never
# delivered. Who paid is noted in the same atomic step, so to ask again, where the answer was lost with
# the connection, gives the same answer.
PAY = """
local time = redis.call('TIME')
local late_ms = time[1] * 1000 + time[2] / 1000 - tonumber(ARGV[2])
if late_ms < tonumber(ARGV[3]) and redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1]) == 1 then
    redis.call('SADD', KEYS[2], ARGV[1])
end
return redis.call('SISMEMBER', KEYS[2], ARGV[1])
"""


def now_ms() -> float:
    return time.time() * 1000


def connect(address: str) -> redis.Redis:
    # Without retries of redis-py's own: ask() and worker() decide what may be sent again.
    return redis.Redis(unix_socket_path=address, socket_timeout=30, retry=Retry(NoBackoff(), 0))


def ask(db: redis.Redis, commands: Sequence[Sequence[Any]]) -> Any:
    """Sends commands in one round trip, again until the server has answered, or was away for a minute.
    It may have carried them out without our hearing of it, so each must be safe to send twice."""
    give_up = time.monotonic() + 60
    while True:
        pipe = db.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return pipe.execute()
        except (redis.ConnectionError, redis.TimeoutError):     # also: it is still loading its data
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def shop(address: str, name: str, orders: int, placing_s: float, start: float,
         seed: int) -> tuple[dict[str, int], dict[str, bool]]:
    """Places orders at an even pace and takes payments. Returns {order: due} and {order: was it in time}."""
    db, rng = connect(address), random.Random(f"{seed} {name}")
    agenda = [((start + placing_s * n / orders) * 1000, f"{name}-{n}", "place") for n in range(orders)]
    heapq.heapify(agenda)
    due: dict[str, int] = {}
    paid: dict[str, bool] = {}
    while agenda:
        time.sleep(max(0, agenda[0][0] - now_ms()) / 1000)
        batch: list[tuple[str, str]] = []
        while agenda and agenda[0][0] <= now_ms() and len(batch) < BATCH:
            _, order, step = heapq.heappop(agenda)
            batch.append((order, step))
        commands: list[Sequence[Any]] = []
        for order, step in batch:
            if step == "place":
                # With an instant of our own (AT, not DELAY) and NX, which is the default, the same
                # order can be sent twice and is there once. DEDUPE keeps that true after it was acked.
                due[order] = int(now_ms()) + rng.randrange(2_000, 8_000)
                commands.append(("DQ.ADD", QUEUE, order, due[order], "AT", due[order]))
            else:
                commands.append(("EVAL", PAY, 2, QUEUE, "paid", order, due[order], GRACE_MS))
        for (order, step), answer in zip(batch, ask(db, commands)):
            if step == "pay":
                paid[order] = answer == 1
            elif rng.random() < 0.2:
                # Most customers pay well before the order is due, some in the very last moment: who is
                # first then, payment or worker, only the queue can say.
                at = due[order] if rng.random() < 0.05 else rng.uniform(now_ms(), due[order])
                heapq.heappush(agenda, (at, order, "pay"))
    return due, paid


def worker(address: str, journal_path: str, done: Any, crash_at_ms: Optional[float]) -> None:
    """Closes what is due until told that all is done; dies with orders in hand at crash_at_ms."""
    db = connect(address)
    journal = open(journal_path, "a", buffering=1)     # a line is in the file at once: it outlives us

    def note(**facts: Any) -> None:
        journal.write(json.dumps(facts) + "\n")

    while not done.is_set():
        try:
            answer = db.execute_command("DQ.BPOP", QUEUE, 1, "COUNT", BATCH, "TTR", LEASE_MS)
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.05)
            continue
        if answer is None:
            continue
        at, jobs = now_ms(), answer[1]
        note(got=[(id.decode(), int(due), attempts, deadline) for id, due, _, attempts, deadline in jobs], at=at)
        if crash_at_ms and at >= crash_at_ms:
            # The end: it closes only some of its orders and acks none, then it is gone.
            note(closed=[job[0].decode() for job in jobs if random.random() < 0.5])
            if at >= crash_at_ms + 100:
                os.kill(os.getpid(), signal.SIGKILL)
            continue
        note(closed=[job[0].decode() for job in jobs])   # here an order would be closed in the database
        # With the tokens: should a lease have ended meanwhile, the job may be somebody else's by now,
        # and an ack with our token leaves it to him.
        ids_and_tokens = [part for id, _, token, _, _ in jobs for part in (id, token)]
        ask(db, [("DQ.ACK", QUEUE, "WITHTOKENS", "IDS", len(jobs), *ids_and_tokens)])


def board(address: str) -> Optional[subprocess.Popen[str]]:
    """dq board beside the server, where there is one (DQ_PROGRAM): a picture of all this in the browser."""
    if not os.environ.get("DQ_PROGRAM"):
        return None
    process = subprocess.Popen([os.environ["DQ_PROGRAM"], "board", "-s", address, "--listen", "127.0.0.1:0"],
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    print(f"To be seen at {process.stdout.readline().split()[2]} until the end.", flush=True)
    return process


class Server:
    """A server of our own, in a temporary folder, on a unix socket.

    With `appendfsync always` an answer is sent after what it answers was written and synced: what was
    answered survives. `everysec` would not do for this check, not even though only the process is
    killed and the system lives on: while a sync takes long, the server answers first and writes up to
    two seconds later.
    """

    process: Optional[subprocess.Popen[bytes]]

    def __init__(self, folder: str) -> None:
        self.folder, self.address = folder, os.path.join(folder, "socket")
        self.log = os.path.join(folder, "server.log")
        self.start()

    def start(self) -> None:
        here = os.path.dirname(os.path.abspath(__file__))
        module = os.environ.get("DQ_MODULE") or os.path.join(here, "../target/release/libdq.so")
        self.process = process = subprocess.Popen(
            [os.environ.get("DQ_SERVER") or "redis-server", "--port", "0", "--unixsocket", self.address,
             "--dir", self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
             "--loadmodule", os.path.abspath(module)],
            stdin=subprocess.DEVNULL, stdout=open(self.log, "a"), stderr=subprocess.STDOUT,
            start_new_session=True)     # Ctrl-C is for us, not for it
        while True:
            try:
                connect(self.address).ping()
                return
            except redis.ConnectionError:
                if process.poll() is not None:
                    sys.exit(f"the server does not start:\n{open(self.log).read()[-2000:]}")
                time.sleep(0.02)

    def kill(self) -> None:
        process, self.process = self.process, None
        if process and process.poll() is not None:
            sys.exit(f"the server died of itself:\n{open(self.log).read()[-5000:]}")
        if process:
            process.kill()
            process.wait()


STATES = ("DELAYED", "READY", "RESERVED")


def counts_by_state(db: redis.Redis) -> tuple[list[int], str]:
    counts = ask(db, [("DQ.LEN", QUEUE, state) for state in STATES])
    return counts, ", ".join(f"{count} {state.lower()}" for count, state in zip(counts, STATES))


def watch(db: redis.Redis, start: float, is_over: Callable[[], bool]) -> None:
    """Waits, and tells once a second how it stands."""
    next_line = time.time() + 1
    while not is_over():
        if time.time() >= next_line:
            print(f"{time.time() - start:6.1f} s  {counts_by_state(db)[1]}", flush=True)
            next_line += 1
        time.sleep(0.05)


def run(options: argparse.Namespace, folder: str) -> Any:
    """Lets it all happen. Returns what the check needs."""
    server = Server(folder)
    window = board(server.address)
    workers: list[Process] = []
    try:
        db = connect(server.address)
        db.execute_command("DQ.CFGSET", QUEUE, "DEDUPE", 3_600_000)
        start, done = time.time() + 0.5, Event()
        print(f"{options.orders} orders are placed in {options.placing:.0f} s, due 2 to 8 s later. A worker dies "
              f"at {options.crash:.1f} s, the server at {options.kill:.1f} s. In the queue are:", flush=True)
        journals = [os.path.join(folder, f"worker-{n}.json") for n in range(4)]
        for n, journal in enumerate(journals):
            crash_at_ms = (start + options.crash) * 1000 if n == 0 else None
            workers.append(Process(target=worker, args=(server.address, journal, done, crash_at_ms)))
            workers[-1].start()
        with ProcessPoolExecutor(2) as pool:
            shops = [pool.submit(shop, server.address, name, options.orders // 2, options.placing, start, options.seed)
                     for name in ("north", "south")]
            watch(db, start, lambda: time.time() >= start + options.kill)
            held = counts_by_state(db)[1]
            killed = now_ms()
            server.kill()
            time.sleep(0.3)
            server.start()
            back = now_ms()
            print(f"The server was killed with {held} orders, and was back after {back - killed:.0f} ms.", flush=True)
            watch(db, start, lambda: all(shop.done() for shop in shops))
            results = [shop.result() for shop in shops]
        give_up = time.time() + 60
        watch(db, start, lambda: not sum(counts_by_state(db)[0]) or time.time() > give_up)
        left = sum(counts_by_state(db)[0])
        left += ask(db, [("DQ.LEN", QUEUE, "DEAD")])[0]
        done.set()
        for process in workers:
            process.join(10)
        as_planned = [process.exitcode for process in workers] == [-signal.SIGKILL, 0, 0, 0]
    finally:
        for process in workers:
            process.kill()
        server.kill()
        if window:
            window.kill()
            window.wait()
    due = {order: at for result in results for order, at in result[0].items()}
    paid = {order: in_time for result in results for order, in_time in result[1].items()}
    notes = [(n, json.loads(line)) for n, journal in enumerate(journals) for line in open(journal)]
    return due, paid, notes, killed, back, left, as_planned


Deliveries = dict[tuple[str, int], tuple[int, float, float]]
Notes = list[tuple[int, dict[str, Any]]]


def delivered(due: dict[str, int], notes: Notes) -> tuple[Deliveries, int, int]:
    """(order, attempts) -> worker, when it got it, end of its lease; how many were early, and how many came twice."""
    deliveries: Deliveries = {}
    early = twice = 0
    for n, note in notes:
        for order, at, attempts, deadline in note.get("got", ()):
            early += note["at"] < max(at, due[order])
            twice += (order, attempts) in deliveries
            deliveries[order, attempts] = n, note["at"], deadline
    return deliveries, early, twice


DEAD_WORKER = "by the end of the dead worker's lease"
DEAD_SERVER = "the server died before the worker had the first delivery"
NOT_ACKED = "the server was away when the worker wanted to ack"
SLOW = "a worker took longer than its lease"


def reasons(deliveries: Deliveries, killed: float, back: float) -> tuple[dict[str, int], int, int]:
    """Why orders were delivered once more: reason -> count; how many for none, and how many to two workers at once."""
    again = dict.fromkeys([DEAD_WORKER, DEAD_SERVER, NOT_ACKED, SLOW], 0)
    unexplained = two_at_once = 0
    for (order, attempts), (_, at, _) in deliveries.items():
        if attempts == 1:
            continue
        before = deliveries.get((order, attempts - 1))
        if before is None:
            again[DEAD_SERVER] += at > killed
            unexplained += at <= killed
            continue
        worker, got, end = before
        two_at_once += at < end
        again[DEAD_WORKER if worker == 0 else NOT_ACKED if got < back and end > killed else SLOW] += 1
    return again, unexplained, two_at_once


def show_lateness(due: dict[str, int], deliveries: Deliveries, killed: float, back: float) -> None:
    print("Lateness in ms (first deliveries)    orders       p50       p99       max")
    late: dict[str, list[float]] = {"due before the server died": [], "due or waiting while it was away": [],
                                    "due after it came back": []}
    before, while_away, after = late.values()
    for (order, attempts), (_, at, _) in deliveries.items():
        if attempts == 1:
            times = before if at < killed else while_away if due[order] < back else after
            times.append(at - due[order])
    for row, values in late.items():
        values.sort()
        p50, p99, most = (values[int((len(values) - 1) * part)] for part in (0.5, 0.99, 1)) if values else (0, 0, 0)
        print(f"  {row:33} {len(values):7} {p50:9.2f} {p99:9.2f} {most:9.2f}")


def check(due: dict[str, int], paid: dict[str, bool], notes: Notes, killed: float, back: float, left: int,
          as_planned: bool) -> bool:
    """Accounts for every order. Returns whether something is wrong."""
    closed = {order for _, note in notes for order in note.get("closed", ())}
    deliveries, early, twice = delivered(due, notes)
    again, unexplained, two_at_once = reasons(deliveries, killed, back)
    paid_in_time = {order for order, in_time in paid.items() if in_time}
    to_close = due.keys() - paid_in_time
    print(f"\n{len(due)} orders placed, {len(paid)} customers paid: {len(paid_in_time)} in time, "
          f"{len(paid) - len(paid_in_time)} too late.")
    print(f"{len(closed)} orders closed, {len(to_close)} not paid in time.")
    doubles = len({order for order, attempts in deliveries if attempts > 1})
    print(f"{doubles} orders delivered more than once:")
    for reason, count in again.items():
        print(f"  {count:7}  {reason}")
    show_lateness(due, deliveries, killed, back)

    wrong = {
        "lost: not paid, not closed": len(to_close - closed),
        "closed though paid in time": len(closed & paid_in_time),
        "closed, but nobody had placed it": len(closed - due.keys()),
        "closed early": early,
        "with two workers at once": two_at_once + twice,
        "delivered twice for no known reason": unexplained,
        "still in the queue": left,
        "workers that did not end as planned": 0 if as_planned and again[DEAD_WORKER] else 1,
    }
    print()
    for what, count in wrong.items():
        print(f"  {count:7}  {what}" + ("   WRONG" if count else ""))
    return any(wrong.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--placing", type=float, default=12, metavar="S", help="seconds in which they are placed")
    parser.add_argument("--crash", type=float, metavar="S", help="when a worker dies (default: some time from 3 to 8)")
    parser.add_argument("--kill", type=float, metavar="S", help="when the server is killed (default: from 5 to 11)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    crash, kill = rng.uniform(3, 8), rng.uniform(5, 11)
    options.crash = crash if options.crash is None else options.crash
    options.kill = kill if options.kill is None else options.kill
    with tempfile.TemporaryDirectory(prefix="dq-demo-") as folder:
        wrong = check(*run(options, folder))
    print("\nWRONG" if wrong else "\nEverything is accounted for.", f"(--seed {options.seed})")
    sys.exit(1 if wrong else 0)
