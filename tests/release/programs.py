"""What each command of the published program must do once beside a server, on this machine's processor or on an emulated one."""

import json, os, subprocess, tempfile, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import trial

from support import PATIENCE_S, Server, wait_until

JOBS = 50


class Program:
    """The one in a folder; `runner` is what executes them. `module` and `server` are of this machine."""

    def __init__(self, test, folder, runner, module, server):
        self.test, self.folder, self.runner = test, folder, runner
        self.server = Server(module, server, "--appendonly", "yes")
        test.addCleanup(self.server.discard)
        self.socket = self.server.url.removeprefix("unix://")
        self.db, self.queue = trial.connect(self.server)

    def words(self, name, *options):
        return [*self.runner, os.path.join(self.folder, "dq"), name, *options]

    def says(self, name, *options):
        """To its end, which must be a good one."""
        done = subprocess.run(self.words(name, *options), capture_output=True, text=True, timeout=10 * PATIENCE_S)
        self.test.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
        return done.stdout

    def starts(self, name, *options):
        """As a service; returns it with its first line."""
        process = subprocess.Popen(self.words(name, *options), stdout=subprocess.PIPE, text=True)
        self.test.addCleanup(process.stdout.close)
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)
        return process, process.stdout.readline()

    def ends(self, process):
        process.terminate()
        self.test.assertEqual(process.wait(PATIENCE_S), 0)

    def check(self):
        self.imports()
        self.is_seen_in_the_terminal()
        self.is_seen_in_a_browser()
        self.is_pushed()
        self.is_audited()

    def imports(self):
        due = int(time.time()) + 3600
        self.db.zadd("old", {json.dumps({"order": n}): due + n for n in range(JOBS)})
        self.says("import", "-u", self.server.url, "--queue", self.queue.key,
                  "zset", "old", "--unit", "s", "--id-json", "order")
        self.test.assertEqual(self.queue.run("LEN", "DELAYED"), JOBS)

    def is_seen_in_the_terminal(self):
        titles, *rows = self.says("top", "-s", self.socket, "--once", "--interval", "0.1").splitlines()
        row = dict(zip(titles.lower().split(), rows[0].split()))
        self.test.assertEqual((row["queue"], row["delayed"]), (self.queue.key, str(JOBS)), titles)

    def is_seen_in_a_browser(self):
        board, line = self.starts("board", "-s", self.socket, "--listen", "127.0.0.1:0")
        url = line.split()[2]
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            self.test.assertIn(b"<html", page.read())
        with urllib.request.urlopen(f"{url}api/live", timeout=PATIENCE_S) as events:
            wait_until("the queue", lambda: f'"{self.queue.key}"'.encode() in events.readline())
        self.ends(board)

    def is_pushed(self):
        got = []

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self):
                got.append((self.headers["Dq-Id"], self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        receiver = HTTPServer(("127.0.0.1", 0), Receiver)
        self.test.addCleanup(receiver.server_close)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.test.addCleanup(receiver.shutdown)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
            config.write(f'http.allow = ["127.0.0.1"]\n[[http.queue]]\nname = "{self.queue.key}"\nurl = "http://127.0.0.1:{receiver.server_port}/"\n')
            config.flush()
            push, _ = self.starts("http", "-s", self.socket, "--config", config.name)
            self.queue.add("now", "payload")
            wait_until("the call", lambda: self.queue.run("LEN") == JOBS)
            self.ends(push)
        self.test.assertEqual(got, [("now", b"payload")])

    def is_audited(self):
        self.server.process.terminate()         # after which all of its file is written
        self.server.process.wait()
        folder = os.path.join(self.server.folder.name, "appendonlydir")
        said = self.says("audit", folder)
        self.test.assertIn("1 deliveries", said)
        self.test.assertIn("no faults", said)
