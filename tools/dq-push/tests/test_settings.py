"""Options of the configuration besides a URL, and reading it again."""

import asyncio
import pathlib
import tempfile
import threading
import time
import urllib.parse

import trustme
from standardwebhooks import Webhook
from support import PushTest, add, config, job, length, wait_until

from relay import Relay  # found by support

SECRETS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]


class SettingsTest(PushTest):
    def folder(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class OneOfMany(SettingsTest):
    def test_a_queue_that_cannot_be_served_stops_alone(self):
        server, receiver = self.server(), self.receiver()
        client = server.client
        client.set("text", "x")
        words = "on >secret ~q ~text +client|id +dq.unblock +dq.bpop +dq.pop +dq.ack +dq.nack +dq.touch +dq.get"
        client.execute_command("ACL", "SETUSER", "push", *words.split())
        lines = config(receiver.url) + config(receiver.url, name="text", top="") + config(receiver.url, name="denied", top="")
        push = self.push(server, lines, "--user", "push", "-a", "secret")
        stopped = {"text", "denied"}

        def figures():
            return {name for name in ["q", "text", "denied"] if push.metrics()[f'dq_push_stopped{{queue="{name}"}}'] == "1"}

        wait_until("they are stopped", lambda: figures() == stopped)
        add(server, "a")
        self.assertEqual(receiver.next().id, "a")
        status, said = push.healthz()
        self.assertEqual(status, 503)
        self.assertIn("stopped: text: the key exists and is not a queue\n", said)
        self.assertIn("stopped: denied: the ACL denies this: ", said)
        self.assertIn("queue text: the key exists and is not a queue; this queue is stopped", push.told())
        # The other queue, too, if its key becomes something else while it is served.
        client.delete("q")
        client.set("q", "x")
        wait_until("all are stopped", lambda: figures() == {"q", *stopped})
        client.delete("text", "q")
        client.execute_command("ACL", "SETUSER", "push", "~denied")
        for name in ["q", "text", "denied"]:
            add(server, f"of-{name}", name=name)
        self.assertEqual({receiver.next().id for _ in range(3)}, {"of-q", "of-text", "of-denied"})
        wait_until("well again", lambda: push.health() == 200)
        self.assertEqual(figures(), set())
        self.assertIn("queue text: running again", push.told())
        push.terminate()
        self.assertEqual(push.ended()[0], 0)


class Again(SettingsTest):
    def test_a_signal_reads_configuration_and_secrets_again(self):
        server, receiver, other = self.server(), self.receiver(), self.receiver()
        secret = self.folder() / "secret"
        secret.write_text(SECRETS[0] + "\n")
        push = self.push(server, config(receiver.url, f'secrets = ["file:{secret}"]'))
        add(server, "a")
        request = receiver.next()
        Webhook(SECRETS[0]).verify(request.body, request.headers)
        secret.write_text(SECRETS[1])
        push.read_again(config(other.url, f'secrets = ["file:{secret}"]') + config(other.url, name="more", top=""))
        self.assertEqual(push.process.stdout.readline(), "dq http: read again: the jobs of 2 queues\n")
        for name in ["q", "more"]:
            add(server, name, name=name)
            request = other.next()
            self.assertEqual(request.id, name)
        add(server, "b")
        request = other.next()
        Webhook(SECRETS[1]).verify(request.body, request.headers)
        wait_until("counted on", lambda: push.metrics()['dq_push_calls_total{queue="q",outcome="done"}'] == "3")
        # A configuration with an error changes nothing.
        push.read_again("nonsense")
        wait_until("told", lambda: "nothing changes: " in push.told())
        add(server, "c")
        self.assertEqual(other.next().id, "c")
        push.terminate()
        self.assertEqual(push.ended()[0], 0)

    def test_a_call_under_way_ends_as_it_began(self):
        go = threading.Event()
        self.addCleanup(go.set)
        server, receiver, other = self.server(), self.receiver(lambda _: go.wait(60) and 200), self.receiver()
        push = self.push(server, config(receiver.url, "timeout = 120"))
        add(server, "a")
        receiver.next()
        push.read_again(config(other.url))
        push.process.stdout.readline()
        add(server, "b")
        self.assertEqual(other.next().id, "b")
        wait_until("the new one has ended", lambda: push.metrics()['dq_push_in_flight{queue="q"}'] == "1")
        go.set()
        wait_until("acknowledged", lambda: length(server) == 0)
        self.assertEqual((receiver.requests.qsize(), other.requests.qsize()), (0, 0), "called once")

    def test_a_certificate_is_read_again(self):
        old, new = trustme.CA(), trustme.CA()
        file = self.folder() / "ca.pem"
        old.cert_pem.write_to_path(str(file))
        server, receiver = self.server(), self.receiver(certificate=new.issue_cert("localhost"))
        lines = config(receiver.url, "backoff = [0.1]", top=f'http.allow = ["localhost"]\nhttp.ca-file = "{file}"')
        push = self.push(server, lines)
        add(server, "a")
        wait_until("refused", lambda: b"certificate" in (job(server, "a")["reason"] or b""))
        new.cert_pem.write_to_path(str(file))
        push.read_again(lines)
        self.assertEqual(receiver.next().id, "a")


class Calls(SettingsTest):
    def test_methods(self):
        for method, body in [("PUT", b"x"), ("PATCH", b"x"), ("GET", b"")]:
            server, receiver = self.server(), self.receiver()
            add(server, "a", payload=b"x")
            self.push(server, config(receiver.url, f'method = "{method}"', f'secrets = ["{SECRETS[0]}"]'))
            request = receiver.next()
            self.assertEqual((request.method, request.body, request.id), (method, body, "a"))
            self.assertEqual("content-type" in request.headers, method != "GET")
            wait_until("acknowledged", lambda: length(server) == 0)

    def test_groups_have_urls_and_secrets_of_their_own(self):
        server, receiver, acme = self.server(), self.receiver(), self.receiver()
        lines = ["headers = { X-Tenant = \"none\" }", "[[http.queue.group]]", 'name = "acme"', f'url = "{acme.url}"', f'secrets = ["{SECRETS[1]}"]', "headers = { X-Tenant = \"acme\" }"]
        for id, group in [("a", ["GROUP", "acme"]), ("b", ["GROUP", "other"]), ("c", [])]:
            add(server, id, *group)
        self.push(server, config(receiver.url, *lines))
        request = acme.next()
        self.assertEqual((request.id, request.headers["x-tenant"]), ("a", "acme"))
        Webhook(SECRETS[1]).verify(request.body, request.headers)
        others = [receiver.next(), receiver.next()]
        self.assertEqual({(it.id, it.headers["x-tenant"], "webhook-signature" in it.headers) for it in others}, {("b", "none", False), ("c", "none", False)})

    def test_answers_are_kept_as_results(self):
        server, receiver = self.server(), self.receiver(lambda request: (201, {}, b"order 7\nmore"))
        server.client.execute_command("DQ.CFGSET", "q", "DONELEN", 10)
        add(server, "a")
        self.push(server, config(receiver.url, "keep-answers = true"))
        wait_until("done", lambda: job(server, "a")["state"] == b"done")
        self.assertEqual(job(server, "a")["result"], b"HTTP 201: order 7")
        # As the board's "Run again" does.
        server.client.execute_command("DQ.KICK", "q", "IDS", 1, "a")
        self.assertEqual([receiver.next().id, receiver.next().id], ["a", "a"])

    def test_a_client_certificate(self):
        ca, clients = trustme.CA(), trustme.CA()
        folder = self.folder()
        mine = clients.issue_cert("dq")
        ca.cert_pem.write_to_path(str(folder / "ca"))
        mine.private_key_pem.write_to_path(str(folder / "key"))
        mine.cert_chain_pems[0].write_to_path(str(folder / "cert"))
        receiver = self.receiver(certificate=ca.issue_cert("localhost"), client_ca=clients)
        server = self.server()
        top = f'http.allow = ["localhost"]\nhttp.ca-file = "{folder}/ca"'
        push = self.push(server, config(receiver.url, "backoff = [0.1]", top=top))
        add(server, "a")
        wait_until("refused", lambda: (job(server, "a") or {}).get("failed") is not None)
        self.assertEqual(receiver.requests.qsize(), 0)
        push.read_again(config(receiver.url, top=f'{top}\nhttp.client-cert = "{folder}/cert"\nhttp.client-key = "{folder}/key"'))
        self.assertEqual(receiver.next().id, "a")


class ForwardProxy(Relay):
    """A proxy that records the heads of requests. All receivers are on this machine."""

    def __init__(self):
        self.heads = []
        super().__init__()

    async def join(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode().lower())
        line, rest = head.split(b"\r\n", 1)
        method, where, _ = line.decode().split(" ")
        if "proxy-authorization: basic yw5uonnly3jlda==" not in self.heads[-1]:
            writer.write(b"HTTP/1.1 407 Who?\r\ncontent-length: 0\r\n\r\n")
            return writer.close()
        place = urllib.parse.urlsplit(where if method != "CONNECT" else f"//{where}")
        there = await asyncio.open_connection("127.0.0.1", place.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            there[1].write(f"{method} {place.path} HTTP/1.1\r\n".encode() + rest)
        await self.carry_on((reader, writer), there)


class Proxies(SettingsTest):
    def test_calls_go_through_a_proxy(self):
        relay, ca = ForwardProxy(), trustme.CA()
        self.addCleanup(relay.close)
        file = self.folder() / "ca"
        ca.cert_pem.write_to_path(str(file))
        for certificate in [None, ca.issue_cert("receiver.internal")]:
            server, receiver = self.server(), self.receiver(certificate=certificate)
            # A name that only the proxy can resolve.
            url = receiver.url.replace("localhost", "receiver.internal")
            add(server, "a")
            for login in ["", "ann:secret@"]:
                top = f'http.ca-file = "{file}"\nhttp.proxy = "http://{login}127.0.0.1:{relay.port}"'
                push = self.push(server, config(url, "backoff = [0.1]", top=top))
                if not login:
                    wait_until("refused", lambda: (job(server, "a") or {}).get("failed") is not None)
                    self.assertIn(b"407", job(server, "a")["reason"])
                    push.terminate()
                    push.ended()
            self.assertEqual(receiver.next().id, "a")
            wait_until("acknowledged", lambda: length(server) == 0)
        self.assertIn("connect receiver.internal:", relay.heads[-1])
        self.assertNotIn("dq-id", relay.heads[-1])


class Pace(SettingsTest):
    def test_no_more_calls_a_second_than_allowed(self):
        server, receiver = self.server(), self.receiver()
        for number in range(30):
            add(server, f"a{number}")
        begun = time.monotonic()
        self.push(server, config(receiver.url, top='http.allow = ["localhost"]\n[http.hosts]\nlocalhost = { rate = 10 }'))
        for _ in range(30):
            receiver.next()
        # The first call begins at once: only that the others are not too early is asserted.
        self.assertGreaterEqual(time.monotonic() - begun, 2.8)

    def test_a_host_that_fails_is_left_alone(self):
        works = threading.Event()
        server, receiver = self.server(), self.receiver(lambda _: 200 if works.is_set() else 503)
        for number in range(50):
            add(server, f"a{number}")
        push = self.push(server, config(receiver.url, "concurrency = 1", "backoff = [3600]", top='http.allow = ["localhost"]\nhttp.break-after = 3\nhttp.break-for = 2'))
        for _ in range(4):
            receiver.next()
        self.assertEqual(push.metrics()['dq_push_breaker_open{queue="q"}'], "1")
        self.assertIn("host localhost: 3 calls in a row have failed", push.told())
        self.assertGreaterEqual(length(server, "READY"), 40, "no attempt of theirs is spent")
        works.set()
        wait_until("all others are called", lambda: length(server, "READY") == 0)
        self.assertIn("host localhost: answers again", push.told())
        self.assertEqual(push.metrics()['dq_push_breaker_open{queue="q"}'], "0")


class Wrong(SettingsTest):
    def test_what_is_wrong_is_said_with_its_line(self):
        url = "https://example.com/x"
        for lines, says in [
            (config(url, 'method = "DELETE"'), "line 5: method: "),
            (config(url, "[[http.queue.group]]", 'name = "a"', 'url = "http://10.0.0.1/"'), "line 7: url: 10.0.0.1 is not a public address"),
            (config(url, *2 * ["[[http.queue.group]]", 'name = "a"']), "line 8: this group is given twice"),
            (config(url, top='http.proxy = "ftp://ann:secret@x"'), "line 1: proxy: "),
            (config(url, top='http.client-cert = "/dev/null"'), "line 1: "),
            (config(url, top="http.host-rate = 0"), "line 1: host-rate: "),
            (config(url, 'secrets = ["file:/no/where"]'), "line 5: /no/where: "),
            (config(url, 'lease = "secret@x"'), "line 5: invalid type, expected "),
            (config(url, "content-type = secret@x"), "line 5: "),
        ]:
            push = self.push(None, lines, "--check", metrics=False)
            code, said = push.ended()
            self.assertEqual((code > 0, says in said, "secret@" in said), (True, True, False), said)
