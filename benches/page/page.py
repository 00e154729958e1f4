"""make bench-page: puts the figures of the last `make bench` into docs/benchmarks.md and
benches/README.md, and draws the plots.

    page.py FOLDER      first takes into docs/benchmarks what the folder has of bench.json, opponents.json (or
                        bench-quick.json ...), libraries.json, flows.json, steps.json, tenants.json, scale.json and
                        compress.json;
                        and the parts of bench-part.json and scale-part.json that are newer
    page.py             only what docs/benchmarks has
    page.py --check     changes nothing; fails if a page does not say what those files say

Besides, what `make bench-count` has recorded in benches/counts.txt and counts-pgo.txt.

What is generated stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import json
import re
import sys
from pathlib import Path

import counts
import scale
import tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "benchmarks.md", DOCS.parent / "benches/README.md"]
DATA = DOCS / "benchmarks"
LINE = 1000
CORE, LARGE = "bench.json", "scale.json"
NAMES = [CORE, "opponents.json", "libraries.json", "flows.json", "steps.json", "tenants.json", LARGE, "compress.json"]


def take(folder):
    there = [(name, path) for name in NAMES for path in latest(folder, name)]
    parts = [(name, path) for name in (CORE, LARGE) for path in later_part(folder, name)]
    if not there and not parts:
        sys.exit(f"no figures in {folder}: run make bench first")
    for name, path in there:
        figures = json.loads(path.read_text())
        figures.pop("module", None)  # what a machine calls its files is nobody's business
        keep(name, figures)
    for name, path in parts:
        whole, run = (json.loads(it.read_text()) for it in (DATA / name, path))
        keep(name, with_parts(whole, run, is_large=name == LARGE))


def keep(name, figures):
    (DATA / name).write_text(laid_out(rounded(figures)) + "\n")


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


def all_sections(core, *others):
    return {**tables.sections(core, *others), **scale.sections(core), **counts.sections()}


def main():
    words = sys.argv[1:]
    is_check = words == ["--check"]
    if words and not is_check:
        take(Path(words[0]))
    core, *others = figures = [json.loads((DATA / name).read_text()) for name in NAMES]
    before = [path.read_text() for path in PAGES]
    after = filled(before, all_sections(*figures))
    if is_check:
        return 0 if after == before else f"a page does not say what {DATA} says: run make bench-page"
    for path, text in zip(PAGES, after):
        path.write_text(text)
    import plots  # the check does without matplotlib

    plots.draw(core, others[0], DATA)
    return 0


if __name__ == "__main__":
    sys.exit(main())
