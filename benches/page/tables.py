"""The tables of the page."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "opponents/harness"))

from report import rows  # noqa: E402 - the harness prints the same tables


def markdown(table):
    head, *body = table
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def sections(core, opponents):
    made = {f"opponents-{name}": markdown(rows(name, parts)) for name, parts in opponents["subjects"].items()}
    made["machine"] = machine(core, opponents)
    made["goals"] = markdown([GOALS, *(goal(row) for row in all_rows(core) if is_goal(row))])
    made["told"] = markdown([TOLD, *(told(row) for row in all_rows(core) if not is_goal(row))])
    made["how"] = "\n\n".join(how(name, part) for name, part in core["parts"].items())
    made["versions"] = versions(opponents)
    return made


def all_rows(core):
    return [row for part in core["parts"].values() for row in part["rows"]]


def is_goal(row):
    return row["verdict"] != ""


# The cells of a row, as `make bench` prints them: what, ours, the other, its figure, ratio, at least, aim, verdict,
# spread.
GOALS = ["what", "dq", "compared with", "", "ratio or difference", "at least", "aim", "reached", "spread of the rounds"]
TOLD = ["what", "dq", "compared with", "", "ratio", "spread of the rounds"]


def goal(row):
    cells = list(row["cells"])
    cells[7] = {"MISSED": "**missed**", "at least": "at least", "aim": "the aim", "short of aim": "not the aim"}[cells[7]]
    return cells


def told(row):
    return [*row["cells"][:5], row["cells"][8]]


def how(name, part):
    text = " ".join(part["how"].split())
    return f"`{name}` (`make bench-core ONLY={name}`). {text}"


def machine(core, opponents):
    lines = [
        f"- Machine: {core['machine']}.",
        f"- Server: {opponents['server']}.",
        f"- The opponents' run, on the same machine: {opponents['machine']}.",
    ]
    modes = {core["mode"], opponents["mode"]}
    if modes != {"full"}:
        lines.append(f"- Not of a full run of all parts: {', '.join(sorted(modes))}.")
    lines += [f"- Could not be had: {name}." for name in opponents["missing"]]
    lines += [f"- Failed: {it['system']}, {it['subject']}." for it in opponents["failures"]]
    return "\n".join(lines)


def versions(opponents):
    table = [["", "library", "language", "used as"]]
    for name, about in opponents["systems"].items():
        table.append([name, about["version"], about["language"], about["note"]])
    return markdown(table)
