"""What readelf says of a module or a program, of whatever machine."""

import os, re, subprocess


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def machine(path):
    return {"AArch64": "aarch64", "Advanced Micro Devices X86-64": "x86_64"}[
        re.search(r"Machine: +(.*)", readelf(path, "-h")).group(1)]


def needed(path):
    """The libraries that it wants of the system."""
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")))


def newest_glibc(path):
    versions = re.findall(r"GLIBC_([0-9.]+)", readelf(path, "-V"))
    return max((tuple(map(int, version.split("."))) for version in versions), default=None)


def is_static(path):
    return not needed(path) and "INTERP" not in readelf(path, "-l")


def sections(path):
    return set(re.findall(r"\] (\.\S+)", readelf(path, "-S")))


def functions(path, crate):
    """The symbols of its functions, without what the compiler has put behind them."""
    return set(re.findall(rf" FUNC .* (_ZN{len(crate)}{crate}\S*17h[0-9a-f]{{16}}E)", readelf(path, "-s")))
