"""Done jobs, and jobs that wait for others."""

import urllib.parse

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, calls, cell, wait_until


class Outcomes(BoardTest):
    def workflow(self, *options):
        """`first` is done, `last` waits for `second` and came after `first`; the pages of both show it."""
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 1000, "DONETTL", HOUR)
        client.execute_command("DQ.ADD", "q", "first", "x")
        client.execute_command("DQ.ADD", "q", "second", "x", "DELAY", HOUR)
        client.execute_command("DQ.ADD", "q", "last", "x", "AFTER", 2, "first", "second", "ONDEAD", "DIE")
        self.finish(client, "first", b'{"sum": 12345678901234567890}')
        return client, self.board(server, *options)

    @staticmethod
    def finish(client, id, result):
        token = client.execute_command("DQ.POP", "q", "ID", id)[2]
        assert client.execute_command("DQ.ACK", "q", "RESULTS", id, token, result) == 1

    @staticmethod
    def state(client, id):
        job = client.execute_command("DQ.GET", "q", id)
        return job and dict(job)[b"state"]

    def act(self, page, button, yes, scope=".actions", told=""):
        page.locator(scope).get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text(told)
        page.get_by_role("dialog").get_by_role("button", name=yes, exact=True).click()
        expect(page.get_by_role("dialog")).to_have_count(0)

    def test_they_are_counted_and_listed(self):
        client, board = self.workflow()
        page = self.window(viewport={"width": 1500, "height": 860})
        page.goto(board.url)
        expect(cell(page, "q", "blocked")).to_have_text("1")
        expect(cell(page, "q", "done")).to_have_text("1")
        # Even the narrowest windows with so many columns have room for them.
        for width in [1411, 1241, 1001, 731]:
            page.set_viewport_size({"width": width, "height": 860})
            self.assertTrue(page.locator(".titles [role=row]").evaluate("(it) => it.scrollWidth <= it.clientWidth"), width)
        page.set_viewport_size({"width": 1500, "height": 860})
        expect(page.locator(".figures")).to_contain_text("1 done are kept (35 B)")
        expect(page.locator(".figures")).to_contain_text("1 blocked")
        page.get_by_role("link", name="q", exact=True).click()
        expect(page.locator(".facts").last).to_contain_text("1,000 at most, for 1 h")
        page.get_by_role("link", name="Done 1").click()
        line = page.locator("tbody tr")
        expect(page.locator("thead th:visible")).to_have_text(["Id", "Finished", "Ran for", "Attempts", "Size", "Result"])
        expect(line.locator("td.j0")).to_have_text("first")
        expect(line.locator("td.j2")).to_contain_text("ms")
        expect(line.locator("td.j5")).to_have_text('{"sum": 12345678901234567890}')
        expect(page.locator(".tools .note")).to_have_text("35 B of ids, payloads, results and progress")
        page.get_by_role("link", name="Blocked 1").click()
        expect(line.locator("td.j0")).to_have_text("last")
        expect(line.locator("td.j5")).to_have_text("second")
        self.assertEqual(page.wrong, [])

    def test_a_done_job_tells_its_result_and_how_long_it_ran(self):
        client, board = self.workflow()
        page = self.window()
        page.goto(board.url + "job?queue=0:q&id=first")
        expect(page.get_by_label("Result")).to_contain_text('"sum": 12345678901234567890')
        expect(page.get_by_label("Payload")).to_have_text("x")
        facts = page.locator(".facts")
        for said in ["State" + "done", "Finished", "Ran for", "Started"]:
            expect(facts).to_contain_text(said)
        expect(page.get_by_role("heading", name="What waits for it")).to_have_count(0)
        client.execute_command("DQ.KICK", "q", "IDS", 1, "first")
        expect(facts).to_contain_text("Stateready")
        expect(page.get_by_label("Result")).to_have_count(0)
        self.assertEqual(page.wrong, [])

    def test_what_a_job_waits_for_and_what_waits_for_it(self):
        client, board = self.workflow()
        page = self.window()
        page.goto(board.url + "job?queue=0:q&id=last")
        lines = page.locator("tbody tr")
        expect(lines).to_have_count(2)
        expect(lines.first).to_have_text('firstdone{"sum": 12345678901234567890}')
        expect(lines.last).to_have_text("secondnot finished–")
        expect(page.get_by_text("it dies too")).to_be_visible()
        page.get_by_role("link", name="second", exact=True).click()
        expect(page.get_by_role("heading", name="What waits for it")).to_be_visible()
        page.locator(".ids").get_by_role("link", name="last", exact=True).click()
        client.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "second")
        self.finish(client, "second", b"")
        expect(page.get_by_role("heading", name="Came after")).to_be_visible()
        expect(lines.last).to_have_text("seconddone")
        # Of a group.
        for id in ["a", "b"]:
            client.execute_command("DQ.ADD", "q", id, "x", "GROUP", "<i>acme")
        client.execute_command("DQ.ADD", "q", "summary", "x", "AFTER", "GROUP", "<i>acme")
        page.goto(board.url + "job?queue=0:q&id=summary")
        expect(page.get_by_text("All jobs of the group <i>acme")).to_be_visible()
        page.goto(board.url + "job?queue=0:q&id=a")
        expect(page.locator(".ids")).to_have_text("summary")
        page.goto(board.url + "jobs?queue=0:q&state=blocked")
        expect(page.locator("tbody td.j5")).to_have_text("all jobs of the group <i>acme")
        self.assertEqual(page.wrong, [])

    def test_actions(self):
        client, board = self.workflow("--allow-actions")
        page = self.window()
        page.goto(board.url + "job?queue=0:q&id=first")
        self.act(page, "Run again", "Run it again", told="Its result is dropped.")
        self.assertEqual(self.state(client, "first"), b"ready")
        page.goto(board.url + "job?queue=0:q&id=second")
        expect(page.locator(".ids")).to_have_text("last")
        page.locator(".actions").get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("1 blocked job dies with it: last.")
        page.get_by_role("button", name="Not now").click()
        page.goto(board.url + "job?queue=0:q&id=last")
        self.act(page, "Run now", "Run it now", told="whatever it waits for")
        self.assertEqual(self.state(client, "last"), b"ready")
        # Several jobs at once, from the lists.
        client.execute_command("DQ.DEL", "q", "first", "last")
        for number in range(6):
            client.execute_command("DQ.ADD", "q", f"job-{number}", "x")
            self.finish(client, f"job-{number}", b"x")
            client.execute_command("DQ.ADD", "q", f"waits-{number}", "x", "AFTER", 1, "second")
        for state, count, button, yes, then in [
            ("done", 6, "Run again", "Run them again", b"ready"), ("blocked", 6, "Run now", "Run them now", b"ready"),
            ("blocked", 4, "Cancel", "Cancel them", None), ("done", 4, "Delete", "Delete them", None),
        ]:
            page.goto(board.url + f"jobs?queue=0:q&state={state}")
            expect(page.locator("tbody tr")).to_have_count(count)
            ids = page.locator("tbody tr a").all_text_contents()[:2]
            for id in ids:
                page.get_by_label(f"Select {id}", exact=True).check()
            self.act(page, button, yes, ".chosen")
            expect(page.locator("#said")).to_have_text("Changed 2 of 2 jobs.")
            self.assertEqual([self.state(client, id) for id in ids], [then] * 2)
        page.goto(board.url + "jobs?queue=0:q&state=done")
        expect(page.locator("tbody tr")).to_have_count(2)
        page.locator(".actions").get_by_role("button", name="Purge").click()
        expect(page.get_by_label("In redis-cli")).to_have_text("DQ.PURGE q done")
        page.get_by_role("dialog").get_by_role("textbox").fill("q")
        page.get_by_role("dialog").get_by_role("button", name="Purge").click()
        expect(page.locator("#said")).to_have_text("Purged 2 jobs.")
        self.assertEqual([client.execute_command("DQ.LEN", "q", state) for state in ["DONE", "BLOCKED", "READY"]], [0, 2, 4])
        self.assertEqual(page.wrong, [])

    def test_hostile_ids_results_and_reasons(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 1000)
        for id in HOSTILE:
            client.execute_command("DQ.ADD", "q", id, "x", "GROUP", id[:256])
            client.execute_command("DQ.ADD", "q", b"after " + id[:900], "x", "AFTER", 1, id)
            client.execute_command("DQ.ADD", "q", b"group " + id[:900], "x", "AFTER", "GROUP", id[:256])
        client.execute_command("DQ.ADD", "q", "last", "x", "AFTER", len(HOSTILE), *HOSTILE)
        board = self.board(server, "--allow-actions")
        page = self.window()
        quoted = [urllib.parse.quote(id, safe="") for id in HOSTILE]
        page.goto(board.url + "jobs?queue=0:q&state=blocked")
        expect(page.locator("tbody tr")).to_have_count(2 * len(HOSTILE) + 1)
        for id in quoted:
            page.goto(board.url + f"job?queue=0:q&id={id}")
            expect(page.locator(".ids li")).to_have_count(3)
        for id in HOSTILE[1:]:
            self.finish(client, id, id)
        client.execute_command("DQ.POP", "q", "ID", HOSTILE[0])
        client.execute_command("DQ.NACK", "q", HOSTILE[0], "FATAL", "REASON", HOSTILE[0])
        page.goto(board.url + "jobs?queue=0:q&state=done")
        expect(page.locator("tbody tr")).to_have_count(len(HOSTILE) - 1)
        for id in quoted[1:]:
            page.goto(board.url + f"job?queue=0:q&id={id}")
            expect(page.get_by_label("Result")).to_be_visible()
        page.goto(board.url + "job?queue=0:q&id=last")
        expect(page.locator("tbody tr")).to_have_count(len(HOSTILE))
        expect(page.locator("tbody tr td.o1")).to_have_text(["dead"] + ["done"] * (len(HOSTILE) - 1))
        page.locator("tbody a").nth(1).click()
        # An action affects exactly the named job.
        self.act(page, "Run again", "Run it again")
        self.assertEqual(self.state(client, HOSTILE[1]), b"ready")
        self.assertEqual(page.locator("img[src='x']").count(), 0)
        self.assertNotEqual(page.title(), "pwned")
        self.assertEqual(page.wrong, [])

    def test_of_large_results_the_beginning_is_read(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 1000)
        for number in range(6):
            client.execute_command("DQ.ADD", "q", f"job-{number}", "x")
            self.finish(client, f"job-{number}", b"y" * 4_000_000)
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "jobs?queue=0:q&state=done")
        expect(page.locator("tbody tr")).to_have_count(6)
        for result in ["first", "last"]:
            expect(getattr(page.locator("td.j5"), result)).to_contain_text("yyyy")
        page.goto(board.url + "job?queue=0:q&id=job-0")
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        expect(page.locator("section").filter(has=page.get_by_label("Result")).locator(".note")).to_have_text("text, more than 65,536 bytes, the first 65,536 of them")
        wait_until("six readings", lambda: calls(server, "dq.get") >= 18)
        self.assertLess(client.info("stats")["total_net_output_bytes"], 4_000_000)
        self.assertEqual(page.wrong, [])

    def test_more_blocked_jobs_than_are_looked_through_at_once(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        pipe.execute_command("DQ.ADD", "q", "first", "x", "DELAY", HOUR)
        for number in range(5000):
            pipe.execute_command("DQ.ADD", "q", f"job-{number:04}", "x", "AFTER", 1, "first")
        pipe.execute()
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "job?queue=0:q&id=first")
        expect(page.locator(".ids li")).to_have_count(50)
        note = page.locator("section").filter(has=page.get_by_role("heading", name="What waits for it")).locator(".note")
        expect(note).to_contain_text("blocked jobs checked. The first 50 are listed.")
        page.get_by_role("link", name="Search further").click()
        expect(page.get_by_role("link", name="First jobs")).to_be_visible()
        expect(page.locator(".ids li")).to_have_count(50)
        page.goto(board.url + "jobs?queue=0:q&state=blocked")
        expect(page.locator("tbody tr a").first).to_have_text("job-0000")
        page.get_by_role("link", name="Next page").click()
        expect(page.locator("tbody tr a").first).to_have_text("job-0050")
        self.assertEqual(page.wrong, [])
