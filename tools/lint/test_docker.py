"""The Dockerfile copies every member of the program's workspace: cargo reads them all, whichever is built."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "tools/docker"


def missing(dockerfile, ignore):
    members = re.search(r"^members = \[(.*)\]", (ROOT / "tools/Cargo.toml").read_text(), re.M).group(1)
    wanted = [f"tools/{name}" for name in re.findall(r'"([^"]+)"', members)] + ["Cargo.toml", "src"]
    stage = dockerfile.partition(" AS program-build")[2].partition("\nFROM ")[0]
    copied = {word for line in re.findall(r"^COPY (.*)", stage, re.M) for word in line.split()[:-1]}
    return [name for name in wanted if name not in copied or f"!{name}" not in ignore.splitlines()]


class Docker(unittest.TestCase):
    def test_members_are_copied(self):
        texts = [(DOCKER / name).read_text() for name in ("Dockerfile", "Dockerfile.dockerignore")]
        self.assertEqual(missing(*texts), [])
        for text in ("COPY tools/dq-audit dq-audit\n", "COPY src /dq/src\n"):
            self.assertEqual(missing(texts[0].replace(text, ""), texts[1]), [text.split()[1]])
        self.assertEqual(missing(texts[0], texts[1].replace("!tools/dq-top", "")), ["tools/dq-top"])


if __name__ == "__main__":
    unittest.main()
