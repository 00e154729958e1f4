"""The way in: who may send what, and what is answered."""

import base64
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest

from support import PATIENCE_S, SECRET, InboundTest, add, job, length, token, wait_until


class Adding(InboundTest):
    def test_every_option(self):
        server = self.server()
        push = self.inbound(server)
        for given, field, value in [
            ({"delay": 60_000}, "state", b"delayed"),
            ({"at": 4_000_000_000_000}, "due", 4_000_000_000_000),
            ({"priority": -5}, "priority", -5),
            ({"ttr": 1234}, "ttr", 1234),
            ({"attempts": 7}, "max-attempts", 7),
            ({"group": "acme"}, "group", b"acme"),
            ({"keep": 5000}, "keep", 5000),
            ({"cost": 3}, "cost", 3),
            ({"backoff": [1000, 5000]}, "backoff", [1000, 5000]),
            ({"backoff": []}, "backoff", [0]),
            ({"label": "mail"}, "label", b"mail"),
            ({"every": 60_000, "until": 4_000_000_000_000, "times": 3, "grace": 1, "jitter": 2}, "times", 3),
            ({"cron": "0 9 * * *", "tz": "Europe/Berlin"}, "tz", b"Europe/Berlin"),
            ({"after": ["x"], "on_dead": "run"}, "on-dead", b"run"),
            ({"after_group": "acme"}, "after-group", b"acme"),
        ]:
            for way in ["json", "headers"]:
                server.client.flushall()
                add(server, "x", "GROUP", "acme")
                if way == "json":
                    answer = self.post(push, {"payload": {"a": 1}, "id": "j", **given})
                else:
                    said = {
                        f"dq-{name}": ",".join(map(str, it)) if isinstance(it, list) else str(it)
                        for name, it in given.items()
                    }
                    answer = self.post(push, b'{"a": 1}', dq_id="j", **said)
                self.assertEqual(answer.status, 201, (way, given, answer.body))
                self.assertEqual(answer.json(), {"id": "j"})
                self.assertEqual(answer.headers["location"], "/queues/q/jobs/j")
                self.assertEqual(job(server, "j")[field], value, (way, given))
        server.client.flushall()
        self.assertEqual(self.post(push, {"payload": "x", "ttl": 60_000, "id": "j"}).status, 201)
        self.assertGreater(job(server, "j")["expires"], 0)

    def test_payloads(self):
        server = self.server()
        push = self.inbound(server)
        sent = bytes(range(256))
        for body, payload in [
            ({"payload": "plain, ü"}, "plain, ü".encode()),
            ({"payload_base64": base64.b64encode(sent).decode()}, sent),
            ({"payload": ""}, b""),
        ]:
            id = self.post(push, body).json()["id"]
            self.assertEqual(job(server, id)["payload"], payload)
        written = '{"payload": {"b":1,  "a": 1.50}}'
        id = self.post(push, written, content_type="application/json; charset=utf-8").json()["id"]
        self.assertEqual(job(server, id)["payload"], b'{"b":1,  "a": 1.50}', "as it is written")
        id = self.post(push, sent).json()["id"]
        shown = self.ask(push, "GET", f"/queues/q/jobs/{id}").json()
        self.assertEqual(base64.b64decode(shown["payload_base64"]), sent)

    def test_an_id_adds_one_job(self):
        server = self.server()
        push = self.inbound(server)
        self.assertEqual(self.post(push, b"1", idempotency_key='"of an order"').status, 201)
        self.assertEqual(self.post(push, b"2", idempotency_key="of an order").status, 200)
        self.assertEqual(job(server, "of an order")["payload"], b"1")
        self.assertEqual(self.post(push, b"3", dq_id="of%20an%20order", dq_if_exists="replace").status, 201)
        self.assertEqual(job(server, "of an order")["payload"], b"3")
        path = "/queues/q/jobs/of%20an%20order"
        self.assertEqual(self.ask(push, "GET", path).json()["payload"], "3")
        self.assertEqual(self.ask(push, "DELETE", path).status, 204)
        self.refused(self.ask(push, "DELETE", path), 404)
        self.refused(self.ask(push, "GET", path), 404)
        self.refused(self.post(push, {"payload": "", "id": "of", "if_exists": "only-replace"}), 404)
        server.client.execute_command("DQ.CFGSET", "q", "DEDUPE", 60_000)
        self.assertEqual(self.post(push, b"1", dq_id="a").status, 201)
        server.client.execute_command("DQ.ACK", "q", "a", server.client.execute_command("DQ.POP", "q")[2])
        self.assertEqual(self.post(push, b"1", dq_id="a").status, 200, "the queue remembers it")
        self.assertEqual(length(server), 0)

    def test_what_a_worker_has_may_be_left_to_it(self):
        server = self.server()
        push = self.inbound(server)
        add(server, "a")
        server.client.execute_command("DQ.POP", "q")
        self.refused(self.ask(push, "DELETE", "/queues/q/jobs/a?unreserved=true"), 409)
        self.refused(self.ask(push, "DELETE", "/queues/q/jobs/b?unreserved=true"), 404)
        self.refused(self.ask(push, "DELETE", "/queues/q/jobs/a?force"), 400)
        shown = self.ask(push, "GET", "/queues/q/jobs/a").json()
        self.assertEqual((shown["state"], shown["attempts"]), ("reserved", 1))
        self.assertNotIn("token", shown)
        self.assertEqual(self.ask(push, "DELETE", "/queues/q/jobs/a").status, 204)

    def test_what_is_wrong_is_named(self):
        server = self.server()
        push = self.inbound(server)
        for body, argument in [
            ({"payload": "x", "delay": -1}, "delay"),
            ({"payload": "x", "delay": "soon"}, "delay"),
            ({"payload": "x", "delay": 1.5}, "delay"),
            ({"payload": "x", "priority": 2**31}, "priority"),
            ({"payload": "x", "id": ""}, "id"),
            ({"payload": "x", "id": "x" * 1025}, "id"),
            ({"payload": "x", "group": "x" * 257}, "group"),
            ({"payload": "x", "backoff": [0]}, "backoff"),
            ({"payload": "x", "cron": "nonsense"}, "cron"),
            ({"payload": "x", "cron": "* * * * *", "tz": "Mars"}, "tz"),
            ({"payload": "x", "if_exists": "NX"}, "if_exists"),
            ({"payload_base64": "?"}, "payload"),
            ({"payload_base64": "", "payload": ""}, "payload"),
            ({"id": "x"}, "payload"),
            ({"payload": "x", "nonsense": 1}, None),
        ]:
            self.refused(self.post(push, body), 400, argument)
        self.refused(self.post(push, {"payload": "x", "after": ["no"]}), 404, "after")
        self.refused(self.post(push, b"x", dq_delay="soon"), 400, "delay")
        self.refused(self.post(push, b"x", dq_nonsense="1"), 400)
        self.refused(self.post(push, {"payload": "x", "id": "a"}, idempotency_key="b"), 400, "id")
        self.refused(self.post(push, b"{", content_type="application/json"), 400)
        self.refused(self.post(push, b"[1]", content_type="application/json"), 400)
        self.assertEqual(self.begun(push, content_length=16 * 2**20 + 1), 413)
        for path, allowed in [("/queues/q/jobs", "POST"), ("/queues/q/jobs/a", "GET, DELETE"), ("/openapi.json", "GET")]:
            answer = self.ask(push, "PUT", path)
            self.refused(answer, 405)
            self.assertEqual(answer.headers["allow"], allowed)
        self.refused(self.ask(push, "GET", "/queues/q"), 404)
        self.assertEqual(length(server), 0)

    def test_a_full_queue_and_a_full_server(self):
        server = self.server("--maxmemory", "100mb")
        push = self.inbound(server)
        for limit in ["MAXLEN", "MAXBYTES"]:
            server.client.execute_command("DQ.CFGSET", "q", limit, 1)
            answer = [self.post(push, b"xx") for _ in range(2)][1]
            self.refused(answer, 429)
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            server.client.execute_command("DQ.CFGSET", "q", limit, 0)
        server.client.config_set("maxmemory", 1)
        answer = self.post(push, b"x")
        self.refused(answer, 503)
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        server.client.config_set("maxmemory", 0)
        server.client.replicaof("127.0.0.1", 1)
        self.refused(self.post(push, b"x"), 503)
        server.client.replicaof("no", "one")
        self.assertEqual(self.post(push, b"x").status, 201)

    def test_the_server_goes_and_comes(self):
        server = self.server()
        push = self.inbound(server)
        self.assertEqual(self.post(push, b"x").status, 201)
        server.stop()
        self.refused(self.post(push, b"x", dq_id="a"), 503)
        self.assertEqual(push.health(), 503)
        server.start()
        self.assertEqual(push.health(), 200, "although nobody has added anything")
        self.assertEqual(self.post(push, b"x", dq_id="a").status, 201)
        server.client.set("s", "no queue")
        self.refused(self.ask(push, "GET", "/queues/s/jobs/a"), 404)

    def test_a_queue_on_another_node(self):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "60000")
        one, two = self.server(*options), self.server(*options)
        one.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        two.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        one.client.execute_command("CLUSTER", "MEET", "127.0.0.1", two.port)
        for node in [one, two]:
            wait_until("a cluster", lambda: b"cluster_state:ok" in node.client.execute_command("CLUSTER", "INFO"))
        push = self.inbound(one, token(queues='"*"'))
        # "q" is in slot 11958, "b" in 3300.
        for node, name in [(two, "q"), (one, "b")]:
            for _ in range(2):
                self.assertEqual(self.post(push, b"x", f"/queues/{name}/jobs").status, 201)
            self.assertEqual(length(node, name=name), 2)


class Tokens(InboundTest):
    def test_what_a_token_does_not_have(self):
        server = self.server()
        log = tempfile.NamedTemporaryFile("r")
        lines = token('prefix = "a:"', verbs='"add", "get"') + token(secret="dq_other", name="other", queues='"r.*"')
        push = self.inbound(server, lines, "--audit-log", log.name)
        add(server, "b:1")
        for answer, status, argument in [
            (self.post(push, b"x", secret=None), 401, None),
            (self.post(push, b"x", secret="dq_wrong"), 401, None),
            (self.post(push, b"x", "/queues/r.x/jobs"), 404, None),
            (self.post(push, b"x", secret="dq_other"), 404, None),
            (self.ask(push, "GET", "/queues/q/jobs/b:1"), 404, None),
            (self.ask(push, "DELETE", "/queues/q/jobs/a:1"), 403, None),
            (self.post(push, b"x", dq_id="b:2"), 404, "id"),
            (self.post(push, b"x", dq_after="b:1"), 404, "after"),
            (self.post(push, b"x", dq_after="a:none"), 404, "after"),
            (self.post(push, b"x", dq_after_group="g"), 403, "after_group"),
            (self.post(push, b"x", dq_if_exists="replace"), 403, "if_exists"),
        ]:
            self.refused(answer, status, argument)
        self.assertEqual(length(server), 1)
        there, not_there = [self.post(push, b"x", dq_after=id).json() for id in ["b:1", "a:none"]]
        self.assertEqual(there, not_there, "nothing tells them apart")
        made = self.post(push, b"x").json()["id"]
        self.assertTrue(made.startswith("a:") and len(made) > 20, made)
        self.assertEqual(self.post(push, b"x", "/queues/r.x/jobs", secret="dq_other").status, 201)
        refusals = [json.loads(line) for line in log]
        self.assertEqual({it["event"] for it in refusals}, {"refused"})
        how = {(it["how"], it["user"]) for it in refusals}
        self.assertLessEqual({("token", None), ("queue", "shop"), ("queue", "other"), ("prefix", "shop"), ("verb", "shop"), ("bound", "shop")}, how)
        self.assertNotIn("dq_", open(log.name).read())
        metrics = push.metrics()
        self.assertEqual(metrics['dq_http_refused_total{why="token"}'], "2")
        self.assertEqual(metrics['dq_http_requests_total{asked="add",status="401"}'], "2")
        self.assertEqual(metrics['dq_http_requests_total{asked="cancel",status="403"}'], "1")

    def test_what_its_jobs_have(self):
        server = self.server()
        bounds = "bounds = { priority = [1, 9], cost = [1, 5], ttl = [1000, 60000], keep = [0, 1000] }"
        push = self.inbound(server, token('group = "acme"', 'label = "mail"', bounds))
        id = self.post(push, b"x").json()["id"]
        has = job(server, id)
        self.assertEqual((has["group"], has["label"], has["priority"], has["cost"]), (b"acme", b"mail", 1, 1))
        self.assertLessEqual(has["expires"] - has["due"], 60_001)
        for given, argument in [
            ({"priority": 0}, "priority"),
            ({"cost": 6}, "cost"),
            ({"ttl": 60_001}, "ttl"),
            ({"keep": 1001}, "keep"),
            ({"group": "other"}, "group"),
            ({"label": "other"}, "label"),
            ({"after_group": "other"}, "after_group"),
        ]:
            self.refused(self.post(push, {"payload": "", **given}), 403, argument)
        given = {"priority": 9, "ttl": 1000, "group": "acme"}
        self.assertEqual(self.post(push, {"payload": "", **given}).status, 201)
        said = self.refused(self.post(push, {"payload": "", "after_group": "acme"}), 400, "after")
        self.assertEqual(said, "AFTER would wait for itself")

    def test_a_rate(self):
        push = self.inbound(self.server(), token("rate = 0.001"))
        self.assertEqual(self.post(push, b"x").status, 201)
        last = self.post(push, b"x")
        self.refused(last, 429)
        self.assertIn(int(last.headers["retry-after"]), range(1, 1001))

    def test_tokens_are_read_again(self):
        server = self.server()
        push = self.inbound(server)
        self.assertEqual(self.post(push, b"x").status, 201)
        push.read_again(token(secret="dq_new"))
        wait_until("read", lambda: self.post(push, b"x", secret="dq_new").status == 201)
        self.assertEqual(self.post(push, b"x").status, 401)
        push.read_again("[[http.token]]\n")
        wait_until("told", lambda: "nothing changes: --config" in push.told())
        self.assertEqual(self.post(push, b"x", secret="dq_new").status, 201)
        push.read_again('[[http.queue]]\nname = "q"\nurl = "https://example.com/"\n')
        wait_until("closed", lambda: self.post(push, b"x", secret="dq_new").status == 401)
        self.assertEqual(self.post(push, b"x", secret=None).status, 401, "what was closed does not open")

    def test_a_new_token(self):
        said = subprocess.check_output([os.environ["DQ_PROGRAM"], "http", "--new-token"], text=True)
        secret, line = said.splitlines()
        lines = ["[[http.token]]", 'name = "a"', line, 'queues = ["q"]', 'verbs = ["add"]', ""]
        push = self.inbound(self.server(), "\n".join(lines))
        self.assertEqual(self.post(push, b"x", secret=secret).status, 201)


class Many(InboundTest):
    def many(self, push, jobs):
        return self.post(push, jobs, "/queues/q/many")

    def test_one_command_for_all_that_are_alike(self):
        server = self.server()
        push = self.inbound(server)
        server.client.config_resetstat()
        jobs = [{"payload": n, "id": f"j{n}", **({"delay": 60_000} if n % 2 else {})} for n in range(100)]
        answer = self.many(push, jobs)
        self.assertEqual(answer.status, 201)
        self.assertEqual(answer.json(), [{"id": job["id"], "status": 201} for job in jobs])
        calls = server.client.info("commandstats")
        self.assertEqual(calls["cmdstat_dq.madd"]["calls"], 2)
        self.assertNotIn("cmdstat_dq.add", calls)
        self.assertEqual((length(server), length(server, "DELAYED")), (100, 50))
        self.assertEqual(self.many(push, jobs).status, 200)
        self.assertEqual(self.many(push, [*jobs, {"payload": 1}]).status, 200, "some are new, some were there")

    def test_each_has_its_own_answer(self):
        server = self.server()
        push = self.inbound(server, token('prefix = "a:"'))
        answer = self.many(
            push,
            [
                {"payload": "x", "id": "a:1"},
                {"payload": "x", "id": "b:1"},
                {"payload": "x", "delay": -1},
                {"payload": "x", "id": "a:2", "after": ["a:1"]},
                {"payload": "x", "id": "a:3", "every": 60_000},
                {"payload": "x", "id": "a:4", "cron": "nonsense"},
                {"payload": "x", "id": "a:1"},
                {"payload": "x", "id": "a:9", "if_exists": "only-replace"},
                {"payload": "x"},
            ],
        )
        self.assertEqual(answer.status, 207)
        said = answer.json()
        self.assertEqual([it["status"] for it in said], [201, 404, 400, 201, 201, 400, 200, 404, 201])
        self.assertEqual([it.get("argument") for it in said], [None, "id", "delay", None, None, "cron", None, None, None])
        self.assertEqual(job(server, said[8]["id"])["payload"], b"x")
        self.assertEqual(push.metrics()['dq_http_refused_total{why="prefix"}'], "1")
        self.assertEqual(job(server, "a:2")["after"], [b"a:1"])

    def test_so_many_and_no_more(self):
        server = self.server()
        push = self.inbound(server)
        self.assertEqual(self.many(push, [{"payload": ""}] * 10_000).status, 201)
        self.assertEqual(length(server), 10_000)
        self.refused(self.many(push, [{"payload": ""}] * 10_001), 413)
        self.refused(self.many(push, {"payload": ""}), 400)
        self.refused(self.post(push, "[]", "/queues/q/many", content_type="application/json", dq_delay="1"), 400)
        self.assertEqual(self.many(push, []).json(), [])
        server.client.execute_command("DQ.CFGSET", "q", "MAXLEN", 1)
        answer = self.many(push, [{"payload": ""}] * 2)
        self.assertEqual((answer.status, answer.headers["retry-after"]), (429, "1"))
        server.stop()
        answer = self.many(push, [{"payload": ""}] * 2)
        self.assertEqual((answer.status, answer.headers["retry-after"]), (503, "1"))


class Later(InboundTest):
    def test_the_end_of_a_job(self):
        server = self.server()
        push = self.inbound(server)
        for id in ["done", "dead", "deleted", "gone"]:
            add(server, id)
        answers = {}

        def ask(id):
            answers[id] = self.ask(push, "GET", f"/queues/q/jobs/{id}?wait=60")

        threads = [threading.Thread(target=ask, args=[id]) for id in ["done", "dead", "deleted"]]
        for thread in threads:
            thread.start()
        wait_until("they wait", lambda: server.client.info("clients")["blocked_clients"] == 3)
        command = server.client.execute_command
        tokens = {id: command("DQ.POP", "q", "ID", id)[2] for id in ["done", "dead"]}
        command("DQ.ACK", "q", "RESULTS", "IDS", 1, "done", tokens["done"], b"\xff")
        command("DQ.NACK", "q", "dead", "TOKEN", tokens["dead"], "FATAL", "REASON", "no such address")
        command("DQ.DEL", "q", "deleted")
        for thread in threads:
            thread.join()
        done = answers["done"].json()
        self.assertEqual((done["state"], done["result_base64"], done["attempts"]), ("done", "/w==", 1))
        self.assertGreater(done["finished"], 0)
        dead = answers["dead"].json()
        self.assertEqual((dead["state"], dead["reason"]), ("dead", "no such address"))
        self.assertEqual(answers["deleted"].json()["state"], "deleted")
        waited = self.ask(push, "GET", "/queues/q/jobs/gone?wait=0.1").json()
        self.assertEqual((waited["state"], waited["payload"]), ("ready", '{"id": "gone"}'))
        self.refused(self.ask(push, "GET", "/queues/q/jobs/none?wait=60"), 404)
        for wrong in ["61", "-1", "x", "NaN"]:
            self.refused(self.ask(push, "GET", f"/queues/q/jobs/gone?wait={wrong}"), 400, "wait")

    def test_who_leaves_waits_no_longer(self):
        server = self.server()
        push = self.inbound(server)
        add(server, "a")
        waits = lambda: server.client.info("clients")["blocked_clients"]  # noqa: E731
        with socket.create_connection(push.at.split(":"), PATIENCE_S) as sock:
            head = f"GET /queues/q/jobs/a?wait=60 HTTP/1.1\r\nhost: {push.at}\r\nauthorization: Bearer {SECRET}\r\n\r\n"
            sock.sendall(head.encode())
            wait_until("it waits", lambda: waits() == 1)
        wait_until("it has left", lambda: waits() == 0)
        thread = threading.Thread(target=self.ask, args=[push, "GET", "/queues/q/jobs/a?wait=60"])
        thread.start()
        wait_until("it waits", lambda: waits() == 1)
        push.terminate()
        self.assertEqual(push.ended()[0], 0, "whoever waits has an answer at once")
        thread.join()

    def test_signals(self):
        server = self.server()
        push = self.inbound(server)
        add(server, "a")
        path = "/queues/q/jobs/a/signal"
        self.assertEqual(self.post(push, {"name": "approved", "value": {"by": "Ada"}}, path).status, 201)
        self.assertEqual(self.post(push, {"name": "approved", "value": "by Bob"}, path).status, 200)
        self.assertEqual(self.post(push, b"\xff", path, dq_name="raw").status, 201)
        self.assertEqual(self.post(push, {"name": "none"}, path).status, 201)
        self.assertEqual(job(server, "a")["steps"], {b"approved": b'{"by": "Ada"}', b"raw": b"\xff", b"none": b""})
        shown = self.ask(push, "GET", "/queues/q/jobs/a").json()["steps"]
        self.assertEqual(shown, {"approved": '{"by": "Ada"}', "raw": {"base64": "/w=="}, "none": ""})
        self.refused(self.post(push, {"value": "x"}, path), 400, "name")
        self.refused(self.post(push, {"name": "x" * 257}, path), 400, "name")
        self.refused(self.post(push, {"name": "x", "by": "x"}, path), 400)
        self.refused(self.post(push, {"name": "x"}, "/queues/q/jobs/b/signal"), 404)

if __name__ == "__main__":
    unittest.main()
