"""How late tasks with an ETA begin, beside a plain client that waits in DQ.BPOP, in the same run.

    make bench-celery ARGS="--count 1000 --pool solo"

Both are idle between their jobs, which are due in turns, so neither delays the other. Needs a quiet machine.
"""

import argparse
import datetime
import multiprocessing
import os
import sys
import time
from pathlib import Path

import redis
from conftest import Server, Worker, until

BEGIN_S = 2


def raw_client(path, count):
    """Writes by how many milliseconds each of its jobs was late."""
    db = redis.Redis(unix_socket_path=path)
    for _ in range(count):
        _key, id, _text, token, *_, due = db.execute_command("DQ.BPOP", "raw", 60, "WITHDUE")
        late_ms = time.time() * 1000 - due
        db.execute_command("DQ.ACK", "raw", "WITHTOKENS", id, token)
        db.rpush("late:raw", late_ms)


def add_all(server, app, count, gap_ms):
    """Tasks and jobs of the plain client, in turns."""
    begin_ms = int((time.time() + BEGIN_S) * 1000) + count * 2
    with app.app.producer_or_acquire() as producer:
        for number in range(count):
            due_ms = begin_ms + 2 * number * gap_ms
            eta = datetime.datetime.fromtimestamp(due_ms / 1000, datetime.timezone.utc)
            app.measure.apply_async((due_ms,), eta=eta, producer=producer, ignore_result=True)
            server.dq("ADD", "raw", f"r{number}", "", "AT", due_ms + gap_ms)


def measured(server, name, count):
    list_of = f"late:{name}"
    while server.db.llen(list_of) < count:
        time.sleep(0.1)
    return sorted(map(float, server.db.lrange(list_of, 0, -1)))


def run(server, pool, count, gap_ms):
    server.db.flushall()
    app, worker = program(server), Worker(server, "-c", "1", "--without-gossip", "--without-mingle", pool=pool)
    client = multiprocessing.get_context("spawn").Process(target=raw_client, args=(server.socket, count))
    try:
        app.note.apply_async(("warm",), ignore_result=True)
        until(lambda: server.ran("warm"), "the first task")
        client.start()
        until(lambda: len(waiting(server)) == 2, "two clients that wait")
        add_all(server, app, count, gap_ms)
        return {name: measured(server, name, count) for name in ("raw", "task")}
    finally:
        worker.kill()
        if client.pid:
            client.kill()
            client.join()


def waiting(server):
    return [client for client in server.db.client_list() if client["cmd"] == "dq.bpop" and "b" in client["flags"]]


def program(server):
    """The program's module as a producer loads it."""
    os.environ.update(server.environment())
    sys.path.insert(0, str(Path(__file__).parent))
    import program as module

    return module


def show(pool, late):
    for name, values in late.items():
        at = {share: values[min(len(values) - 1, int(len(values) * share))] for share in (0, 0.5, 0.9, 0.99)}
        figures = "  ".join(f"p{100 * share:g} {value:6.2f}" for share, value in at.items())
        print(f"{pool:8} {name:5} {figures}  max {values[-1]:6.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", action="append", choices=["solo", "threads", "prefork", "gevent", "eventlet"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--gap", type=int, default=10, help="milliseconds from a task to a job of the plain client")
    options = parser.parse_args()
    server = Server()
    try:
        for pool in options.pool or ["solo", "threads", "prefork"]:
            show(pool, run(server, pool, options.count, options.gap))
    finally:
        server.close()


if __name__ == "__main__":
    main()
