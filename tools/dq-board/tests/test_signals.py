"""Jobs that wait for signals, and sending them."""

import json
import urllib.parse

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, post


class Signals(BoardTest):
    def waiting(self, client, id, name, *terms):
        client.execute_command("DQ.ADD", "q", id, "x")
        token = client.execute_command("DQ.POP", "q", "ID", id)[2]
        client.execute_command("DQ.NACK", "q", id, "TOKEN", token, *terms, "SILENT", "AWAIT", name)

    def test_who_waits_for_what_and_all_shown_are_signalled(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.ADD", "q", "other", "x", "DELAY", HOUR)
        evil = HOSTILE[0]
        for number in range(25):
            self.waiting(client, f"order-{number:02}", "paid*")
        self.waiting(client, HOSTILE[4], evil)
        self.waiting(client, "soon", evil, "DELAY", HOUR)
        board = self.board(server, "--allow-actions")
        page = self.window()
        page.goto(board.url + "signals?queue=0:q")
        lines = page.locator("tbody tr")
        expect(lines).to_have_count(22)
        expect(lines.first.locator("td").first).to_have_text("paid* (25 jobs)")
        expect(lines.first.locator("td").nth(2)).to_have_text("never")
        evil_first = lines.nth(20).locator("td")
        expect(evil_first.first).to_have_text(f"{evil.decode()} (2 jobs)")
        expect(lines.nth(21).locator("td").first).to_have_text(" ")
        expect(lines.filter(has_text="soon").locator("td").nth(2)).to_contain_text("in 59 min")
        page.get_by_role("button", name="Send to the first 20").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("Send the signal paid*?")
        expect(box).to_contain_text("The 20 jobs shown that wait for it get it.")
        box.get_by_role("button", name="Send it").click()
        expect(page.locator("#said")).to_have_text("Signalled 20 jobs.")
        expect(lines.first.locator("td").first).to_have_text("paid* (5 jobs)")
        self.assertEqual(client.execute_command("DQ.LEN", "q", "READY"), 20)
        # One of them.
        lines.filter(has_text="soon").get_by_role("button", name="Send", exact=True).click()
        expect(box).to_contain_text(f"Send the signal {evil.decode()}?")
        box.get_by_role("button", name="Send it").click()
        expect(page.locator("#said")).to_have_text("Signalled 1 job.")
        expect(lines).to_have_count(6)
        # The name leads to its jobs, whatever bytes it has.
        page.get_by_role("link", name="paid*").click()
        expect(page.locator("tbody tr")).to_have_count(5)
        expect(page.get_by_label("Waits for the signal")).to_have_value("paid*")
        found = json.loads(ask(f"{board.url}api/look/find?queue=0:q&state=all&awaits={urllib.parse.quote(evil)}")[2])
        self.assertEqual(len(found["jobs"]), 1)
        self.assertEqual(page.wrong, [])

    def test_who_only_looks_sends_nothing(self):
        server = self.server()
        self.waiting(server.client, "a", "s")
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "signals?queue=0:q")
        expect(page.get_by_role("columnheader")).to_have_text(["Signal", "Job", "Goes on without it"])
        page.set_viewport_size({"width": 320, "height": 860})
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody button:visible")).to_have_count(0)
        self.assertFalse(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        self.assertEqual(post(board.url + "api/act", {"act": "signal", "queue": "0:q", "id": "a", "signal": "s"})[0], 403)
        page.goto(board.url + "signals?queue=0:none")
        expect(page.locator(".empty")).to_have_text("No job waits for a signal. DQ.NACK with AWAIT lets one wait.")
        self.assertEqual(page.wrong, [])
