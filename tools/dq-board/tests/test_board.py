"""The board in a real browser, against real servers."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import demo
import redis
import trustme
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support import HOSTILE, PATIENCE_S, BoardTest, Encrypted, Server, free_port, wait_until

PICTURES = os.environ.get("DQ_BOARD_PICTURES")
HOUR = 3_600_000


def key(name, db=0):
    return f"{db}:{urllib.parse.quote(name, safe='')}"


def ask(url, method="GET", body=None, **headers):
    """Status, headers and text, as a program that is no browser gets them."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def calls(server, command):
    return server.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


def row(page, name):
    return page.locator("[data-line]").filter(has=page.get_by_role("link", name=name, exact=True))


def cell(page, name, column):
    return row(page, name).locator(f".c-{column}")


class Pages(BoardTest):
    def test_the_table_shows_every_queue_and_what_it_does(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server).url)
        expect(cell(page, "mails", "ready")).to_have_text("42")
        expect(cell(page, "mails", "dead")).to_have_text("4")
        expect(cell(page, "order-timeouts", "delayed")).to_have_text("6,000")
        expect(row(page, "newsletter")).to_contain_text("paused")
        expect(page.locator(".server")).to_contain_text("127.0.0.1")
        # Deliveries show as a rate, a lateness and a bar.
        worker = demo.Worker(redis.Redis(port=server.port))
        worker.start()
        self.addCleanup(worker.stop)
        expect(cell(page, "webhooks", "out")).not_to_have_text("0")
        expect(cell(page, "webhooks", "p99")).to_have_text(re.compile(r"[µm]?s$"))
        expect(row(page, "webhooks").locator(".trend path")).to_have_attribute("d", re.compile("M.*z"))
        self.assertEqual(page.wrong, [])

    def test_a_filter_and_an_order_are_in_the_address(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("m")
        page.get_by_role("button", name="Delayed").click()
        expect(page.locator("[data-line] a").first).to_have_text("order-timeouts")
        other = self.window()
        other.goto(page.url)
        expect(other.locator("[data-line] a")).to_have_text(["order-timeouts", "reminders", "mails"])
        other.locator("[data-line] a").first.focus()
        other.keyboard.press("ArrowDown")
        other.keyboard.press("Enter")
        expect(other.get_by_role("heading", level=1)).to_have_text("reminders")
        other.keyboard.press("u")
        expect(other.locator("[data-line]").first).to_be_visible()

    def test_without_data(self):
        server = self.server()
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(page.locator(".empty")).to_contain_text("There are no queues yet")
        for address, said in [
            ("queue?queue=0:none", "The next hour: 0 jobs due"),
            ("jobs?queue=0:none&state=delayed", "No job waits for its time."),
            ("jobs?queue=0:none&state=dead", "No job has failed for good."),
            ("recurring?queue=0:none", "No job of this queue comes again."),
            ("job?queue=0:none&id=x", "There is no such job any more"),
            ("nonsense", "There is no such page"),
            ("__proto__?queue=0:none", "There is no such page"),
        ]:
            page.goto(board.url + address)
            expect(page.locator("#main")).to_contain_text(said)
        self.assertEqual(page.wrong, [])

    def test_the_hill_is_the_forecast(self):
        server = self.server()
        now = int(time.time() * 1000)
        for number in range(1200):
            server.client.execute_command("DQ.ADD", "q", f"j{number}", "x", "AT", now + HOUR // 2)
        server.client.execute_command("DQ.ADD", "q", "late", "x", "DELAY", 400 * 24 * HOUR)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:q&workers=2&ms=1000")
        expect(page.locator(".readout")).to_contain_text("The next hour: 1,200 jobs due, 1 job later than that")
        # 1,200 jobs at 2 a second, all at half of the hour: ten minutes.
        expect(page.locator(".verdict")).to_contain_text("2.0 a second: this hill lasts until")
        expect(page.locator(".verdict")).to_contain_text("the longest wait is 10 min")
        self.assertEqual(page.locator("path.ahead").get_attribute("d").count("z"), 1)
        expect(page.locator(".legend li:visible")).to_have_text(["due", "before this board started", "what the workers manage", "all done"])
        page.get_by_role("button", name="minute").click()
        expect(page.locator(".readout")).to_contain_text("The next minute: 0 jobs due, 1,201 jobs later")
        self.assertIn("zoom=minute", page.url)
        page.get_by_role("button", name="year").click()
        expect(page.locator(".readout")).to_contain_text("The next year: 1,200 jobs due, 1 job later")
        page.get_by_label("With", exact=True).fill("1")
        expect(page.locator(".verdict")).to_contain_text("1.0 a second")
        self.assertEqual(page.wrong, [])

    def test_past_deliveries_stand_beside_it(self):
        server = self.server()
        server.client.execute_command("DQ.CFGSET", "q")
        page = self.window()
        page.goto(self.board(server).url)
        # Its figures have been read once.
        expect(cell(page, "q", "ready")).to_have_text("0")
        page.get_by_role("link", name="q", exact=True).click()
        expect(page.locator(".readout")).to_contain_text("when this board started: 0 jobs delivered")
        for number in range(30):
            server.client.execute_command("DQ.ADD", "q", number, "x")
        server.client.execute_command("DQ.POP", "q", "COUNT", 30, "NOACK")
        expect(page.locator(".readout")).to_contain_text("30 jobs delivered")
        expect(page.locator("path.past")).to_have_attribute("d", re.compile("M.*z"))
        # Just left of "now", which is in the middle.
        left = float(re.match(r"M([\d.]+)", page.locator("path.past").get_attribute("d"))[1])
        width = float(page.locator(".hill").get_attribute("viewBox").split()[2])
        self.assertTrue(0.45 < left / width <= 0.5, f"{left} of {width}")

    def test_jobs_by_state_page_by_page(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "jobs?queue=0:mails&state=dead")
        expect(page.locator("tbody tr")).to_have_count(4)
        expect(page.locator("tbody tr").nth(1)).to_contain_text("550 no such user")
        page.get_by_role("link", name="Reserved").click()
        expect(page.locator("tbody tr")).to_have_count(6)
        expect(page.locator("tbody tr").first).to_contain_text("in 1 h")
        page.goto(board.url + "jobs?queue=0:order-timeouts&state=delayed")
        expect(page.locator("tbody tr")).to_have_count(50)
        first = page.locator("tbody tr a").first.text_content()
        page.get_by_role("link", name="Next page").click()
        expect(page.locator("tbody tr")).to_have_count(50)
        expect(page.locator("tbody")).not_to_contain_text(first)
        self.assertIn("from=", page.url)
        page.get_by_role("link", name="First page").click()
        expect(page.locator("tbody tr a").first).to_have_text(first)

    def test_jobs_are_found_by_their_ids(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server).url + "jobs?queue=0:order-timeouts&state=delayed")
        page.get_by_role("searchbox").fill("order:70123")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="order:70123").click()
        expect(page.get_by_label("Payload")).to_contain_text('"order": 70123,')
        page.go_back()
        page.get_by_role("searchbox").fill("7012")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("tbody tr")).to_have_count(10)
        page.get_by_role("searchbox").fill("*[")
        page.keyboard.press("Enter")
        expect(page.locator(".empty")).to_have_text("No job has this in its id.")

    def test_a_job_with_all_it_has(self):
        server = self.server()
        client = server.client
        payload = '{"big": 12345678901234567890, "list": [], "text": "a\\u0000"}'
        client.execute_command("DQ.ADD", "q", "job", payload, "TTR", 90_000, "ATTEMPTS", 7, "BACKOFF", 2, 1000, 60_000, "PRIORITY", -3)
        client.execute_command("DQ.POP", "q")
        client.execute_command("DQ.NACK", "q", "job", "DELAY", HOUR, "REASON", "no\nroom")
        page = self.window()
        page.goto(self.board(server).url + "job?queue=0:q&id=job")
        for said in ["delayed", "no\\nroom", "1 of 7", "-3", "1 min 30 s", "1.0 s, 1 min"]:
            expect(page.locator(".facts")).to_contain_text(said)
        # No digit is lost, and nothing of it is rounded.
        expect(page.get_by_label("Payload")).to_contain_text('"big": 12345678901234567890,')
        expect(page.get_by_label("Payload")).to_contain_text('"list": [],')
        client.execute_command("DQ.DEL", "q", "job")
        expect(page.locator(".empty")).to_contain_text("There is no such job any more")

    def test_recurring_jobs_with_their_next_runs(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "recurring?queue=0:schedules")
        expect(page.locator("tbody tr")).to_have_count(4)
        line = page.locator("tbody tr").filter(has_text="daily-report")
        expect(line).to_contain_text("cron 0 9 * * MON-FRI Europe/Berlin")
        runs = server.client.execute_command("DQ.NEXT", "schedules", "daily-report", "COUNT", 3)
        for instant in runs:
            moment = time.gmtime(instant / 1000)
            expect(line).to_contain_text(f"{moment.tm_mday} {time.strftime('%b %Y, %H:%M:%S', moment)}")
        expect(page.locator("main")).to_contain_text("time zone, UTC.")
        page.get_by_role("link", name="daily-report").click()
        expect(page.locator(".facts")).to_contain_text("cron 0 9 * * MON-FRI Europe/Berlin")

    def test_groups_with_most_jobs_first(self):
        server = self.server()
        client = server.client
        pipe = client.pipeline(transaction=False)
        for number in range(120):
            pipe.execute_command("DQ.ADD", "q", f"small-{number}", "x", "GROUP", f"small*[-{number:03}")
        for number in range(3):
            pipe.execute_command("DQ.ADD", "q", f"large-{number}", "x", "GROUP", "<b>large")
        pipe.execute()
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "groups?queue=0:q")
        expect(page.locator("tbody tr")).to_have_count(50)
        expect(page.locator("tbody tr").first).to_have_text("<b>large30")
        expect(page.locator(".further")).to_contain_text("The 50 with most jobs waiting, of 121 looked at.")
        expect(page.locator(".tabs").get_by_role("link", name="Groups 121")).to_be_visible()
        client.execute_command("DQ.CFGSET", "q", "GROUPMAX", 1)
        client.execute_command("DQ.POP", "q", "ID", "large-0")
        page.goto(board.url + "groups?queue=0:q")
        expect(page.get_by_text("Each group: 1 reserved at most.")).to_be_visible()
        expect(page.locator("tbody tr").first).to_contain_text("(at its limit)")
        page.get_by_role("searchbox").fill("*[-01")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(10)
        client.execute_command("DQ.PURGE", "q", "ALL")
        page.goto(board.url + "groups?queue=0:q")
        expect(page.locator(".empty")).to_contain_text("No job of this queue has a group.")
        self.assertEqual(page.wrong, [])

    def test_numbers_stand_still_when_nothing_changes(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        server.client.execute_command("DQ.POP", "q", "TTR", 4 * HOUR)
        page = self.window()
        page.goto(self.board(server).url)
        expect(cell(page, "q", "reserved")).to_have_text("1")
        # Until the search of the beginning is over.
        expect(page.locator("#sum")).to_have_text("1 queue")
        page.evaluate("""() => {
            window.changes = [];
            const note = (all) => window.changes.push(...all.map((it) => it.target.outerHTML ?? it.target.textContent));
            new MutationObserver(note).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true, attributes: true });
        }""")
        server.client.config_resetstat()
        wait_until("three more readings", lambda: calls(server, "dq.stats") >= 3)
        self.assertEqual(page.evaluate("window.changes"), [])

    def test_refreshing_can_be_paused(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        page, other = self.window(), self.window()
        url = self.board(server).url
        for window in [page, other]:
            window.goto(url)
            expect(cell(window, "q", "ready")).to_have_text("1")
        page.keyboard.press("p")
        expect(page.locator("#server")).to_have_text("Refreshing is stopped")
        server.client.execute_command("DQ.ADD", "q", "second", "x")
        expect(cell(other, "q", "ready")).to_have_text("2")
        expect(cell(page, "q", "ready")).to_have_text("1")
        # What is opened is asked for all the same.
        page.get_by_role("link", name="q", exact=True).click()
        page.get_by_role("link", name="Ready").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_role("button", name="Stop refreshing").click()
        expect(page.locator(".tabs [aria-current] .count")).to_have_text("2")
        self.assertEqual(page.wrong, [])

    def test_ten_thousand_queues_make_few_lines(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        for number in range(10_000):
            pipe.execute_command("DQ.ADD", f"queue-{number:05}", "job", "x", "DELAY", HOUR)
        pipe.execute()
        page = self.window()
        page.goto(self.board(server).url)
        expect(page.locator("#sum")).to_have_text("10,000 queues")
        self.assertLess(page.locator("[data-line]").count(), 60)
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("link", name="queue-09999")).to_be_visible()
        expect(cell(page, "queue-09999", "delayed")).to_have_text("1")
        self.assertLess(page.locator("[data-line]").count(), 60)
        page.get_by_role("searchbox").fill("queue-05")
        expect(page.locator("#sum")).to_have_text("1,000 of 10,000 queues")


class Trouble(BoardTest):
    def test_hostile_names_ids_and_payloads(self):
        server = self.server()
        for name in HOSTILE:
            for id in HOSTILE:
                server.client.execute_command("DQ.ADD", name, id, id + b"\n" + name, "DELAY", HOUR)
        server.client.execute_command("DQ.ADD", "json", "j", json.dumps({HOSTILE[0].decode(): HOSTILE[1].decode()}))
        board = self.board(server, "--allow-actions")
        page = self.window()
        page.goto(board.url)
        expect(page.locator("[data-line]")).to_have_count(len(HOSTILE) + 1)
        links = page.locator("[data-line] a").evaluate_all("all => all.map((it) => it.getAttribute('href'))")
        for address in links:
            page.goto(board.url + address)
            expect(page.locator(".readout")).to_contain_text("jobs due")
            page.goto(board.url + address.replace("queue?", "jobs?", 1))
            jobs = page.locator("tbody tr a")
            state = "json" if address.endswith("json") else "hostile"
            if state == "hostile":
                expect(jobs).to_have_count(len(HOSTILE))
            for job in jobs.evaluate_all("all => all.map((it) => it.getAttribute('href'))"):
                page.goto(board.url + job)
                expect(page.get_by_label("Payload")).to_be_visible()
        page.goto(board.url + "job?queue=0:json&id=j")
        expect(page.get_by_label("Payload")).to_contain_text("onerror")
        # An action reaches exactly the job that is meant.
        for id in HOSTILE:
            address = f"job?queue=0:{urllib.parse.quote(HOSTILE[2], safe='')}&id={urllib.parse.quote(id, safe='')}"
            page.goto(board.url + address)
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Cancel it").click()
            expect(page.locator("#said")).to_have_text("Cancelled.")
            self.assertIsNone(server.client.execute_command("DQ.GET", HOSTILE[2], id))
        self.assertEqual(page.locator("img[src='x']").count(), 0)
        self.assertNotIn("pwned", page.title())
        self.assertEqual(page.wrong, [])

    def test_a_payload_of_100_megabytes(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "large", b"x" * 100_000_000)
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "jobs?queue=0:q&state=ready")
        expect(page.locator("tbody tr")).to_contain_text("100 MB")
        page.goto(board.url + "job?queue=0:q&id=large")
        expect(page.locator(".card .note")).to_contain_text("100,000,000 bytes, the first 65,536 of them")
        # It is not read again each second: six readings of the queue later still once.
        server.client.config_resetstat()
        wait_until("six readings", lambda: calls(server, "dq.stats") >= 6)
        self.assertLessEqual(calls(server, "dq.get"), 1)

    def test_json_that_would_fill_the_memory_with_spaces(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "deep", "[" * 30_000 + "]" * 30_000)
        server.client.execute_command("DQ.ADD", "q", "wide", "[" + "[]," * 20_000 + "{}]")
        board = self.board(server)
        page = self.window()
        for id, length in [("deep", "JSON, 60,000 bytes"), ("wide", "JSON, 60,004 bytes")]:
            page.goto(board.url + f"job?queue=0:q&id={id}")
            expect(page.locator(".card .note")).to_contain_text(length)
        expect(page.get_by_label("Payload")).to_contain_text("[],")
        self.assertEqual(page.wrong, [])

    def test_the_server_goes_and_comes_back(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        page = self.window()
        page.goto(self.board(server).url)
        expect(cell(page, "q", "ready")).to_have_text("1")
        server.stop()
        expect(page.get_by_role("alert").first).to_contain_text("cannot be reached")
        expect(row(page, "q")).to_be_visible()
        server.start()
        server.client.execute_command("DQ.ADD", "back", "job", "x")
        expect(cell(page, "back", "ready")).to_have_text("1")
        expect(page.locator("#trouble")).to_be_hidden()
        page.goto(page.url + "queue?queue=0:back")
        expect(page.locator(".readout")).to_contain_text("1 job due already")
        self.assertEqual(page.wrong, [])

    def test_the_board_goes_and_comes_back(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(cell(page, "q", "ready")).to_have_text("1")
        board.close()
        expect(page.get_by_role("alert").first).to_contain_text("No connection to the board")
        address = board.url.split("/")[2]
        self.board(server, "--listen", address)
        expect(page.locator("#trouble")).to_be_hidden()

    def test_a_server_without_the_module(self):
        server = self.server(module=False)
        page = self.window()
        page.goto(self.board(server).url)
        expect(page.get_by_role("alert").first).to_contain_text("does not have the module dq")
        expect(page.locator(".empty")).to_have_text("There is nothing to show.")

    def test_what_the_acl_refuses_is_said(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        server.client.execute_command(
            "ACL", "SETUSER", "viewer", "on", ">secret", "%R~*", "+info", "+scan", "+select", "+dq.stats", "+dq.cfgget",
            "+dq.peek", "+dq.get", "+dq.next", "+dq.scan", "+dq.groups", "+dq.forecast",
        )
        board = self.board(server, "--allow-actions", "--user", "viewer", REDISCLI_AUTH="secret")
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("1 job due already")
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("NOPERM")
        self.assertEqual(server.client.execute_command("DQ.LEN", "q", "READY"), 1)
        server.client.execute_command("ACL", "SETUSER", "viewer", "-dq.forecast", "-dq.peek")
        page.goto(board.url + "queue?queue=0:q")
        expect(page.get_by_role("alert").filter(has_text="NOPERM").first).to_be_visible()
        page.goto(board.url + "jobs?queue=0:q&state=ready")
        expect(page.get_by_role("alert").filter(has_text="NOPERM").first).to_be_visible()


class Doors(BoardTest):
    def test_a_password_keeps_others_out(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, DQ_BOARD_PASSWORD="open sesame", DQ_BOARD_TOKEN="token-1")
        for path in ["api/live", "api/look/queue?queue=0:q"]:
            self.assertEqual(ask(board.url + path)[0], 401)
            self.assertEqual(ask(board.url + path, authorization="Bearer wrong")[0], 401)
        self.assertEqual(ask(board.url + "api/look/queue?queue=0:q", authorization="Bearer token-1")[0], 200)
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("That is not the password.")
        page.get_by_label("Password").fill("open sesame")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("q")
        cookie = page.context.cookies()[0]
        self.assertTrue(cookie["httpOnly"])
        self.assertEqual(cookie["sameSite"], "Strict")
        page.reload()
        expect(page.locator(".readout")).to_contain_text("1 job due already")

    def test_who_looks_cannot_act(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("1 job due already")
        self.assertEqual(page.locator(".actions button").count(), 0)
        body = json.dumps({"queue": "0:q", "act": "delete", "id": "job"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq_board="1")[0], 403)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1)

    def test_a_prefix_that_reads_like_a_public_place_is_none(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        for prefix in ["/assets", "/ops/assets/api"]:
            board = self.board(server, "--prefix", prefix, DQ_BOARD_PASSWORD="open sesame")
            for path in ["api/look/queue?queue=0:q", "api/live", "queue?queue=0:q", "x/api/sign-in"]:
                self.assertEqual(ask(board.url + path)[0], 401, path)
            self.assertEqual(ask(board.url + "assets/style.css")[0], 200)
            self.assertIn("Password", ask(board.url.removesuffix("/"))[2])

    def test_passwords_cannot_be_tried_side_by_side(self):
        board = self.board(self.server(), DQ_BOARD_PASSWORD="open sesame")
        place = urllib.parse.urlsplit(board.url)
        body = b'{"password": "wrong"}'
        head = f"POST /api/sign-in HTTP/1.1\r\nHost: localhost\r\nx-dq-board: 1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        guesses = [socket.create_connection((place.hostname, place.port)) for _ in range(60)]
        for guess in guesses:
            guess.settimeout(PATIENCE_S)
            guess.sendall(head.encode() + body)
        statuses = []
        for guess in guesses:
            with guess:
                statuses.append(guess.recv(12)[9:])
        self.assertEqual(set(statuses), {b"403", b"429"})
        said = json.dumps({"password": "open sesame"}).encode()
        self.assertEqual(ask(board.url + "api/sign-in", "POST", said, x_dq_board="1")[0], 204)

    def test_one_that_does_not_say_what_it_wants_is_not_waited_for(self):
        board = self.board(self.server())
        place = urllib.parse.urlsplit(board.url)
        for begin in [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "]:
            with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as slow:
                slow.sendall(begin)
                while slow.recv(1000):
                    pass

    def test_a_count_beyond_all_bounds(self):
        server = self.server()
        for id in ["a", "b"]:
            server.client.execute_command("DQ.ADD", "q", id, "x")
            server.client.execute_command("DQ.POP", "q", "ID", id)
            server.client.execute_command("DQ.NACK", "q", id, "FATAL")
        board = self.board(server, "--allow-actions")
        body = json.dumps({"queue": "0:q", "act": "kick-dead", "count": 10**18}).encode()
        status, _, text = ask(board.url + "api/act", "POST", body, x_dq_board="1")
        self.assertEqual((status, json.loads(text)), (200, {"done": "kicked 2 jobs"}))

    def test_other_sites_cannot_ask_for_anything(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, "--allow-actions")
        body = json.dumps({"queue": "0:q", "act": "delete", "id": "job"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body)[0], 403)
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq_board="1", sec_fetch_site="cross-site")[0], 403)
        self.assertEqual(ask(board.url + "api/look/queue?queue=0:q", sec_fetch_site="cross-site")[0], 403)
        self.assertEqual(ask(board.url, host="evil.example")[0], 421)
        self.assertEqual(ask(board.url + "api/live", host="evil.example:80")[0], 421)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1)
        # The same with the header, from our own page, is done: so it is the door that holds.
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq_board="1")[0], 200)
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 0)
        policy = ask(board.url)[1]["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_under_a_prefix(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server, "--prefix", "/ops/queues", "--allow-actions")
        self.assertTrue(board.url.endswith("/ops/queues/"))
        page = self.window()
        asked = []
        page.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url).path))
        page.goto(board.url)
        page.get_by_role("link", name="q", exact=True).click()
        expect(page.locator(".readout")).to_contain_text("1 job due already")
        page.get_by_role("link", name="Ready").click()
        page.get_by_role("link", name="job", exact=True).click()
        page.reload()
        expect(page.get_by_label("Payload")).to_have_text("x")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator(".empty")).to_contain_text("There is no such job any more")
        self.assertEqual([path for path in asked if not path.startswith("/ops/queues/")], [])


class Actions(BoardTest):
    def do(self, page, button, yes, said, scope=None):
        page.locator(".actions").get_by_role("button", name=button, exact=True).click()
        if scope:
            scope(page.get_by_role("dialog"))
        page.get_by_role("dialog").get_by_role("button", name=yes, exact=True).click()
        expect(page.locator("#said")).to_have_text(said)
        expect(page.get_by_role("dialog")).to_have_count(0)

    def test_each_does_what_it_says(self):
        server = self.server()
        client = server.client
        board = self.board(server, "--allow-actions")
        client.execute_command("DQ.ADD", "q", "waits", "x", "DELAY", HOUR)
        for id in ["dead-1", "dead-2", "dead-3"]:
            client.execute_command("DQ.ADD", "q", id, "x")
            client.execute_command("DQ.POP", "q", "ID", id)
            client.execute_command("DQ.NACK", "q", id, "FATAL")
        page = self.window()

        def state(id):
            job = client.execute_command("DQ.GET", "q", id)
            return job and dict(job)[b"state"]

        page.goto(board.url + "job?queue=0:q&id=dead-1")
        self.do(page, "Retry now", "Retry it", "Kicked 1 job.")
        self.assertEqual(state("dead-1"), b"ready")
        page.goto(board.url + "job?queue=0:q&id=waits")
        self.do(page, "Reschedule", "Reschedule", "Due in 2h.", lambda it: (it.get_by_label("Due after").fill("2"), it.get_by_label("Unit").select_option("hours")))
        self.do(page, "Run now", "Run it now", "Due now.")
        self.assertEqual(state("waits"), b"ready")
        self.do(page, "Cancel", "Cancel it", "Cancelled.")
        self.assertIsNone(state("waits"))
        page.goto(board.url + "queue?queue=0:q")
        self.do(page, "Retry dead jobs", "Retry them", "Kicked 2 jobs.")
        self.assertEqual(state("dead-3"), b"ready")
        self.do(page, "Pause", "Pause", "Paused until resumed.")
        self.assertIsNone(client.execute_command("DQ.POP", "q"))
        self.do(page, "Resume", "Resume", "Resumed.")
        self.do(page, "Add a test job", "Add it", "Added.", lambda it: it.get_by_label("Id").fill("mine é"))
        self.assertEqual(state("mine é"), b"ready")
        self.assertEqual(len(client.execute_command("DQ.POP", "q", "COUNT", 9)), 4)
        self.assertEqual(page.wrong, [])

    def test_an_action_shows_its_command_for_redis_cli(self):
        server = self.server()
        server.client.execute_command("DQ.CFGSET", "q")
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "queue?queue=0:q")
        page.locator(".actions").get_by_role("button", name="Add a test job").click()
        shown = page.get_by_label("In redis-cli")
        page.get_by_label("Id").fill('a "$(b)" é')
        page.get_by_label("Due after").fill("2")
        expect(shown).to_have_text(r'DQ.ADD q "a \"\x24(b)\" \xc3\xa9" "{}" DELAY 2000')
        # A server splits an inline command as redis-cli splits its lines.
        with socket.create_connection(("127.0.0.1", server.port)) as inline:
            inline.sendall(shown.text_content().encode() + b"\r\n")
            self.assertTrue(inline.recv(100).startswith(b"$"), "DQ.ADD answers with the id")
        self.assertEqual(dict(server.client.execute_command("DQ.GET", "q", 'a "$(b)" é'))[b"state"], b"delayed")
        page.get_by_role("button", name="Not now").click()
        page.locator(".actions").get_by_role("button", name="Purge").click()
        expect(shown).to_have_text("DQ.PURGE q all")
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1, "nothing is sent before the yes")

    def test_several_at_once(self):
        server = self.server()
        client = server.client
        for number in range(70):
            client.execute_command("DQ.ADD", "q", f"job-{number}", "x")
            client.execute_command("DQ.POP", "q", "ID", f"job-{number}")
            why = f"HTTP 503: order {number + 7000} waits" if number % 7 else "<b>no room</b>"
            client.execute_command("DQ.NACK", "q", f"job-{number}", "FATAL", "REASON", why)
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        reasons = page.get_by_role("navigation", name="Reasons")
        expect(reasons.get_by_role("link")).to_have_text(["HTTP 503: order # waits60", "<b>no room</b>10"])
        reasons.get_by_role("link").first.click()
        expect(page.locator("tbody tr")).to_have_count(50)
        self.assertEqual(page.get_by_text("no room").count(), 1, "in the list of reasons only")
        page.get_by_label("Select all on this page").check()
        expect(page.get_by_role("status").filter(has_text="50 jobs selected")).to_be_visible()
        page.get_by_role("button", name="Select all 60 that match").click()
        page.locator(".chosen").get_by_role("button", name="Retry", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("The 60 jobs selected become ready now")
        page.get_by_role("button", name="Retry them").click()
        expect(page.locator("#said")).to_have_text("Done with 60 of 60 jobs.")
        self.assertEqual([client.execute_command("DQ.LEN", "q", state) for state in ["READY", "DEAD"]], [60, 10])
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        expect(page.locator("tbody tr")).to_have_count(10)
        for id in ["job-0", "job-7"]:
            page.get_by_label(f"Select {id}", exact=True).check()
        # One of them is gone before the others are deleted.
        page.locator(".chosen").get_by_role("button", name="Delete").click()
        client.execute_command("DQ.DEL", "q", "job-7")
        page.get_by_role("button", name="Delete them").click()
        expect(page.locator("#said")).to_have_text("Done with 1 of 2 jobs.")
        expect(page.locator("tbody tr")).to_have_count(8)
        expect(page.locator(".chosen")).to_be_hidden()
        self.assertEqual(client.execute_command("DQ.LEN", "q", "DEAD"), 8)
        body = json.dumps({"queue": "0:q", "act": "purge", "state": "all", "ids": ["a"], "typed": "q"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq_board="1")[0], 400)
        self.assertEqual(page.wrong, [])

    def test_who_only_looks_has_nothing_to_choose(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        page = self.window()
        page.goto(self.board(server).url + "jobs?queue=0:q&state=ready")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody .pick")).to_be_hidden()

    def test_a_purge_wants_the_name_typed(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "precious", "job", "x")
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "queue?queue=0:precious")
        page.locator(".actions").get_by_role("button", name="Purge").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("1 job of precious will be removed for good.")
        expect(box.get_by_role("button", name="Purge")).to_be_disabled()
        box.get_by_role("textbox").fill("preciou")
        expect(box.get_by_role("button", name="Purge")).to_be_disabled()
        page.keyboard.press("Escape")
        expect(box).to_have_count(0)
        self.assertEqual(server.client.execute_command("DQ.LEN", "precious"), 1)
        # Nor does the server of the board believe one that skipped it.
        body = json.dumps({"queue": "0:precious", "act": "purge", "state": "all"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq_board="1")[0], 400)
        self.do(page, "Purge", "Purge", "Purged 1 job.", lambda it: it.get_by_role("textbox").fill("precious"))
        self.assertEqual(server.client.execute_command("DQ.LEN", "precious"), 0)


class Servers(BoardTest):
    def test_all_masters_of_a_cluster_as_one(self):
        nodes = [self.server("--cluster-enabled", "yes", "--cluster-port", str(free_port())) for _ in range(2)]
        for node, slots in zip(nodes, [(0, 8191), (8192, 16383)]):
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        nodes[0].client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].options[-1])
        for node in nodes:
            wait_until("the cluster is whole", lambda it=node: "ok" in str(it.client.cluster("info")["cluster_state"]))
        nodes[0].client.execute_command("DQ.ADD", "bar", "job", "x")
        nodes[1].client.execute_command("DQ.ADD", "foo", "job", "x")
        page = self.window()
        board = self.board(nodes[0], "--allow-actions")
        page.goto(board.url)
        for name in ["foo", "bar"]:
            expect(cell(page, name, "ready")).to_have_text("1")
        expect(page.locator(".tile dd").first).to_have_text("2")
        for name in ["foo", "bar"]:
            page.goto(board.url + f"job?queue=0:{name}&id=job")
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Cancel it").click()
            expect(page.locator("#said")).to_have_text("Cancelled.")

    def test_the_master_that_sentinels_name(self):
        master = self.server()
        replica = self.server("--replicaof", "127.0.0.1", str(master.port))
        wait_until("the replica is in sync", lambda: replica.client.info("replication")["master_link_status"] == "up")
        conf = pathlib.Path(master.folder, "sentinel.conf")
        conf.write_text(f"sentinel monitor shop 127.0.0.1 {master.port} 1\n")
        sentinel = SentinelServer(conf)
        self.addCleanup(sentinel.close)
        master.client.execute_command("DQ.ADD", "before", "job", "x")
        page = self.window()
        board = self.board(master, "--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "shop")
        page.goto(board.url)
        expect(cell(page, "before", "ready")).to_have_text("1")

        def failed_over():
            try:
                sentinel.client.execute_command("SENTINEL", "FAILOVER", "shop")
            except redis.exceptions.ResponseError:
                pass
            return replica.client.info("replication")["role"] == "master"

        wait_until("the replica is master", failed_over)
        replica.client.execute_command("DQ.ADD", "after", "job", "x")
        expect(cell(page, "after", "ready")).to_have_text("1")

    def test_tls_by_a_certificate_that_it_is_told_to_trust(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        authority, other = trustme.CA(), trustme.CA()
        proxy = Encrypted(authority.issue_cert("localhost"), server.port)
        self.addCleanup(proxy.close)
        with authority.cert_pem.tempfile() as right, other.cert_pem.tempfile() as wrong:
            for options in [["--tls", "-h", "localhost", "-p", str(proxy.port)], ["-u", f"rediss://localhost:{proxy.port}"]]:
                page = self.window()
                page.goto(self.board(None, *options, "--cacert", right).url)
                expect(cell(page, "q", "ready")).to_have_text("1")
            page = self.window()
            page.goto(self.board(None, *options, "--cacert", wrong).url)
            expect(page.get_by_role("alert").first).to_contain_text("cannot be reached: ")
            expect(page.get_by_role("alert").first).to_contain_text("certificate")

    def test_tabs_that_nobody_sees_leave_their_connection_to_others(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        url = self.board(server).url
        window = self.window().context
        first = None
        for _ in range(8):
            page = window.new_page()
            page.goto(url)
            expect(cell(page, "q", "ready")).to_have_text("1")
            page.evaluate("""() => {
                window.away = true;
                Object.defineProperty(document, "hidden", { get: () => window.away });
                document.dispatchEvent(new Event("visibilitychange"));
            }""")
            first = first or page
        server.client.execute_command("DQ.ADD", "q", "other", "x")
        first.evaluate("() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }")
        expect(cell(first, "q", "ready")).to_have_text("2")

    def test_many_tabs_are_one_reader(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server)
        pages = [self.window() for _ in range(6)]
        for page in pages:
            page.goto(board.url + "queue?queue=0:mails")
            expect(page.locator(".readout")).to_contain_text("due already")
        # The reader, and at most four questions at a time. (One that is closed may be listed a moment longer.)
        wait_until("six connections with ours", lambda: len(server.client.client_list()) <= 6)


class SentinelServer(Server):
    def __init__(self, conf):
        self.conf = conf
        super().__init__(module=False)

    def start(self):
        words = [os.environ["DQ_SERVER"], str(self.conf), "--sentinel", "--port", str(self.port)]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        self.client = redis.Redis(port=self.port)
        wait_until("the sentinel answers", self.answers)


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
        page.goto(board.url + "groups?queue=0:exports")
        expect(page.get_by_role("cell", name="acme", exact=True)).to_be_visible()
        page.goto(board.url + "recurring?queue=0:schedules")
        expect(page.locator("tbody tr")).to_have_count(3)
        shop.terminate()
        self.assertIn("The shop is closed.", shop.communicate(timeout=PATIENCE_S)[0])
        self.assertEqual(shop.returncode, 0)


class Looks(BoardTest):
    PAGES = {
        "queues": ("", "[data-line]"),
        "queue": ("queue?queue=0:order-timeouts&workers=3&ms=900", ".hill .ahead[d^=M]"),
        "dead": ("jobs?queue=0:mails&state=dead", "tbody tr"),
        "reason": ("jobs?queue=0:mails&state=dead&reason=mailbox%20full", "tbody tr"),
        "delayed": ("jobs?queue=0:order-timeouts&state=delayed", "tbody tr"),
        "job": ("job?queue=0:mails&id=bounced-1", ".facts div"),
        "recurring": ("recurring?queue=0:schedules", "tbody tr"),
        "groups": ("groups?queue=0:exports", "tbody tr"),
    }

    def test_accessible_in_light_and_dark_and_on_a_phone(self):
        """axe finds nothing. With DQ_BOARD_PICTURES the pictures of docs/board.md are made on the way."""
        server = self.server()
        demo.fill(server.client)
        worker = demo.Worker(redis.Redis(port=server.port))
        worker.start()
        self.addCleanup(worker.stop)
        board = self.board(server, "--allow-actions")
        axe = Axe()
        for theme, width in [("light", 1280), ("dark", 1280), ("light", 390)]:
            page = self.window(viewport={"width": width, "height": 860}, color_scheme=theme)
            for name, (address, there) in self.PAGES.items():
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
                self.check(axe, page, f"{name}, {theme}, {width}")
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth > innerWidth"), False, f"{name} at {width}")
                if PICTURES and name not in ("delayed", "reason") and (name == "queue" or (width, theme) == (1280, "light")):
                    self.picture(page, f"{name}{'' if theme == 'light' else '-dark'}{'' if width > 400 else '-phone'}")
            page.goto(board.url + "queue?queue=0:mails")
            page.locator(".actions").get_by_role("button", name="Purge").click()
            expect(page.get_by_role("dialog")).to_be_visible()
            self.check(axe, page, f"purge, {theme}, {width}")
            self.assertEqual(page.wrong, [])
        locked = self.board(server, DQ_BOARD_PASSWORD="x")
        page = self.window()
        page.goto(locked.url)
        expect(page.get_by_label("Password")).to_be_visible()
        self.check(axe, page, "sign in")

    def check(self, axe, page, what):
        found = axe.run(page, options={"resultTypes": ["violations"]})
        self.assertEqual(found.violations_count, 0, f"{what}: {found.generate_report()}")

    def picture(self, page, name):
        if name == "queues":
            expect(row(page, "webhooks").locator(".trend path")).to_have_attribute("d", re.compile("(M[^M]+){12}"))
        page.screenshot(path=os.path.join(PICTURES, f"{name}.png"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
