"""Tests the metrics, alerts and the dashboard with the real redis_exporter, Prometheus and a server with dq.

    DQ_SERVER=redis-server DQ_MODULE=libdq.so python3 tools/metrics/test.py

What is missing is reported and skipped, except where CI is set.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

import redis

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "testing"))

import servers  # noqa: E402
from servers import PATIENCE_S, free_port, wait_until  # noqa: E402

SCRAPE = "1s"


def soon(what, attempt):
    """The value, once there is one; a Prometheus that is still starting gives none."""

    def tried():
        try:
            return attempt()
        except OSError:
            return None

    return wait_until(what, tried)


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


# --- the rules

def promtool(*words):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True)


def rules_are_right(folder):
    """The unit tests pass, and fail if an alert is missing or does not wait."""
    for words in (["check", "config", HERE / "prometheus.yml"], ["check", "rules", HERE / "alerts.yml"],
                  ["test", "rules", HERE / "alerts_test.yml"]):
        done = promtool(*words)
        check(done.returncode == 0, f"promtool {words}\n{done.stdout}{done.stderr}")
    text = (HERE / "alerts.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)", text)
    check(len(alerts) >= 8, "the alerts were found")
    worse = {f"without {alert}": text.replace(f"- alert: {alert}", "- alert: Other") for alert in alerts}
    for wait in sorted(set(re.findall(r"for: \d+m", text))):
        worse[f"{wait} gone"] = text.replace(wait, "for: 0s")
    shutil.copy(HERE / "alerts_test.yml", folder)
    for what, rules in worse.items():
        (folder / "alerts.yml").write_text(rules)
        done = promtool("test", "rules", folder / "alerts_test.yml")
        check(done.returncode != 0, f"the unit tests do not notice: {what}")
    print(f"{len(alerts)} alerts, and {len(worse)} worse rules that the unit tests reject")


# --- the chain

class Chain:
    """A server with dq, an exporter, and a Prometheus."""

    def __init__(self, folder, exporter, script):
        self.folder, self.processes = folder, []
        exporter_port, self.port = free_port(), free_port()
        self.process = servers.Server()
        self.server = redis.Redis(port=self.process.port, decode_responses=True, protocol=2).execute_command
        self.start([exporter, "-redis.addr", f"redis://127.0.0.1:{self.process.port}",
                    "-web.listen-address", f"127.0.0.1:{exporter_port}",
                    *(["-script", HERE / "dq.lua"] if script else [])])
        text = (HERE / "prometheus.yml").read_text()
        text = text.replace("127.0.0.1:9121", f"127.0.0.1:{exporter_port}").replace("15s", SCRAPE)
        (folder / "prometheus.yml").write_text(text)
        shutil.copy(HERE / "alerts.yml", folder)
        self.start(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}"])

    def stats(self, queue):
        flat = self.server("DQ.STATS", queue)
        return dict(zip(flat[::2], flat[1::2]))

    def start(self, words):
        with open(self.folder / f"log{len(self.processes)}", "w") as log:
            self.processes.append(subprocess.Popen([str(word) for word in words], cwd=self.folder,
                                                   stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def query(self, expression):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]["result"]

    def value(self, expression):
        result = self.query(expression)
        check(len(result) <= 1, f"one series for {expression}: {result}")
        return float(result[0]["value"][1]) if result else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.process.close()


def fill(server):
    """Queues in several states; one name has characters with a meaning in regular expressions."""
    server("SET", "no queue", "x")
    for n in range(20):
        server("DQ.ADD", "mails", n, "x")
    for n in range(3):
        server("DQ.ADD", "mails", f"later{n}", "x", "DELAY", 3_600_000)
    server("DQ.ADD", "a:b le=1:{x}", "one", "x", "ATTEMPTS", 1)
    token = server("DQ.POP", "a:b le=1:{x}")[2]
    server("DQ.NACK", "a:b le=1:{x}", "one", "TOKEN", token)


def work(server):
    job = server("DQ.POP", "mails")
    if job:
        server("DQ.ACK", "mails", "WITHTOKENS", job[0], job[2])
        server("DQ.ADD", "mails", job[0], "x")


def figures_are_right(chain):
    """The values in Prometheus are the server's."""
    server = chain.server
    # fill() does this last. All figures of a scrape come from one script, so the others are there as well.
    soon("all figures have come", lambda: chain.value('dq_queue_dead{queue="a:b le=1:{x}"}') == 1)
    stats = chain.stats("mails")
    for field in ("delayed", "ready", "reserved", "dead", "waiting-clients", "paused", "bytes", "recurring"):
        name = "dq_queue_" + field.replace("-", "_")
        check(chain.value(name + '{queue="mails"}') == stats[field], field)
    info = server("INFO", "dq")
    check(len(info) > 15, "INFO dq has its fields")
    for name, value in info.items():
        have = chain.value(name)
        check(have is not None, f"{name} is missing")
        if name == "dq_oldest_ready_ms":  # an age, which has grown since the scrape
            check(0 < have <= float(value), f"{name}: {have}, {value}")
        elif not name.startswith(("dq_lateness", "dq_timer")):
            check(have == float(value), f"{name}: {have}, {value}")
    odd = chain.query('dq_queue_dead{queue="a:b le=1:{x}"}')
    check(len(odd) == 1 and odd[0]["value"][1] == "1", f"the queue with the odd name: {odd}")
    labels = set(odd[0]["metric"])
    check(labels == {"__name__", "instance", "job", "queue"}, f"labels {labels}")
    buckets = chain.query('dq_queue_lateness_us_bucket{queue="mails"}')
    check(len(buckets) == len(stats["lateness-buckets"]), "the buckets")
    check(chain.value('dq_queue_lateness_us_max{queue="mails"}') == stats["lateness-max"], "the largest lateness")
    check(chain.value("dq_queues_unnamed") == 0, "few queues are found without being named")
    print(f"{len(info)} fields of INFO dq, and {len(chain.query('{queue=~`.+`}'))} series of queues")


def names_are_needed_only_where_there_are_many(chain):
    server, named, ready = chain.server, 'dq_queue_ready{queue="mails"}', lambda queue: f'dq_queue_ready{{queue="{queue}"}}'
    for n in range(60):
        server("DQ.CFGSET", f"many:{n}")
    soon("it is said that they are too many", lambda: chain.value("dq_queues_unnamed") == 1)
    check(chain.value(named) is None, "only the sums are left")
    server("SADD", "dq-metrics", "mails", "a:b le=1:{x}", "none")
    soon("those that are named have figures", lambda: chain.value(named) is not None)
    check(chain.value("dq_queues_unnamed") == 0, "they are named")
    check(chain.value(ready("many:7")) is None and chain.value(ready("none")) is None, "only those, and only if there")
    print("queues are found while they are few, and named where they are many")


def groups_are_those_that_are_named(chain):
    server, odd = chain.server, "b:%a le=1"
    for group in ("acme", "beta", odd):
        server("DQ.ADD", "mails", f"of {group}", "x", "GROUP", group, "PRIORITY", -1)
    server("DQ.GROUPSET", "mails", "acme", "RATE", 5, 3_600_000)
    server("DQ.POP", "mails", "ID", "of acme", "TTR", 3_600_000)
    server("DQ.PAUSE", "mails", "GROUP", odd)
    server("SADD", "dq-metrics:mails", "acme", odd, "gone")

    def of(figure, group):
        return chain.value(f'dq_group_{figure}{{queue="mails",group="{group}"}}')

    soon("those that are named have figures", lambda: of("reserved", "acme") == 1)
    check((of("rate_used", "acme"), of("waiting", "acme"), of("paused", "acme")) == (1, 0, 0), "acme")
    check((of("waiting", "b%3a%25a le=1"), of("paused", "b%3a%25a le=1")) == (1, -1), "a name with a colon")
    check(of("waiting", "gone") == 0 and of("waiting", "beta") is None, "only those that are named")
    print("named groups have figures")


def dashboard_has_data(chain):
    dashboard = json.loads((HERE / "dashboard.json").read_text())
    parsed_by_grafana(dashboard)
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    check(len(expressions) > 20, "the dashboard has expressions")
    for expression in expressions:
        for variable, value in (("$instance", ".*"), ("$queue", ".*"), ("$__rate_interval", "1m")):
            expression = expression.replace(variable, value)
        soon(f"data for {expression}", lambda: meaningful(chain, expression))
    print(f"{len(expressions)} expressions of the dashboard have data")


def meaningful(chain, expression):
    work(chain.server)
    values = [result["value"][1] for result in chain.query(expression)]
    return any(value != "NaN" for value in values)


def parsed_by_grafana(dashboard):
    try:
        from grafana_foundation_sdk.models.dashboard import Dashboard
    except ImportError:
        missing("grafana_foundation_sdk (PyPI)")
        return
    check(len(Dashboard.from_json(dashboard).panels) == len(dashboard["panels"]), "Grafana's model reads it")


def alerts_live(chain):
    """A job died: its alert fires in the real Prometheus, and the alert about missing figures does not."""
    server = chain.server
    server("DQ.ADD", "mails", "bad", "x", "PRIORITY", -1)
    server("DQ.NACK", "mails", "bad", "TOKEN", server("DQ.POP", "mails")[2], "FATAL")
    soon("the alert fires", lambda: chain.query('ALERTS{alertname="DqJobsDie", alertstate="firing"}'))
    check(not chain.query('ALERTS{alertname="DqMetricsMissing"}'), "no figure is missing")


def without_script(exporter):
    """Without the script the exporter has no figures of dq, and an alert reports that."""
    with tempfile.TemporaryDirectory() as folder, Chain(Path(folder), exporter, script=False) as chain:
        soon("the alert is pending", lambda: chain.query('ALERTS{alertname="DqMetricsMissing"}'))
        check(not chain.query('{__name__=~"dq_.*"}'), "the exporter alone has figures of dq after all")
    print("without dq.lua the exporter has none of it, and DqMetricsMissing says so")


def missing(what):
    if os.environ.get("CI"):
        sys.exit(f"{what} must be there in CI")
    print(f"SKIPPED: {what} is not there")


def main():
    exporter = os.environ.get("REDIS_EXPORTER") or shutil.which("redis_exporter") or \
        shutil.which("prometheus-redis-exporter")
    tools = {"promtool": shutil.which("promtool"), "prometheus": shutil.which("prometheus"), "redis_exporter": exporter}
    for name, path in tools.items():
        if not path:
            return missing(name)
    with tempfile.TemporaryDirectory() as folder:
        rules_are_right(Path(folder))
    with tempfile.TemporaryDirectory() as folder, Chain(Path(folder), exporter, script=True) as chain:
        fill(chain.server)
        figures_are_right(chain)
        names_are_needed_only_where_there_are_many(chain)
        groups_are_those_that_are_named(chain)
        dashboard_has_data(chain)
        alerts_live(chain)
    without_script(exporter)


main()
