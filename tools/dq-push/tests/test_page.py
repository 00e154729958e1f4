"""The first screen of docs/http.md, as it stands there: curl, and the receivers in PHP and Ruby."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from support import PATIENCE_S, PushTest, free_port, job, length, wait_until

PAGE = (pathlib.Path(__file__).parents[3] / "docs/http.md").read_text()
SCREEN = "".join(line[4:] + "\n" if line.startswith("    ") else "\n" for line in PAGE.split("```")[0].splitlines())


def answers(port):
    with socket.socket() as sock:
        return sock.connect_ex(("localhost", port)) == 0


class Page(PushTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.inbound, self.called = free_port(), free_port()

    def moved(self, text):
        """The text with ports that are free."""
        return text.replace("6391", str(self.inbound)).replace("8080", str(self.called))

    def run_all(self, words, **environment):
        process = subprocess.Popen(
            words, cwd=self.folder, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def received(self, language, file, words):
        if not shutil.which(words[0]):
            self.skipTest(f"this machine has no {words[0]}")
        server = self.server()
        receiver = PAGE.split(f"```{language}\n")[1].split("```")[0]
        self.assertLessEqual(len(receiver.splitlines()), 11)
        (pathlib.Path(self.folder) / file).write_text(self.moved(receiver))
        begin, curls = self.moved(SCREEN).strip().split("\n\n")[:2]
        begin = begin.replace("$(make -s dq)", f"exec {os.environ['DQ_PROGRAM']}").replace(" &", f" -p {server.port}")
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        begin = begin.replace("whsec_$(openssl rand -base64 32)", secret)
        self.run_all(["sh", "-c", begin])
        self.run_all(words, ORDERS_SECRET=secret)
        for port in [self.inbound, self.called]:
            wait_until("it listens", lambda: answers(port))
        add, get, cancel = [line for line in curls.splitlines() if line.startswith("curl")]
        run = lambda line: subprocess.check_output(["sh", "-c", line], stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE_S)  # noqa: E731
        self.assertEqual(run(add), '{"id":"close:17"}')
        self.assertIn('"state":"delayed"', run(get))
        run(cancel)
        self.assertEqual(length(server, name="orders"), 0)
        run(add)
        server.client.execute_command("DQ.RESCHEDULE", "orders", "DELAY", 0, "close:17")
        wait_until("called and acknowledged", lambda: length(server, name="orders") == 0)
        closed = pathlib.Path(self.folder) / "closed.txt"
        self.assertEqual(closed.read_text(), "17\n")
        forged = f"""curl -s -o /dev/null -w '%{{http_code}}' -d '{{"order": 18}}' -H 'webhook-id: a' -H 'webhook-timestamp: '$(date +%s) \
            -H 'webhook-signature: v1,x' localhost:{self.called}/close"""
        self.assertEqual(run(forged), "401")
        self.assertEqual(closed.read_text(), "17\n")

    def test_php(self):
        self.received("php", "close.php", ["php", "-S", f"localhost:{self.called}", "close.php"])

    def test_ruby(self):
        self.received("ruby", "close.rb", ["ruby", "close.rb"])


if __name__ == "__main__":
    unittest.main()
