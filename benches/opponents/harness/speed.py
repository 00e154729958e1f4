"""How fast the worker libraries are, beside what else people use: the table with which docs/benchmarks.md opens."""

import statistics

from report import short

HEAD = ["what", "dq's library", "", "compared with", "", "ratio", "at least", "aim", "reached", "spread of the rounds"]

# What, ours, the others (the fastest one counts), at least, aim.
FASTER = [
    ("jobs/s, Node.js, concurrency 10", "dq worker (Node.js)", ["BullMQ"], 2, 3),
    ("jobs/s, Go, concurrency 10", "dq library (Go)", ["asynq", "River"], 2, 4),
    ("jobs/s, Rust, concurrency 10", "dq library (Rust)", ["apalis"], 3, 5),
    ("jobs/s, Rust beside Go, concurrency 10", "dq library (Rust)", ["dq library (Go)"], 1, 1.5),
    ("jobs/s, Java, ten threads", "dq library (Java)", ["Redisson, 10 threads", "JobRunr"], 4, 6),
    ("jobs/s, Python, ten threads", "dq worker (Python)", ["Celery, ten threads", "Dramatiq", "RQ", "taskiq"], 5, 10),
    ("jobs/s, Python beside Ruby, ten threads", "dq worker (Python)", ["Sidekiq (Ruby)"], 2, 4),
    ("jobs/s, Python, one at a time", "dq worker (Python), one at a time", ["beanstalkd"], 1, 1.5),
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


def names(subject):
    """The systems that the table needs of a subject."""
    goals = {"throughput": FASTER + CHEAPER, "lateness": PUNCTUAL}.get(subject, [])
    return {name for _, ours, others, _, _ in goals for name in [ours, *others]}


def table(subjects):
    """Of the libraries that were measured: a figure of one that came later is the next run's."""
    kinds = [
        ("throughput", "per_s", FASTER, at_least),
        ("throughput", "server_us", CHEAPER, at_most),
        ("lateness", "p99", PUNCTUAL, at_most),
    ]
    rows = [
        row(subjects[subject], figure, *goal, reaches=reaches)
        for subject, figure, goals, reaches in kinds
        for goal in goals
        if {goal[1], *goal[2]} <= subjects[subject].keys()
    ]
    return [HEAD, *rows]


def at_least(ratio, goal):
    return ratio >= goal


def at_most(ratio, goal):
    return ratio <= goal


def row(systems, figure, what, ours, others, least, aim, *, reaches):
    """The ratio is the median of those of the rounds: what else the machine does is much the same within one."""

    def rounds(name):
        return [sample[figure] for sample in systems[name]]

    best = max(others, key=lambda name: statistics.median(rounds(name)))
    mine, its = rounds(ours), rounds(best)
    ratios = [one / other for one, other in zip(mine, its)]
    ratio = statistics.median(ratios)
    verdict = "the aim" if reaches(ratio, aim) else "at least" if reaches(ratio, least) else "**missed**"
    figures = [ours, short(statistics.median(mine)), best, short(statistics.median(its)), f"{short(ratio)}x"]
    return [what, *figures, f"{least:g}x", f"{aim:g}x", verdict, f"{short(min(ratios))} .. {short(max(ratios))}"]
