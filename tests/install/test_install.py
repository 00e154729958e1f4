"""`make install`: what it puts where, that a server loads it, and that one that has it loaded survives the next."""

import os, re, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../recipes"))

import redis

from support import MODULE, Server, wait_until

import commands

TOOL = os.path.join(HERE, "../../tools/install/install.sh")


def tool(*arguments, check=True):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=check)


class Install(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="dq-install-")
        self.addCleanup(root.cleanup)
        self.root, self.folder = root.name, "/opt/my redis/modules"
        self.installed = f"{self.root}{self.folder}/{os.path.basename(MODULE)}"

    def install(self):
        return tool(MODULE, self.folder, self.root).stdout

    def server(self, module):
        server = Server(module)
        self.addCleanup(server.stop)
        return server, commands.connect(server.url)

    def test_installed_loaded_and_taken_away(self):
        said = self.install()
        self.assertIn(f"loadmodule {self.folder}/{os.path.basename(MODULE)}\n", said, "without DESTDIR")
        self.assertEqual(os.listdir(os.path.dirname(self.installed)), [os.path.basename(MODULE)], "and nothing else")
        self.assertLess(os.path.getsize(self.installed), os.path.getsize(MODULE))
        self.assertEqual(os.stat(self.installed).st_mode & 0o777, 0o755)
        _, db = self.server(self.installed)
        queue = commands.Queue(db, "q")
        self.assertTrue(queue.add("a", "x", "DELAY", 20))
        self.assertEqual(queue.ack(queue.take()), 1)
        tool("-u", MODULE, self.folder, self.root)
        self.assertFalse(os.path.exists(self.installed))
        tool("-u", MODULE, self.folder, self.root)

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "needs /proc")
    def test_a_server_that_has_it_loaded_goes_on(self):
        self.install()
        server, db = self.server(self.installed)
        mapped = self.mapped(server)
        before = os.stat(self.installed).st_ino
        self.assertIn(before, mapped)
        self.install()
        self.assertNotEqual(os.stat(self.installed).st_ino, before, "another file, not the same one written over")
        self.assertEqual(self.mapped(server), mapped)
        queue = commands.Queue(db, "q")
        queue.add("a")
        self.assertEqual(queue.ack(queue.take()), 1)
        self.assertIsNone(server.process.poll())

    def test_written_over_the_server_dies(self):
        """Why it is renamed. If this fails, the care has become needless."""
        self.install()
        server = Server(self.installed)
        self.addCleanup(server.discard)
        db = commands.connect(server.url)
        with open(self.installed, "r+b") as file:
            file.truncate(0)        # as cp does before it writes
        with self.assertRaises(redis.ConnectionError):
            for n in range(1000):
                db.execute_command("DQ.ADD", "q", "*", "x", "PRIORITY", n)
                db.execute_command("DQ.PEEK", "q", "READY")
        wait_until("the server's end", lambda: server.process.poll() is not None)

    def test_the_systems_unit_is_looked_at(self):
        """Debian's executes files in /usr/lib and /lib alone."""
        units, rest = f"{self.root}/units", f"{self.root}/rest"
        os.makedirs(f"{rest}/valkey-server.service.d")
        os.mkdir(units)
        environment = {**os.environ, "DQ_UNITS": f"{units} {rest}"}

        def told(*arguments):
            return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True, env=environment)

        def write(file, *lines):
            with open(file, "w") as unit:
                unit.write("\n".join(["[Service]", *lines, ""]))

        folder = f"{self.root}/modules"
        self.assertEqual(told("--prefix").stdout, "/usr/local\n")
        self.assertEqual(told(MODULE, folder).stderr, "")
        write(f"{rest}/valkey-server.service", "NoExecPaths=/", "ExecPaths=/usr/bin/valkey-server /usr/lib /lib")
        self.assertEqual(told("--prefix").stdout, "/usr\n")
        self.assertIn("valkey-server.service executes no files there", told(MODULE, folder).stderr)
        self.assertEqual(told(MODULE, folder, f"{self.root}/package").stderr, "", "for another machine")
        write(f"{rest}/valkey-server.service.d/own.conf", f"ExecPaths={folder} -/usr/local/lib/")
        self.assertEqual(told("--prefix").stdout, "/usr/local\n")
        self.assertEqual(told(MODULE, folder).stderr, "")
        write(f"{units}/valkey-server.service", "ExecStart=/usr/bin/valkey-server", "NoExecPaths=/opt")
        self.assertEqual(told("--prefix").stdout, "/usr/local\n")

    def test_a_relative_prefix_is_refused(self):
        run = tool(MODULE, "modules", self.root, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(os.listdir(self.root), [])

    def mapped(self, server):
        """The inodes of the module that the server has in its memory."""
        with open(f"/proc/{server.process.pid}/maps") as maps:
            return {int(line.split()[4]) for line in maps if re.search(r"/libdq\.", line)}
