#!/usr/bin/env python3
"""A producer and a worker with redis.asyncio.

    python redis_py_asyncio.py add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
    python redis_py_asyncio.py work                             # until Ctrl-C or SIGTERM
"""

import asyncio, os, signal, sys

import redis.asyncio as redis

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
QUEUE = "mails"
LEASE_MS = int(os.environ.get("LEASE_MS", 30_000))  # a worker that is silent for so long loses its job
WAIT_S = 1                                          # how long one BPOP waits

# The socket's timeout must be longer than BPOP's. It is the longest that a stop takes, whatever the server does.
# Its execute_command has no types, which mypy --strict is told.
db = redis.Redis.from_url(URL, socket_timeout=WAIT_S + 2)


async def add(id: str, text: str, delay_ms: str) -> None:
    """With an id of its own a job that is sent twice is there once."""
    added = await db.execute_command(  # type: ignore[no-untyped-call]
        "DQ.ADD", QUEUE, id, text, "DELAY", delay_ms, "ATTEMPTS", 5, "BACKOFF", 2, 1000, 60_000)
    print("added" if added else "there is already a job", id)


async def send(text: str, attempt: int) -> None:
    """The work itself. Here it only fails once, or takes longer than a lease, where the text says so."""
    if text.startswith("flaky") and attempt == 1:
        raise OSError("mail server is away")
    await asyncio.sleep(LEASE_MS * 1.5 / 1000 if text.startswith("slow") else 0.1)


async def beat(id: bytes, token: bytes) -> None:
    """Begins the lease anew, until cancelled or the job is no longer ours."""
    while True:
        await asyncio.sleep(LEASE_MS / 3000)
        try:
            if await db.execute_command("DQ.TOUCH", QUEUE, id, "TOKEN", token) is None:  # type: ignore[no-untyped-call]
                return
        except redis.RedisError as error:
            print("no heartbeat:", error)


async def handle(id: bytes, payload: bytes, token: bytes, attempt: int) -> None:
    heart = asyncio.create_task(beat(id, token))
    name = id.decode(errors="backslashreplace")
    try:
        await send(payload.decode(errors="replace"), attempt)
        failure: Exception | None = None
    except Exception as error:
        failure = error
    finally:
        heart.cancel()
    if failure:
        state = await db.execute_command("DQ.NACK", QUEUE, id, "TOKEN", token)  # type: ignore[no-untyped-call]
        print(f"failed {name} (attempt {attempt}): {failure}; now {state.decode() if state else 'lost'}")
    elif await db.execute_command("DQ.ACK", QUEUE, "WITHTOKENS", "IDS", 1, id, token) == [1]:  # type: ignore[no-untyped-call]
        print(f"done {name} (attempt {attempt})")
    else:
        print(f"lost {name}: another worker may have it")


async def work() -> None:
    # A flag, and no cancelling: a task that is cancelled in BPOP may take a job with it, which then
    # nobody has until its lease ends.
    stopping = asyncio.Event()
    for number in signal.SIGTERM, signal.SIGINT:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    while not stopping.is_set():
        try:
            job = await db.execute_command("DQ.BPOP", QUEUE, WAIT_S, "TTR", LEASE_MS)  # type: ignore[no-untyped-call]
            if job:
                _queue, id, payload, token, attempt, _deadline = job
                await handle(id, payload, token, attempt)
        except redis.RedisError as error:
            # Whatever we had is delivered again when its lease ends.
            print("trouble:", error)
            await asyncio.sleep(1)
    print("stopped")


async def main() -> None:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if sys.argv[1:2] == ["add"]:
        await add(*sys.argv[2:5])
    elif sys.argv[1:] == ["work"]:
        await work()
    else:
        sys.exit(__doc__)
    await db.aclose()


if __name__ == "__main__":
    asyncio.run(main())
