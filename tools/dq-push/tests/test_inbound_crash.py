"""What was answered 2xx is in the queue, once, whichever process is killed. DQ_PUSH_SEED: repeats the run with that seed;
DQ_HTTP_ADDS: so many jobs."""

import http.client
import os
import random
import threading
import time
import unittest
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis
from support import PATIENCE_S, Push, PushTest, free_port, length, wait_until
from test_crash import seed_of_the_run

ADDS = int(os.environ.get("DQ_HTTP_ADDS") or 3000)
KILLS = 8
CLIENTS = 6


class Way:
    """dq http as the way in, at the same port whenever it is started."""

    def __init__(self, server):
        self.port = free_port()
        self.push = Push(server, "", "--listen", f"127.0.0.1:{self.port}", metrics=False, configured=False)
        self.start, self.kill, self.close = self.push.start, self.push.kill, self.push.close


class Hasty:
    """A fault that must be noticed: one that answers before the server has."""

    def __init__(self, server):
        self.later = deque()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler):
                payload = handler.rfile.read(int(handler.headers["content-length"]))
                self.later.append((handler.headers["dq-id"], payload))
                handler.send_response(201)
                handler.send_header("content-length", "0")
                handler.end_headers()

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        self.client = redis.Redis(port=server.port)
        for run in [self.http.serve_forever, self.add]:
            threading.Thread(target=run, daemon=True).start()

    def add(self):
        while True:
            try:
                self.client.execute_command("DQ.ADD", "q", *self.later.popleft())
            except IndexError:
                time.sleep(0.001)
            except redis.exceptions.RedisError:
                pass

    def kill(self):
        self.later.clear()

    def start(self):
        pass

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Client(threading.Thread):
    """Adds jobs, each until it is answered 2xx."""

    def __init__(self, way, ids):
        super().__init__(daemon=True)
        self.way, self.ids, self.added, self.statuses = way, ids, [], set()

    def run(self):
        connection = None
        for id in self.ids:
            while True:
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.way.port, timeout=PATIENCE_S)
                    connection.request("POST", "/queues/q/jobs", b"x", {"dq-id": id})
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    connection = None
                    time.sleep(0.01)
                    continue
                self.statuses.add(answer.status)
                if answer.status // 100 == 2:
                    self.added.append(id)
                    break
                time.sleep(0.05)


class Crashes(PushTest):
    def play(self, make, seed):
        """Kills the server or the program at random while jobs are added; returns what was answered 2xx and is not
        there."""
        chance = random.Random(seed)
        server = self.server("--appendonly", "yes", "--appendfsync", "always")
        way = make(server)
        self.addCleanup(way.close)
        ids = [f"job-{number}" for number in range(ADDS)]
        clients = [Client(way, ids[number::CLIENTS]) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        added = lambda: sum(len(client.added) for client in clients)  # noqa: E731
        for kill in range(KILLS):
            goal = (kill + chance.random()) * ADDS / KILLS
            wait_until("added", lambda: added() >= goal)
            if chance.choice([True, False]):
                server.stop()
                server.start()
            else:
                way.kill()
                way.start()
        for client in clients:
            client.join()
        self.assertLessEqual(set().union(*(client.statuses for client in clients)), {200, 201, 503})
        cursor, there = b"0", set()
        while True:
            cursor, page = server.client.execute_command("DQ.SCAN", "q", cursor, "COUNT", 1000)
            there.update(id.decode() for id in page)
            if cursor == b"0":
                break
        self.count = length(server)
        return set().union(*(client.added for client in clients)) - there

    def test_what_was_answered_is_there(self):
        self.assertEqual(self.play(Way, seed_of_the_run()), set())
        self.assertEqual(self.count, ADDS)

    def test_haste_is_noticed(self):
        self.assertNotEqual(self.play(Hasty, seed_of_the_run()), set())


if __name__ == "__main__":
    unittest.main()
