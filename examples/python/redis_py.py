#!/usr/bin/env python3
"""A producer and a worker with redis-py.

    python redis_py.py add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
    python redis_py.py work                             # until Ctrl-C or SIGTERM
"""

import os, signal, sys, threading, time

import redis

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
QUEUE = "mails"
LEASE_MS = int(os.environ.get("LEASE_MS", 30_000))  # a worker that is silent for so long loses its job
WAIT_S = 1                                          # how long one BPOP waits

# The socket's timeout must be longer than BPOP's. It is the longest that a stop takes, whatever the server does.
# Its execute_command has no types, which mypy --strict is told.
db = redis.Redis.from_url(URL, socket_timeout=WAIT_S + 2)


def add(id: str, text: str, delay_ms: str) -> None:
    """With an id of its own a job that is sent twice is there once."""
    added = db.execute_command("DQ.ADD", QUEUE, id, text, "DELAY", delay_ms, "ATTEMPTS", 5, "BACKOFF", 2, 1000, 60_000)  # type: ignore[no-untyped-call]
    print("added" if added else "there is already a job", id)


def send(text: str, attempt: int) -> None:
    """The work itself. Here it only fails once, or takes longer than a lease, where the text says so."""
    if text.startswith("flaky") and attempt == 1:
        raise OSError("mail server is away")
    time.sleep(LEASE_MS * 1.5 / 1000 if text.startswith("slow") else 0.1)


def beat(id: bytes, token: bytes, done: threading.Event) -> None:
    """Begins the lease anew, as long as the work goes on and the job is ours."""
    while not done.wait(LEASE_MS / 3000):
        try:
            if db.execute_command("DQ.TOUCH", QUEUE, id, "TOKEN", token) is None:  # type: ignore[no-untyped-call]
                return
        except redis.RedisError as error:
            print("no heartbeat:", error)


def handle(id: bytes, payload: bytes, token: bytes, attempt: int) -> None:
    done = threading.Event()
    heart = threading.Thread(target=beat, args=(id, token, done), daemon=True)
    heart.start()
    name = id.decode(errors="backslashreplace")
    try:
        send(payload.decode(errors="replace"), attempt)
        failure: Exception | None = None
    except Exception as error:
        failure = error
    finally:
        done.set()
    if failure:
        state = db.execute_command("DQ.NACK", QUEUE, id, "TOKEN", token)  # type: ignore[no-untyped-call]
        print(f"failed {name} (attempt {attempt}): {failure}; now {state.decode() if state else 'lost'}")
    elif db.execute_command("DQ.ACK", QUEUE, "WITHTOKENS", "IDS", 1, id, token) == [1]:  # type: ignore[no-untyped-call]
        print(f"done {name} (attempt {attempt})")
    else:
        print(f"lost {name}: another worker may have it")


def work() -> None:
    stopping = threading.Event()
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, lambda *_: stopping.set())
    while not stopping.is_set():
        try:
            job = db.execute_command("DQ.BPOP", QUEUE, WAIT_S, "TTR", LEASE_MS)  # type: ignore[no-untyped-call]
            if job:
                _queue, id, payload, token, attempt, _deadline = job
                handle(id, payload, token, attempt)
        except redis.RedisError as error:
            # Whatever we had is delivered again when its lease ends.
            print("trouble:", error)
            stopping.wait(1)
    print("stopped")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if sys.argv[1:2] == ["add"]:
        add(*sys.argv[2:5])
    elif sys.argv[1:] == ["work"]:
        work()
    else:
        sys.exit(__doc__)
