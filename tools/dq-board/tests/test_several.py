"""Several servers in one board."""

import json
import os
import tempfile

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support import BoardTest, ask, cell, post, wait_until


class Several(BoardTest):
    def several(self, *options, more="", **environment):
        servers = {"eu": self.server(), "us": self.server()}
        for name, server in servers.items():
            server.client.execute_command("DQ.ADD", "orders", f"job-{name}", "x")
        servers["us"].client.execute_command("DQ.ADD", "only-us", "job", "x")
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(file.close)
        for name, server in servers.items():
            file.write(f'[[server]]\nname = "{name}"\noptions = ["-p", "{server.port}"]\n')
        file.write(more)
        file.flush()
        return servers, self.board(None, "--config", file.name, *options, **environment)

    def line(self, page, name):
        return page.locator("tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))

    def test_each_has_its_board_and_all_a_line(self):
        servers, board = self.several("--allow-actions")
        for width in [1280, 320]:
            page = self.window(viewport={"width": width, "height": 860})
            page.goto(board.url)
            expect(self.line(page, "eu").locator(".s2")).to_have_text("1")
            expect(self.line(page, "us").locator(".s2")).to_have_text("2")
            self.assertEqual(Axe().run(page).violations_count, 0)
            self.assertEqual(page.evaluate("document.documentElement.scrollWidth > innerWidth"), False)
            page.get_by_role("link", name="us", exact=True).click()
            expect(cell(page, "only-us", "ready")).to_have_text("1")
            self.assertTrue(page.url.endswith("/us/"))
            self.assertEqual(page.evaluate("document.documentElement.scrollWidth > innerWidth"), False)
            page.get_by_role("link", name="us", exact=True).click()
            page.get_by_role("link", name="eu", exact=True).click()
            expect(page.locator("[data-line]")).to_have_count(1)
            self.assertEqual(page.wrong, [])
        page.goto(board.url + "us/job?queue=0:orders&id=job-us")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator("#said")).to_have_text("Cancelled.")
        self.assertEqual([server.client.execute_command("DQ.LEN", "orders") for server in servers.values()], [1, 0])
        servers["us"].stop()
        page.goto(board.url)
        expect(self.line(page, "us").locator(".s7")).to_have_text("cannot be reached")
        expect(self.line(page, "eu").locator(".s7")).to_have_text("")

    def test_one_password_for_all_and_what_is_written_down(self):
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        servers, board = self.several("--allow-actions", "--audit-log", log.name, DQ_BOARD_PASSWORD="open sesame")
        for address in ["", "eu/", "us/queue?queue=0:orders", "api/servers", "eu/api/live", "us/api/look/queue?queue=0:orders"]:
            self.assertEqual(ask(board.url + address)[0], 401, address)
        self.assertEqual(post(board.url + "eu/api/act", {"queue": "0:orders", "act": "pause"})[0], 401)
        page = self.window()
        page.goto(board.url)
        page.get_by_label("Password").fill("open sesame")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="eu", exact=True).click()
        expect(cell(page, "orders", "ready")).to_have_text("1")
        page.goto(board.url + "us/queue?queue=0:orders")
        page.locator(".actions").get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause", exact=True).click()
        expect(page.locator("#said")).to_have_text("Paused until resumed.")
        with open(log.name, encoding="utf-8") as lines:
            actions = [json.loads(line) for line in lines]
        self.assertEqual([(it["event"], it.get("server")) for it in actions][-1], ("action", "us"))
        self.assertEqual(page.wrong, [])

    def test_under_a_prefix_and_what_is_none(self):
        _, board = self.several("--prefix", "/ops")
        self.assertEqual(json.loads(ask(board.url + "api/servers")[2])["servers"][0]["name"], "eu")
        for address, status in [("eu/api/scale?queue=0:orders&per=100", 200), ("asia/", 404), ("asia/api/live", 404), ("api/look/queue?queue=0:orders", 404)]:
            self.assertEqual(ask(board.url + address)[0], status, address)
        page = self.window()
        page.goto(board.url + "us/")
        expect(cell(page, "only-us", "ready")).to_have_text("1")

    def test_the_past_of_each_is_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            servers, board = self.several("--store", f"{folder}/history")
            self.assertEqual(sorted(os.listdir(folder)), ["history.eu", "history.us"])
            wait_until("it reads", lambda: json.loads(ask(board.url + "api/servers")[2])["servers"][1]["head"]["queues"] == 2)
            board.close()
