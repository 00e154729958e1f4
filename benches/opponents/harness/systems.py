"""What is compared, and how its program is called."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import machine
import servers

SOURCES = Path(__file__).resolve().parent.parent


@dataclass
class Programs:
    """Where everything is."""

    out: Path
    module: Path
    server: str

    @property
    def beanstalkd(self):
        unpacked = self.out / "beanstalkd/usr/bin/beanstalkd"
        return unpacked if unpacked.exists() else shutil.which("beanstalkd")

    def command(self, language):
        """None where tools/testing/opponents.sh could not get it."""
        java = self.out / "java"
        commands = {
            "Python": (SOURCES / "python/program.py", [sys.executable, SOURCES / "python/program.py"]),
            "Node.js": (self.out / "node/node_modules/bullmq", ["node", self.out / "node/program.js"]),
            "Go": (self.out / "go/program", [self.out / "go/program"]),
            "Rust": (self.out / "rust/program", [self.out / "rust/program"]),
            "Java": (java / "dependency", ["java", "-cp", f"{java}/classes:{java}/dependency/*", "Program"]),
            "Ruby": (gem("sidekiq"), ["ruby", SOURCES / "ruby/program.rb"]),
        }
        needed, command = commands[language]
        return [str(word) for word in command] if needed.exists() else None

    def language_version(self, language):
        command = {
            "Python": [sys.executable, "-c", "import platform; print(platform.python_version())"],
            "Node.js": ["node", "-p", "process.versions.node"],
            "Go": ["sh", "-c", f"go version {self.out}/go/program | sed 's/.*go//'"],
            "Rust": ["sh", "-c", "rustc --version | cut -d' ' -f2"],
            "Java": ["sh", "-c", "java -version 2>&1 | sed -n '1s/[^\"]*\"\\([^\"]*\\).*/\\1/p'"],
            "Ruby": ["ruby", "-e", "puts RUBY_VERSION"],
        }[language]
        return machine.output(*command)


@dataclass
class System:
    name: str
    program: str
    language: str
    library: str
    note: str
    server: type = servers.Redis
    has_bulk: bool = True
    jobs: int = 1_000_000  # at most so many, where it is slow
    subjects: set = field(default_factory=lambda: {"adds", "throughput", "lateness", "idle", "memory"})

    def is_there(self, programs):
        if self.server is servers.Beanstalkd and not programs.beanstalkd:
            return False
        if self.server is servers.Postgres and not servers.postgres():
            return False
        return programs.command(self.language) is not None

    def version(self):
        """As pinned."""
        return f"{self.library} {VERSIONS[self.language](self.library)}" if self.library else ""


def in_requirements(library):
    text = (SOURCES / "python/requirements.txt").read_text()
    return re.search(rf"^{library}==(\S+)", text, re.MULTILINE).group(1)


def in_package(library):
    return json.loads((SOURCES / "node/package.json").read_text())["dependencies"][library]


def in_go_mod(library):
    text = (SOURCES / "go/go.mod").read_text()
    return re.search(rf"/{library}(?:/v\d+)? v(\S+)", text).group(1)


def in_cargo_lock(library):
    text = (SOURCES / "rust/Cargo.lock").read_text()
    return re.search(rf'name = "{library}"\nversion = "([^"]*)"', text).group(1)


def in_pom(library):
    text = (SOURCES / "java/pom.xml").read_text()
    return re.search(rf"<artifactId>{library}</artifactId>\s*<version>([^<]*)", text).group(1)


@cache
def gem(library):
    """Its folder, name-version, where the system has it (Debian: ruby-sidekiq): RubyGems is not asked."""
    ask = ["ruby", "-e", f"puts Gem::Specification.find_by_name('{library}').gem_dir"]
    found = shutil.which("ruby") and subprocess.run(ask, capture_output=True, text=True)
    return Path(found.stdout.strip() if found and not found.returncode else "/nowhere")


def of_gem(library):
    return gem(library).name.rpartition("-")[2]


VERSIONS = {
    "Python": in_requirements,
    "Node.js": in_package,
    "Go": in_go_mod,
    "Rust": in_cargo_lock,
    "Java": in_pom,
    "Ruby": of_gem,
}

# What is the same whatever client is used is measured with one.
CLIENTS = {"adds", "throughput", "lateness"}
LIBRARY = {"throughput", "lateness", "idle"}

SYSTEMS = [
    System("dq (Python)", "dq", "Python", "redis", "BPOP, then ACK with the token, one job at a time"),
    System("dq (Python), 100 at a time", "dq_batch", "Python", "redis", "BPOP COUNT 100, then one ACK",
           subjects={"throughput"}),
    System("dq worker (Python)", "dq_worker", "Python", "redis", "clients/python, ten threads",
           subjects=CLIENTS | {"idle"}),
    System("dq worker (Python), one at a time", "dq_worker_one", "Python", "redis", "one thread",
           subjects={"throughput"}),
    System("sorted set, polled", "zset", "Python", "redis",
           "every 100 ms; ZREM claims a job, nobody acknowledges it"),
    System("Lua scripts, polled", "lua", "Python", "redis",
           "every 100 ms; sorted set, hash, and a sorted set of leases"),
    System("Celery", "celery_", "Python", "celery", "eta; acks_late, no results, solo pool", has_bulk=False, jobs=1000),
    System("Celery, ten threads", "celery_threads", "Python", "celery", "the same with a pool of threads", has_bulk=False,
           subjects={"throughput"}, jobs=1000),
    System("Dramatiq", "dramatiq_", "Python", "dramatiq", "ten threads", has_bulk=False, subjects={"throughput"},
           jobs=3000),
    System("RQ", "rq_", "Python", "rq", "SimpleWorker, which does not fork; no results", subjects={"throughput"}, jobs=500),
    System("taskiq", "taskiq_", "Python", "taskiq", "a Redis stream, which acknowledges; 10 tasks at a time",
           subjects={"throughput"}, jobs=3000),
    System("beanstalkd", "beanstalkd", "Python", "greenstalk",
           "no Redis; delays in whole seconds", server=servers.Beanstalkd, has_bulk=False),
    System("dq (Node.js)", "dq", "Node.js", "ioredis", "as in Python", subjects=CLIENTS),
    System("dq worker (Node.js)", "dq_worker", "Node.js", "ioredis", "clients/node, concurrency 10",
           subjects=CLIENTS | {"idle"}),
    System("dq worker (Node.js), one at a time", "dq_worker_one", "Node.js", "ioredis", "concurrency 1",
           subjects={"throughput"}),
    System("dq worker (Node.js), 100 at a time", "dq_worker_batch", "Node.js", "ioredis", "batch 100",
           subjects={"throughput"}),
    System("BullMQ", "bullmq", "Node.js", "bullmq", "removeOnComplete, concurrency 10"),
    System("BullMQ, one at a time", "bullmq_one", "Node.js", "bullmq", "concurrency 1", subjects={"throughput"}),
    System("dq (Go)", "dq", "Go", "go-redis", "as in Python", subjects=CLIENTS),
    System("dq library (Go)", "dq_library", "Go", "go-redis", "clients/go, concurrency 10", subjects=LIBRARY),
    System("asynq", "asynq", "Go", "asynq", "concurrency 10; looks for due tasks every 5 s by default",
           has_bulk=False),
    System("River", "river", "Go", "river", "PostgreSQL as it comes; concurrency 10, fetches up to every millisecond",
           server=servers.Postgres, subjects={"throughput"}, jobs=2000),
    System("dq (Rust)", "dq", "Rust", "redis", "as in Python", subjects=CLIENTS),
    System("dq library (Rust)", "dq_library", "Rust", "redis", "clients/rust, concurrency 10", subjects=LIBRARY),
    System("apalis", "apalis", "Rust", "apalis-redis", "concurrency 10, each task on its own of tokio; fetches 100, by default 10",
           subjects={"throughput"}, jobs=1000),
    System("dq, a group per tenant", "dq_groups", "Node.js", "ioredis", "one queue; BPOP COUNT 10, one ACK", subjects={"tenants"}),
    System("dq, a queue per tenant", "dq_tenants", "Node.js", "ioredis", "BPOP names all queues, from another one on each time",
           subjects={"tenants"}),
    System("BullMQ, a queue per tenant", "bullmq_tenants", "Node.js", "bullmq",
           "a worker per queue, concurrency 10; groups are sold", subjects={"tenants"}),
    System("dq, a batch (Node.js)", "dq_flow", "Node.js", "ioredis", "MADD with a group, and a job AFTER GROUP; clients/node",
           subjects={"batch"}),
    System("BullMQ, a flow", "bullmq_flow", "Node.js", "bullmq", "FlowProducer, concurrency 10", subjects={"batch"}),
    System("dq, a batch (Python)", "dq_flow", "Python", "redis", "the same; clients/python, ten threads", subjects={"batch"}),
    System("Celery, a chord", "celery_chord", "Python", "celery", "results in the same Redis, ten threads", subjects={"batch"}),
    System("dq, AOF always", "durable_dq", "Python", "redis", "clients/python, ten threads; appendfsync always",
           server=servers.Always, subjects={"durable"}),
    System("dq, AOF everysec", "durable_dq", "Python", "redis", "the same with appendfsync everysec", server=servers.EverySecond,
           subjects={"durable"}),
    System("DBOS", "durable_dbos", "Python", "dbos", "PostgreSQL as it comes; called by ten threads",
           server=servers.Postgres, subjects={"durable"}),
    System("Checkpoints in SQL", "durable_sql", "Python", "psycopg", "PostgreSQL, SKIP LOCKED, polled every 250 ms as by Absurd",
           server=servers.Postgres, subjects={"durable"}),
    System("dq (Java)", "dq", "Java", "jedis", "as in Python", subjects=CLIENTS),
    System("dq library (Java)", "dq_library", "Java", "jedis", "clients/java, 10 threads", subjects=LIBRARY),
    System("Redisson, 10 threads", "redisson_10", "Java", "redisson", "as below; ten threads take",
           subjects={"throughput"}),
    System("Redisson RDelayedQueue", "redisson", "Java", "redisson",
           "no acknowledgement: a taken job is gone"),
    System("JobRunr", "jobrunr", "Java", "jobrunr", "PostgreSQL as it comes; ten workers, polls every 5 s",
           server=servers.Postgres, subjects={"throughput"}, jobs=2000),
    System("Sidekiq (Ruby)", "sidekiq", "Ruby", "sidekiq", "ten threads; its basic fetch, which loses the jobs of a killed worker",
           subjects={"throughput"}, jobs=10_000),
    System("floor", "floor", "Python", "redis", "a sleeping client and a PING", subjects={"lateness"}),
]


class Failed(Exception):
    """A program did not do what it was to do."""


class Program:
    """One run of a system's program."""

    def __init__(self, programs, system, server, task, *words):
        command = [*programs.command(system.language), system.program, task, *map(str, words)]
        self.name = " ".join(command[-2 - len(words):])
        self.errors = open(f"{server.folder.name}/{task}.err", "w+")
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "BENCH_PORT": str(server.port), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=server.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        machine.end(self.process)
        self.process.stdout.close()
        self.errors.close()

    def cpu_s(self):
        return machine.cpu_s(self.process.pid)

    def go_on(self):
        """After its warm-up."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def told(self, patience_s=180):
        """The next line of JSON that it prints."""
        while True:
            machine.wait_until(self._has_line, self.name, patience_s)
            line, self.received = self.received.split(b"\n", 1)
            if line.startswith(b"{"):
                return json.loads(line)

    def _has_line(self):
        is_over = self.process.poll() is not None
        self.received += self.process.stdout.read() or b""
        if b"\n" in self.received:
            return True
        if is_over:
            self.errors.seek(0)
            said = self.errors.read().split("\n")
            raise Failed(f"{self.name}: ended; {' '.join(said[-4:]).strip()}")
        return False
