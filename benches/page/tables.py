"""The tables of the page."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "opponents/harness"))

from report import rows  # noqa: E402 - the harness prints the same tables
from speed import table as speed_table  # noqa: E402


# More than that, and somebody else is at work when the run begins.
IDLE_LOAD = 1.0


def markdown(table):
    head, *body = table
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def sections(core, opponents, libraries, flows, steps, tenants, large):
    made = {f"opponents-{name}": rows(name, parts) for name, parts in opponents["subjects"].items()}
    made["opponents-idle"] = side_by_side(made["opponents-idle"], made.pop("opponents-memory"))
    for name in ("adds", "throughput", "lateness"):
        made[f"opponents-{name}"] = without_loops(made[f"opponents-{name}"])
    made = {name: markdown(table) for name, table in made.items()}
    made["speed"] = markdown(speed_table(libraries["subjects"]))
    made["flows"] = markdown(rows("batch", flows["subjects"]["batch"]))
    made["steps"] = markdown(rows("durable", steps["subjects"]["durable"]))
    made["tenants"] = markdown(rows("tenants", tenants["subjects"]["tenants"]))
    for name, part in large["parts"].items():
        if name not in SIZES:
            made[place(name)] = markdown([LARGE, *(large_row(row) for row in part["rows"])])
    made["large-scale"] = markdown(sizes(large["parts"]))
    made["machine"] = machine(core, opponents, libraries, large)
    made["goals"] = markdown([GOALS, *(goal(row) for row in all_rows(core) if is_goal(row))])
    made["told"] = markdown([TOLD, *(told(row) for row in all_rows(core) if is_told(row))])
    made["versions"] = versions(opponents)
    return made


def without_loops(table):
    """A loop around a plain client is in the file alone where the library of its language was measured, too."""
    measured = " ".join(name for name, *_ in table if re.match("dq (worker|library)", name))
    is_loop = re.compile(r"dq (\(.+\))$")
    return [row for row in table if not ((loop := is_loop.match(row[0])) and loop[1] in measured)]


def side_by_side(left, right):
    """One table of two that have the same rows."""
    more = {name: cells for name, *cells in right}
    missing = [""] * (len(right[0]) - 1)
    return [[*line, *more.get(line[0], missing)] for line in left]


def all_rows(core):
    return [row for part in core["parts"].values() for row in part["rows"]]


def is_goal(row):
    return row["verdict"] != ""


def is_told(row):
    """What says the same as another row, of the server's own reckoning or of a replica's stream, is in the file alone."""
    return not is_goal(row) and not re.search(r"by MEMORY USAGE|written to a replica", row["cells"][0])


# The cells of a row, as `make bench` prints them: what, ours, the other, its figure, ratio, at least, aim, verdict,
# spread.
GOALS = ["what", "dq", "compared with", "", "ratio or difference", "at least", "aim", "reached", "spread of the rounds"]
TOLD = ["what", "dq", "compared with", "", "ratio", "spread of the rounds"]


# What is large is measured once or a few times: goals and rounds in one table.
LARGE = ["what", "dq", "compared with", "", "ratio or bound", "at least", "reached"]


def large_row(row):
    cells = goal(row) if is_goal(row) else row["cells"]
    return [*cells[:6], cells[7]]


# The parts of large.json that measure the same things of queues of several sizes, and the place of each.
SIZES = {"scale": "large-scale", "huge": "large-scale"}
COLUMNS = ["1e7 jobs", "1e6 queues of 3 jobs", "1e8 jobs"]
SAME = {
    "memory per job": "memory per job",
    "DQ.ADD (far), filling it": "an add, filling it",
    "DQ.MADD, per job": "an add, filling it",
    "DQ.ADD (ready)": "an add of a ready job",
    "DQ.POP": "a pop",
    "DQ.ACK": "an acknowledgement",
}


def place(part):
    """The section of a part of large.json."""
    return SIZES.get(part, f"large-{part}")


def sizes(parts):
    """What is measured, and for each size dq's figure; where something is compared, that of the other one, too."""
    found = {}
    for name in SIZES:
        for row in parts[name]["rows"]:
            what, ours, _, other, *_ = row["cells"]
            what, size, is_half = of_size(what)
            figure = f"{ours} ({other})" if other else ours
            found.setdefault(SAME.get(what, what), {})[size] = f"{figure}, of 5e7 jobs" if is_half else figure
    return [["what", *COLUMNS], *([what, *(of.get(size, "") for size in COLUMNS)] for what, of in found.items())]


def of_size(what):
    """What is measured, the column, and whether of half as many jobs, as where master and replica share a machine."""
    size = re.search(r"1e7 jobs|1e6 queues of 3 jobs|1e8 jobs|5e7 jobs", what)[0]
    rest = what.replace(size, "").replace(" beside ", "").strip(" ,:")
    return rest, size.replace("5e7", "1e8"), size == "5e7 jobs"


def goal(row):
    cells = list(row["cells"])
    cells[7] = {"MISSED": "**missed**", "at least": "at least", "aim": "the aim", "short of aim": "not the aim"}[cells[7]]
    return cells


def told(row):
    return [*row["cells"][:5], row["cells"][8]]


def machine(core, opponents, libraries, large):
    lines = [
        f"- Machine: {core['machine']}.",
        f"- Server: {opponents['server']}.",
        f"- The opponents' run: {opponents['machine']}.",
        f"- The libraries' run: {libraries['machine']}.",
        f"- The run of what is large: {large['machine']}.",
    ]
    parts = [*core["parts"].items(), *large["parts"].items()]
    own = {}
    for name, part in parts:
        own.setdefault(part.get("machine"), []).append(f"`{name}`")
    lines += [f"- In runs of their own, {' and '.join(names)}: {it}." for it, names in own.items() if it]
    if libraries.get("warm_up"):
        alone = libraries.get("paced_before", 0)
        java = libraries.get("paced_before_java", alone)
        more = f", and for lateness {alone:,} more (in Java {java:,}) at the pace of those that count" if alone else ""
        before = f"{libraries['warm_up']:,} jobs (a slow one, fewer) before those that count{more}"
        lines.append(f"- In the libraries' run each worker handled {before}, but for the rows of the first jobs.")
    for again in libraries.get("measured_again", []):
        what = "; ".join(f"{subject} of {', '.join(systems)}" for subject, systems in again.items())
        lines.append(f"- After the libraries' run measured again, side by side: {what}.")
    lines += [f"- **Provisional**: {why}." for why in reservations(core, opponents, libraries, large)]
    lines += [f"- Not available: {name}." for name in opponents["missing"]]
    lines += [f"- Failed: {it['system']}, {it['subject']}." for it in opponents["failures"]]
    return "\n".join(lines)


def reservations(core, opponents, libraries, large):
    """Why these figures are not the last word."""
    why = []
    if {core["mode"], opponents["mode"], libraries["mode"], large["mode"]} != {"full"}:
        why.append("of a quick run, with few rounds and small sizes")
    if max(load(run) for run in (core, opponents, large)) > IDLE_LOAD:
        why.append("the machine was busy with other work")
    if load(libraries) > IDLE_LOAD:
        why.append("the machine was busy in the libraries' run: only its ratios count")
    return why


def load(run):
    return float(re.search(r"load ([\d.]+)", run["machine"]).group(1))


def versions(opponents):
    table = [["", "library", "language", "used as"]]
    for name, about in opponents["systems"].items():
        table.append([name, about["version"], about["language"], about["note"]])
    return markdown(table)
