"""Servers with the module: alone, with a replica and a Sentinel, in a cluster. Each has a folder of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE_S = 30
ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    pause_s = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {patience_s} s")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.02)


def free_port():
    """A port below the range of outgoing connections, whose cluster bus port is free, too."""
    for _ in range(200):
        port = 12000 + int.from_bytes(os.urandom(2), "big") % 9000
        with socket.socket() as one, socket.socket() as two:
            try:
                one.bind(("127.0.0.1", port))
                two.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


def server_program():
    script = ROOT / "tools/servers/server.sh"
    return os.environ.get("DQ_SERVER") or subprocess.check_output([script], text=True).strip()


def module_path():
    return os.environ.get("DQ_MODULE") or str(ROOT / "target/release/libdq.so")


class Server:
    """One server process that can be killed, frozen and restarted with its data."""

    def __init__(self, *options, module=True, module_args=(), folder=None, port=None):
        self.folder = Path(folder or tempfile.mkdtemp(prefix="dq-suite-"))
        self.port = port or free_port()
        self.options = list(options)
        self.module = [] if not module else ["--loadmodule", module_path(), *module_args]
        self.password = None
        self.process = None
        self._clients = {}

    def start(self):
        self._clients.clear()
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        if "--appendonly" not in self.options:
            settings += ["--appendonly", "yes"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [server_program(), *settings, *self.options, *self.module], stdout=log, stderr=log
            )
        wait_until(self._answers, "the server starts")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{(self.folder / 'log').read_text()[-2000:]}")
        try:
            return self.client().ping()
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def client(self, **options):
        """The same client for the same options: making one takes longer than a command, and many scenarios ask in a
        loop."""
        options = {"password": self.password, **options}
        key = tuple(sorted(options.items()))
        if key not in self._clients:
            retry = Retry(NoBackoff(), 3)
            self._clients[key] = redis.Redis(port=self.port, socket_timeout=PATIENCE_S, retry=retry, **options)
        return self._clients[key]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGSTOP: the server still exists, but does not answer."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sentinels:
    """A master, a replica, and a Sentinel that promotes the replica."""

    def __init__(self):
        self.master = Server().start()
        self.replica = Server("--replicaof", f"127.0.0.1 {self.master.port}").start()
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="dq-suite-"))
        config = self.folder / "sentinel.conf"
        config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor dq 127.0.0.1 {self.master.port} 1\n"
            "sentinel down-after-milliseconds dq 1000\nsentinel failover-timeout dq 5000\n"
        )
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([server_program(), str(config), "--sentinel"], stdout=log, stderr=log)
        self.db = redis.Redis(port=self.port, socket_timeout=PATIENCE_S)
        wait_until(self._knows, "Sentinel knows master and replica")

    def _knows(self):
        try:
            (master,) = [it for it in self.db.sentinel_masters().values()]
            return master["num-slaves"] == 1 and self.replica.client().info("replication")["master_link_status"] == "up"
        except (redis.RedisError, ValueError):
            return False

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def current(self):
        return int(self.db.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "dq")[1])

    def close(self):
        self.process.kill()
        self.process.wait()
        self.master.close()
        self.replica.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """A cluster of masters."""

    def __init__(self, count=2):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "3000")
        self.nodes = [Server(*options).start() for _ in range(count)]
        share = 16384 // count
        for number, node in enumerate(self.nodes):
            end = 16383 if number == count - 1 else (number + 1) * share - 1
            node.client().execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, end)
            node.client().execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.client().execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        wait_until(lambda: all(self._ok(node) for node in self.nodes), "the cluster is up")
        self.ids = [node.client().execute_command("CLUSTER", "MYID").decode() for node in self.nodes]

    def _ok(self, node):
        info = node.client().execute_command("CLUSTER", "INFO")
        text = str(info)
        return "cluster_state" in text and ("'ok'" in text or "cluster_state:ok" in text) and self._all(node)

    def _all(self, node):
        return len(node.client().execute_command("CLUSTER", "SHARDS")) == len(self.nodes)

    @property
    def url(self):
        return self.nodes[0].url

    def client(self):
        return redis.RedisCluster(port=self.nodes[0].port, host="127.0.0.1")

    def owner(self, key):
        slot = self.nodes[0].client().execute_command("CLUSTER", "KEYSLOT", key)
        for node in self.nodes:
            if node.client().execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) or self._owns(node, slot):
                return node
        raise AssertionError("a slot without an owner")

    def _owns(self, node, slot):
        try:
            node.client().execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1)
            lines = node.client(decode_responses=True).execute_command("CLUSTER NODES")
            mine = [it for it in lines.values() if "myself" in it["flags"]]
            return any(int(low) <= slot <= int(high) for low, high in ((r[0], r[-1]) for r in mine[0]["slots"]))
        except redis.RedisError:
            return False

    def move(self, key):
        """Moves the key's slot to the next node, as redis-cli --cluster reshard does."""
        slot = self.nodes[0].client().execute_command("CLUSTER", "KEYSLOT", key)
        source = self.owner(key)
        at = self.nodes.index(source)
        target = self.nodes[(at + 1) % len(self.nodes)]
        target_id = self.ids[self.nodes.index(target)]
        target.client().execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[at])
        source.client().execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while True:
            keys = source.client().execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
            if not keys:
                break
            source.client().execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for node in (target, source, *self.nodes):
            node.client().execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        return target

    def close(self):
        for node in self.nodes:
            node.close()
