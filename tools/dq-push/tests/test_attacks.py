"""Attacks on the way in: those that the board withstands, and some of its own."""

import pathlib
import socket
import unittest
import urllib.parse

from support import PATIENCE_S, SECRET, InboundTest, add, length, token, wait_until


class Attacks(InboundTest):
    def test_pages_of_other_sites(self):
        server = self.server()
        for lines in [token(), None]:
            push = self.inbound(server, lines, configured=lines is not None)
            secret = lines and SECRET
            for headers in [
                {"origin": "https://evil.example"},
                {"origin": "null"},
                {"sec_fetch_site": "cross-site"},
                {"sec_fetch_site": "same-site"},
            ]:
                answer = self.post(push, b"x", secret=secret, content_type="text/plain", **headers)
                self.refused(answer, 403)
                self.assertFalse([name for name in answer.headers if name.startswith("access-control")])
                self.refused(self.ask(push, "OPTIONS", "/queues/q/jobs", secret=secret, **headers), 403)
        self.assertEqual(length(server), 0)
        for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"]:
            self.refused(self.post(push, b"x", secret=None, host=host), 421)
        self.assertEqual(length(server), 0)
        self.assertEqual(self.post(push, b"x", secret=None, host="localhost").status, 201)

    def test_tokens_cannot_be_tried_side_by_side(self):
        push = self.inbound(self.server())
        head = f"POST /queues/q/jobs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dq_x\r\ncontent-length: 0\r\n\r\n"
        attempts = [socket.create_connection(push.at.split(":"), PATIENCE_S) for _ in range(60)]
        for attempt in attempts:
            attempt.sendall(head.encode())
        # A right one does not wait for them.
        self.assertEqual(self.post(push, b"x").status, 201)
        statuses = []
        for attempt in attempts:
            with attempt:
                statuses.append(attempt.recv(12)[9:])
        self.assertEqual(set(statuses), {b"401", b"429"})

    def test_what_is_not_a_token(self):
        push = self.inbound(self.server())
        for said in ["", "Bearer", "Bearer ", f"Basic {SECRET}", f"Bearer {SECRET}x", f"bearer {SECRET[:-1]}", SECRET]:
            answer = self.post(push, b"x", secret=None, authorization=said)
            self.refused(answer, 401)
            self.assertEqual(answer.headers["www-authenticate"], "Bearer")

    def test_paths_that_lead_elsewhere(self):
        server = self.server()
        add(server, "a", name="secret")
        push = self.inbound(server, token('prefix = "a:"', queues='"q", "r.*"'))
        for path in [
            "/queues/secret/jobs/a",
            "/queues/q/../secret/jobs/a",
            "/queues/q%2F..%2Fsecret/jobs/a",
            "/queues/q/jobs/../../secret/jobs/a",
            "/queues/r.x/../secret/jobs/a",
            "//queues/secret/jobs/a",
            "/queues/secret/jobs/a:",
            "/queues/%73ecret/jobs/a",
            "/queues/q%00/jobs/a:1",
            "/queues/q%0d%0aDQ.DEL/jobs/a:1",
            "/metrics",
            "/",
        ]:
            self.refused(self.ask(push, "GET", path), 404)
        self.refused(self.ask(push, "GET", "http://169.254.169.254/latest/meta-data"), 404)
        # Words of the command stay ids.
        for id in ["a:UNRESERVED", "a:IDS"]:
            self.assertEqual(self.post(push, b"x", dq_id=id).status, 201)
            self.assertEqual(self.ask(push, "DELETE", f"/queues/q/jobs/{id}").status, 204)

    def test_words_of_commands_are_ids(self):
        server = self.server()
        push = self.inbound(server)
        for id in ["IDS", "UNRESERVED", "**", "\r\n", "x\0y", "ü", "%2F"]:
            path = "/queues/q/jobs/" + urllib.parse.quote(id, safe="")
            self.assertEqual(self.post(push, {"payload": "x", "id": id, "label": "REPLACE"}).json()["id"], id)
            self.assertEqual(self.ask(push, "GET", path).json()["id"], id)
            self.assertEqual(self.ask(push, "GET", path + "?wait=0.01").json()["id"], id)
            self.assertEqual(self.ask(push, "DELETE", path + "?unreserved=true").status, 204)
        self.refused(self.post(push, {"payload": "x", "id": "*"}), 400, "id")
        self.assertEqual(length(server), 0)

    def test_bodies_that_do_not_end(self):
        server = self.server()
        push = self.inbound(server)
        limits = {"content_length": 16 * 2**20 + 1}, {"content_length": "18446744073709551616"}, {"content_length": "-1"}
        self.assertEqual([self.begun(push, **limit) for limit in limits], [413, 400, 400])
        chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
        self.assertEqual(self.begun(push, chunk * 17, transfer_encoding="chunked"), 413)
        self.assertEqual(self.begun(push, b"5\r\nhello\r\n0\r\n\r\n", transfer_encoding="chunked"), 201)
        # Two lengths: what one program reads as a body, another one could read as a request.
        smuggled = b"0\r\n\r\nPOST /queues/q/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx"
        self.assertIn(self.begun(push, smuggled, transfer_encoding="chunked", content_length=4), [201, 400])
        self.assertLessEqual(length(server), 2)
        deep = b'{"payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        self.assertIn(self.post(push, deep, content_type="application/json").status, [201, 400])
        self.assertEqual(self.post(push, b"x").status, 201, "it goes on")

    def test_headers_and_connections_without_end(self):
        push = self.inbound(self.server())
        address = push.at.split(":")
        for begin in [b"", b"GET / HTTP/1.1\r\nhost: localhost\r\nX: "]:
            with socket.create_connection(address, timeout=PATIENCE_S) as slow:
                slow.sendall(begin)
                while slow.recv(1000):
                    pass
        with socket.create_connection(address, timeout=PATIENCE_S) as greedy:
            greedy.sendall(b"GET / HTTP/1.1\r\n")
            try:
                for _ in range(1000):
                    greedy.sendall(b"x" * 1000 + b": y\r\n")
                while greedy.recv(1000):
                    pass
            except OSError:
                pass  # closed before all was sent
        # More than may be open: the others wait, and have their turn.
        idle = [socket.create_connection(address, PATIENCE_S) for _ in range(1000)]
        self.assertEqual(self.post(push, b"x").status, 201)
        for connection in idle:
            connection.close()

    def test_nothing_of_the_server_is_told(self):
        server = self.server()
        server.client.set("q", "no queue")
        server.client.execute_command("ACL", "SETUSER", "http", "on", ">secret", "~q", "+dq.add")
        push = self.inbound(server, None, "--user", "http", "-a", "secret")
        for answer in [self.post(push, b"x"), self.ask(push, "GET", "/queues/q/jobs/a")]:
            said = self.refused(answer, 503)
            self.assertEqual(said, "this queue cannot be served now")
        wait_until("told", lambda: "the ACL denies this" in push.told() and "not a queue" in push.told())

    def test_the_user_that_the_docs_make(self):
        server = self.server()
        page = (pathlib.Path(__file__).parents[3] / "docs/http.md").read_text()
        words = next(line for line in page.splitlines() if "ACL SETUSER" in line).split()
        more = next(line for line in page.splitlines() if "`+dq.add" in line).split("`")[1].split()
        server.client.execute_command(*words, *more)
        push = self.inbound(server, token(queues='"orders"'), "--user", "push", "-a", "secret")
        jobs = "/queues/orders/jobs"
        id = self.post(push, b"x", jobs).json()["id"]
        self.assertEqual(self.post(push, [{"payload": "x"}] * 2, "/queues/orders/many").status, 201)
        self.assertEqual(self.ask(push, "GET", f"{jobs}/{id}?wait=0.01").status, 200)
        self.assertEqual(self.post(push, {"name": "x"}, f"{jobs}/{id}/signal").status, 201)
        self.assertEqual(self.ask(push, "DELETE", f"{jobs}/{id}").status, 204)
        self.assertEqual(push.told(), "")


if __name__ == "__main__":
    unittest.main()
