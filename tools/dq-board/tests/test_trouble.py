"""The board with hostile data, failing servers and missing permissions."""

import json
import os
import threading
import urllib.parse

import redis
from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, calls, cell, row, wait_until


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
        named = "all => all.map((it) => [it.getAttribute('href'), it.title])"
        for address, name in page.locator("[data-line] a").evaluate_all(named):
            page.goto(board.url + address)
            expect(page.locator(".readout")).to_contain_text("jobs due")
            page.goto(board.url + address.replace("queue?", "jobs?", 1))
            jobs = page.locator("tbody tr a")
            state = "json" if address.endswith("json") else "hostile"
            if state == "hostile":
                expect(jobs).to_have_count(len(HOSTILE))
            for job, id in jobs.evaluate_all(named):
                page.goto(board.url + job)
                # Before the board has answered, and of a job that is gone: it reads as in the lists.
                expect(page).to_have_title(f"{id} – dq")
                expect(page.locator("#trail a")).to_have_text(["Queues", name])
                expect(page.get_by_label("Payload")).to_be_visible()
        page.goto(board.url + "job?queue=0:json&id=j")
        expect(page.get_by_label("Payload")).to_contain_text("onerror")
        # An action affects exactly the named job.
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
        # Neither the server nor the board ever has the rest of it in hand again.
        server.client.config_resetstat()
        gets = calls(server, "dq.get")
        wait_until("six readings", lambda: calls(server, "dq.get") >= gets + 6)
        self.assertLess(server.client.info("stats")["total_net_output_bytes"], 10_000_000)

    def test_many_views_of_large_payloads_leave_the_board_small(self):
        server = self.server()
        for number in range(50):
            server.client.execute_command("DQ.ADD", "q", f"job:{number}", b"x" * 1_000_000)
        board = self.board(server)

        def resident():
            with open(f"/proc/{board.process.pid}/status") as status:
                return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

        def look(number):
            self.assertEqual(ask(board.url + f"api/look/jobs?queue=0:q&state=ready&from={number}")[0], 200)
            self.assertEqual(ask(board.url + f"api/look/job?queue=0:q&id=job%3A{number % 50}&tab={number}")[0], 200)

        for number in range(200):
            look(number)
        before = resident()
        for number in range(200, 700):
            look(number)
        self.assertLess(resident() - before, 20_000, "kB")
        self.assertLess(server.client.info("stats")["total_net_output_bytes"], 100_000_000)

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
        expect(page.locator(".readout")).to_contain_text("1 job already due")
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

    def test_a_server_that_is_loading(self):
        server = self.server("--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024")
        client = server.client
        client.execute_command("DQ.ADD", "q", "job", "x")
        client.mset({f"key:{number}": "x" for number in range(10_000)})
        page = self.window()
        page.goto(self.board(server).url)
        expect(cell(page, "q", "ready")).to_have_text("1")
        client.config_set("key-load-delay", 100_000)
        reload = threading.Thread(target=redis.Redis(port=server.port).execute_command, args=("DEBUG", "RELOAD"))
        reload.start()
        self.addCleanup(reload.join)
        self.addCleanup(client.config_set, "key-load-delay", 0)
        expect(page.locator("#trouble")).to_contain_text("The server is loading its data")
        client.config_set("key-load-delay", 0)
        expect(page.locator("#trouble")).to_be_hidden()
        expect(cell(page, "q", "ready")).to_have_text("1")
        self.assertEqual(page.wrong, [])

    def test_a_server_without_the_module(self):
        server = self.server(module=False)
        page = self.window()
        page.goto(self.board(server).url)
        expect(page.get_by_role("alert").first).to_contain_text("does not have the dq module")
        expect(page.locator(".empty")).to_have_text("There is nothing to show.")

    def test_a_server_that_wants_another_password_is_not_called_empty(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        server.client.config_set("requirepass", "secret")
        for options, why in [([], "the server refuses: NOAUTH Authentication required"), (["-a", "wrong"], "the server refuses this user or password (--user, --pass)")]:
            board = self.board(server, "--allow-actions", *options)
            page = self.window()
            page.goto(board.url)
            expect(page.locator("#trouble")).to_have_text(f"127.0.0.1:{server.port} cannot be read: {why}. Nothing has been read; reconnecting.")
            expect(page.get_by_role("heading", name="No queue can be read")).to_be_visible()
            expect(page.locator(".figures > dl > dd:first-of-type")).to_have_text(["–"] * 6)
            expect(page.locator(".readout")).to_have_text("What was delivered is not known.")
            page.goto(board.url + "queue?queue=0:q")
            expect(page.locator(".figures > dl > dd:first-of-type")).to_have_text(["–"] * 6)
            expect(page.locator(".queue-head .badge")).to_have_text("")
            self.assertEqual(page.wrong, [])
        server.client.config_set("requirepass", "wrong")
        expect(page.locator(".figures dd").first).to_have_text("1")
        expect(page.locator("#trouble")).to_be_hidden()

    def test_what_the_acl_refuses_is_said(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        server.client.execute_command("DQ.ADD", "q", "member", "x", "DELAY", HOUR, "GROUP", "batch")
        server.client.execute_command("DQ.ADD", "q", "callback", "x", "AFTER", "GROUP", "batch")
        with open(os.path.join(os.path.dirname(__file__), "../../../docs/board.md"), encoding="utf-8") as docs:
            (rights,) = [line.split() for line in docs if "ACL SETUSER viewer" in line]
        server.client.execute_command(*rights)
        board = self.board(server, "--allow-actions", "--user", "viewer", "-a", "secret")
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("1 job already due")
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("NOPERM")
        self.assertEqual(server.client.execute_command("DQ.LEN", "q", "READY"), 1)
        batch = page.locator(".needy li")
        page.goto(board.url + "flow?queue=0:q&id=callback")
        expect(batch).to_have_text("Group batch 1 left (none of its done jobs is kept: see DONELEN and DONETTL), then callback")
        self.assertEqual(ask(board.url + "api/scale?queue=q&per=10")[0], 200)
        server.client.execute_command("ACL", "SETUSER", "viewer", "-dq.forecast", "-dq.peek", "-dq.len")
        page.goto(board.url + "flow?queue=0:q&id=callback")
        expect(batch).to_have_text("Group batch how many are left is unknown (none of its done jobs is kept: see DONELEN and DONETTL), then callback")
        self.assertNotEqual(ask(board.url + "api/scale?queue=q&per=10")[0], 200)
        page.goto(board.url + "queue?queue=0:q")
        expect(page.get_by_role("alert").filter(has_text="NOPERM").first).to_be_visible()
        page.goto(board.url + "jobs?queue=0:q&state=ready")
        expect(page.get_by_role("alert").filter(has_text="NOPERM").first).to_be_visible()
        self.assertEqual(ask(board.url + "api/look/find?id=job")[0], 200)
        server.client.execute_command("ACL", "SETUSER", "viewer", "-dq.scan")
        page.goto(board.url + "search")
        page.get_by_role("searchbox").fill("job")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="NOPERM").first).to_be_visible()
