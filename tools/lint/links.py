"""Finds dead links in documents: files, headings, and references without a definition. Uses no network.

    links.py page.md ...
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

CODE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*\s*$|(?<!`)(`+)(?!`)(.+?)(?<!`)\3(?!`)", re.M | re.S)
INLINE = re.compile(r"\]\(<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"\[[^\][]+\]\[([^\][]+)\]")
DEFINITION = re.compile(r"^ {0,3}(?:> ?|[-*] )?\[([^\][]+)\]:\s+<?(\S+?)>?\s*$", re.M)
HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?\s*$", re.M)
NAMED = re.compile(r"<[^>]*\b(?:id|name)=[\"']([^\"']+)")


def without_code(text):
    return CODE.sub("", text)


def anchors(text):
    """The anchors that forges make of headings."""
    found, counts = set(NAMED.findall(text)), {}
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        plain = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        seen = counts.get(slug, 0)
        counts[slug] = seen + 1
        found.add(f"{slug}-{seen}" if seen else slug)
    return found


def is_elsewhere(target):
    return re.match(r"[a-z][a-z0-9+.-]*:", target, re.I) is not None


def faults(page):
    text = without_code(page.read_text())
    defined = {name.lower(): target for name, target in DEFINITION.findall(text)}
    for name in REFERENCE.findall(text):
        if name.lower() not in defined:
            yield f"[{name}] is defined nowhere"
    for target in {*INLINE.findall(text), *defined.values()}:
        if is_elsewhere(target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / unquote(path) if path else page
        if not file.exists():
            yield f"{target}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{target}: there is no such heading"


def main(pages):
    found = [f"{page}: {fault}" for page in pages for fault in sorted(faults(Path(page)))]
    print("\n".join(found) if found else f"{len(pages)} pages, no dead link")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
