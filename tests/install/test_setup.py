"""What a newcomer is told when something is missing: at once, in few words, and what to do."""

import os, shutil, subprocess, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
BASICS = "sh dirname tr sed tail head grep cat mkdir uname id env true".split()


class Setup(unittest.TestCase):
    """tools/setup.sh where there is next to nothing."""

    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-setup-")
        self.addCleanup(root.cleanup)
        self.root, self.programs = root.name, os.path.join(root.name, "bin")
        os.makedirs(os.path.join(self.root, "tools"))
        os.mkdir(self.programs)
        shutil.copy(os.path.join(ROOT, "Cargo.toml"), self.root)
        for name in ["setup.sh", "server.sh"]:
            shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.root, "tools"))
        for name in BASICS:
            os.symlink(shutil.which(name), os.path.join(self.programs, name))
        self.program("sudo", 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"')
        # As without a network.
        self.program("apt-get", f'''echo "$*" >>{self.root}/called
            for n in 1 2 3 4 5 6 7 8 9; do echo "W: Failed to fetch package $n" >&2; echo "Ign:$n"; done
            echo "E: Unable to fetch some archives" >&2; exit 100''')

    def program(self, name, script):
        path = os.path.join(self.programs, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return path

    def setup(self, *needs, **environment):
        run = subprocess.run(
            [os.path.join(self.root, "tools/setup.sh"), *needs], capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env={"PATH": self.programs, "HOME": self.root, **environment})
        return run.returncode, run.stdout + run.stderr

    def assert_nothing_called(self):
        self.assertFalse(os.path.exists(os.path.join(self.root, "called")))

    def test_an_old_cargo(self):
        for version, new_enough in [("1.65.0", False), ("1.87.1", False), ("1.88.0", True), ("1.100.0-nightly", True), ("2.0.1", True)]:
            self.program("cargo", f'echo "cargo {version} (abcdef 2025-01-01)"')
            status, said = self.setup("cargo", *["beanstalkd"] * (not new_enough))
            self.assertEqual(status == 0, new_enough, said)
            if not new_enough:
                short = version.rsplit(".", 1)[0]
                self.assertEqual(said, f"dq needs cargo 1.88 or newer; cargo is {short}. To get it: curl --proto '=https'"
                                 " --tlsv1.2 -sSf https://sh.rustup.rs | sh     (and open a new terminal)\n")
        self.assert_nothing_called()

    def test_no_cargo(self):
        self.program("rustup", "exit 1")
        status, said = self.setup("cargo", "beanstalkd")
        self.assertEqual((status, said), (1, "dq needs cargo 1.88 or newer; there is none here. To get it: rustup update stable\n"))
        self.assert_nothing_called()

    def test_a_server_that_is_not_there(self):
        old = self.program("old-server", 'echo "Redis server v=6.2.16 sha=0 malloc=libc"')
        for server, said in [
                ("/nope", "DQ_SERVER=/nope: there is no such program\n"),
                ("nope", "DQ_SERVER=nope: there is no such program\n"),
                (old, f"DQ_SERVER={old} is no Redis 7.0, Valkey 7.2 or newer: Redis server v=6.2.16 sha=0 malloc=libc\n")]:
            self.assertEqual(self.setup("server", "beanstalkd", DQ_SERVER=server), (1, said))
        self.assert_nothing_called()

    def test_no_network(self):
        status, said = self.setup("beanstalkd", "valgrind")
        self.assertEqual(status, 1)
        self.assertEqual(said.splitlines(), [
            "Missing: beanstalkd valgrind. Installing with apt-get: beanstalkd valgrind",
            "apt-get could not install all of it. All that was said is in target/setup.log; at last:",
            "  E: Unable to fetch some archives",
            "This is missing; please install it by hand, then try again:",
            "  - beanstalkd: see https://beanstalkd.github.io",
            "  - valgrind"])
        with open(os.path.join(self.root, "target/setup.log")) as log:
            self.assertIn("Failed to fetch package 9", log.read())


class Sum(unittest.TestCase):
    """tools/test.sh: what failed stands at the end."""

    def test_failures_are_named_at_the_end(self):
        said = """printf '%s\\n' '     Running unittests src/lib.rs (target/debug/deps/a-1)' '' 'running 2 tests' 'test a::one ... ok' \\
            'test a::two ... FAILED' 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
            echo '     Running tests/integration/main.rs (target/debug/deps/integration-1)' >&2
            printf '%s\\n' 'test b::three ... ok' 'test b::four ... ignored' 'test b::five ... FAILED' \\
            'test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out'; exit 101"""
        run = subprocess.run([os.path.join(ROOT, "tools/test.sh"), "sh", "-c", said], capture_output=True, text=True)
        self.assertEqual(run.returncode, 101)
        self.assertIn("test b::four ... ignored\n", run.stdout)
        self.assertEqual(run.stdout.splitlines()[-4:], [
            "", "2 tests passed, 2 failed, 1 left out", "  src/lib.rs: a::two", "  tests/integration/main.rs: b::five"])
        run = subprocess.run([os.path.join(ROOT, "tools/test.sh"), "sh", "-c", said.replace("101", "0")], capture_output=True)
        self.assertEqual(run.returncode, 0)

    def test_make_test_goes_on(self):
        for target in "test", "test-all", "test-clients":
            dry = subprocess.run(["make", "-n", "-C", ROOT, target], capture_output=True, text=True, check=True).stdout
            self.assertRegex(dry, r"tools/test.sh .* --no-fail-fast")


if __name__ == "__main__":
    unittest.main()
