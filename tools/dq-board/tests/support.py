"""A server with dq, a board beside it, and a browser, for the board's tests.

DQ_SERVER, DQ_MODULE: as in the module's own tests. DQ_PROGRAM: dq. DQ_BROWSER: Chromium.
"""

import asyncio
import atexit
import json
import os
import ssl
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../testing"))
from relay import Relay  # noqa: E402
from servers import PATIENCE_S, Server, free_port, wait_until  # noqa: E402, F401

expect.set_options(timeout=PATIENCE_S * 1000)

HOSTILE = [
    b"<img src=x onerror=\"document.title='pwned'\">",
    b"</script><script>document.title='pwned'</script>",
    b"a\x00b\x1b[31m\xff\xfe",
    "\u202eright to left".encode(),
    b"../../etc?x=1&y=2#z%00 %",
    b"x" * 1024,
]
HOUR = 3_600_000
IS_GATE = bool(os.environ.get("DQ_BOARD_GATE"))


def some(widths, least=1):
    """What each page is looked at in: all of it, or in the gate the first, as that takes a third of all tests' time."""
    return widths[:least] if IS_GATE else widths


def key(name, db=0):
    return f"{db}:{urllib.parse.quote(name, safe='')}"


def ask(url, method="GET", body=None, **headers):
    """Status, headers and text of a request by a program other than a browser."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def calls(server, command):
    return server.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def micros(client):
    """The time by the server's clock."""
    seconds, micros = client.time()
    return seconds * 1_000_000 + micros


def row(page, name):
    return page.locator("[data-line]").filter(has=page.get_by_role("link", name=name, exact=True))


def cell(page, name, column):
    return row(page, name).locator(f".c-{column}")


def post(url, what, **headers):
    """A POST as a page of the board sends it."""
    return ask(url, "POST", json.dumps(what).encode(), x_dq="1", **headers)


def die(client, name, count, why=lambda number: ""):
    """Dead jobs job:0 to job:<count - 1>."""
    pipe = client.pipeline(transaction=False)
    for number in range(count):
        pipe.execute_command("DQ.ADD", name, f"job:{number}", f"payload {number}", "GROUP", f"g{number % 3}")
    pipe.execute_command("DQ.POP", name, "COUNT", count)
    for number in range(count):
        pipe.execute_command("DQ.NACK", name, f"job:{number}", "FATAL", "REASON", why(number))
    pipe.execute()


class Board:
    def __init__(self, *options, **environment):
        words = [os.environ["DQ_PROGRAM"], "board", "--listen", "127.0.0.1:0", *options]
        env = {name: value for name, value in os.environ.items() if not name.startswith("DQ_BOARD_")}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, env={**env, **environment}, text=True)
        self.url = self.process.stdout.readline().split()[2]

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Encrypted(Relay):
    """A TLS proxy in front of a server: it does not matter whether the server supports TLS itself."""

    def __init__(self, certificate, port):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        self.to = port
        super().__init__(ssl=context)

    async def join(self, *connection):
        await self.carry_on(connection, await asyncio.open_connection("127.0.0.1", self.to))


class Browser:
    """A browser for all tests, started by the first that opens a window."""

    browser = None

    @classmethod
    def there(cls):
        if cls.browser is None:
            playwright = sync_playwright().start()
            cls.browser = playwright.chromium.launch(executable_path=os.environ["DQ_BROWSER"], args=["--no-sandbox", "--disable-dev-shm-usage"])
            atexit.register(playwright.stop)
            atexit.register(cls.browser.close)
        return cls.browser


class BoardTest(unittest.TestCase):
    """A new window for each test."""

    def server(self, *options, **about):
        server = Server(*options, **about)
        self.addCleanup(server.close)
        return server

    def board(self, server, *options, **environment):
        board = Board(*(["-p", str(server.port)] if server else []), *options, **environment)
        self.addCleanup(board.close)
        return board

    def window(self, **about):
        """A page, and a list of what went wrong in it: errors of scripts, and what the policy forbade."""
        about = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce", "timezone_id": "UTC", **about}
        context = Browser.there().new_context(**about)
        context.set_default_timeout(PATIENCE_S * 1000)
        self.addCleanup(context.close)
        page = context.new_page()
        page.wrong = []
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("console", lambda said: self.note(page, said))
        return page

    @staticmethod
    def note(page, said):
        if said.type == "error" and "Failed to load resource" not in said.text:
            page.wrong.append(said.text)
