"""How fast the worker libraries are, beside what else people use: the table with which docs/benchmarks.md opens."""

import statistics

from report import short

HEAD = ["what", "dq's library", "", "compared with", "", "ratio", "at least", "aim", "reached", "spread of the rounds"]

# What, ours, the others (the fastest one counts), at least, aim.
FASTER = [
    ("jobs/s, Node.js, concurrency 10", "dq worker (Node.js)", ["BullMQ"], 2, 3),
    ("jobs/s, Node.js, 100 at a time", "dq worker (Node.js), 100 at a time", ["BullMQ"], 2.5, 3),
    ("jobs/s, Go, concurrency 10", "dq library (Go)", ["asynq", "River"], 2, 4),
    ("jobs/s, Rust, concurrency 10", "dq library (Rust)", ["apalis"], 3, 5),
    ("jobs/s, Rust beside Go, concurrency 10", "dq library (Rust)", ["dq library (Go)"], 1, 1.5),
    ("jobs/s, Java, ten threads", "dq library (Java)", ["Redisson, 10 threads", "JobRunr"], 4, 6),
    ("jobs/s, Python, ten threads", "dq worker (Python)", ["Celery, ten threads", "Dramatiq", "RQ", "taskiq"], 5, 10),
    ("jobs/s, Python beside Ruby, ten threads", "dq worker (Python)", ["Sidekiq (Ruby)"], 2, 4),
    ("jobs/s, Python, one at a time", "dq worker (Python), one at a time", ["beanstalkd"], 1, 1.5),
]
# The same of the first jobs of a program.
FIRST = [
    ("the first 10,000 jobs/s, Node.js, concurrency 10", "dq worker (Node.js)", ["BullMQ"], 1.5, 2),
    ("the first 10,000 jobs/s, Go, concurrency 10", "dq library (Go)", ["asynq", "River"], 2, 4),
    ("the first 10,000 jobs/s, Java, ten threads", "dq library (Java)", ["Redisson, 10 threads", "JobRunr"], 4, 6),
    ("the first 10,000 jobs/s, Python, ten threads", "dq worker (Python)", ["Dramatiq"], 5, 10),
]
# The less, the better: at most so much of the other's.
CHEAPER = [("server CPU us per job, Node.js", "dq worker (Node.js)", ["BullMQ"], 0.25, 0.1)]
PUNCTUAL = [
    (f"lateness p99 ms, {language}", ours, [f"dq ({language})"], least, 1.05)
    for language, ours, least in [
        ("Python", "dq worker (Python)", 1.2),
        ("Node.js", "dq worker (Node.js)", 1.2),
        ("Go", "dq library (Go)", 1.2),
        ("Rust", "dq library (Rust)", 1.2),
        ("Java", "dq library (Java)", 1.5),
    ]
]
FIRST_PUNCTUAL = [("lateness p99 ms of the first 1,500 jobs, Java", "dq library (Java)", ["dq (Java)"], 2, 1.3)]
# Of the worker's own processor time, at most so much: compared with nobody.
FRUGAL = [
    ("worker CPU us per job, Node.js, 100 at a time", "dq worker (Node.js), 100 at a time", [], 16, 13),
    ("worker CPU us per job, Python, ten threads", "dq worker (Python)", [], 13.1, 10),
    ("worker CPU us per job, Go", "dq library (Go)", [], 10.9, 7),
    ("worker CPU us per job, Rust", "dq library (Rust)", [], 6.1, 4),
]
WARM_FRUGAL = [("worker CPU us per job behind 400,000, Java", "dq library (Java)", [], 3, 2.5)]
FIRST_FRUGAL = [
    ("worker CPU us of the first 10,000 jobs, Node.js", "dq worker (Node.js)", [], 50, 40),
    ("worker CPU us of the first 10,000 jobs, Java", "dq library (Java)", [], 45, 30),
]


def at_least(ratio, goal):
    return ratio >= goal


def at_most(ratio, goal):
    return ratio <= goal


# Subject, figure, goals, and how they are reached.
TABLES = [
    ("throughput", "per_s", FASTER, at_least),
    ("first", "per_s", FIRST, at_least),
    ("throughput", "worker_us", FRUGAL, at_most),
    ("first", "worker_us", FIRST_FRUGAL, at_most),
    ("warm", "worker_us", WARM_FRUGAL, at_most),
    ("throughput", "server_us", CHEAPER, at_most),
    ("lateness", "p99", PUNCTUAL, at_most),
    ("first_lateness", "p99", FIRST_PUNCTUAL, at_most),
]


def names(subject):
    """The systems that the table needs of a subject."""
    goals = [goal for of, _, goals, _ in TABLES if of == subject for goal in goals]
    return {name for _, ours, others, _, _ in goals for name in [ours, *others]}


def table(subjects):
    """Of the libraries that were measured: a figure of one that came later is the next run's."""
    rows = [
        row(subjects[subject], figure, *goal, reaches=reaches)
        for subject, figure, goals, reaches in TABLES
        for goal in goals
        if {goal[1], *goal[2]} <= subjects.get(subject, {}).keys()
    ]
    return [HEAD, *rows]


def row(systems, figure, what, ours, others, least, aim, *, reaches):
    """The ratio is the median of those of the rounds: what else the machine does is much the same within one."""

    def rounds(name):
        return [sample[figure] for sample in systems[name]]

    mine = rounds(ours)
    if others:
        best = max(others, key=lambda name: statistics.median(rounds(name)))
        its = rounds(best)
        compared, unit = [one / other for one, other in zip(mine, its)], "x"
        beside = [best, short(statistics.median(its)), f"{short(statistics.median(compared))}x"]
    else:
        compared, unit, beside = mine, "", ["", "", ""]
    said = statistics.median(compared)
    verdict = "the aim" if reaches(said, aim) else "at least" if reaches(said, least) else "**missed**"
    bounds = [f"{least:g}{unit}", f"{aim:g}{unit}", verdict]
    return [what, ours, short(statistics.median(mine)), *beside, *bounds, f"{short(min(compared))} .. {short(max(compared))}"]
