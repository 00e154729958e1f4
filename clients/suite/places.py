"""Ways to reach a server: through a Sentinel, in a cluster, with TLS, as a user with few permissions."""

import subprocess
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
import redis
from servers import Cluster, Sentinels, Server, free_port, wait_until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
#: What else these tests ask.
ASKED = "+dq.len +dq.del"
NAMES = ["sentinel", "cluster", "tls", "rights"]


def printed(user):
    """The rules of this user in docs/operations.md, without its name."""
    [line] = [line.split() for line in PAGE.read_text().splitlines() if line.strip().startswith(f"user {user} ")]
    return line[2:]


def of_results():
    """The rules that results of Dramatiq and taskiq need."""
    [line] = [line for line in PAGE.read_text().splitlines() if "~dramatiq-results" in line]
    return line.split("`")[1].split()


class Place:
    """A server in a place of this kind. ``way`` is what a broker takes: an address, or a client made by the named
    module."""

    def __init__(self, kind):
        self.kind = kind
        self._folder = tempfile.TemporaryDirectory(prefix="dq-place-")
        self.servers = getattr(self, f"_{kind}")()

    def way(self, module="redis", results=False):
        if results and self.kind == "rights":
            return self._way_rights("results")
        return getattr(self, f"_way_{self.kind}")(module)

    def close(self):
        self.servers.close()
        self._folder.cleanup()

    def disturb(self, key):
        """What may happen to clients in this place: a failover, a slot that moves, or closed connections."""
        if self.kind == "sentinel":
            # What the replica has not received by now is lost with its master, without any fault of the client.
            control = self.servers.master.client(single_connection_client=True)
            control.set("last", "write")
            wait_until(lambda: control.wait(1, 1000) == 1, "the replica follows", 60)
            self.servers.master.kill()
            old = self.servers.master.port
            wait_until(lambda: self.servers.current() != old, "the failover", 60)
        elif self.kind == "cluster":
            self.servers.move(key)
        else:
            control = self.control()
            control.client_kill_filter(skipme=True, _type="normal")

    def control(self):
        """A client with all permissions."""
        if self.kind == "tls":
            return redis.Redis.from_url(self._way_tls("redis"))
        return self.servers.client()

    def fail_once(self, key, id):
        """Has another worker take the job and give it back."""
        control = self.control()
        token = control.execute_command("DQ.POP", key, "ID", id)[2]
        control.execute_command("DQ.NACK", key, "IDS", 1, id, token, "DELAY", 0)

    def denied(self):
        """What a user of few rights was refused, but for what works without."""
        reasons = {entry["object"] for entry in self.control().acl_log()} if self.kind == "rights" else set()
        return reasons - {"client|setinfo", "dq.btouch"}

    # Through a Sentinel

    def _sentinel(self):
        return Sentinels()

    def _way_sentinel(self, module):
        return import_module(f"{module}.sentinel").Sentinel([("127.0.0.1", self.servers.port)]).master_for("dq")

    # In a cluster

    def _cluster(self):
        return Cluster()

    def _way_cluster(self, module):
        return import_module(module).RedisCluster(host="127.0.0.1", port=self.servers.nodes[0].port)

    # With TLS

    def _tls(self):
        self._certificate = Path(self._folder.name, "cert.pem")
        self._port = free_port()
        key = Path(self._folder.name, "key.pem")
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
        ]
        named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        try:
            subprocess.run(
                [*made, *named, "-keyout", key, "-out", self._certificate],
                check=True,
                capture_output=True,
            )
        except FileNotFoundError:
            pytest.skip("no openssl here")
        files = [
            "--tls-cert-file",
            self._certificate,
            "--tls-key-file",
            key,
            "--tls-ca-cert-file",
            self._certificate,
        ]
        try:
            return Server(
                "--tls-port",
                str(self._port),
                *map(str, files),
                "--tls-auth-clients",
                "no",
            ).start()
        except RuntimeError as error:
            assert "tls" in str(error).lower()
            pytest.skip("this server was built without TLS")

    def _way_tls(self, module):
        return f"rediss://localhost:{self._port}/0?ssl_ca_certs={self._certificate}"

    # As a user with few permissions

    def _rights(self):
        server = Server().start()
        users = {
            "redis": printed("dramatiq-worker"),
            "redis.asyncio": printed("taskiq-worker"),
            "results": of_results(),
        }
        for name, rules in users.items():
            given = ["on", *rules, *ASKED.split(), ">open sesame"]
            server.client().execute_command("ACL", "SETUSER", name, "reset", *given)
        return server

    def _way_rights(self, module):
        return f"redis://{module}:open%20sesame@127.0.0.1:{self.servers.port}/0"


@pytest.fixture(params=NAMES)
def place(request):
    made = Place(request.param)
    yield made
    made.close()
