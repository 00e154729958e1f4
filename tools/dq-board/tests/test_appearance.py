"""The demo, accessibility, and the pictures of the documents."""

import os
import pathlib
import re
import subprocess
import sys

import demo
import redis
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support import PATIENCE_S, BoardTest, cell, row, some, wait_until

# The rules of axe that a theme can break.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
PICTURES = os.environ.get("DQ_BOARD_PICTURES")
AGE_S = float(os.environ.get("DQ_BOARD_AGE") or 0)


class Living(BoardTest):
    def test_the_shop_has_something_in_every_page(self):
        root = pathlib.Path(__file__).parents[3]
        server = self.server()
        env = {**os.environ, "PYTHONPATH": str(root / "clients/python/src")}
        command = [sys.executable, str(root / "examples/living.py"), "--url", f"redis://127.0.0.1:{server.port}"]
        shop = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(shop.stdout.close)
        self.addCleanup(shop.kill)
        self.assertIn("The shop is open.", shop.stdout.readline())
        page = self.window()
        board = self.board(server)
        page.goto(board.url)
        for name in ["orders", "webhooks", "exports", "mails", "schedules"]:
            expect(row(page, name)).to_be_visible()
        expect(cell(page, "webhooks", "out")).not_to_have_text("0")
        expect(cell(page, "mails", "delayed")).to_have_text(re.compile(r"3,000|2,\d\d\d"))
        # What the workers do succeeds, but for the calls that are to fail.
        for name in ["webhooks", "exports", "schedules"]:
            wait_until(f"{name} are done", lambda it=name: dict(server.client.execute_command("DQ.STATS", it))[b"acked"] > 0)
        webhooks = dict(server.client.execute_command("DQ.STATS", "webhooks"))
        self.assertLess(webhooks[b"nacked"], 2 * webhooks[b"acked"] + 10)
        page.goto(board.url + "groups?queue=0:exports")
        expect(page.get_by_role("cell", name="acme", exact=True)).to_be_visible()
        page.goto(board.url + "recurring?queue=0:schedules")
        expect(page.locator("tbody tr")).to_have_count(3)
        shop.terminate()
        self.assertIn("The shop is closed.", shop.communicate(timeout=PATIENCE_S)[0])
        self.assertEqual(shop.returncode, 0)


class Appearance(BoardTest):
    PAGES = {
        "queues": ("", "[data-line]"),
        "deploy": ("queue?queue=0:webhooks&zoom=minute", ".forecast .lines[d^=M]"),
        "queue": ("queue?queue=0:order-timeouts&workers=3&ms=900", ".forecast .ahead[d^=M]"),
        "dead": ("jobs?queue=0:mails&state=dead", "tbody tr"),
        "reason": ("jobs?queue=0:mails&state=dead&kind=mailbox%20full", "tbody tr"),
        "delayed": ("jobs?queue=0:order-timeouts&state=delayed", "tbody tr"),
        "job": ("job?queue=0:mails&id=bounced-1", ".facts div"),
        "done": ("jobs?queue=0:reports&state=done", "tbody tr"),
        "blocked": ("jobs?queue=0:reports&state=blocked", "tbody tr"),
        "waits": ("job?queue=0:reports&id=november", "tbody tr"),
        "result": ("job?queue=0:reports&id=collect-eu", ".facts div"),
        "recurring": ("recurring?queue=0:schedules", "tbody tr"),
        "recurring of all": ("recurring", "tbody tr"),
        "flow": ("flow?queue=0:reports&id=november", ".layer li"),
        "search": ("search?state=dead", "tbody tr"),
        "workers": ("workers?queue=0:mails", "tbody tr"),
        "signals": ("signals?queue=0:orders", "tbody tr"),
        "groups": ("groups?queue=0:exports", "tbody tr"),
    }

    def test_accessible_in_light_and_dark_and_on_a_phone(self):
        """axe finds nothing. With DQ_BOARD_PICTURES the pictures of docs/board.md are made as well."""
        server = self.server()
        demo.fill(server.client)
        worker = demo.Worker(redis.Redis(port=server.port))
        worker.start()
        self.addCleanup(worker.stop)
        if PICTURES:
            self.workers = self.connected(server)
        board = self.board(server, "--allow-actions")
        # Pictures look better with a past.
        worker.over.wait(AGE_S)
        axe = Axe()
        for theme, width, forced in some([("light", 320, "none"), ("dark", 1280, "none"), ("light", 1280, "none"), ("dark", 720, "active")], 2):
            page = self.window(viewport={"width": width, "height": 860}, color_scheme=theme, forced_colors=forced)
            for name, (address, there) in self.PAGES.items():
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
                self.check(axe, page, f"{name}, {theme}, {width}", COLOURS if theme == "dark" else None)
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth > innerWidth"), False, f"{name} at {width}")
                if PICTURES and forced == "none" and name not in ("delayed", "reason", "blocked", "result", "recurring of all", "search", "workers") and (name == "queue" or (width, theme) == (1280, "light")):
                    self.picture(page, f"{name}{'' if theme == 'light' else '-dark'}{'' if width > 400 else '-phone'}")
            page.goto(board.url + "queue?queue=0:mails")
            page.locator(".actions").get_by_role("button", name="Purge").click()
            expect(page.get_by_role("dialog")).to_be_visible()
            broken = page.get_by_role("dialog").get_by_role("button").evaluate_all("all => all.filter((it) => it.clientHeight > 40).length")
            self.assertEqual(broken, 0, "the words of a button are on one line")
            self.check(axe, page, f"purge, {theme}, {width}", COLOURS if theme == "dark" else None)
            self.assertEqual(page.wrong, [])
        locked = self.board(server, DQ_BOARD_PASSWORD="x")
        page = self.window()
        page.goto(locked.url)
        expect(page.get_by_label("Password")).to_be_visible()
        self.check(axe, page, "sign in")

    def test_no_page_is_wider_than_its_window(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server, "--allow-actions")
        # 720: a window of 1440 at 200 %.
        for width, colours in some([(390, "none"), (720, "none"), (1440, "active")]):
            page = self.window(viewport={"width": width, "height": 860}, forced_colors=colours)
            for name, (address, there) in self.PAGES.items():
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, f"{name} at {width}")
            self.assertEqual(page.wrong, [])
        blank = self.window()
        blank.set_content("<div style='width: 3000px'>wide</div>")
        self.assertGreater(blank.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, "it would be noticed")

    def test_a_phone_is_told_all_that_a_list_has(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server, "--allow-actions")
        wide, phone = self.window(), self.window(viewport={"width": 390, "height": 860}, has_touch=True, is_mobile=True)
        told = """(it) => [...it.querySelectorAll("tbody tr")].map((row) => [...row.cells].filter((cell) => cell.checkVisibility() && !["", "–"].includes(cell.innerText.trim())).map((cell) => cell.dataset.title))"""
        cut = """(it) => [...it.querySelectorAll("td")].filter((cell) => cell.scrollWidth > cell.clientWidth || cell.scrollHeight > cell.clientHeight || cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.innerText)"""
        small = """(it) => [...it.querySelectorAll("th button, input")].filter((button) => button.checkVisibility() && button.getBoundingClientRect().height < 22).length"""
        lists = 0
        for name, (address, there) in self.PAGES.items():
            for page in [wide, phone]:
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
            for table in range(wide.locator("table.jobs:visible").count()):
                one, other = [page.locator("table.jobs:visible").nth(table) for page in [wide, phone]]
                self.assertEqual(other.evaluate(told)[:20], one.evaluate(told)[:20], name)
                self.assertEqual((other.evaluate(cut), other.evaluate(small)), ([], 0), name)
                heads = [it.get_by_role("columnheader").get_by_role("button").all_text_contents() for it in [one, other]]
                self.assertEqual(*heads, name)
                lists += 1
        self.assertGreater(lists, 10)
        # Whatever a page says is read as a table.
        phone.goto(board.url + "jobs?queue=0:mails&state=dead")
        line = phone.get_by_role("table", name="Jobs").get_by_role("row").nth(1)
        expect(line.get_by_role("cell").last).to_have_text(re.compile("mailbox full|no such user|refused"))
        self.assertEqual(wide.wrong + phone.wrong, [])

    def test_what_is_current_is_in_sight(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 9)
        for id, after in [("a", None), ("b", "a"), ("c", "b"), ("d", "c")]:
            client.execute_command("DQ.ADD", "q", id, "x", *(["AFTER", 1, after] if after else []))
        token = client.execute_command("DQ.POP", "q")[2]
        client.execute_command("DQ.STEP", "q", "a", token, "s" * 250, "done")
        board = self.board(server)
        phone = self.window(viewport={"width": 360, "height": 740})
        in_sight = "(it) => { const box = it.getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; }"
        phone.goto(board.url + "groups?queue=0:q")
        wait_until("the tab is in sight", lambda: phone.locator(".tabs [aria-current]").evaluate(in_sight))
        phone.goto(board.url + "job?queue=0:q&id=d")
        # The columns of the graph stand below each other.
        columns = phone.locator(".columns > li")
        expect(columns).to_have_text(["3 steps before a reserved", "2 steps before b blocked", "1 step before c blocked", "This job d blocked"])
        wait_until("each job is in sight", lambda: all(it.evaluate(in_sight) for it in phone.locator(".columns a").all()))
        expect(phone.locator(".columns [aria-current]")).to_have_text("d")
        expect(phone.locator(".flow")).to_be_hidden()
        phone.goto(board.url + "job?queue=0:q&id=a")
        expect(phone.locator(".steps li")).to_be_visible()
        self.assertFalse(phone.evaluate("document.documentElement.scrollWidth > innerWidth"))
        forced = self.window(forced_colors="active")
        forced.goto(board.url + "groups?queue=0:q")
        expect(forced.locator(".tabs [aria-current]")).to_be_visible()
        lines = forced.locator(".tabs a").evaluate_all("all => all.map((it) => [it.hasAttribute('aria-current'), getComputedStyle(it).borderBottomColor])")
        self.assertNotIn(dict(lines)[True], [colour for current, colour in lines if not current])
        self.assertEqual(phone.wrong + forced.wrong, [])

    def check(self, axe, page, what, rules=None):
        found = axe.run(page, options={"resultTypes": ["violations"], **(rules or {})})
        self.assertEqual(found.violations_count, 0, f"{what}: {found.generate_report()}")

    def connected(self, server):
        """Clients that wait for jobs."""
        clients = [redis.Connection(port=server.port) for _ in range(4)]
        for client in clients:
            self.addCleanup(client.disconnect)
            client.send_command("DQ.BPOP", "newsletter", 0)
        # A board that sees them earlier counts them as having come.
        wait_until("they wait", lambda: server.client.info("clients")["blocked_clients"] == len(clients))
        return server, clients

    def deploy(self, page):
        """The workers go, and others come."""
        expect(page.locator("path.past")).to_have_attribute("d", re.compile("(M[^M]+){20}"))
        server, clients = self.workers
        for client in clients:
            client.disconnect()
        expect(page.locator(".readout")).to_contain_text("4 workers of any queue went")
        self.connected(server)
        expect(page.locator(".readout")).to_contain_text("went, 4 came")
        # Until the mark has moved on.
        width = float(page.locator("svg.forecast").get_attribute("viewBox").split()[2])
        place = lambda: float(re.match("M([0-9.]+)", page.locator("path.shift").get_attribute("d"))[1])  # noqa: E731
        wait_until("it is not of this moment", lambda: place() < 0.4 * width)

    def picture(self, page, name):
        if name == "deploy":
            self.deploy(page)
        if name == "queues":
            expect(row(page, "webhooks").locator(".trend path")).to_have_attribute("d", re.compile("(M[^M]+){12}"))
        page.screenshot(path=os.path.join(PICTURES, f"{name}.png"))
