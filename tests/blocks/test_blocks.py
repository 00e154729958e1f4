"""Every program in the README and those of the libraries runs, as it stands there, indentation included.

A program is a block of Python, JavaScript, Go, Java or Rust that stands alone (STANDS_ALONE); those of the libraries'
READMEs that do not are compiled by their own tests. ``redis://localhost`` becomes a server of the test's own, and half
an hour no time at all. One whose worker closes order 17 has to close it, and to end with its worker.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ["go", "java", "node", "python", "rust"]
PAGES = [ROOT / "README.md", *(ROOT / "clients" / name / "README.md" for name in LANGUAGES)]
PAGES += [ROOT / "docs" / name for name in ("results.md", "flows.md", "steps.md", "groups.md")]
SETUP = ROOT / "tools/install/setup.sh"
SPRING = ROOT / "tests/blocks/spring"
OUT = Path(os.environ["DQ_SUITE_OUT"])
NODE = os.environ.get("DQ_NODE")
PATIENCE_S = 300
SOON = {
    "timedelta(minutes=30)": "0",
    "30 * 60_000": "0",
    "30 * time.Minute": "0",
    "Duration.ofMinutes(30)": "Duration.ZERO",
    "Duration::from_secs(1800)": "Duration::ZERO",
}

PYTHON = """
import ast, asyncio, os, signal, sys, types

closed = []

def say(*words):
    if words[0] == "closed order":
        closed.append(words[1])
        os.kill(os.getpid(), signal.SIGTERM)

source = open(sys.argv[1]).read()
code = compile(source, "the block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
scope = {"print": say, "__name__": "__main__"}
waiting = types.FunctionType(code, scope)()
if waiting is not None:  # it awaits outside functions
    asyncio.run(waiting)
assert closed == ([17] if "closed order" in source else []), closed
"""

JAVASCRIPT = """
const closed = [];
console.log = (said, order) => {
  if (said !== 'closed order') return;
  closed.push(order);
  process.kill(process.pid, 'SIGTERM');
};
%s
if (closed.join() !== '%s') throw new Error(`closed: ${closed}`);
"""

CLOSED = "closed order 17\n"
"""What a worker of Go, Java or Rust prints; then it is told to stop."""


def is_there(need):
    if os.environ.get("CI") == "true":
        subprocess.run([SETUP, need], check=True)
        return True
    return subprocess.run([SETUP, "--check", need]).returncode == 0


# --- How each language runs its programs: what ends well returns a CompletedProcess of code 0


def run_python(block, folder):
    (folder / "block.py").write_text(block)
    (folder / "run.py").write_text(PYTHON)
    return call([sys.executable, folder / "run.py", folder / "block.py"])


def run_javascript(block, folder):
    program = Path(NODE) / f"block-{os.getpid()}.mjs"  # where the packages are
    program.write_text(JAVASCRIPT % (block, "17" if "closed order" in block else ""))
    try:
        return call(["node", program])
    finally:
        program.unlink()


def run_go(block, folder):
    library = ROOT / "clients/go"
    (folder / "main.go").write_text(block)
    module = re.search(r"^module (\S+)$", (library / "go.mod").read_text(), re.MULTILINE).group(1)
    needs = (library / "go.mod").read_text().partition("\n")[2]
    (folder / "go.mod").write_text(f"module block\n{needs}\nrequire {module} v0.0.0\n\nreplace {module} => {library}\n")
    (folder / "go.sum").write_text((library / "go.sum").read_text())
    built = call(["go", "build", "-o", "block", "."], cwd=folder)
    return built if built.returncode else watch([folder / "block"], block, 0)


PROBE = (ROOT / "clients/rust/probe/Cargo.toml").read_text()
RUST = f"""[package]
name = "block"
edition = "2021"

[dependencies]
dq-redis = {{ path = "{ROOT / "clients/rust"}" }}
serde = {{ version = "1", features = ["derive"] }}
tokio = {{ version = "1", features = ["full"] }}

{PROBE[PROBE.index("# As Axum") :]}
[profile.dev]
debug = "line-tables-only"

[workspace]
"""


def run_rust(block, folder):
    """With what tools/testing/suite.sh built: features and profile are those of the library's probe."""
    (folder / "src").mkdir()
    (folder / "src/main.rs").write_text(block)
    (folder / "Cargo.toml").write_text(RUST)
    (folder / "Cargo.lock").write_text((ROOT / "clients/rust/Cargo.lock").read_text())
    built = call(["cargo", "build", "-q", "--target-dir", OUT / "rust"], cwd=folder)
    if built.returncode:
        return built
    program = folder / "program"  # the next one is built in its place
    shutil.copy(OUT / "rust/debug/block", program)
    return watch([program], block, 0)


def run_java(block, folder):
    """With what tools/testing/suite.sh built, or with Spring."""
    name = re.search(r"^public class (\w+)", block, re.MULTILINE)
    program = folder / f"{name.group(1) if name else 'Wrong'}.java"
    program.write_text(block)
    libraries = spring(folder) if "org.springframework" in block else f"{OUT}/java/classes:{OUT}/java/libraries/*"
    # Its compiler's run is too short for the slower one of the JVM.
    return watch(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", libraries, program], block, 128 + signal.SIGTERM)


def spring(folder):
    path = f"-Dmdep.outputFile={folder}/path"
    got = call(["mvn", "-q", "-B", "-f", SPRING / "pom.xml", "dependency:build-classpath", path])
    assert got.returncode == 0, got.stdout
    return (folder / "path").read_text()


def call(command, **rest):
    return subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True, **rest)


def watch(command, block, stopped):
    """Stops a worker when it has closed the order. ``stopped``: the exit code of one that ends in good order."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        late = threading.Timer(PATIENCE_S, process.kill)
        late.start()
        said = []
        for line in process.stdout:
            said.append(line)
            if line == CLOSED:
                process.send_signal(signal.SIGTERM)
        errors = process.stderr.read()
        code = process.wait()
        late.cancel()
    is_worker = "closed order" in block
    is_right = code == (stopped if is_worker else 0) and said.count(CLOSED) == is_worker
    return subprocess.CompletedProcess(command, 0 if is_right else code or 1, "".join(said), errors)


RUN = {"python": run_python, "javascript": run_javascript, "go": run_go, "java": run_java, "rust": run_rust}
STANDS_ALONE = {
    "python": r"^import dq$",
    "javascript": r"^console\.log|^await new Worker",
    "go": r"^package main$",
    "java": r"^    public static void main",
    "rust": r"^async fn main\(\)",
}
MISSING = {
    language
    for language, is_missing in [
        ("javascript", not NODE),
        ("go", not is_there("go")),
        ("java", not is_there("java")),
        ("rust", not is_there("rust")),
    ]
    if is_missing
}


def programs(text):
    """The language and the lines of each."""
    every = re.findall(r"^```(python|javascript|go|java|rust)(?:,\w+)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, block) for language, block in every if re.search(STANDS_ALONE[language], block, re.MULTILINE)]


def names():
    return [(title(page), n, *block) for page in PAGES for n, block in enumerate(programs(page.read_text()))]


def title(page):
    return page.parent.name if "clients" in page.parts else page.stem


def run(language, block, url, folder):
    if language in MISSING:
        pytest.skip(f"{language} is not installed here")
    block = block.replace("redis://localhost", url)
    for later, now in SOON.items():
        block = block.replace(later, now)
    return RUN[language](block, folder)


@pytest.mark.parametrize("page, n, language, block", names(), ids=lambda it: str(it)[:12])
def test_the_program_runs(page, n, language, block, server, tmp_path):
    if language == "go" and "closed order" in block and ".Add(" not in block:  # others have added it
        server.client().execute_command("DQ.ADD", "orders", "close:17", '{"Number":17}')
    ran = run(language, block, server.url, tmp_path)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}\n{block}"


@pytest.mark.parametrize("program", [SPRING / "Template.java", ROOT / "examples/java/spring/SpringMails.java"])
def test_what_spring_can_and_cannot(program, server, tmp_path):
    ran = run("java", program.read_text(), server.url, tmp_path)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


def test_all_pages_have_programs():
    found = [page for page, *_ in names()]
    assert set(found) == {"README", *LANGUAGES, "results", "flows", "steps", "groups"}
    assert all(found.count(language) >= 3 for language in LANGUAGES), found


NOT_CLOSED = {
    "go": 'package main\n\nfunc main() { println("closed order") }\n',
    "java": 'public class Not {\n    public static void main(String[] a) { System.err.println("closed order"); }\n}\n',
    "rust": 'fn main() { eprintln!("closed order"); }\n',
}


@pytest.mark.parametrize(
    "language, wrong",
    [(language, wrong) for language in RUN for wrong in ("nothing_that_exists(1)\n", "  x = 1\n y = 2\n  [\n")]
    + list(NOT_CLOSED.items()),
)
def test_a_wrong_program_is_noticed(language, wrong, server, tmp_path):
    assert run(language, wrong, server.url, tmp_path).returncode != 0
