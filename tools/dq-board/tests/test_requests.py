"""Who may come in, and what a request may ask for."""

import json
import socket
import urllib.parse

from playwright.sync_api import expect
from support import PATIENCE_S, BoardTest, ask


class Requests(BoardTest):
    def test_a_password_keeps_others_out(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, DQ_BOARD_PASSWORD="open sesame", DQ_BOARD_TOKEN="token-0123456789")
        for path in ["api/live", "api/look/queue?queue=0:q"]:
            self.assertEqual(ask(board.url + path)[0], 401)
            self.assertEqual(ask(board.url + path, authorization="Bearer wrong")[0], 401)
        self.assertEqual(ask(board.url + "api/look/queue?queue=0:q", authorization="Bearer token-0123456789")[0], 200)
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("That is not the password.")
        page.get_by_label("Password").fill("open sesame")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("q")
        cookie = page.context.cookies()[0]
        self.assertTrue(cookie["httpOnly"])
        self.assertEqual(cookie["sameSite"], "Strict")
        page.reload()
        expect(page.locator(".readout")).to_contain_text("1 job already due")

    def test_who_looks_cannot_act(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("1 job already due")
        self.assertEqual(page.locator(".actions button").count(), 0)
        body = json.dumps({"queue": "0:q", "act": "delete", "id": "job", "state": "ready"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq="1")[0], 403)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1)

    def test_a_prefix_that_reads_like_a_public_place_is_none(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        for prefix in ["/assets", "/ops/assets/api"]:
            board = self.board(server, "--prefix", prefix, DQ_BOARD_PASSWORD="open sesame")
            for path in ["api/look/queue?queue=0:q", "api/live", "queue?queue=0:q", "x/api/sign-in"]:
                self.assertEqual(ask(board.url + path)[0], 401, path)
            self.assertEqual(ask(board.url + "assets/style.css")[0], 200)
            self.assertIn("Password", ask(board.url.removesuffix("/"))[2])

    def test_passwords_cannot_be_tried_side_by_side(self):
        board = self.board(self.server(), DQ_BOARD_PASSWORD="open sesame")
        place = urllib.parse.urlsplit(board.url)
        body = b'{"password": "wrong"}'
        head = f"POST /api/sign-in HTTP/1.1\r\nHost: localhost\r\nx-dq: 1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        attempts = [socket.create_connection((place.hostname, place.port)) for _ in range(60)]
        for attempt in attempts:
            attempt.settimeout(PATIENCE_S)
            attempt.sendall(head.encode() + body)
        statuses = []
        for attempt in attempts:
            with attempt:
                statuses.append(attempt.recv(12)[9:])
        self.assertEqual(set(statuses), {b"403", b"429"})
        said = json.dumps({"password": "open sesame"}).encode()
        self.assertEqual(ask(board.url + "api/sign-in", "POST", said, x_dq="1")[0], 204)

    def test_one_that_does_not_say_what_it_wants_is_not_waited_for(self):
        board = self.board(self.server())
        place = urllib.parse.urlsplit(board.url)
        for begin in [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "]:
            with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as slow:
                slow.sendall(begin)
                while slow.recv(1000):
                    pass

    def test_other_sites_cannot_ask_for_anything(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, "--allow-actions")
        body = json.dumps({"queue": "0:q", "act": "delete", "id": "job", "state": "ready"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body)[0], 403)
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq="1", sec_fetch_site="cross-site")[0], 403)
        self.assertEqual(ask(board.url + "api/look/queue?queue=0:q", sec_fetch_site="cross-site")[0], 403)
        self.assertEqual(ask(board.url, host="evil.example")[0], 421)
        self.assertEqual(ask(board.url + "api/live", host="evil.example:80")[0], 421)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1)
        # The same request with the header, as from our own page, is carried out: so it is the header that matters.
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq="1")[0], 200)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 0)
        policy = ask(board.url)[1]["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_what_is_not_there_is_not_found(self):
        board = self.board(self.server())
        for path, said in [("metrics", "redis_exporter"), ("api/none", "There is no such page."), ("nonsense", "There is no such page."), ("assets/none.js", "No such file.")]:
            status, headers, text = ask(board.url + path)
            self.assertEqual((status, headers["content-type"]), (404, None), path)
            self.assertIn(said, text)
        for path in ["", "queue?queue=0:none", "search"]:
            self.assertEqual(ask(board.url + path)[0], 200, path)

    def test_under_a_prefix(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, "--prefix", "/ops/queues", "--allow-actions")
        self.assertTrue(board.url.endswith("/ops/queues/"))
        page = self.window()
        asked = []
        page.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url).path))
        page.goto(board.url)
        page.get_by_role("link", name="q", exact=True).click()
        expect(page.locator(".readout")).to_contain_text("1 job already due")
        page.get_by_role("link", name="Ready").click()
        page.get_by_role("link", name="job", exact=True).click()
        page.reload()
        expect(page.get_by_label("Payload")).to_have_text("x")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator(".empty")).to_contain_text("This job no longer exists")
        self.assertEqual([path for path in asked if not path.startswith("/ops/queues/")], [])
