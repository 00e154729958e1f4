#!/usr/bin/env python3
"""Callbacks (webhooks) that are tried again after 1, 5, 10 and 30 minutes and 1 hour, then dead; somebody
is told, and when the receiver is mended they are sent after all.
"""

from __future__ import annotations

import http.server, json, threading, time, urllib.error, urllib.request
from collections.abc import Callable, Sequence, Set
from typing import Any

import redis

from commands import Hopeless, Job, Queue, demo, in_background, work

MINUTE_MS = 60_000
Alert = Callable[[str, str], None]
LADDER_MS = [1 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, 60 * MINUTE_MS]


def send_later(queue: Queue, id: str, url: str, body: Any, ladder_ms: Sequence[int] = LADDER_MS) -> bool:
    """To be sent at once, and after each step of the ladder if it failed. Whether it is new."""
    payload = json.dumps({"url": url, "body": body})
    return queue.add(id, payload, "ATTEMPTS", len(ladder_ms) + 1, "BACKOFF", len(ladder_ms), *ladder_ms)


def post(job: Job) -> None:
    """The handler. What it raises, other than Hopeless, means: try again."""
    callback = json.loads(job.payload)
    # The receiver may get it twice (we may die before the ack), and knows it by this header.
    headers = {"Content-Type": "application/json", "Idempotency-Key": job.id}
    request = urllib.request.Request(callback["url"], json.dumps(callback["body"]).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=20).close()     # well within the lease, which is 60 s
    except urllib.error.HTTPError as error:
        with error:
            if 400 <= error.code < 500 and error.code not in (408, 429):
                raise Hopeless(f"{callback['url']}: {error.code}") from error
            raise


def switch_events_on(db: redis.Redis) -> None:
    """Has the server tell of what modules do (d), by the name of the event (E); what else is on stays on."""
    flags: Any = db.config_get("notify-keyspace-events")
    db.config_set("notify-keyspace-events", "".join(sorted({*flags["notify-keyspace-events"], "E", "d"})))


def watch(queue: Queue, alert: Alert, stop: threading.Event, wait_s: float = 5) -> None:
    """Calls alert(id, payload) once for each dead job: those that are there, and each that dies."""
    known: Set[tuple[str, int]] = set()
    while not stop.is_set():
        try:
            with queue.db.pubsub() as events:
                database = queue.db.get_connection_kwargs().get("db", 0)
                events.subscribe(f"__keyevent@{database}__:dq.dead")
                while not stop.is_set():
                    known = look(queue, alert, known)
                    events.get_message(timeout=wait_s)      # the first says that the subscription holds
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.5)


def look(queue: Queue, alert: Alert, known: Set[tuple[str, int]]) -> Set[tuple[str, int]]:
    """An event says which queue, not which job, and one may be lost with the connection: so it is only the sign
    to look."""
    dead = {(id, at): payload for id, payload, at, _, _ in queue.run("PEEK", "DEAD", "COUNT", 10_000)}
    for id, at in dead.keys() - known:
        alert(id, dead[id, at])
    return dead.keys()


def send_again(queue: Queue, *ids: str) -> Any:
    """The way back: attempts and ladder begin anew. Without ids: all of them."""
    return queue.run("KICK", "IDS", len(ids), *ids) if ids else queue.run("KICK", "COUNT", 10_000)


class Receiver(http.server.ThreadingHTTPServer):
    """For the demonstration and the tests: answers with `status`, and notes what it got."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.url = status, f"http://127.0.0.1:{self.server_port}/"
        self.got: list[tuple[str, Any, int]] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.headers["Idempotency-Key"], body, self.server.status))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    db, options = demo(__doc__, step=0.5)
    queue, receiver = Queue(db, "demo:callbacks"), Receiver(503)
    told = threading.Event()

    def alert(id: str, payload: str) -> None:
        print(f"ALERT: {id} is dead: {payload}")
        told.set()

    switch_events_on(db)
    with in_background(watch, queue, alert, wait_s=1), in_background(work, queue, post, wait_s=1):
        send_later(queue, "paid:17", receiver.url, {"order": 17}, [int(options.step * 1000)] * 2)
        told.wait()
        print(f"tried {len(receiver.got)} times; now the receiver is mended")
        receiver.status = 200
        send_again(queue, "paid:17")
        while queue.get("paid:17"):
            time.sleep(0.05)
        print("sent:", receiver.got[-1])
