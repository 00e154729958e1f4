"""What was found out, as tables and as JSON."""

import statistics

COLUMNS = {
    "adds": [
        ("single_per_s", "adds/s, one by one"),
        ("single_server_us", "server us each"),
        ("bulk_per_s", "adds/s, 100 at a time"),
        ("bulk_server_us", "server us each"),
    ],
    "throughput": [
        ("per_s", "jobs/s, add to delivery"),
        ("server_us", "server us per job"),
        ("worker_us", "worker us per job"),
        ("twice", "twice"),
    ],
    "lateness": [
        ("p50", "p50 ms"),
        ("p99", "p99 ms"),
        ("max", "max ms"),
        ("early", "early"),
        ("earliest", "earliest ms"),
    ],
    "tenants": [
        ("others_ms", "the others' last job is taken after ms"),
        ("before", "jobs of the first one before it"),
        ("per_s", "jobs/s"),
        ("server_us", "server us per job"),
        ("memory_mb", "server MB before"),
        ("connections", "connections"),
    ],
    "durable": [
        ("per_s", "steps/s"),
        ("server_us", "server us per step"),
        ("p50", "signal to handler, p50 ms"),
        ("p99", "p99 ms"),
    ],
    "idle": [
        ("server_ms_per_s", "server CPU ms/s"),
        ("worker_ms_per_s", "worker CPU ms/s"),
        ("net_bytes_per_s", "network bytes/s"),
        ("memory_per_job", "server bytes/job"),
        ("memory_per_job_with_worker", "the same, with worker"),
        ("worker_mb", "worker MB"),
    ],
}
COLUMNS |= {"first": COLUMNS["throughput"], "warm": COLUMNS["throughput"], "first_lateness": COLUMNS["lateness"]}


def short(value):
    """Three digits that count."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def cell(samples):
    """The median of all rounds, and their spread."""
    if not samples:
        return "-"
    text = short(statistics.median(samples))
    return text if len(samples) == 1 else f"{text} ({short(min(samples))} .. {short(max(samples))})"


BATCH = {"ms": "{} jobs: ms, add to callback", "server_us": "server us per job", "bytes": "bytes per job", "twice": "twice"}


def columns(subject, parts):
    """Of memory they are the sizes that were measured, and of batches."""
    if subject in COLUMNS:
        return COLUMNS[subject]
    if subject == "batch":
        names = [name for samples in parts.values() for name in samples[0]]
        split = {name: name.split("_", 1) for name in names}
        return [(name, BATCH[what].format(jobs)) for name, (jobs, what) in split.items()]
    sizes = sorted({size for samples in parts.values() for size in samples[0]}, key=int)
    return [(size, f"{size} bytes") for size in sizes]


def rows(subject, parts):
    """The cells of a table: its head, and a row for each system."""
    names = columns(subject, parts)
    table = [["", *(title for _, title in names)]]
    for system, samples in parts.items():
        values = ([it[name] for it in samples if name in it] for name, _ in names)
        table.append([system, *map(cell, values)])
    return table


def without(measured, again):
    """Of names by subject, those that were not measured again."""
    left = {subject: [name for name in names if name not in again.get(subject, ())] for subject, names in measured.items()}
    return {subject: names for subject, names in left.items() if names}


class Results:
    def __init__(self, about, programs, systems, missing):
        self.about = about
        self.systems = {
            system.name: {
                "version": system.version(),
                "language": f"{system.language} {programs.language_version(system.language)}",
                "note": system.note,
            }
            for system in systems
        }
        self.missing = [system.name for system in missing]
        self.order = [system.name for system in systems]
        self.subjects = {}
        self.failures = []

    def add(self, subject, system, sample):
        self.subjects.setdefault(subject, {}).setdefault(system, []).append(sample)

    def add_to(self, before):
        """What was measured now takes the place of what was, which needs all that it is compared with."""
        again = {subject: sorted(parts) for subject, parts in self.subjects.items()}
        self.about = {**self.about, **{name: before[name] for name in self.about if name in before}}
        earlier = [without(each, again) for each in before.get("measured_again", [])]
        self.about["measured_again"] = [*filter(None, earlier), again]
        for subject, parts in before["subjects"].items():
            self.subjects[subject] = {**parts, **self.subjects.get(subject, {})}

    def fail(self, subject, system, why):
        print(f"{system}, {subject}: {why}", flush=True)
        self.failures.append({"subject": subject, "system": system, "why": why})

    def json(self):
        ordered = {
            subject: {name: parts[name] for name in self.order if name in parts}
            for subject, parts in self.subjects.items()
        }
        return {
            **self.about,
            "missing": self.missing,
            "failures": self.failures,
            "systems": self.systems,
            "subjects": ordered,
        }

    def text(self):
        lines = [f"{name}: {value}" for name, value in self.about.items()]
        for subject, parts in self.json()["subjects"].items():
            lines += ["", subject, *aligned(rows(subject, parts))]
        lines += ["", *(f"Could not be had: {name}" for name in self.missing)]
        lines += [f"FAILED: {it['system']}, {it['subject']}: {it['why']}" for it in self.failures]
        return "\n".join(lines)


def aligned(table):
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in table]
