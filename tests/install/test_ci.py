""".ci/run: whatever part fails, the others run, what it said is shown whole, and all of it fails."""

import os, shutil, subprocess, tempfile, unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MAKE = """#!/bin/sh
echo "$@" >>../made
case $1 in
    test-go) echo "test it ... FAILED"; exit 2 ;;
    test-model-gate) echo "traces: $2" ;;
    test) echo "$DQ_PROGRAM" >../audit; echo "12 tests passed, 0 failed, 1 left out" ;;
esac
"""


@unittest.skipUnless(shutil.which("flock"), "needs flock")
class Gate(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-ci-")
        self.addCleanup(root.cleanup)
        self.root = os.path.join(root.name, "clone")
        for folder in ".ci", "tools/install", "bin":
            os.makedirs(os.path.join(self.root, folder))
        shutil.copy(os.path.join(ROOT, ".ci/run"), os.path.join(self.root, ".ci"))
        for name, script in ("bin/make", MAKE), ("tools/install/setup.sh", "#!/bin/sh\n"):
            with open(os.path.join(self.root, name), "w") as file:
                file.write(script)
            os.chmod(file.name, 0o755)

    def run_it(self, *parts):
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        run = subprocess.run(
            ["bash", os.path.join(self.root, ".ci/run"), *parts], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=environment)
        with open(os.path.join(self.root, "../made")) as file:
            made = file.read().split("\n")
        return run.returncode, run.stdout, run.stderr, {line.split(" ")[0] for line in made if line}

    def test_a_part_that_fails(self):
        code, said, errors, made = self.run_it()
        self.assertEqual((code, errors), (1, "Failed: test-go \n"))
        self.assertIn("test it ... FAILED\n", said)
        self.assertIn("12 tests passed, 0 failed, 1 left out\n", said)
        self.assertGreater(made, {"ready", "ready-build", "lint", "test", "test-go", "test-node", "test-model-gate", "bench-count"})
        table = {line.split()[0] for line in said[said.index("\npart"):].splitlines() if line}
        self.assertGreater(table, {"test-go", "test", "all"})
        with open(os.path.join(self.root, "../audit")) as audit:
            self.assertEqual(audit.read(), f"{self.root}/target/top/release/dq\n", "what servers write is judged")

    def test_some_parts(self):
        code, said, errors, made = self.run_it("test-node", "test")
        self.assertEqual((code, errors, made), (0, "", {"test-node", "test"}))


class Flaky(unittest.TestCase):
    """tools/testing/flaky.sh: what fails now and then is found."""

    def test_failures_are_counted(self):
        with tempfile.TemporaryDirectory(prefix="dq-flaky-") as root:
            for folder in "tools/testing", "bin":
                os.makedirs(os.path.join(root, folder))
            shutil.copy(os.path.join(ROOT, "tools/testing/flaky.sh"), os.path.join(root, "tools/testing"))
            with open(os.path.join(root, "bin/make"), "w") as file:
                file.write(f"""#!/bin/sh
                    [ $1 != test-good ] || exit 0
                    echo >>{root}/runs
                    case $(wc -l <{root}/runs) in
                        1) echo "test a::b ... FAILED"; echo "--- FAIL: TestGo (0.1s)"; exit 1 ;;
                        2) exit 1 ;;
                        3) echo "test a::b ... FAILED"; echo "FAIL: test_it (test_x.X.test_it)"; exit 1 ;;
                    esac""")
            os.chmod(file.name, 0o755)
            run = subprocess.run(
                [os.path.join(root, "tools/testing/flaky.sh"), "4", "test-good", "test-bad"], capture_output=True, text=True,
                env={**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"})
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertEqual([" ".join(line.split()) for line in run.stdout.splitlines()], [
                "test-good: 4 runs, 0 of them failed", "test-bad: 4 runs, 3 of them failed", "Failed, how often:",
                "2 test-bad: a::b", "1 test-bad: test_it", "1 test-bad: TestGo",
                "1 test-bad: (something; see target/flaky/test-bad-2.log)"])


@unittest.skipUnless(shutil.which("clippy-driver"), "needs clippy")
class Checked(unittest.TestCase):
    """What is checked while it is built: how clippy is told that a warning is an error is no documented interface."""

    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-checked-")
        self.addCleanup(root.cleanup)
        self.root = root.name
        self.write("Cargo.toml", '[package]\nname = "dq-redis"\nedition = "2021"\n[workspace]\n')

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def build(self, source, wrapper="$(CHECKED)"):
        """By make, under CI, with the Makefile's CHECKED; what it said, if it failed."""
        self.write("src/lib.rs", source)
        rule = f"canary: ; @{wrapper} CARGO_TARGET_DIR=$(FOLDER)/target $(CARGO) build -q --manifest-path $(FOLDER)/Cargo.toml"
        run = subprocess.run(
            ["make", "-s", "--no-print-directory", f"--eval={rule}", "canary", f"FOLDER={self.root}"], cwd=ROOT,
            env={**os.environ, "CI": "true"}, capture_output=True, text=True)
        return run.returncode and run.stderr

    def wrapped(self, source):
        """By the wrapper of the Rust library."""
        return self.build(source, "RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/testing/checked.sh")

    def test_a_lint_is_an_error(self):
        good, bad = "pub fn canary() -> u32 {\n    1\n}\n", "pub fn canary() -> u32 {\n    return 1;\n}\n"
        for build in self.build, self.wrapped:
            self.assertEqual(build(good), 0)
            self.assertIn("needless_return", build(bad))

    def test_so_is_a_link_of_the_documentation_to_nothing(self):
        self.assertEqual(self.wrapped("/// As [`canary`].\npub fn canary() {}\n"), 0)
        self.assertIn("unresolved link", self.wrapped("/// As [`nothing`].\npub fn canary() {}\n"))


if __name__ == "__main__":
    unittest.main()
