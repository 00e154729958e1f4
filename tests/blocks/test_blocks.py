"""Every program in the README and on the pages of the languages runs, as it stands there, indentation included.

A program is a block of Python or JavaScript that names no file (those that do show lines of it: tests/clients/page.rs).
``redis://localhost`` becomes a server of the test's own, and half an hour no time at all. One whose worker closes order 17
has to close it, and to end with its worker.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "suite"))

from servers import Server  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "clients").glob("*.md"))]
NODE = os.environ.get("DQ_NODE")
PATIENCE_S = 120

PYTHON = '''
import ast, os, signal, sys

closed = []

def close_order(order):
    closed.append(order)
    os.kill(os.getpid(), signal.SIGTERM)

source = open(sys.argv[1]).read()
code = compile(source, "the block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
scope = {"close_order": close_order, "__name__": "__main__"}
if "await " in source:
    import asyncio, types
    asyncio.run(types.FunctionType(code, scope)())
else:
    exec(code, scope)
assert closed == ([17] if "close_order(" in source else []), closed
'''

JAVASCRIPT = """
const closed = [];
const closeOrder = async (order) => {
  closed.push(order);
  process.kill(process.pid, 'SIGTERM');
};
%s
if (closed.join() !== '%s') throw new Error(`closed: ${closed}`);
"""


def programs(text):
    """The language and the lines of each."""
    return re.findall(r"^```(python|javascript)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def names():
    return [(page, n, *block) for page in PAGES for n, block in enumerate(programs(page.read_text()))]


def run(language, block, url, folder):
    block = block.replace("redis://localhost", url).replace("timedelta(minutes=30)", "0").replace("30 * 60_000", "0")
    if language == "python":
        (folder / "block.py").write_text(block)
        (folder / "run.py").write_text(PYTHON)
        command = [sys.executable, folder / "run.py", folder / "block.py"]
    else:
        program = Path(NODE) / f"block-{os.getpid()}.mjs"  # where the packages are
        program.write_text(JAVASCRIPT % (block, "17" if "closeOrder(" in block else ""))
        command = ["node", program]
    try:
        return subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True)
    finally:
        if language == "javascript":
            program.unlink()


@pytest.fixture
def server():
    made = Server().start()
    yield made
    made.close()


@pytest.mark.parametrize("page, n, language, block", names(), ids=lambda it: getattr(it, "stem", None) or str(it)[:12])
def test_the_program_runs(page, n, language, block, server, tmp_path):
    if language == "javascript" and not NODE:
        assert not os.environ.get("CI")
        pytest.skip("node is not installed here")
    ran = run(language, block, server.url, tmp_path)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}\n{block}"


def test_all_pages_have_programs():
    assert {page.stem for page, *_ in names()} >= {"README", "python", "node"}


@pytest.mark.parametrize("language", ["python", "javascript"] if NODE else ["python"])
@pytest.mark.parametrize("wrong", ["nothing_that_exists(1)\n", "  x = 1\n y = 2\n  [\n"])
def test_a_wrong_program_is_noticed(language, wrong, server, tmp_path):
    assert run(language, wrong, server.url, tmp_path).returncode != 0
