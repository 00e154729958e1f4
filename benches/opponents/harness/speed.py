"""How fast the worker libraries are, beside what else people use: the table with which docs/benchmarks.md opens."""

import statistics

from report import short

HEAD = ["what", "dq's library", "", "compared with", "", "ratio", "at least", "aim", "reached", "spread of the rounds"]

# What, ours, the others (the fastest one counts), at least, aim.
FASTER = [
    ("jobs/s, Node.js, concurrency 10", "dq worker (Node.js)", ["BullMQ"], 2, 3),
    ("jobs/s, Go, concurrency 10", "dq library (Go)", ["asynq"], 2, 4),
    ("jobs/s, Java, ten threads", "dq library (Java)", ["Redisson, 10 threads"], 4, 6),
    ("jobs/s, Python, ten threads", "dq worker (Python)", ["Celery, ten threads", "Dramatiq", "RQ", "taskiq"], 5, 10),
    ("jobs/s, Python, one at a time", "dq worker (Python), one at a time", ["beanstalkd"], 1, 1.5),
]
# The less, the better: at most so much of the other's.
CHEAPER = [("server CPU us per job, Node.js", "dq worker (Node.js)", ["BullMQ"], 0.25, 0.1)]
PUNCTUAL = [
    (f"lateness p99 ms, {language}", ours, [f"dq ({language})"], 1.2, 1.05)
    for language, ours in [
        ("Python", "dq worker (Python)"),
        ("Node.js", "dq worker (Node.js)"),
        ("Go", "dq library (Go)"),
        ("Java", "dq library (Java)"),
    ]
]


def names(subject):
    """The systems that the table needs of a subject."""
    goals = {"throughput": FASTER + CHEAPER, "lateness": PUNCTUAL}.get(subject, [])
    return {name for _, ours, others, _, _ in goals for name in [ours, *others]}


def table(subjects):
    rows = [row(subjects["throughput"], "per_s", *goal, reaches=at_least) for goal in FASTER]
    rows += [row(subjects["throughput"], "server_us", *goal, reaches=at_most) for goal in CHEAPER]
    rows += [row(subjects["lateness"], "p99", *goal, reaches=at_most) for goal in PUNCTUAL]
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
