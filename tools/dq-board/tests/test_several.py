"""Several servers in one board."""

import json
import os
import pathlib
import signal
import tempfile

import demo
import test_keyboard
import test_appearance
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support import BoardTest, ask, cell, free_port, post, wait_until


class Several(BoardTest):
    def several(self, *options, more="", **environment):
        servers = {"eu": self.server(), "us": self.server()}
        for name, server in servers.items():
            server.client.execute_command("DQ.ADD", "orders", f"job-{name}", "x")
        servers["us"].client.execute_command("DQ.ADD", "only-us", "job", "x")
        config = pathlib.Path(self.folder(), "board.toml")
        lines = [f'[[board.server]]\nname = "{name}"\noptions = ["-p", "{server.port}"]\n' for name, server in servers.items()]
        config.write_text("".join(lines) + more)
        board = self.board(None, "--config", str(config), *options, **environment)
        board.config = config
        return servers, board

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def line(self, page, name):
        return page.locator("tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))

    def test_a_replica_is_called_one(self):
        servers, board = self.several()
        servers["us"].client.execute_command("REPLICAOF", "127.0.0.1", servers["eu"].port)
        page = self.window()
        page.goto(board.url)
        expect(self.line(page, "us").locator(".s7")).to_have_text("replica")
        self.assertEqual([self.line(page, name).locator(".s6").inner_text() for name in servers], ["0", "–"])
        self.assertEqual(page.wrong, [])

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

    def test_the_page_of_all_in_any_light_and_by_the_keyboard(self):
        servers, board = self.several(more=f'[[board.server]]\nname = "asia"\noptions = ["-p", "{free_port()}"]\n', DQ_BOARD_PASSWORD="x")
        demo.fill(servers["eu"].client)
        appearance, keyboard = test_appearance.Appearance(), test_keyboard.Keyboard()
        for theme, width in [("dark", 1280), ("light", 320), ("light", 1280)]:
            page = self.window(viewport={"width": width, "height": 400}, color_scheme=theme)
            page.goto(board.url)
            page.get_by_label("Password").fill("x")
            page.keyboard.press("Enter")
            expect(self.line(page, "asia").locator(".s7")).to_have_text("cannot be reached")
            expect(self.line(page, "eu").locator(".s5")).to_have_text("4")
            appearance.check(Axe(), page, f"servers, {theme}, {width}")
            self.assertEqual(page.evaluate("document.documentElement.scrollWidth > innerWidth"), False)
        if test_appearance.PICTURES:
            appearance.picture(page, "servers")
        count, reached = keyboard.reach(page)
        self.assertEqual((count, reached), (14, 14), "the name, three servers, the light, the way out, eight titles")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Password")).to_be_visible()
        self.assertEqual(page.wrong, [])

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
        for address, status in [("eu/api/scale?queue=0:orders&per=100", 200), ("asia/", 404), ("asia/api/live", 404), ("eu/metrics", 404), ("metrics", 404), ("api/look/queue?queue=0:orders", 404)]:
            self.assertEqual(ask(board.url + address)[0], status, address)
        page = self.window()
        page.goto(board.url + "us/")
        expect(cell(page, "only-us", "ready")).to_have_text("1")

    def read_again(self, board, text):
        board.config.write_text(text)
        board.process.send_signal(signal.SIGHUP)
        return board.process.stdout.readline()

    def test_servers_come_and_go_on_sighup(self):
        servers, board = self.several("--allow-actions", "--store", self.folder() + "/history")
        asia, other = self.server(), self.server()
        asia.client.execute_command("DQ.ADD", "far", "job", "x")
        other.client.execute_command("DQ.ADD", "elsewhere", "job", "x")
        list_page, us = self.window(), self.window()
        list_page.goto(board.url)
        us.goto(board.url + "us/")
        expect(cell(us, "only-us", "ready")).to_have_text("1")
        before = board.config.read_text()
        line = '[[board.server]]\nname = "{}"\noptions = ["-p", "{}"{}]\n'
        # One server is new, one has another address, one shows fewer queues.
        now = line.format("asia", asia.port, "") + line.format("eu", other.port, "") + line.format("us", servers["us"].port, ', "--queue", "orders"')
        self.assertEqual(self.read_again(board, now), "dq board: read again\n")
        for name in ["asia", "eu", "us"]:
            expect(self.line(list_page, name).locator(".s2")).to_have_text("1")
        self.assertEqual(post(board.url + "asia/api/act", {"queue": "0:far", "act": "pause"})[0], 200)
        page = self.window()
        page.goto(board.url + "eu/")
        expect(cell(page, "elsewhere", "ready")).to_have_text("1")
        self.assertEqual(ask(board.url + "us/api/look/queue?queue=0:only-us")[0], 403)
        # An open tab shows the new queues.
        expect(us.locator("[data-line]")).to_have_count(1)
        expect(cell(us, "orders", "ready")).to_have_text("1")
        # A configuration with an error changes nothing.
        board.config.write_text(line.format("eu", 1, ', "--nonsense"'))
        board.process.send_signal(signal.SIGHUP)
        board.config.write_text(now)
        self.assertEqual(ask(board.url + "asia/api/look/queue?queue=0:far")[0], 200)
        self.assertEqual(self.read_again(board, before), "dq board: read again\n")
        expect(self.line(list_page, "asia")).to_have_count(0)
        for address in ["asia/", "asia/api/live", "asia/api/scale?queue=far&per=1"]:
            self.assertEqual(ask(board.url + address)[0], 404, address)
        wait_until("nobody reads it", lambda: all(it["cmd"] == "client|list" for it in asia.client.client_list()))
        expect(cell(us, "only-us", "ready")).to_have_text("1")
        # The removed server's file is free again.
        self.assertEqual(self.read_again(board, now), "dq board: read again\n")
        expect(self.line(list_page, "asia").locator(".s2")).to_have_text("1")
        # During a change a stream may lose its server, which the browser logs; the page asks again.
        wrong = [line for page in [list_page, us, page] for line in page.wrong if not line.startswith("EventSource's response")]
        self.assertEqual(wrong, [])

    def test_the_past_of_each_is_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            servers, board = self.several("--store", f"{folder}/history")
            self.assertEqual(sorted(os.listdir(folder)), ["history.eu", "history.us"])
            wait_until("it reads", lambda: json.loads(ask(board.url + "api/servers")[2])["servers"][1]["head"]["queues"] == 2)
            board.close()
