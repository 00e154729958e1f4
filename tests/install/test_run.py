"""What `make run` starts: whose folder is whose, and what the terminal shows."""

import os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../recipes"))

import redis

from support import MODULE, wait_until

TOOLS = os.path.join(HERE, "../../tools")
SERVER = shutil.which(os.environ.get("DQ_SERVER") or "redis-server")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Run(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-run-")
        self.addCleanup(root.cleanup)
        self.root, self.runs = root.name, []
        for name in "install/run.sh", "install/port.sh", "servers/server.sh":
            os.makedirs(os.path.dirname(os.path.join(self.root, "tools", name)), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, name), os.path.join(self.root, "tools", name))
        self.addCleanup(self.stop)

    def start(self, port, server=SERVER):
        log = os.path.join(self.root, f"log-{len(self.runs)}")
        with open(log, "w") as output:
            run = subprocess.Popen(
                [os.path.join(self.root, "tools/install/run.sh"), str(port), MODULE], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True, env={**os.environ, "DQ_SERVER": server})
        run.said = lambda: pathlib.Path(log).read_text()
        self.runs.append(run)
        return run

    def serving(self, port):
        run, db = self.start(port), redis.Redis(port=port)

        def answers():
            try:
                return db.ping()
            except redis.ConnectionError:
                self.assertIsNone(run.poll(), run.said())

        wait_until("the server", answers)
        return run, db

    def stop(self):
        for run in self.runs:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()

    def place(self, file):
        """A server that only says where it would have its data."""
        place = os.path.join(self.root, file)
        with open(place, "w") as program:
            program.write('#!/bin/sh\n[ "$1" = --version ] && echo "Fake server v=9.0.0" && exit\necho "arguments: $*"\n')
        os.chmod(place, 0o755)
        return place

    def test_a_folder_for_each_port(self):
        (one, other), keep = (free_port(), free_port()), []
        for port in one, other:
            _, db = self.serving(port)
            self.assertEqual(db.execute_command("DQ.LEN", "mails"), 0)
            db.execute_command("DQ.ADD", "mails", f"of-{port}", "x")
            keep.append(db)
        for db in keep:
            db.bgrewriteaof()
            wait_until("the rewrite", lambda: db.info("persistence")["aof_rewrite_in_progress"] == 0)
        self.assertTrue(os.path.isdir(f"{self.root}/data-{one}/appendonlydir"))
        keep[0].shutdown()
        wait_until("its end", lambda: self.runs[0].poll() is not None)
        _, db = self.serving(one)
        self.assertEqual(db.execute_command("DQ.PEEK", "mails", "READY", "COUNT", 5)[0][0], f"of-{one}".encode())

    def test_6379_keeps_the_folder_it_always_had(self):
        with open(os.path.join(self.root, "tools/install/port.sh"), "w") as nobody:
            nobody.write("#!/bin/sh\n")
        fake = self.place("fake")
        for port, folder in (6379, "data"), (6380, "data-6380"):
            run = self.start(port, fake)
            self.assertEqual(run.wait(), 0, run.said())
            wait_until("its words", lambda: "arguments:" in run.said())
            self.assertIn(f"--dir {folder} ", run.said())

    def test_one_server_for_each_folder(self):
        for way in "flock", "perl":
            with self.subTest(way), tempfile.TemporaryDirectory() as programs:
                port = free_port()
                # As on macOS, where there is no flock.
                for name in "dirname mkdir tail cat cut mktemp mkfifo rm awk find perl".split() * (way == "perl"):
                    os.symlink(shutil.which(name), os.path.join(programs, name))
                path = os.environ["PATH"]
                if way == "perl":
                    os.environ["PATH"] = programs
                    self.addCleanup(os.environ.__setitem__, "PATH", path)
                run, db = self.serving(port)
                with open(os.path.join(self.root, "tools/install/port.sh"), "w") as nobody:
                    nobody.write("#!/bin/sh\n")
                second = self.start(port)
                self.assertEqual(second.wait(), 1)
                self.assertEqual(second.said(), f"./data-{port} belongs to a server that is running (process {run.pid}).\n")
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                self.serving(port)
                os.environ["PATH"] = path
                shutil.copy(os.path.join(TOOLS, "install/port.sh"), os.path.join(self.root, "tools/install"))

    def test_what_to_type_stands_below_the_log(self):
        port = free_port()
        run, db = self.serving(port)
        wait_until("the hint", lambda: "DQ_MODULE=" in run.said())
        log, hint = run.said().split("Ready to accept connections", 1)
        self.assertNotIn("DQ.ADD", log)
        self.assertRegex(hint, rf"(redis|valkey)-cli -p {port} DQ.ACK mails welcome\n")
        server, module = re.search(r"export DQ_SERVER='(/.*)' DQ_MODULE='(/.*)'$", hint.rstrip()).groups()
        self.assertTrue(os.access(server, os.X_OK) and os.path.samefile(module, MODULE), hint)
        self.assertFalse(re.search(r"^\d+:M ", hint, re.M), hint)
        # Ctrl-C; what the server then says is still shown.
        os.killpg(run.pid, signal.SIGINT)
        self.assertEqual(run.wait(), 0)
        wait_until("the last words", lambda: "bye bye" in run.said())

    def test_a_released_module_where_there_is_no_cargo(self):
        programs = os.path.join(self.root, "bin")
        os.mkdir(programs)
        for name in "make sh dirname uname sed tail tr cat find awk mkdir flock cut mktemp mkfifo rm head chmod env".split():
            os.symlink(shutil.which(name), os.path.join(programs, name))
        for name in "Makefile", "tests/tests.mk", "benches/bench.mk", "Cargo.toml", "tools/install/setup.sh":
            os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, "..", name), os.path.join(self.root, name))
        released = os.path.join(self.root, "libdq.so")
        shutil.copy(MODULE, released)
        os.chmod(released, 0o644)  # as downloaded
        port, log = free_port(), os.path.join(self.root, "log")
        with open(log, "w") as output:
            run = subprocess.Popen(
                ["make", "run", f"PORT={port}", "MODULE=libdq.so"], cwd=self.root, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
                env={"PATH": programs, "HOME": self.root, "DQ_SERVER": os.path.abspath(SERVER)})
        self.runs.append(run)
        run.said = lambda: pathlib.Path(log).read_text()
        wait_until("the hint", lambda: f"-p {port} DQ.ACK" in run.said() or self.assertIsNone(run.poll(), run.said()))
        self.assertIn("Made libdq.so executable", run.said())
        self.assertEqual(redis.Redis(port=port).execute_command("DQ.LEN", "mails"), 0)

    def test_a_module_that_is_not_there(self):
        run = subprocess.run(
            [os.path.join(TOOLS, "install/run.sh"), str(free_port()), "nope.so"], capture_output=True, text=True, cwd=self.root,
            env={**os.environ, "DQ_SERVER": SERVER})
        self.assertEqual((run.returncode, run.stderr), (1, "MODULE=nope.so: there is no such file\n"))

    def test_what_is_no_port(self):
        for port in "", "0", "65536", "x", "06379":
            run = self.start(port)
            self.assertEqual(run.wait(), 1)
            self.assertEqual(run.said(), f"PORT={port} is no port number\n")


if __name__ == "__main__":
    unittest.main()
