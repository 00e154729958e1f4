"""The workflow files run only existing targets, and all that the gate runs."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".ci/workflows").glob("*.yml"))


def steps(text):
    """The names of make's targets."""
    named = re.findall(r"^\s*-? *(?:run: )?make ([a-z-]+)", text, re.M)
    for matrix in re.findall(r"target: \[(.*)\]", text):
        named += matrix.split(", ")
    for beside in re.findall(r"^\s*for target in (.*?); do", text, re.M):
        named += beside.split()
    named += re.findall(r"^.*part [a-z-]+ make ([a-z-]+)", text, re.M)
    return set(named)


class Workflows(unittest.TestCase):
    def setUp(self):
        makefiles = "".join((ROOT / name).read_text() for name in ("Makefile", "tests/tests.mk", "benches/bench.mk"))
        self.targets = set(" ".join(re.findall(r"^([a-z -]+):", makefiles, re.M)).split())

    def test_each_step_is_a_target(self):
        self.assertEqual([path.stem for path in WORKFLOWS], ["checks", "nightly", "release"])
        for path in WORKFLOWS:
            named = steps(path.read_text())
            self.assertTrue(named)
            self.assertEqual(named - self.targets, set(), path)

    def test_they_run_what_the_gate_runs(self):
        gate = {step for step in steps((ROOT / ".ci/run").read_text()) if not step.startswith(("ready", "build"))}
        self.assertGreater(len(gate), 20)
        run = set().union(*(steps(path.read_text()) for path in WORKFLOWS))
        whole = {step.removesuffix("-gate") for step in gate - run}
        self.assertEqual(whole - run, set(), "nor is the whole of it")

    def test_what_is_not_there_is_noticed(self):
        self.assertEqual(steps("      - run: make nothing\n") - self.targets, {"nothing"})
        self.assertEqual(steps("        target: [test, nowhere]\n") - self.targets, {"nowhere"})


if __name__ == "__main__":
    unittest.main()
