"""What is measured of a system. Each subject takes one sample, with a fresh server."""

import copy
import statistics
import time

import machine
from systems import Program


READY_S = 60
# Until then the JVM's compiler makes the lateness of what comes alone.
PACED_BEFORE_JAVA = 8000
# And until then it takes most of the processor time of jobs that come together.
WARM_UP_JAVA = 400_000


class Plan:
    """How much of everything."""

    def __init__(self, is_quick, is_of_libraries=False):
        self.rounds = {"adds": 1, "throughput": 1, "lateness": 1, "idle": 1, "memory": 1}
        self.add_s, self.jobs, self.paced, self.paced_s = 1, 2000, 200, 1
        self.far_jobs, self.windows, self.memory_jobs, self.sizes = 5000, 2, 2000, [64, 1024]
        if not is_quick:
            self.rounds = {"adds": 3, "throughput": 3, "lateness": 2, "idle": 1, "memory": 1}
            self.add_s, self.jobs, self.paced, self.paced_s = 2, 10_000, 1000, 5
            self.far_jobs, self.windows, self.memory_jobs = 100_000, 3, 5000
            self.sizes = [32, 64, 256, 1024, 4096]
        self.warm_up, self.paced_before, self.paced_before_java = 0, 0, 0
        if is_of_libraries:
            self.rounds = {"first": 5, "throughput": 5, "first_lateness": 5, "lateness": 5, "warm": 5}
            self.warm_up, self.paced_before = 2 * self.jobs, 3 * self.paced
            self.jobs = self.jobs if is_quick else 50_000  # a fast one has done 10,000 within a fifth of a second
            self.paced_before_java = self.paced_before if is_quick else PACED_BEFORE_JAVA
        self.rounds["tenants"] = 1 if is_quick else 3
        self.rounds["durable"] = 1 if is_quick else 5
        self.step_jobs, self.signals = (50, 20) if is_quick else (500, 100)
        self.rounds["batch"] = 1 if is_quick else 5
        self.batches = [100, 1000] if is_quick else [100, 10_000]
        self.tenants, self.backlog = (100, 2000) if is_quick else (1000, 20_000)

    def before(self, system):
        """How many paced jobs do not count."""
        return self.paced_before_java if system.language == "Java" else self.paced_before

    def cold(self, **others):
        """The same without a warm-up."""
        plan = copy.copy(self)
        vars(plan).update(warm_up=0, paced_before=0, paced_before_java=0, **others)
        return plan


def adds(programs, system, plan):
    """Far jobs by one producer: per second, and the server's CPU time."""
    sample = {}
    for how in ["single", "bulk"] if system.has_bulk else ["single"]:
        with system.server(programs) as server:
            before = server.cpu_s()
            with Program(programs, system, server, "add", how, plan.add_s) as producer:
                told = producer.told()
            used = server.cpu_s() - before
        sample[f"{how}_per_s"] = told["jobs"] / told["seconds"]
        sample[f"{how}_server_us"] = 1e6 * used / told["jobs_in_all"]
    return sample


def throughput(programs, system, plan):
    """Jobs that are due at once, from the first add until the last is in the hands of the one worker that waits.

    Those of the warm-up, handled before, do not count: what runtimes compile while a program begins is no job's cost.
    """
    jobs, warm = min(plan.jobs, system.jobs), min(plan.warm_up, system.jobs)
    with system.server(programs) as server:
        with Program(programs, system, server, "work", warm + jobs, warm) as worker:
            worker.told(READY_S)
            with Program(programs, system, server, "ready", jobs, warm) as producer:
                go_on(worker, producer, warm)
                before, worker_before = server.cpu_s(), worker.cpu_s()
                began = producer.told()["began"]
                told = worker.told()
            used, worker_used = server.cpu_s() - before, worker.cpu_s() - worker_before
    return {
        "per_s": jobs / (told["ended"] - began),
        "server_us": 1e6 * used / jobs,
        "worker_us": 1e6 * worker_used / jobs,
        "twice": told["twice"],
    }


def first(programs, system, plan):
    """The throughput of the first jobs of a program, with all that runtimes compile meanwhile."""
    return throughput(programs, system, plan.cold(jobs=plan.warm_up // 2))


def warm(programs, system, plan):
    """The throughput once a compiler that works while a program runs has little left to do."""
    plan = copy.copy(plan)
    plan.warm_up = max(plan.warm_up, WARM_UP_JAVA)
    return throughput(programs, system, plan)


def first_lateness(programs, system, plan):
    """The lateness of the first jobs of a program."""
    return lateness(programs, system, plan.cold(paced=plan.paced * 3 // 2, paced_s=plan.paced_s * 3 // 2))


def go_on(worker, producer, warm, is_at_rest=lambda: True):
    """When the worker has done the jobs of the warm-up."""
    if warm:
        worker.told()
        if not is_at_rest():
            raise RuntimeError("the worker found no rest behind the warm-up")
        producer.go_on()


def lateness(programs, system, plan):
    """Of jobs that were added 2 s before their due, to a worker that idles behind the warm-up; in ms.

    Runtimes go on compiling when the jobs of the warm-up are done, on the core that all clients share, milliseconds at
    a time: so it is waited until the worker is at rest. And what runs for a job that comes alone is compiled when such
    jobs come: so some come at the same pace before those that count.
    """
    warm = min(plan.warm_up, system.jobs)
    before = plan.before(system)
    paced = before + plan.paced
    paced_s = plan.paced_s * paced // plan.paced
    with system.server(programs) as server:
        with Program(programs, system, server, "work", warm + paced, warm) as worker:
            worker.told(READY_S)
            if system.name == "floor":
                told = worker.told()
            else:
                with Program(programs, system, server, "paced", paced, paced_s, warm) as producer:
                    go_on(worker, producer, warm, lambda: settle(server, worker))
                    producer.told()
                    told = worker.told()
    if len(told["late_us"]) != paced:
        raise RuntimeError(f"{system.name}: {len(told['late_us'])} of {paced} jobs tell their lateness")
    late = sorted(us / 1000 for us in told["late_us"][before:])
    shares = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1]
    return {
        "p50": percentile(late, 0.5),
        "p99": percentile(late, 0.99),
        "max": late[-1],
        "early": sum(ms < 0 for ms in late),
        "earliest": late[0],
        "twice": told["twice"],
        "curve": [[share, percentile(late, share)] for share in shares],
    }


def percentile(ordered, part):
    """The value that this part of all do not exceed."""
    rank = -int(-len(ordered) * part // 1)
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def idle(programs, system, plan):
    """Many jobs that are not due, and a worker: what server and worker do meanwhile."""
    with system.server(programs) as server:
        empty = server.memory()
        with Program(programs, system, server, "fill", plan.far_jobs, 64) as producer:
            producer.told()
        memory = server.memory() - empty
        with Program(programs, system, server, "work", 0, 0) as worker:
            worker.told(READY_S)
            has_settled = settle(server, worker)
            windows = [window(server, worker) for _ in range(plan.windows)]
            sample = {name: statistics.median(each[name] for each in windows) for name in windows[0]}
            sample["memory_per_job"] = memory / plan.far_jobs
            sample["memory_per_job_with_worker"] = (server.memory() - empty) / plan.far_jobs
            sample["worker_mb"] = machine.resident_bytes(worker.process.pid) / 1e6
            sample["has_settled"] = has_settled
    return sample


def settle(server, worker):
    """Waits until both have little to do; False if that does not come."""
    most_cpu_s, patience_s, in_a_row = 0.1, 120, 0
    end = time.monotonic() + patience_s
    while in_a_row < 2 and time.monotonic() < end:
        before = server.cpu_s() + worker.cpu_s()
        time.sleep(1)
        in_a_row = in_a_row + 1 if server.cpu_s() + worker.cpu_s() - before < most_cpu_s else 0
    return in_a_row == 2


def window(server, worker):
    seconds = 3
    own = -server.net_bytes() + server.net_bytes()  # what asking costs
    net, began = server.net_bytes(), time.monotonic()
    before = server.cpu_s(), worker.cpu_s()
    time.sleep(seconds)
    after, took = (server.cpu_s(), worker.cpu_s()), time.monotonic() - began
    return {
        "server_ms_per_s": 1e3 * (after[0] - before[0]) / took,
        "worker_ms_per_s": 1e3 * (after[1] - before[1]) / took,
        "net_bytes_per_s": max(0, server.net_bytes() - net - own) / took,
    }


def memory(programs, system, plan):
    """Bytes per job by payload size."""
    sample = {}
    for size in plan.sizes:
        with system.server(programs) as server:
            empty = server.memory()
            with Program(programs, system, server, "fill", plan.memory_jobs, size) as producer:
                producer.told()
            sample[str(size)] = (server.memory() - empty) / plan.memory_jobs
    return sample


def tenants(programs, system, plan):
    """One tenant has many jobs waiting; then others come with one job each. How long the last of these waits once a
    worker is there, behind how many of the first one's jobs; and what it takes."""
    words = plan.tenants, plan.backlog
    with system.server(programs) as server:
        empty = server.memory()
        with Program(programs, system, server, "tenants_fill", *words) as producer:
            producer.told()
        memory, before = server.memory() - empty, server.cpu_s()
        with Program(programs, system, server, "tenants_work", *words) as worker:
            worker.told(READY_S)
            connections = server.connections()
            told = worker.told()
            used = server.cpu_s() - before
    jobs = plan.tenants + plan.backlog
    return {
        "others_ms": told["others_ms"],
        "before": told["before"],
        "per_s": jobs / told["seconds"],
        "server_us": 1e6 * used / jobs,
        "memory_mb": memory / 1e6,
        "connections": connections,
    }


def batch(programs, system, plan):
    """So many jobs and one that runs after all of them: until that one runs, the server's CPU time, and its memory before
    the worker comes."""
    sample = {}
    for jobs in plan.batches:
        with system.server(programs) as server:
            empty, before = server.memory(), server.cpu_s()
            with Program(programs, system, server, "batch_fill", jobs) as producer:
                added = producer.told()["seconds"]
            memory = server.memory() - empty
            with Program(programs, system, server, "batch_work", jobs) as worker:
                worker.told(READY_S)
                told = worker.told()
            used = server.cpu_s() - before
        if told["missing"]:
            raise RuntimeError(f"{system.name}: the callback ran before {told['missing']} of {jobs} jobs")
        sample[f"{jobs}_ms"] = 1e3 * (added + told["seconds"])
        sample[f"{jobs}_server_us"] = 1e6 * used / jobs
        sample[f"{jobs}_bytes"] = memory / jobs
        sample[f"{jobs}_twice"] = told["twice"]
    return sample


STEPS = 10


def durable(programs, system, plan):
    """Jobs of ten steps, ten at a time; then one job after the other that waits for a signal."""
    with system.server(programs) as server:
        with Program(programs, system, server, "durable", plan.step_jobs, STEPS, plan.signals) as program:
            program.told(READY_S)
            before = server.cpu_s()
            took = program.told()["seconds"]
            used = server.cpu_s() - before
            late = sorted(us / 1000 for us in program.told()["late_us"])
    steps = plan.step_jobs * STEPS
    return {
        "per_s": steps / took,
        "server_us": 1e6 * used / steps,
        "p50": percentile(late, 0.5),
        "p99": percentile(late, 0.99),
    }


SUBJECTS = {"adds": adds, "throughput": throughput, "lateness": lateness, "idle": idle, "memory": memory}
# Of the run of the libraries alone.
OF_LIBRARIES = {"first": first, "first_lateness": first_lateness, "warm": warm}
