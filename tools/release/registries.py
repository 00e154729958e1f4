"""Packs the program that carries a server for pip and npm. The same file gives the same bytes. Prints the names.

    registries.py program version x86_64 output-folder
"""

import base64, gzip, hashlib, io, json, os, stat, sys, tarfile, zipfile

HOMEPAGE = "See README.md of the project: `dq dev` starts a server with dq, the delay queue, and the board beside it.\n"
SUMMARY = "A server with dq, the delay queue of Redis and Valkey, in one program"
WHERE = '''"""The program `dq`, with a server and the module in it."""

import os
import sysconfig


def program() -> str:
    """Its path."""
    return os.path.join(sysconfig.get_path("scripts"), "dq")
'''
CPUS = {"x86_64": "x64", "aarch64": "arm64"}
# The oldest that zip files can say.
DATE = (1980, 1, 1, 0, 0, 0)


def zipped(path, files, executable):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # pip makes executable what says that it is a file, too.
            entry.external_attr = (stat.S_IFREG | (0o755 if name == executable else 0o644)) << 16
            archive.writestr(entry, content)


def wheel(program, version, arch, output):
    named = f"dq_server-{version}"
    tags = [f"py3-none-{libc}_{arch}" for libc in ("manylinux_2_17", "musllinux_1_1")]
    about = "".join(f"{line}\n" for line in (
        "Metadata-Version: 2.1", "Name: dq-server", f"Version: {version}", f"Summary: {SUMMARY}", "License: BSD-3-Clause",
        "Requires-Python: >=3.8", "", HOMEPAGE))
    how = "Wheel-Version: 1.0\nGenerator: dq\nRoot-Is-Purelib: false\n" + "".join(f"Tag: {tag}\n" for tag in tags)
    files = {"dq_server/__init__.py": WHERE.encode(), "dq_server/py.typed": b"", f"{named}.data/scripts/dq": program,
             f"{named}.dist-info/METADATA": about.encode(), f"{named}.dist-info/WHEEL": how.encode()}
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{named}.dist-info/RECORD"] = f"{record}{named}.dist-info/RECORD,,\n".encode()
    path = f"{output}/{named}-py3-none-{'.'.join(tag.split('-', 2)[2] for tag in tags)}.whl"
    zipped(path, files, f"{named}.data/scripts/dq")
    return path


def tarball(program, version, arch, output):
    about = {"name": "dq-server", "version": version, "description": SUMMARY, "license": "BSD-3-Clause",
             "os": ["linux"], "cpu": [CPUS[arch]], "bin": {"dq": "bin/dq"}}
    files = {"package.json": json.dumps(about, indent=2).encode(), "README.md": HOMEPAGE.encode(), "bin/dq": program}
    path = f"{output}/dq-server-{version}-{CPUS[arch]}.tgz"
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed, tarfile.open(None, "w", packed) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(content), 0o755 if name == "bin/dq" else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return path


def main():
    path, version, arch, output = sys.argv[1:]
    with open(path, "rb") as file:
        program = file.read()
    for made in wheel(program, version, arch, output), tarball(program, version, arch, output):
        print(os.path.basename(made))


if __name__ == "__main__":
    main()
