"""Roles, sessions, proxies, the audit log, and signals."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import tempfile
import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import trustme
from playwright.sync_api import expect
from support import PATIENCE_S, BoardTest, Encrypted, ask, cell, post, wait_until

TOKEN = "0123456789abcdef"
CONFIG = f"""
board.trusted-proxies = ["127.0.0.1"]
[[board.password]]
name = "oncall"
secret = "open sesame"
role = "operate"
[[board.password]]
name = "guests"
secret = "a look"
[[board.token]]
name = "ci"
secret = "{TOKEN}"
[board.users]
user-header = "X-Forwarded-User"
groups-header = "X-Forwarded-Groups"
look = ["*"]
operate = ["ann", "group:ops"]
"""
RESUME = {"queue": "0:q", "act": "resume"}


class AccessTest(BoardTest):
    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def hang_up(self, board):
        os.kill(board.process.pid, signal.SIGHUP)

    def sign_in(self, board, password, **headers):
        """The session's cookie, as a browser sends it back."""
        status, answer, _ = post(board.url + "api/sign-in", {"password": password}, **headers)
        return answer["set-cookie"].split(";")[0] if status == 204 else status


class Roles(AccessTest):
    def test_who_may_what_and_what_is_written_down(self):
        server = self.server()
        for id in ["a", "b"]:
            server.client.execute_command("DQ.ADD", "q", id, "x")
        log = self.folder() / "audit"
        config = log.with_name("config")
        config.write_text(CONFIG)
        board = self.board(server, "--config", str(config), "--audit-log", str(log))
        act = board.url + "api/act"
        look = board.url + "api/look/queue?queue=0:q"
        operator, guest = self.sign_in(board, "open sesame"), self.sign_in(board, "a look")
        self.assertEqual(self.sign_in(board, "wrong"), 403)
        ways = [
            ({"cookie": operator}, 200, 200), ({"cookie": guest}, 200, 403), ({"authorization": f"Bearer {TOKEN}"}, 200, 403),
            ({"authorization": f"Bearer {TOKEN[1:]}"}, 401, 401), ({}, 401, 401),
            ({"x_forwarded_user": "ann"}, 200, 200), ({"x_forwarded_user": "bob", "x_forwarded_groups": "dev,ops"}, 200, 200),
            ({"x_forwarded_user": "bob", "x_forwarded_for": "6.6.6.6, 9.9.9.9"}, 200, 403),
        ]
        for headers, looks, acts in ways:
            self.assertEqual(ask(look, **headers)[0], looks, headers)
            self.assertEqual(post(act, RESUME, **headers)[0], acts, headers)
        purge = {"queue": "0:q", "act": "purge", "state": "ready", "typed": "q"}
        self.assertEqual(post(act, {"queue": "0:q", "act": "delete", "id": "a", "state": "ready"}, x_forwarded_user="ann")[0], 200)
        self.assertEqual(post(act, purge, x_forwarded_user="ann", x_forwarded_for="9.9.9.9")[0], 200)
        self.assertEqual(post(act, {**purge, "typed": ""}, cookie=operator)[0], 400)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            self.assertRegex(line["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        # A refused sign-in is written a second later.
        acts = [line for line in lines if line["event"] == "action"]
        last = [{name: value for name, value in line.items() if name != "at"} for line in acts[-3:]]
        common = {"event": "action", "db": 0, "queue": "q"}
        self.assertEqual(last, [
            {**common, "address": "127.0.0.1", "user": "ann", "action": "delete", "id": "a", "state": "ready", "count": 1, "outcome": "deleted 1 job"},
            {**common, "address": "9.9.9.9", "user": "ann", "action": "purge", "state": "ready", "count": 1, "outcome": "purged 1 job"},
            {**common, "address": "127.0.0.1", "password": "oncall", "action": "purge", "state": "ready", "refused": "The name typed is not the queue's."},
        ])
        events = [(line["event"], line.get("password") or line.get("token") or line.get("user") or line.get("how"), line["address"]) for line in lines]
        for event in [("sign-in", "oncall", "127.0.0.1"), ("sign-in refused", "password", "127.0.0.1"), ("sign-in refused", "token", "127.0.0.1"), ("action", "ci", "127.0.0.1"), ("action", "bob", "9.9.9.9")]:
            self.assertIn(event, events)
        self.assertFalse([line for line in lines if "open sesame" in json.dumps(line) or TOKEN in json.dumps(line)])
        # Only our own proxies may name users.
        stranger = self.board(server, "--config", str(config.with_name("other")), config=CONFIG.replace("127.0.0.1", "10.0.0.1"))
        self.assertEqual(ask(stranger.url + "api/look/queue?queue=0:q", x_forwarded_user="ann")[0], 401)

    def board(self, server, *options, config=None, **environment):
        if config:
            pathlib.Path(options[options.index("--config") + 1]).write_text(config)
        return super().board(server, *options, **environment)

    def test_a_user_whom_no_list_names_is_refused(self):
        folder = self.folder()
        config = CONFIG.replace('look = ["*"]', 'look = ["bob"]')
        board = self.board(self.server(), "--config", str(folder / "config"), "--audit-log", str(folder / "audit"), config=config)
        self.assertEqual(ask(board.url, x_forwarded_user="bob")[0], 200)
        self.assertEqual(ask(board.url, x_forwarded_user="eve")[0], 403)
        self.assertEqual(json.loads((folder / "audit").read_text())["user"], "eve")


class Sessions(AccessTest):
    def test_signing_out_and_two_boards_on_one_host(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        boards = [self.board(server, DQ_BOARD_PASSWORD="open sesame") for _ in range(2)]
        page = self.window()
        for board in boards:
            page.goto(board.url)
            page.get_by_label("Password").fill("open sesame")
            page.keyboard.press("Enter")
            expect(cell(page, "q", "ready")).to_have_text("1")
        # Signing in to the second board keeps the session of the first.
        page.goto(boards[0].url)
        expect(cell(page, "q", "ready")).to_have_text("1")
        taken = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in page.context.cookies())
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Password")).to_be_visible()
        # A copy of the cookie no longer works.
        self.assertEqual([ask(board.url + "api/look/queue?queue=0:q", cookie=taken)[0] for board in boards], [401, 200])
        self.assertEqual(page.wrong, [])

    def test_the_stream_ends_with_the_session(self):
        server = self.server()
        config = self.folder() / "config"
        config.write_text(CONFIG)
        board = self.board(server, "--config", str(config))
        place = urllib.parse.urlsplit(board.url)

        def stream(**headers):
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
            self.addCleanup(connection.close)
            connection.request("GET", "/api/live", headers=headers)
            answer = connection.getresponse()
            self.assertTrue(answer.readline().startswith(b"data:"))
            return answer

        cookie = self.sign_in(board, "open sesame")
        signed_in, other = stream(Cookie=cookie), stream(Cookie=self.sign_in(board, "open sesame"))
        token = stream(Authorization=f"Bearer {TOKEN}")
        post(board.url + "api/sign-out", {}, cookie=cookie)
        signed_in.read()  # to its end
        self.assertTrue(other.readline() + other.readline())
        config.write_text(CONFIG.replace("open sesame", "another one").replace(TOKEN, TOKEN[::-1]))
        self.hang_up(board)
        other.read()
        token.read()

    def test_refusals_are_said_once_a_second_and_counted(self):
        log = self.folder() / "audit"
        board = self.board(self.server(), "--audit-log", str(log), DQ_BOARD_PASSWORD="open sesame", DQ_BOARD_TOKEN=TOKEN)
        look = board.url + "api/look/queue?queue=0:q"
        with ThreadPoolExecutor(40) as attempts:
            list(attempts.map(lambda number: ask(look, authorization=f"Bearer wrong-{number}"), range(400)))
        lines = lambda: [json.loads(line) for line in log.read_text().splitlines()]  # noqa: E731
        wait_until("all are counted", lambda: sum(line.get("count", 1) for line in lines()) == 400)
        instants = [line["at"][:19] for line in lines()]
        self.assertLess(len(instants), 2 * len(set(instants)) + 3)

    def test_attempts_of_one_do_not_shut_out_others(self):
        server = self.server()
        board = self.board(server, "--trusted-proxy", "127.0.0.1", DQ_BOARD_PASSWORD="open sesame", DQ_BOARD_TOKEN=TOKEN)
        place = urllib.parse.urlsplit(board.url)
        look = board.url + "api/look/queue?queue=0:q"
        with contextlib.ExitStack() as stack:
            for number in range(40):
                attempt = stack.enter_context(contextlib.closing(http.client.HTTPConnection(place.hostname, place.port)))
                attempt.request("GET", "/api/live", headers={"Authorization": f"Bearer wrong-{number}", "X-Forwarded-For": "9.9.9.9"})
            # The queue of that address is full; a right token from the same address does not wait in it.
            wait_until("the line is full", lambda: ask(look, authorization="Bearer wrong", x_forwarded_for="9.9.9.9")[0] == 429)
            self.assertEqual(ask(look, authorization=f"Bearer {TOKEN}", x_forwarded_for="9.9.9.9")[0], 200)
            self.assertNotEqual(self.sign_in(board, "open sesame", x_forwarded_for="9.9.9.10"), 429)
            self.assertEqual(self.sign_in(board, "open sesame", x_forwarded_for="9.9.9.9"), 429)

    def test_this_machine_in_any_letters(self):
        board = self.board(self.server())
        for host, status in [("LOCALHOST", 200), ("LocalHost:80", 200), ("localhost.evil", 421)]:
            self.assertEqual(ask(board.url, host=host)[0], status, host)


class Signals(AccessTest):
    def test_files_are_read_again(self):
        server = self.server()
        folder = self.folder()
        config, log = folder / "config", folder / "audit"
        config.write_text(CONFIG)
        board = self.board(server, "--config", str(config), "--audit-log", str(log))
        operator, guest = self.sign_in(board, "open sesame"), self.sign_in(board, "a look")
        log.rename(folder / "audit.1")
        config.write_text(CONFIG.replace("open sesame", "changed").replace('secret = "a look"', 'secret = "a look"\nrole = "operate"'))
        self.hang_up(board)
        self.assertEqual(board.process.stdout.readline(), "dq board: read again\n")
        act = board.url + "api/act"
        self.assertEqual(post(act, RESUME, cookie=operator)[0], 401, "its password is none any more")
        self.assertEqual(post(act, RESUME, cookie=guest)[0], 200, "a role of its own")
        self.assertEqual(self.sign_in(board, "open sesame"), 403)
        self.assertIn("sign-in refused", log.read_text())
        # A configuration that cannot be read changes nothing.
        config.write_text("nonsense")
        self.hang_up(board)
        self.assertEqual(post(act, RESUME, cookie=guest)[0], 200)
        self.assertIsNone(board.process.poll())

    def test_a_certificate_is_read_again(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        authority, other = trustme.CA(), trustme.CA()
        proxy = Encrypted(authority.issue_cert("localhost"), server.port)
        self.addCleanup(proxy.close)
        trusted = self.folder() / "ca.pem"
        other.cert_pem.write_to_path(str(trusted))
        board = self.board(None, "-h", "localhost", "-p", str(proxy.port), "--cacert", str(trusted))
        look = board.url + "api/look/queue?queue=0:q"
        self.assertEqual(ask(look)[0], 502)
        authority.cert_pem.write_to_path(str(trusted))
        self.hang_up(board)
        wait_until("the certificate is trusted", lambda: ask(look)[0] == 200)
        page = self.window()
        page.goto(board.url)
        expect(cell(page, "q", "ready")).to_have_text("1")

    def test_it_ends_when_what_is_under_way_is_done(self):
        for number in [signal.SIGHUP, signal.SIGTERM]:
            server = self.server()
            server.client.execute_command("DQ.ADD", "q", "job", "x")
            board = self.board(server, "--allow-actions")
            place = urllib.parse.urlsplit(board.url)
            server.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            answers = []
            asking = threading.Thread(target=lambda: answers.append(post(board.url + "api/act", {"queue": "0:q", "act": "delete", "id": "job", "state": "ready"})))
            asking.start()
            live = socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S)
            self.addCleanup(live.close)
            live.sendall(b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200 OK", live.recv(1000))
            wait_until("the action waits", lambda: any(it["cmd"] == "eval" for it in server.client.client_list()))
            os.kill(board.process.pid, number)
            while live.recv(100_000):
                pass
            self.assertIsNone(board.process.poll())
            server.client.execute_command("CLIENT", "UNPAUSE")
            asking.join()
            self.assertEqual(answers[0][0], 200)
            self.assertEqual(board.process.wait(PATIENCE_S), 0)
