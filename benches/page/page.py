"""make bench-page: puts the figures of the last `make bench` into docs/benchmarks.md and benches/README.md, and draws
the plots.

    page.py FOLDER      takes into FOLDER/figures what the folder has of bench.json, opponents.json (or
                        bench-quick.json ...), libraries.json, flows.json, steps.json, tenants.json and scale.json,
                        and the parts of bench-part.json and scale-part.json that are newer; what was not
                        measured again has to be in FOLDER/figures: the last release has it

FOLDER/figures is what a release publishes: every round, and all plots. The tree has the pages, one plot, and
benches/medians.txt: the median of each row, with which `make bench-check` compares the pages. Besides, the pages say
what `make bench-count` has recorded in benches/counts.txt and counts-pgo.txt.

What is generated stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import counts
import scale
import tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "benchmarks.md", DOCS.parent / "benches/README.md"]
MEDIANS = DOCS.parent / "benches/medians.txt"
PLOT = DOCS / "cost.svg"
# Sections without figures of `make bench`.
OTHER = {"counts", "group-counts", "machine", "versions"}
SPREAD = re.compile(r" \(?[-\d.]+ \.\. [-\d.]+\)?")
LINE = 1000
CORE, LARGE = "bench.json", "scale.json"
NAMES = [CORE, "opponents.json", "libraries.json", "flows.json", "steps.json", "tenants.json", LARGE]


def take(folder, kept):
    there = [(name, path) for name in NAMES for path in latest(folder, name)]
    parts = [(name, path) for name in (CORE, LARGE) for path in later_part(folder, name)]
    if not there and not parts:
        sys.exit(f"no figures in {folder}: run make bench first")
    kept.mkdir(exist_ok=True)
    for name, path in there:
        figures = json.loads(path.read_text())
        figures.pop("module", None)  # what a machine calls its files is nobody's business
        keep(kept / name, figures)
    missing = [name for name in NAMES if not (kept / name).exists()]
    if missing:
        sys.exit(f"without {', '.join(missing)}: unpack the figures of the last release into {kept}")
    for name, path in parts:
        whole, run = (json.loads(it.read_text()) for it in (kept / name, path))
        keep(kept / name, with_parts(whole, run, is_large=name == LARGE))


def keep(path, figures):
    path.write_text(laid_out(rounded(figures)) + "\n")


def later_part(folder, name):
    """Some of it measured by itself, after all of it if that is there, too."""
    part = folder / name.replace(".json", "-part.json")
    if not part.exists():
        return []
    wholes = [path.stat().st_mtime for path in latest(folder, name)]
    return [part] if part.stat().st_mtime > max(wholes, default=0) else []


def with_parts(whole, run, is_large):
    """What was measured by itself takes the place of what was measured with all else, and names its machine."""
    if run["mode"] != "full":
        return whole
    places = [place for path in PAGES for place in places_of(path.read_text())]
    of_kind = {name: part for name, part in run["parts"].items() if (tables.place(name) in places) == is_large}
    new = {name: {"machine": run["machine"], **part} for name, part in of_kind.items()}
    return {**whole, "parts": {**whole["parts"], **new}}


def rounded(value):
    """All numbers with nine digits: the page shows six at most."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return {name: rounded(each) for name, each in value.items()} if isinstance(value, dict) else value


def laid_out(value):
    """JSON with one row, one system or one curve to a line."""
    line = json.dumps(value)
    if len(line) <= LINE or not line.startswith("{") and "{" not in line:
        return line
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(laid_out, value)) + "\n]"
    parts = (f"{json.dumps(name)}: {laid_out(each)}" for name, each in value.items())
    return "{\n" + ",\n".join(parts) + "\n}"


def latest(folder, name):
    """The figures of the last whole run, if there was one, be it a quick one: the page says so."""
    runs = [folder / name, folder / name.replace(".json", "-quick.json")]
    there = [path for path in runs if path.exists()]
    return sorted(there, key=lambda path: path.stat().st_mtime)[-1:]


def filled(texts, sections):
    """The pages, with each section in its place, which only one of them has."""
    places = [name for text in texts for name in places_of(text)]
    if sorted(places) != sorted(sections):
        sys.exit(f"the pages have places for {sorted(places)}, and there are {sorted(sections)}")
    return [filled_one(text, sections) for text in texts]


def places_of(text):
    return re.findall(r"<!-- begin (\S+) -->", text)


def filled_one(text, sections):
    for name in places_of(text):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, rest = text.split(begin, 1)
        _, tail = rest.split(end, 1)
        text = f"{head}{begin}\n\n{sections[name].strip()}\n\n{end}{tail}"
    return text


def medians(texts):
    """The rows of the pages' tables, one to a line, without the spread of the rounds."""
    lines = []
    for text in texts:
        for name in places_of(text):
            body = text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
            rows = [] if name in OTHER else body.strip().splitlines()[2:]
            lines += [f"{name} {SPREAD.sub('', row)}".rstrip(" |") for row in rows]
    return "\n".join(lines) + "\n"


def main():
    folder = Path(sys.argv[1])
    kept = folder / "figures"
    take(folder, kept)
    core, opponents, *others = [json.loads((kept / name).read_text()) for name in NAMES]
    sections = {**tables.sections(core, opponents, *others), **scale.sections(core), **counts.sections()}
    after = filled([path.read_text() for path in PAGES], sections)
    for path, text in zip(PAGES, after):
        path.write_text(text)
    MEDIANS.write_text(medians(after))
    import plots  # the check does without matplotlib

    plots.draw(core, opponents, kept)
    shutil.copy(kept / PLOT.name, PLOT)


if __name__ == "__main__":
    main()
