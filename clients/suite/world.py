"""The environment of a scenario: a server, a proxy in front of it, and probes."""

import base64
import json
import shutil
import tempfile
import time
from pathlib import Path

from proxy import Proxy
from servers import Server, wait_until

from probe import Probe

KEY = "q"


class World:
    def __init__(self, start_probe, language, *, is_gate=False):
        self._start_probe = start_probe
        self.language = language
        self.is_gate = is_gate
        self.patience_s = 30
        self.folder = Path(tempfile.mkdtemp(prefix="dq-suite-log-"))
        self._server = None
        self._proxy = None
        self._closing = []
        self._prepared = []
        self.settings = {}
        self.is_permitted = False

    # --- Places

    def prepare(self, change):
        """For canaries: called with the proxy as soon as it exists."""
        self._prepared.append(change)

    def serve(self, *options, **rest):
        """Starts a server with its own options, if the scenario needs them. To be called first."""
        self._server = Server(*options, **rest).start()
        return self._server

    @property
    def server(self):
        return self._server or self.serve()

    @property
    def db(self):
        return self.server.client()

    @property
    def proxy(self):
        if self._proxy is None:
            self._proxy = Proxy(self.server.port)
            for change in self._prepared:
                change(self._proxy)
        return self._proxy

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.proxy.port}"

    def keep(self, closing):
        """Registers something to be closed at the end."""
        self._closing.append(closing)
        return closing

    def probe(self):
        made = Probe(self._start_probe(self.folder / "probe.log"))
        made.patience_s = self.patience_s
        return self.keep(made)

    def worker(self, *, start=True, place=None, name=KEY, shards=None, **settings):
        """A probe with a worker on one queue. Its settings are the scenario's, but a canary's have precedence."""
        probe = self.probe()
        place = place or {"url": self.url}
        fields = {"name": name, "shards": shards, **place, **self.settings.get("place", {})}
        probe.ask("queue", "made", queue="q", **fields)
        if start:
            self.start(probe, **settings)
        return probe

    def start(self, probe, **settings):
        given = {"queues": ["q"], "concurrency": 2, "drain_ms": 5000, "handlers": [{"lease_ms": 3000}]}
        probe.ask("worker", "running", **{**given, **settings, **self.settings.get("worker", {})})

    def producer(self):
        """A probe with a queue, and no worker."""
        return self.worker(start=False)

    def ear_is_open(self, count=1):
        """Waits until so many waits for a cancellation were sent."""
        self.until(lambda: len(self.proxy.commands(b"DQ.BTOUCH")) >= count, "a wait for a cancellation")

    def without(self, *rights):
        """A place with a user who has all rights but these; for ``permitted``, all."""
        withheld = () if self.is_permitted else rights
        rules = ["on", ">pw", "~*", "&*", "+@all", *withheld]
        self.db.execute_command("ACL", "SETUSER", "worker", "reset", *rules)
        return {"url": f"redis://worker:pw@127.0.0.1:{self.proxy.port}"}

    # --- Jobs

    def add(self, id, data=None, *options, key=KEY, payload=None):
        body = payload if payload is not None else json.dumps(data).encode()
        return self.db.execute_command("DQ.ADD", key, id, body, *options)

    def get(self, id, key=KEY):
        reply = self.db.execute_command("DQ.GET", key, id)
        if reply is None:
            return None
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {
            name.decode(): value.decode(errors="replace") if isinstance(value, bytes) else value
            for name, value in pairs
        }

    def state(self, id, key=KEY):
        job = self.get(id, key)
        return job and job["state"]

    def stats(self, key=KEY):
        reply = self.db.execute_command("DQ.STATS", key)
        if reply is None:
            return {}
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {name.decode(): value for name, value in pairs}

    def len(self, state=None, key=KEY):
        return self.db.execute_command("DQ.LEN", key, *([state] if state else []))

    def until(self, condition, what):
        return wait_until(condition, what, self.patience_s)

    def waiting(self, command="dq.bpop"):
        """How many clients are blocked in this command: waiting for jobs."""
        return sum(each["cmd"] == command and "b" in each["flags"] for each in self.db.client_list())

    def done(self, *ids, key=KEY):
        """Waits until all these jobs are acknowledged, and kept as done."""
        self.until(lambda: all(self.state(id, key) == "done" for id in ids), f"{ids} are done")

    def gone(self, *ids, key=KEY):
        """Waits until all these jobs are acknowledged and gone."""
        self.until(lambda: all(self.get(id, key) is None for id in ids), f"{ids} are acknowledged")

    def now_ms(self):
        """The server's time, rounded up as due times and deadlines are."""
        seconds, micros = self.db.time()
        return seconds * 1000 + micros // 1000 + 1

    def never(self, condition, what, for_s=1.0):
        """Asserts that it is not so for a while; only used where there is nothing to wait for."""
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            assert not condition(), what
            time.sleep(0.01)

    def lasts(self, condition, for_s):
        """Asserts that it is so all that time."""
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            if not condition():
                return False
            time.sleep(0.01)
        return True

    def log_text(self):
        path = self.folder / "probe.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def close(self):
        for each in reversed(self._closing):
            each.close()
        if self._proxy:
            self._proxy.close()
        if self._server:
            self._server.close()
        shutil.rmtree(self.folder)


def payload_of(event):
    return base64.b64decode(event["payload"])
