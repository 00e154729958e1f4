"""What dq http does with each answer, and with other failures."""

import json
import pathlib
import tempfile
import threading
import unittest
from email.utils import formatdate

import redis
import trustme
from http2 import Http2Receiver
from standardwebhooks import Webhook, WebhookVerificationError
from support import PushTest, Sentinel, add, config, free_port, is_cut, job, length, wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


class Calls(PushTest):
    def test_a_call_tells_all_of_its_job(self):
        server, receiver = self.server(), self.receiver()
        add(server, "a:1", payload=b'{"a": 1}')
        self.push(server, config(receiver.url, 'headers = { Authorization = "env:KEY" }'), KEY="Bearer x")
        request = receiver.next()
        self.assertEqual((request.path, request.body), ("/hook", b'{"a": 1}'))
        said = request.headers
        self.assertEqual((said["dq-id"], said["dq-queue"], said["dq-attempt"]), ("a:1", "q", "1"))
        self.assertEqual((said["content-type"], said["authorization"]), ("application/json", "Bearer x"))
        self.assertNotIn("webhook-signature", said)
        wait_until("acknowledged", lambda: length(server) == 0)
        add(server, "b", payload=b"\x00\xff", name="q")
        self.assertEqual(receiver.next().headers["content-type"], "application/octet-stream")
        self.assertEqual(receiver.connections, 1, "kept alive")

    def test_an_occurrence_has_a_name(self):
        server, receiver = self.server(), self.receiver(lambda request: 200 if request.headers["dq-attempt"] == "2" else 500)
        add(server, "r", "EVERY", 3600000, "DELAY", 1)
        self.push(server, config(receiver.url, "recurring = true", "backoff = [0.1]", f'secrets = ["{SECRET}"]'))
        first, second = receiver.next().headers, receiver.next().headers
        self.assertEqual(first["dq-occurrence"], f"r@{first['dq-due']}")
        self.assertEqual(first["webhook-id"], first["dq-occurrence"])
        self.assertEqual([second["dq-occurrence"], second["dq-attempt"]], [first["dq-occurrence"], "2"])

    def test_signatures_that_another_implementation_verifies(self):
        server, receiver = self.server(), self.receiver()
        for text in ['{"a": "é"}', ""]:
            add(server, f"job.{len(text)}", payload=text.encode())
        self.push(server, config(receiver.url, f'secrets = ["{SECRET}", "env:NEW"]'), NEW=OTHER)
        ids = set()
        for request in [receiver.next(), receiver.next()]:
            ids.add(request.headers["webhook-id"])
            for secret in [SECRET, OTHER]:
                if request.body:
                    self.assertEqual(Webhook(secret).verify(request.body, request.headers), json.loads(request.body))
            with self.assertRaises(WebhookVerificationError):
                Webhook(SECRET).verify(request.body + b" ", request.headers)
            with self.assertRaises(WebhookVerificationError):
                Webhook("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").verify(request.body, request.headers)
        self.assertEqual(ids, {"job%2E0", "job%2E10"})

    def test_no_more_at_a_time_than_allowed(self):
        go = threading.Event()
        server, receiver = self.server(), self.receiver(lambda request: go.wait(60) and 200)
        self.addCleanup(go.set)
        for number in range(40):
            add(server, f"a{number}", name="a")
            add(server, f"b{number}", name="b")
        lines = config(receiver.url, "concurrency = 4", name="a", top='http.allow = ["localhost"]\nhttp.hosts = { localhost = 6 }')
        lines += config(receiver.url, "concurrency = 4", name="b", top="")
        push = self.push(server, lines)
        wait_until("six calls", lambda: receiver.now == 6)
        reserved = [length(server, "RESERVED", name=name) for name in "ab"]
        self.assertTrue(sum(reserved) == 6 and max(reserved) <= 4, "nothing is fetched that cannot be called")
        self.assertEqual(sum(int(push.metrics()[f'dq_push_in_flight{{queue="{name}"}}']) for name in "ab"), 6)
        go.set()
        wait_until("all called", lambda: length(server, name="a") + length(server, name="b") == 0)
        self.assertLessEqual(receiver.most, 6)

    def test_queues_of_one_host_take_turns(self):
        server, receiver = self.server(), self.receiver()
        top = 'http.allow = ["localhost"]\nhttp.host-concurrency = 1'
        lines = "".join(config(receiver.url, name=name, top=top if name == "a" else "") for name in "abc")
        self.push(server, lines)
        for name in "abcba":
            add(server, name, name=name)
            self.assertEqual(receiver.next().headers["dq-queue"], name)
            wait_until("acknowledged", lambda: length(server, name=name) == 0)


class Answers(PushTest):
    def after(self, answer, *lines, options=()):
        """The job after one call with that answer."""
        server = self.server()
        server.client.config_set("dq.default-backoff", 27_000)

        def once(request):
            server.client.execute_command("DQ.PAUSE", "q")
            return answer

        receiver = self.receiver(once)
        add(server, "a", *options)
        push = self.push(server, config(receiver.url, *lines))
        receiver.next()
        wait_until("told", lambda: (job(server, "a") or {}).get("failed") is not None)
        fields = job(server, "a")
        # An instant counted from now is rounded up to the millisecond.
        fields["wait"] = (fields["due"] - fields["failed"]) // 10 * 10
        self.assertEqual(receiver.requests.qsize(), 0, "called once")
        return fields, push.metrics()

    def test_fatal(self):
        for status in [400, 401, 410, 422]:
            fields, metrics = self.after((status, {}, b"no such order\nmore"))
            self.assertEqual((fields["state"], fields["reason"]), (b"dead", b"HTTP %d: no such order" % status))
            self.assertEqual(metrics['dq_push_calls_total{queue="q",outcome="fatal"}'], "1")

    def test_not_fatal(self):
        for status in [302, 403, 404, 408, 425, 429, 500, 503]:
            fields, metrics = self.after((status, {"location": "/elsewhere"}, b""), "backoff = [33]")
            self.assertEqual((fields["state"], fields["wait"]), (b"delayed", 33000), status)
            self.assertEqual(fields["reason"], b"HTTP %d" % status)
            self.assertEqual(metrics['dq_push_retries_total{queue="q"}'], "1")

    def test_rules_for_4xx(self):
        self.assertEqual(self.after(404, "fatal = [400]", "backoff = [33]")[0]["state"], b"delayed")
        self.assertEqual(self.after(410, "fatal = [400]")[0]["state"], b"dead")

    def test_ladders(self):
        self.assertEqual(self.after(500, "backoff = [33]", options=("BACKOFF", 1, 7000))[0]["wait"], 7000)
        self.assertTrue(27_000 <= self.after(500)[0]["wait"] <= 29_700, "the server's")
        dead = self.after(500, options=("ATTEMPTS", 1))[0]
        self.assertEqual(dead["state"], b"dead")

    def test_retry_after(self):
        self.assertEqual(self.after((503, {"retry-after": "120"}, b""), options=("BACKOFF", 1, 7000))[0]["wait"], 120000)
        self.assertEqual(self.after((429, {"retry-after": "86400"}, b""), "retry-after-max = 60")[0]["wait"], 60000)
        date = formatdate(2_000_000_000, usegmt=True)
        self.assertEqual(self.after((500, {"retry-after": date}, b""), "retry-after-max = 60")[0]["wait"], 60000)

    def test_failures_are_told_before_the_next_fetch(self):
        server = self.server()
        receiver = self.receiver(lambda request: 200 if request.headers["dq-attempt"] == "3" else 500)
        push = self.push(server, config(receiver.url, "concurrency = 1", "backoff = [0.1]"))
        add(server, "a")
        wait_until("acknowledged", lambda: length(server) == 0)
        push.terminate()
        self.assertEqual(push.ended(), (0, ""), "no answer is waited for in vain")

    def test_an_endless_answer(self):
        fields, _ = self.after((400, {}, b"x" * 10_000_000))
        self.assertEqual(fields["state"], b"dead")
        self.assertEqual(len(fields["reason"]), 1024)

    def test_no_answer(self):
        go = threading.Event()
        self.addCleanup(go.set)
        server, receiver = self.server(), self.receiver(lambda request: go.wait(60) and 200)
        add(server, "a")
        self.push(server, config(receiver.url, "timeout = 0.2", "backoff = [33]"))
        wait_until("told", lambda: (job(server, "a") or {}).get("failed") is not None)
        fields = job(server, "a")
        self.assertEqual((fields["state"], fields["reason"]), (b"delayed", b"no answer within 200ms"))

    def test_nobody_there(self):
        server = self.server()
        add(server, "a")
        self.push(server, config(f"http://localhost:{free_port()}/", "backoff = [33]"))
        wait_until("told", lambda: (job(server, "a") or {}).get("failed") is not None)
        self.assertEqual(job(server, "a")["state"], b"delayed")
        self.assertIn(b"refused", job(server, "a")["reason"])


class Attempts(PushTest):
    def lose(self, server, id):
        """A worker takes the job and is lost."""
        server.client.execute_command("DQ.POP", "q", "ID", id, "TTR", 1)
        wait_until("its lease has ended", lambda: job(server, id)["state"] == b"ready")

    def test_one_whose_workers_were_lost_runs_alone_at_its_last_attempt(self):
        seen = {}

        def answer(request):
            seen[request.id] = receiver.now
            if request.id == "killer":
                others.wait(1)
            return 200

        server, others = self.server(), threading.Event()
        receiver = self.receiver(answer)
        add(server, "killer", "ATTEMPTS", 2)
        self.lose(server, "killer")
        for number in range(200):
            add(server, f"a{number}")
        self.push(server, config(receiver.url, "concurrency = 10"))
        wait_until("all are done", lambda: length(server) == 0)
        self.assertEqual((seen["killer"], len(seen)), (1, 201))
        self.assertEqual(length(server, "DEAD"), 0)

    def test_more_attempts_than_allowed(self):
        server, receiver = self.server(), self.receiver()
        rule = ("REPLACE", "EVERY", 3_600_000)
        add(server, "a", *rule, "ATTEMPTS", 9, "AT", 1)
        for _ in range(3):
            self.lose(server, "a")
        add(server, "a", *rule, "ATTEMPTS", 2)
        self.push(server, config(receiver.url))
        wait_until("dead", lambda: length(server, "DEAD") == 1)
        self.assertEqual(receiver.requests.qsize(), 0)
        dead = server.client.execute_command("DQ.PEEK", "q", "DEAD")[0][0].decode()
        self.assertEqual(job(server, dead)["reason"], b"attempts used up; its workers were lost")


class Addresses(PushTest):
    def test_own_network_is_refused_after_the_name_was_resolved(self):
        server, receiver = self.server(), self.receiver()
        # Names and spellings of 127.0.0.1 that only the resolver recognizes.
        for number, host in enumerate(["localhost", "2130706433", "0x7f.1"]):
            url = receiver.url.replace("localhost", host)
            add(server, f"a{number}", name=host)
            self.push(server, config(url, "backoff = [33]", name=host, top='http.allow = ["other.example"]'))
            wait_until("told", lambda: (job(server, f"a{number}", host) or {}).get("failed") is not None)
            self.assertIn(b"not a public address", job(server, f"a{number}", host)["reason"])
        self.assertEqual((receiver.requests.qsize(), receiver.connections), (0, 0))

    def test_a_network_that_is_allowed(self):
        server, receiver = self.server(), self.receiver()
        add(server, "a")
        self.push(server, config(receiver.url, top='http.allow = ["127.0.0.0/8"]'))
        receiver.next()

    def test_the_payload_names_nothing(self):
        server, receiver, other = self.server(), self.receiver(), self.receiver()
        add(server, "a", payload=json.dumps({"dq": 1, "url": other.url, "headers": {"host": "x", "url": other.url}}))
        self.push(server, config(receiver.url))
        self.assertEqual(receiver.next().headers["host"], f"localhost:{receiver.port}")
        self.assertEqual(other.connections, 0)


class Encrypted(PushTest):
    def setUp(self):
        self.ca = trustme.CA()
        self.certificate = self.ca.issue_cert("localhost")
        file = self.enterContext(self.ca.cert_pem.tempfile())
        self.top = f'http.allow = ["localhost"]\nhttp.ca-file = "{file}"'

    def test_a_ca_of_ones_own(self):
        server, receiver = self.server(), self.receiver(certificate=self.certificate)
        add(server, "a")
        self.push(server, config(receiver.url, top=self.top))
        self.assertEqual(receiver.next().id, "a")
        wait_until("acknowledged", lambda: length(server) == 0)

    def test_a_certificate_nobody_trusts(self):
        server, receiver = self.server(), self.receiver(certificate=trustme.CA().issue_cert("localhost"))
        add(server, "a")
        self.push(server, config(receiver.url, top=self.top))
        wait_until("told", lambda: (job(server, "a") or {}).get("failed") is not None)
        self.assertIn(b"certificate", job(server, "a")["reason"])
        self.assertEqual(receiver.requests.qsize(), 0)

    def test_a_certificate_for_another_name(self):
        server, receiver = self.server(), self.receiver(certificate=self.ca.issue_cert("example.com"))
        add(server, "a")
        self.push(server, config(receiver.url, top=self.top))
        wait_until("told", lambda: (job(server, "a") or {}).get("failed") is not None)
        self.assertIn(b"certificate", job(server, "a")["reason"])

    def test_http2(self):
        for certificate, lines in [(self.certificate, ()), (None, ("http2 = true",))]:
            server, receiver = self.server(), Http2Receiver(certificate)
            self.addCleanup(receiver.close)
            for number in range(20):
                add(server, f"a{number}", payload=b"x" * 100_000)
            self.push(server, config(receiver.url, *lines, top=self.top))
            wait_until("acknowledged", lambda: length(server) == 0)
            self.assertEqual({headers["dq-id"] for headers, _ in receiver.requests}, {f"a{number}" for number in range(20)})
            self.assertEqual({len(body) for _, body in receiver.requests}, {100_000})
            # Which protocol it is, is known only once the first connections are open.
            self.assertLessEqual(receiver.connections, 10 if certificate else 1)

    def test_a_connection_that_falls_silent_is_left(self):
        server, receiver = self.server(), Http2Receiver(silent=1)
        self.addCleanup(receiver.close)
        add(server, "a")
        self.push(server, config(receiver.url, "http2 = true", "timeout = 2", "backoff = [0.1]"))
        wait_until("acknowledged", lambda: length(server) == 0)


class Ends(PushTest):
    def holding(self, *lines, jobs=2):
        """One call is running, others wait for their place."""
        go = threading.Event()
        self.addCleanup(go.set)
        server, receiver = self.server(), self.receiver(lambda request: go.wait(60) and 200)
        for number in range(jobs):
            add(server, f"a{number}")
        push = self.push(server, config(receiver.url, "concurrency = 1", "timeout = 120", *lines))
        return server, receiver, push, receiver.next(), go

    def test_calls_may_end(self):
        server, receiver, push, _, go = self.holding()
        push.terminate()
        wait_until("it knows", lambda: push.health() == 503)
        go.set()
        self.assertEqual(push.ended(), (0, ""))
        self.assertEqual((length(server, "READY"), length(server), receiver.requests.qsize()), (1, 1, 0))

    def test_after_25_s_the_rest_is_given_back(self):
        server, _, push, request, _ = self.holding(jobs=1)
        push.terminate()
        self.assertEqual(push.ended(), (0, ""))
        fields = job(server, request.id)
        self.assertEqual((fields["state"], fields["attempts"], fields["failed"]), (b"ready", 0, None))

    def test_a_second_signal_does_not_wait(self):
        server, receiver, patient, _, _ = self.holding(jobs=1)
        add(server, "b", name="b")
        hurried = self.push(server, config(receiver.url, "timeout = 120", name="b"))
        self.assertEqual(receiver.next().id, "b")
        for push in [patient, hurried]:
            push.terminate()
            wait_until("it knows", lambda: push.health() == 503)
        hurried.terminate()
        self.assertEqual(hurried.ended(), (0, ""))
        self.assertIsNone(patient.process.poll(), "one that was told before, and once, waits for its call")
        fields = job(server, "b", "b")
        self.assertEqual((fields["state"], fields["attempts"], fields["failed"]), (b"ready", 0, None))

    def test_an_idle_fetch_is_withdrawn(self):
        server, receiver = self.server(), self.receiver()
        push = self.push(server, config(receiver.url))
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        push.terminate()
        self.assertEqual(push.ended(), (0, ""))
        add(server, "a")
        self.assertEqual((length(server, "READY"), receiver.requests.qsize()), (1, 0))

    def test_a_stop_while_writes_are_paused(self):
        server, receiver = self.server(), self.receiver()
        push = self.push(server, config(receiver.url))
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        # The next fetch is held back: CLIENT UNBLOCK of it would end servers up to Redis 8.0 and Valkey 8.1.
        server.client.client_pause(60_000, all=False)
        server.client.execute_command("DQ.UNBLOCK", *[client["id"] for client in server.client.client_list()])
        wait_until("it is held back", lambda: server.client.info("dq")["dq_waiting_clients"] == 0)
        push.terminate()
        self.assertEqual(push.ended()[0], 0)
        server.client.client_unpause()
        add(server, "a")
        self.assertEqual((length(server, "READY"), receiver.requests.qsize()), (1, 0))

    def test_a_user_that_may_not_end_waits(self):
        server, receiver = self.server(), self.receiver()
        server.client.execute_command("ACL", "SETUSER", "push", "on", ">secret", "~*", "+@all", "-dq.unblock")
        push = self.push(server, config(receiver.url), "--user", "push", "-a", "secret")
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        push.terminate()
        code, said = push.ended()
        self.assertEqual((code, said.count("dq.unblock")), (0, 1), said)
        wait_until("its connection is closed", lambda: server.client.info("dq")["dq_waiting_clients"] == 0)

    def test_a_lost_job_is_cut_off(self):
        server, receiver, push, request, go = self.holding("lease = 6", jobs=1)
        server.client.execute_command("DQ.DEL", "q", request.id)
        wait_until("cut", lambda: is_cut(request.connection))
        add(server, request.id)
        again = receiver.next()
        self.assertEqual(again.headers["dq-attempt"], "1")
        self.assertEqual(push.metrics()['dq_push_lost_total{queue="q"}'], "1")
        go.set()
        wait_until("acknowledged", lambda: length(server) == 0)

    def test_leases_are_renewed(self):
        server, receiver, _, request, go = self.holding("lease = 9", jobs=1)
        first = job(server, request.id)["deadline"]
        wait_until("two heartbeats", lambda: job(server, request.id)["deadline"] > first + 4000)
        self.assertEqual(job(server, request.id)["attempts"], 1)
        go.set()
        wait_until("acknowledged", lambda: length(server) == 0)
        self.assertEqual(receiver.requests.qsize(), 0)


class Servers(PushTest):
    def test_a_restart(self):
        server, receiver = self.server("--appendonly", "yes", "--appendfsync", "always"), self.receiver()
        push = self.push(server, config(receiver.url))
        add(server, "a")
        receiver.next()
        server.stop()
        wait_until("it knows", lambda: push.health() == 503)
        server.start()
        add(server, "b")
        wait_until("called", lambda: receiver.next().id == "b")
        wait_until("well again", lambda: push.health() == 200)

    def test_an_end_that_could_not_be_told(self):
        go = threading.Event()
        self.addCleanup(go.set)
        server, receiver = self.server("--appendonly", "yes", "--appendfsync", "always"), self.receiver(lambda _: go.wait(60) and 200)
        push = self.push(server, config(receiver.url, "lease = 120"))
        add(server, "a")
        receiver.next()
        server.stop()
        go.set()
        wait_until("answered", lambda: push.metrics()['dq_push_calls_total{queue="q",outcome="done"}'] == "1")
        server.start()
        wait_until("acknowledged", lambda: length(server) == 0)
        self.assertEqual(receiver.requests.qsize(), 0, "called once")

    def test_a_replica_that_becomes_a_master(self):
        server, receiver = self.server(), self.receiver()
        push = self.push(server, config(receiver.url))
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        server.client.replicaof("127.0.0.1", free_port())
        wait_until("it knows", lambda: push.health() == 503)
        server.client.replicaof("no", "one")
        add(server, "a")
        self.assertEqual(receiver.next().id, "a")

    def test_what_only_somebody_can_mend(self):
        receiver = self.receiver()
        server, bare = self.server(), self.server(module=False)
        server.client.config_set("requirepass", "secret")
        server.client = redis.Redis(port=server.port, password="secret")
        for at, name, options, why in [
            (server, "q", (), "password"),
            (server, "q", ("-a", "wrong"), "password"),
            (bare, "q", (), "module"),
        ]:
            push = self.push(at, config(receiver.url, name=name), *options)
            code, said = push.ended()
            self.assertEqual(code, 1)
            self.assertIn(why, said)

    def test_the_master_that_the_sentinels_name(self):
        one, two, receiver = self.server(), self.server(), self.receiver()
        sentinel = Sentinel()
        self.addCleanup(sentinel.close)
        sentinel.monitor(one)
        push = self.push(one, config(receiver.url), "--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "orders")
        add(one, "a")
        self.assertEqual(receiver.next().id, "a")
        sentinel.client.execute_command("SENTINEL", "REMOVE", "orders")
        sentinel.monitor(two)
        one.stop()
        add(two, "b")
        wait_until("called", lambda: receiver.next().id == "b")
        wait_until("well again", lambda: push.health() == 200)

    def test_a_failover(self):
        one, two, receiver = self.server(), self.server(), self.receiver()
        two.client.replicaof("127.0.0.1", one.port)
        wait_until("a replica", lambda: two.client.info("replication")["master_link_status"] == "up")
        sentinel = Sentinel()
        self.addCleanup(sentinel.close)
        sentinel.monitor(one)
        push = self.push(one, config(receiver.url), "--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "orders")
        add(one, "a")
        self.assertEqual(receiver.next().id, "a")
        wait_until("the sentinel knows the replica", lambda: sentinel.client.execute_command("SENTINEL", "REPLICAS", "orders"))
        wait_until("begun", lambda: self.fails_over(sentinel))
        wait_until("promoted", lambda: two.client.info("replication")["role"] == "master")
        add(two, "b")
        self.assertEqual(receiver.next().id, "b")
        wait_until("acknowledged", lambda: length(two) == 0)
        wait_until("well again", lambda: push.health() == 200)

    def fails_over(self, sentinel):
        try:
            return sentinel.client.execute_command("SENTINEL", "FAILOVER", "orders")
        except redis.exceptions.ResponseError as error:
            self.assertIn("NOGOODSLAVE", str(error))
            return False

    def test_the_user_that_the_docs_make(self):
        server, receiver = self.server(), self.receiver(lambda request: 200 if request.headers["dq-attempt"] == "2" else 500)
        page = (pathlib.Path(__file__).parents[3] / "docs/http.md").read_text()
        words = next(line for line in page.splitlines() if "ACL SETUSER" in line).split()
        server.client.execute_command(*words)
        add(server, "a", name="orders")
        push = self.push(server, config(receiver.url, "lease = 1", "backoff = [2]", name="orders"), "--user", "push", "-a", "secret")
        wait_until("acknowledged", lambda: length(server, name="orders") == 0)
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        push.terminate()
        self.assertEqual(push.ended(), (0, ""))

    def test_stopping_while_the_server_is_away(self):
        server, receiver = self.server(), self.receiver()
        push = self.push(server, config(receiver.url))
        wait_until("it waits", lambda: server.client.info("dq")["dq_waiting_clients"] == 1)
        server.stop()
        wait_until("it knows", lambda: push.health() == 503)
        push.terminate()
        self.assertEqual(push.ended()[0], 0)

    def test_a_database_of_its_own(self):
        server, receiver = self.server(), self.receiver()
        server.client = redis.Redis(port=server.port, db=3)
        add(server, "a")
        self.push(server, config(receiver.url), "-n", "3")
        self.assertEqual(receiver.next().id, "a")

    def test_a_queue_on_another_node(self):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "60000")
        one, two = self.server(*options), self.server(*options)
        one.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        two.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        one.client.execute_command("CLUSTER", "MEET", "127.0.0.1", two.port)
        for node in [one, two]:
            wait_until("a cluster", lambda: b"cluster_state:ok" in node.client.execute_command("CLUSTER", "INFO"))
        receiver = self.receiver()
        # "q" is in slot 11958, "b" in 3300.
        add(two, "a")
        add(one, "b", name="b")
        lines = config(receiver.url) + config(receiver.url, name="b", top="")
        self.push(one, lines)
        self.assertEqual({receiver.next().id, receiver.next().id}, {"a", "b"})


class Commands(PushTest):
    def test_the_configuration_in_the_docs(self):
        page = (pathlib.Path(__file__).parents[3] / "docs/http.md").read_text()
        tokens, block = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
        variables = next(line for line in page.splitlines() if "ORDERS_TOKEN=" in line)
        words = ["sh", "-c", f'{variables.strip()}\nexec "$@"', "sh"]
        ca = self.enterContext(trustme.CA().cert_pem.tempfile())
        with_ca = block.replace('# ca-file = "ca.pem"', f'ca-file = "{ca}"')
        self.assertNotEqual(with_ca, block)
        file = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".hash"))
        print("sha256:" + 32 * "0f", file=file, flush=True)
        with_hash = tokens.replace("/etc/dq/acme.hash", file.name)
        of_all = (pathlib.Path(__file__).parents[3] / "docs/server.md").read_text().split("```toml\n")[1].split("```")[0]
        called = "orders: 10 at a time to https://api.example.com/hooks/orders\n"
        for lines, said in [(block, called), (of_all, called), (with_ca, called), (with_hash, "shop: orders, mails.*\n")]:
            push = self.push(None, lines, "--check", metrics=False, before=words)
            self.assertEqual(push.said, said)
            self.assertEqual(push.ended(), (0, ""))

    def test_check(self):
        for lines, code, says in [
            (config("https://example.com/x"), 0, ""),
            (config("https://example.com/x", "concurrency = 0"), 1, "line 5: concurrency"),
            (config("http://169.254.169.254/latest"), 1, "line 4: url: 169.254.169.254 is not a public address"),
        ]:
            push = self.push(None, lines, "--check", metrics=False)
            ended, said = push.ended()
            self.assertEqual(ended, code)
            self.assertIn(says, said)


if __name__ == "__main__":
    unittest.main()
