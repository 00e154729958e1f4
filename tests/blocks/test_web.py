"""The programs of examples/web run, as docs/web.md says.

A block of the page with ``>>`` is the end of that file; an indented line of a framework's section is a command. The
server's address and the port are those of the test. Each shop takes two orders: one is paid, the other is closed.
"""

import contextlib
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from servers import free_port, wait_until
from test_blocks import MISSING, NODE, OUT, PATIENCE_S, ROOT

WEB = ROOT / "tests/blocks/web"
PYTHON = OUT / "web/python/bin"
IN_ORDER = {0, -signal.SIGTERM}
"""How a program ends that is told to stop: some frameworks die of the signal when all is done."""


@pytest.fixture(scope="module", autouse=True)
def packages():
    subprocess.run([WEB / "prepare.sh"], check=True)


PROGRAMS = ROOT / "examples/web"
PAGE = ROOT / "docs/web.md"


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL).group(1)


def copy(framework, folder, replaced):
    """The files of a program, and what the page adds to others."""
    source = PROGRAMS / framework.lower()
    texts = {path.relative_to(source): path.read_text() for path in source.rglob("*") if path.is_file()}
    for name, block in re.findall(r"^```\w+ >> (\S+)\n(.*?)^```$", section(framework), re.MULTILINE | re.DOTALL):
        texts[Path(name)] = (folder / name).read_text() + block
    for name, text in texts.items():
        for before, after in replaced.items():
            text = text.replace(before, after)
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def commands(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line.partition(" #")[0].strip() for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE)]


def run(command, folder):
    """To its end."""
    path = f"{PYTHON}:{os.environ['PATH']}"
    ran = subprocess.run(
        command, cwd=folder, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"


class Program:
    """A process that is stopped at the end, and what it says."""

    def __init__(self, command, folder):
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        path = f"{PYTHON}:{os.environ['PATH']}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command.split(),
                cwd=folder,
                env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self):
        return self.log.read_text()

    def lives(self):
        assert self.process.poll() is None, self.said()
        return True

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) in IN_ORDER, self.said()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Shop:
    """What all these programs are, from outside."""

    def __init__(self, port, programs):
        self.port = port
        self.programs = programs

    def post(self, path):
        """The status of the answer; None while nothing answers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return all(program.lives() for program in self.programs) and None

    def said(self):
        assert all(program.lives() for program in self.programs)
        return "".join(program.said() for program in self.programs)


# --- How each is made: a folder with the files, and the commands that run until they are stopped


def django(folder, replaced):
    run("django-admin startproject mysite . && python manage.py startapp shop", folder)
    copy("Django", folder, replaced)
    first, *rest = commands(section("Django"))
    run(first, folder)
    return rest


def copied(framework):
    def make(folder, replaced):
        copy(framework, folder, replaced)
        return commands(section(framework))

    return make


def express(folder, replaced):
    (folder / "node_modules").symlink_to(OUT / "web/node/node_modules")
    made = copied("Express")(folder, replaced)
    strict = "--ignoreConfig --noEmit --strict --allowJs --checkJs --skipLibCheck --target es2023 --module node20"
    run(f"node_modules/.bin/tsc {strict} --types node server.mjs", folder)
    return made


def nest(folder, replaced):
    """As its command line builds a project, which is not installed for this."""
    (folder / "node_modules").symlink_to(OUT / "web/node/node_modules")
    assert copied("NestJS")(folder, replaced) == ["npm run start"]
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text((WEB / "tsconfig.json").read_text())
    run("node_modules/.bin/tsc", folder)
    return ["node dist/main.js"]


def axum(folder, replaced):
    copy("Axum", folder, {**replaced, "../../../clients": f"{ROOT}/clients"})
    run(f"{os.environ.get('CARGO', 'cargo')} build -q --locked --target-dir '{OUT}/rust'", folder)
    return [f"{OUT}/rust/debug/shop"]


FRAMEWORKS = {
    "Django": ("8000", django, None),
    "FastAPI": ("8000", copied("FastAPI"), None),
    "Flask": ("8000", copied("Flask"), None),
    "Express": ("3000", express, "javascript"),
    "NestJS": ("3000", nest, "javascript"),
    "Axum": ("3000", axum, "rust"),
}


@contextlib.contextmanager
def shop_of(framework, server, folder):
    port, make, language = FRAMEWORKS[framework]
    if language in MISSING or (language == "javascript" and not NODE):
        pytest.skip(f"{language} is not installed here")
    own = str(free_port())
    programs = []
    try:
        for command in make(folder, {"redis://localhost": server.url, port: own}):
            programs.append(Program(command.replace(port, own), folder))
        yield Shop(own, programs)
    finally:
        for program in programs:
            program.kill()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_shop_closes_what_is_not_paid(framework, server, tmp_path):
    redis = server.client(decode_responses=True)
    with shop_of(framework, server, tmp_path) as shop:
        assert wait_until(lambda: shop.post("/orders/17"), "the shop opens", PATIENCE_S) == 201
        assert shop.post("/orders/17") == 409, "the same once more"
        assert shop.post("/orders/18") == 201
        assert redis.execute_command("DQ.LEN", "orders", "DELAYED") == 2
        assert shop.post("/orders/18/paid") == 200
        assert redis.execute_command("DQ.SCAN", "orders", 0)[1] == ["close:17"]
        assert redis.execute_command("DQ.RESCHEDULE", "orders", "DELAY", 0, "close:17") == 1
        wait_until(lambda: "closed order 17" in shop.said(), "the order is closed", PATIENCE_S)
        wait_until(lambda: redis.execute_command("DQ.LEN", "orders") == 0, "the job is acknowledged")
        assert shop.post("/orders/17/paid") == 409, "too late"
        assert "closed order 18" not in shop.said()
        for program in shop.programs:
            program.stop()


def test_a_wrong_program_is_noticed(server, tmp_path):
    """Its server does not open, which is said at once."""
    (tmp_path / "main.py").write_text("import nothing_that_exists\n")
    program = Program("uvicorn main:app --port 1", tmp_path)
    with pytest.raises(AssertionError, match="nothing_that_exists"):
        wait_until(lambda: program.lives() and Shop(1, [program]).post("/orders/17"), "it opens", PATIENCE_S)
    program.kill()
