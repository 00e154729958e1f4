"""tools/release/deb.sh and rpm.sh, with the module of this machine: what they put where, and that a server loads it."""

import gzip, os, shutil, subprocess, tempfile, unittest

import elf, trial

from support import MODULE

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
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

    def pack(self, kind, arch, into, **environment):
        return call(os.path.join(TOOLS, f"release/{kind}.sh"), self.module, arch, f"{self.root}/{into}", **environment).strip()

    def holds(self, root, modules, other):
        """Where servers of both families look for modules."""
        with open(self.module, "rb") as built, open(f"{root}{modules}/libdq.so", "rb") as installed:
            self.assertEqual(installed.read(), built.read())
        self.assertTrue(os.access(f"{root}{modules}/libdq.so", os.X_OK), "servers refuse one that cannot be executed")
        self.assertTrue(os.path.samefile(f"{root}{modules}/libdq.so", f"{root}{other}/libdq.so"))
        trial.run(self, f"{root}{other}/libdq.so")

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
        package, root = self.pack("deb", DEBIAN[self.arch], "deb", SOURCE_DATE_EPOCH="1700000000"), f"{self.root}/unpacked"
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
        package, root = self.pack("rpm", self.arch, "rpm"), f"{self.root}/fedora"
        if os.geteuid() == 0:
            call("rpm", "--root", root, "--dbpath", "/rpmdb", "--nodeps", "--noscripts", "--ignoreos", "--ignorearch", "-i", package)
        else:
            os.mkdir(root)
            call("sh", "-c", 'rpm2cpio "$1" | cpio -idmu --quiet -D "$2"', "sh", package, root)
        self.assertIn("\n    loadmodule /usr/lib64/redis/modules/libdq.so\n", call("rpm", "-qp", "--scripts", package))
        self.holds(root, "/usr/lib64/redis/modules", "/usr/lib64/valkey/modules")
        self.assertNotIn("libdq", call("rpm", "-qp", "--provides", package), "it is no library for others")

    def test_packed_twice_the_bytes_are_the_same(self):
        kinds = [("deb", DEBIAN[self.arch], "dpkg-deb"), ("rpm", self.arch, "rpmbuild")]
        for kind, arch, program in kinds:
            if not shutil.which(program):
                continue
            with self.subTest(kind):
                first, second = (self.bytes_of(self.pack(kind, arch, into, TZ=zone, SOURCE_DATE_EPOCH=time)) for into, zone, time in
                                 [("one", "UTC", "1700000000"), ("other", "Asia/Tokyo", "1700000000")])
                self.assertEqual(first, second)
                later = self.bytes_of(self.pack(kind, arch, "later", SOURCE_DATE_EPOCH="1700000001"))
                self.assertNotEqual(first, later, "this would be noticed")

    def bytes_of(self, path):
        with open(path, "rb") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()
