"""Alerts: what exceeds its limit is sent to a webhook, signed and once; repeated only until the webhook accepts it."""

import base64
import hashlib
import hmac
import http.server
import json
import queue
import signal
import tempfile
import threading
import time

from support import PATIENCE_S, BoardTest, calls, free_port, wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver:
    """A webhook that gives configured answers, and keeps what it accepted."""

    def __init__(self, port=0):
        self.calls, self.answers = queue.Queue(), []
        us = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = us.answers.pop(0) if us.answers else 204
                us.calls.put((status, self.headers, body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next(self, what="a call of the webhook"):
        try:
            return self.calls.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"waited in vain: {what}") from None

    def alerts(self, what="an accepted call of the webhook"):
        """The alerts of the next accepted call."""
        while True:
            status, _, body = self.next(what)
            if status < 300:
                return json.loads(body)["data"]["alerts"]

    def until(self, kind, state):
        while True:
            for alert in self.alerts(f"{kind}, {state}"):
                if (alert["kind"], alert["state"]) == (kind, state):
                    return alert


def stats(client, name):
    return {field.decode(): value for field, value in dict(client.execute_command("DQ.STATS", name)).items()}


def stats_calls(server):
    return calls(server, "dq.stats")


class Alerts(BoardTest):
    def receiver(self, **about):
        receiver = Receiver(**about)
        self.addCleanup(receiver.close)
        return receiver

    def watched(self, server, url, limits, *options):
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(file.close)
        file.write(f'[board.alerts]\nurl = "{url}"\nsecret = "{SECRET}"\nresolve-after = 1\n{limits}')
        file.flush()
        return self.board(server, "--config", file.name, *options), file

    def verify(self, headers, body):
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        self.assertEqual(headers["webhook-signature"], f"v1,{expected}")
        self.assertLess(abs(time.time() - int(headers["webhook-timestamp"])), 60)

    def die(self, client, name, *ids):
        for id in ids:
            client.execute_command("DQ.ADD", name, id, "x")
            client.execute_command("DQ.POP", name)
            client.execute_command("DQ.NACK", name, id, "FATAL")

    def test_dead_jobs_that_grow_are_told_once_and_signed(self):
        server, receiver = self.server(), self.receiver()
        self.die(server.client, "q", "before")
        self.die(server.client, "quiet", "before")
        receiver.answers = [500, 404]
        board, _ = self.watched(server, receiver.url, 'dead = 2\nboard-url = "https://board.example.com/x"\n[[board.alerts.queue]]\nname = "qui*"\ndead = 0\n')
        wait_until("the board has read", lambda: server.client.info("commandstats").get("cmdstat_dq.stats", {}).get("calls", 0) >= 4)
        self.die(server.client, "quiet", "a", "b")
        self.die(server.client, "q", "a", "b")
        calls = [receiver.next() for _ in range(3)]
        self.assertEqual([status for status, _, _ in calls], [500, 404, 204])
        self.assertEqual(len({(headers["webhook-id"], body) for _, headers, body in calls}), 1, "the same call, again")
        for _, headers, body in calls:
            self.verify(headers, body)
        told = json.loads(calls[-1][2])
        self.assertEqual((told["type"], told["data"]["firing"]), ("dq.alerts", 1))
        alert = told["data"]["alerts"][0]
        self.assertEqual((alert["kind"], alert["state"], alert["queue"], alert["db"], alert["value"], alert["limit"]), ("dead", "firing", "q", 0, 2, 2))
        self.assertEqual(alert["link"], "https://board.example.com/x/queue?queue=0:q")
        self.assertEqual(told["text"], "q: 2 jobs died")
        over = receiver.alerts()
        self.assertEqual([(it["kind"], it["state"], it["queue"]) for it in over], [("dead", "resolved", "q")])

    def test_what_waits_what_is_late_and_what_was_missed(self):
        server, receiver = self.server("--enable-debug-command", "yes"), self.receiver()
        client = server.client
        for name in ["old", "late", "missed"]:
            client.execute_command("DQ.ADD", name, "far", "x", "DELAY", 9_000_000)
        self.watched(server, receiver.url, "oldest-ready = 1\nlateness = 0.2\nmissed = 1\n")
        wait_until("the board has read", lambda: client.info("commandstats").get("cmdstat_dq.stats", {}).get("calls", 0) >= 6)
        client.execute_command("DQ.ADD", "missed", "r", "x", "EVERY", 1000, "GRACE", 1)
        alert = receiver.until("missed", "firing")
        self.assertEqual(alert["queue"], "missed")
        client.execute_command("DQ.DEL", "missed", "r")
        client.execute_command("DQ.ADD", "old", "job", "x")
        alert = receiver.until("oldest-ready", "firing")
        self.assertEqual(alert["queue"], "old")
        self.assertGreater(alert["value"], 1000)
        client.execute_command("DQ.POP", "old")
        receiver.until("oldest-ready", "resolved")
        client.execute_command("DQ.ADD", "late", "job", "x")
        wait_until("it is late", lambda: stats(client, "late")["oldest-ready-ms"] >= 300)
        client.execute_command("DQ.POP", "late")
        alert = receiver.until("lateness", "firing")
        self.assertEqual(alert["queue"], "late")
        self.assertGreaterEqual(alert["value"], 300_000)

    def test_a_restart_tells_nothing_again(self):
        server, receiver = self.server(), self.receiver()
        client = server.client
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)

        def begin():
            return self.watched(server, receiver.url, "oldest-ready = 1\n", "--store", folder.name + "/history")[0]

        def readings():
            return client.info("commandstats").get("cmdstat_dq.stats", {}).get("calls", 0)

        client.execute_command("DQ.ADD", "told", "job", "x")
        board = begin()
        self.assertEqual(receiver.until("oldest-ready", "firing")["queue"], "told")
        # A webhook that fails has not accepted the alert: the next board sends it.
        receiver.answers = [500] * 1000
        client.execute_command("DQ.ADD", "untold", "job", "x")
        while receiver.next()[0] != 500:
            pass
        board.process.kill()
        board.close()
        receiver.answers = []
        receiver.calls = queue.Queue()
        seen = readings()
        board = begin()
        alerts = receiver.alerts()
        self.assertEqual([(it["queue"], it["state"]) for it in alerts], [("untold", "firing")])
        wait_until("it was read", lambda: readings() >= seen + 8)
        self.assertTrue(receiver.calls.empty(), "what holds still is not told again")
        board.close()
        # What ended meanwhile is resolved, and what comes back is sent.
        client.execute_command("DQ.POP", "told")
        board = begin()
        self.assertEqual([(it["queue"], it["state"]) for it in receiver.alerts()], [("told", "resolved")])
        client.execute_command("DQ.ADD", "told", "more", "x")
        self.assertEqual([(it["queue"], it["state"]) for it in receiver.alerts()], [("told", "firing")])

    def test_what_dies_while_the_board_is_down_in_a_queue_made_meanwhile(self):
        server, receiver = self.server(), self.receiver()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        store = ["--store", folder.name + "/history"]
        begin = lambda of: self.watched(of, receiver.url, "dead = 1\n", *store)[0]  # noqa: E731
        self.die(server.client, "old", "a", "b")
        board = begin(server)
        # It has seen all queues once it takes another one for new.
        wait_until("the board has read", lambda: stats_calls(server) >= 4)
        self.die(server.client, "seen", "a")
        self.assertEqual(receiver.until("dead", "firing")["queue"], "seen")
        board.close()
        receiver.calls = queue.Queue()
        self.die(server.client, "made meanwhile", "a", "b")
        self.die(server.client, "old", "c")
        board = begin(server)
        told = []
        while len(told) < 2:
            told += [(it["queue"], it["value"]) for it in receiver.alerts() if it["state"] == "firing"]
        self.assertEqual(sorted(told), [("made meanwhile", 2), ("old", 1)])
        board.close()
        # What died on another server, or while nobody was to be told, is no news.
        other = self.server()
        self.die(other.client, "of old", "a", "b")
        board = begin(other)
        wait_until("the board has read", lambda: stats_calls(other) >= 4)
        board.close()
        silent = self.board(other, *store)
        wait_until("the board has read", lambda: stats_calls(other) >= 6)
        silent.close()
        self.die(other.client, "untold", "a")
        receiver.calls = queue.Queue()
        calls = stats_calls(other)
        begin(other)
        wait_until("the board has read", lambda: stats_calls(other) >= calls + 6)
        self.die(other.client, "new", "a")
        self.assertEqual(receiver.until("dead", "firing")["queue"], "new")

    def test_a_server_that_does_not_answer(self):
        server, receiver = self.server(), self.receiver()
        self.watched(server, receiver.url, "unreachable = 1\n")
        server.stop()
        alert = receiver.until("unreachable", "firing")
        self.assertEqual(alert["server"], f"127.0.0.1:{server.port}")
        self.assertNotIn("queue", alert)
        server.start()
        receiver.until("unreachable", "resolved")

    def test_a_receiver_that_is_not_there_yet_and_another_on_sighup(self):
        server, port = self.server(), free_port()
        server.client.execute_command("DQ.ADD", "q", "far", "x", "DELAY", 9_000_000)
        board, file = self.watched(server, f"http://127.0.0.1:{port}/hook", "dead = 1\n")
        wait_until("the board has read", lambda: server.client.info("commandstats").get("cmdstat_dq.stats", {}).get("calls", 0) >= 2)
        self.die(server.client, "q", "a")
        receiver = self.receiver(port=port)
        self.assertEqual(receiver.until("dead", "firing")["value"], 1)
        other = self.receiver()
        with open(file.name, "w", encoding="utf-8") as config:
            config.write(f'[board.alerts]\nurl = "{other.url}"\nresolve-after = 1\ndead = 1\n')
        board.process.send_signal(signal.SIGHUP)
        self.assertEqual(board.process.stdout.readline(), "dq board: read again\n")
        self.die(server.client, "q", "b")
        status, headers, body = other.next()
        self.assertEqual(status, 204)
        self.assertNotIn("webhook-signature", headers)
        self.assertEqual(json.loads(body)["data"]["alerts"][0]["queue"], "q")
