"""Finding jobs, and what a board must not reveal."""

import json
import re
import time
import urllib.parse

import redis
from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, die, key, post, wait_until
from test_stream import Stream


class Search(BoardTest):
    def found(self, board, words):
        """All jobs of a search, over all its pages."""
        jobs, cursor = {}, ""
        while cursor is not None:
            page = json.loads(ask(f"{board.url}api/look/find?{words}{cursor and '&cursor=' + cursor}")[2])
            jobs.update({job["id"]: job for job in page["jobs"]})
            cursor = page["more"]
        return jobs

    def test_all_queues_are_searched_in_steps(self):
        server = self.server()
        client = server.client
        evil = HOSTILE[0]
        for number in range(250):
            client.execute_command("DQ.ADD", f"many-{number:03}", "order-1" if number % 2 else "other", "x", "DELAY", HOUR)
        die(client, evil, 3, lambda number: f"no  room in <i>{number}: the disk of the shop is full")
        client.set("no queue", "x")
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(page.locator("#sum")).to_have_text("251 queues")
        page.get_by_role("link", name="Search all queues").click()
        expect(page.locator(".empty")).to_contain_text("What is looked for?")
        page.get_by_role("searchbox").fill("order-")
        page.keyboard.press("Enter")
        lines = page.locator("tbody tr")
        status = page.locator(".further").get_by_role("status")
        expect(status).to_have_text(re.compile(r"^\d+ found, \d+ of 251 queues searched\.$"))
        for _ in range(3):
            if status.text_content() == "125 found, all queues searched.":
                break
            page.get_by_role("button", name="Search further").click()
            expect(page.locator(".further progress")).to_have_count(0)
        expect(status).to_have_text("125 found, all queues searched.")
        expect(lines).to_have_count(125)
        self.assertEqual(sorted(lines.locator(".fq").all_text_contents()), [f"many-{number:03}" for number in range(1, 250, 2)])
        # By a part of a reason as it is shown, in one state; the columns sort.
        page.get_by_role("button", name="More filters").click()
        page.get_by_label("State", exact=True).select_option("dead")
        page.get_by_role("searchbox").fill("")
        page.get_by_label("Reason contains").fill("no room in <i>")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(status).to_have_text("3 found, all queues searched.")
        expect(lines.first.locator(".fq")).to_have_text(evil.decode())
        self.assertFalse(lines.first.locator(".f6").evaluate("(it) => it.scrollWidth > it.clientWidth"), "a reason is not cut")
        page.get_by_role("button", name="Id", exact=True).click()
        expect(lines.locator(".f0")).to_have_text(["job:0", "job:1", "job:2"])
        page.locator("th.f0 button").click()
        expect(lines.locator(".f0")).to_have_text(["job:2", "job:1", "job:0"])
        expect(page.locator("th.f0")).to_have_attribute("aria-sort", "descending")
        expect(status).to_have_text("3 found, all queues searched.")
        other = self.window(viewport={"width": 320, "height": 860})
        other.goto(page.url)
        expect(other.locator("tbody tr")).to_have_count(3)
        self.assertFalse(other.evaluate("document.documentElement.scrollWidth > innerWidth"))
        # By a part of a result.
        client.execute_command("DQ.CFGSET", "results", "DONELEN", 9)
        for id, result in [("a", evil), ("b", b"other")]:
            client.execute_command("DQ.ADD", "results", id, "x")
            token = client.execute_command("DQ.POP", "results", "ID", id)[2]
            client.execute_command("DQ.ACK", "results", "RESULTS", id, token, b"it is " + result)
        self.assertEqual(list(self.found(board, f"queue=0:results&state=done&result={urllib.parse.quote(evil)}")), ["a"])
        # An address without a state, by a label that needs more than one line.
        label = "Kundenimport – März, größere Dateien"
        client.execute_command("DQ.ADD", "labelled", "job", "x", "LABEL", label)
        wait_until("its queue is known", lambda: json.loads(ask(board.url + "api/look/find?state=all&id=o")[2])["of"] == 253)
        page.goto(f"{board.url}search?label={urllib.parse.quote(label)}")
        expect(lines.locator(".f5")).to_have_text(label)
        self.assertFalse(lines.locator(".f5").evaluate("(it) => it.scrollWidth > it.clientWidth"), "a label is not cut")
        # A board that shows only some of the queues searches no others.
        some = self.board(server, "--queue", "many-001", "--queue", "many-003")
        wait_until("they are known", lambda: json.loads(ask(some.url + "api/look/find?state=all&id=o")[2])["of"] == 2)
        self.assertEqual(len(json.loads(ask(some.url + "api/look/find?state=all&id=o")[2])["jobs"]), 2)
        self.assertEqual(ask(some.url + "api/look/find?state=nonsense")[0], 400)
        self.assertEqual(page.wrong + other.wrong, [])

    def test_none_that_matches_is_left_out(self):
        server = self.server()
        client = server.client
        die(client, "q", 3000, lambda number: f"HTTP 503: order {number} waits" if number % 2 else "no room")
        client.execute_command("DQ.ADD", "q", "job:waits", "payload 77", "DELAY", HOUR, "GROUP", "g1", "LABEL", "close*")
        client.execute_command("DQ.ADD", "q", "other", "x", "LABEL", "close-order")
        client.execute_command("DQ.ADD", "q", "job:1*", "x")
        board = self.board(server)
        ids = [f"job:{number}" for number in range(3000)]
        found = self.found(board, "queue=0:q&id=job%3A1&state=all")
        self.assertEqual(sorted(found), sorted(urllib.parse.quote(it, safe="") for it in ids + ["job:1*"] if "job:1" in it))
        job = found["job%3A11"]
        self.assertEqual([job[field] for field in ["state", "attempts", "reason", "group"]], ["dead", 1, "HTTP 503: order 11 waits", "g2"])
        self.assertIsNotNone(job["at"])
        self.assertEqual(len(self.found(board, "queue=0:q&id=job%3A1&state=dead")), 1111)
        # In any state, by payload, group, reason and age, and by several of these.
        self.assertEqual(len(self.found(board, "queue=0:q&payload=payload%2077")), 12)
        self.assertEqual(len(self.found(board, "queue=0:q&group=g1")), 1001)
        self.assertEqual([job["label"] for job in self.found(board, "queue=0:q&label=close*").values()], ["close*"])
        reason = urllib.parse.quote("HTTP 503: order # waits")
        self.assertEqual(len(self.found(board, f"queue=0:q&kind={reason}")), 1500)
        self.assertEqual(len(self.found(board, f"queue=0:q&kind={reason}&group=g1&id=9")), sum(number % 6 == 1 and "9" in str(number) for number in range(3000)))
        # A job's own reason, pasted in, and a part of it.
        self.assertEqual(list(self.found(board, "queue=0:q&reason=HTTP%20503%3A%20order%2011%20waits")), ["job%3A11"])
        self.assertEqual(len(self.found(board, "queue=0:q&reason=%20order%2011")), 56)
        self.assertEqual(len(self.found(board, "queue=0:q&older=3600000")), 0)
        self.assertEqual(len(self.found(board, "queue=0:q&id=job%3A1*&state=ready")), 1)

    def test_a_reason_is_found_as_it_was_pasted(self):
        server = self.server()
        traceback = 'Traceback (most recent call last):\r\n' + "".join(f'\tFile "<b>/srv/app/{number}.py", line {number}\r\n\t\tcall_{number}(é)\r\n' for number in range(40))
        die(server.client, "q", 3, lambda number: ["no room", "ValueError:\tno\nroom", traceback][number])
        kept = dict(server.client.execute_command("DQ.GET", "q", "job:2"))[b"reason"]
        self.assertEqual(len(kept), 1024)
        page = self.window()
        board = self.board(server, "--allow-actions")
        for pasted, ids in [
            (traceback.replace("\r", "").expandtabs(), ["job:2"]),
            (traceback[40:300], ["job:2"]),
            ("ValueError:  no\n    room", ["job:1"]),
            ("no\troom\n", ["job:0", "job:1"]),
        ]:
            page.goto(board.url + "jobs?queue=0:q&state=dead")
            page.get_by_role("button", name="More filters").click()
            page.get_by_label("Reason contains").fill(pasted)
            page.keyboard.press("Enter")
            expect(page.locator(".further [role=status]")).to_have_text(f"{len(ids)} found, all jobs searched.")
            self.assertEqual(sorted(page.locator("tbody tr .f0").all_text_contents()), ids)
        # As the page itself shows it, and on a second search.
        page.get_by_role("link", name="job:1").click()
        shown = page.locator(".facts dd").filter(has_text="ValueError").inner_text()
        self.assertEqual(list(self.found(board, f"queue=0:q&reason={urllib.parse.quote(shown)}")), ["job%3A1"])
        page.go_back()
        expect(page.get_by_label("Reason contains")).to_have_value("no\troom\n")
        # All that match are changed, and no other.
        page.get_by_role("button", name="Retry all").click()
        expect(page.get_by_role("dialog")).to_contain_text("2 jobs become ready now")
        page.get_by_role("dialog").get_by_role("button", name="Retry them").click()
        wait_until("they are ready", lambda: server.client.execute_command("DQ.LEN", "q", "READY") == 2)
        self.assertEqual(page.wrong, [])

    def test_heavy_jobs_are_found_all_the_same(self):
        server = self.server()
        for number in range(30):
            server.client.execute_command("DQ.ADD", "q", f"job:{number}", b"x" * 1_500_000)
        self.assertEqual(len(self.found(self.board(server), "queue=0:q&id=job")), 30)

    def test_the_page_says_how_far_it_looked(self):
        server = self.server()
        die(server.client, "q", 700, lambda number: f"HTTP 503: order {number} waits" if number % 7 else "<b>no room</b>")
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        page.get_by_role("navigation", name="Reasons").get_by_role("link", name="no room").click()
        status = page.locator(".further [role=status]")
        expect(status).to_contain_text("found,")
        # While it searches, the button is another one.
        whole = "100 found, all jobs searched."
        button = page.get_by_role("button", name="Search further")
        expect(button.or_(page.get_by_text(whole, exact=True))).to_be_visible()
        while button.is_visible():
            button.click()
            expect(button.or_(page.get_by_text(whole, exact=True))).to_be_visible()
        expect(status).to_have_text(whole)
        expect(page.locator("tbody tr")).to_have_count(100)
        expect(page.locator("tbody tr").first).to_contain_text("dead")
        page.get_by_role("navigation", name="Reasons").get_by_role("link", name="All reasons").click()
        page.get_by_role("button", name="More filters").click()
        page.get_by_role("searchbox").fill("job:77")
        page.get_by_label("Payload contains").fill("payload 77")
        page.get_by_label("In all states").check()
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("tbody tr a")).to_have_text(["job:77"])
        self.assertIn("id=job%3A77&", page.url)
        self.assertEqual(page.wrong, [])

    def test_a_mistake_is_the_clients(self):
        board = self.board(self.server())
        for words, status in [("nonsense?queue=0:q", 404), ("forecast?queue=0:q&zoom=eon", 400), ("jobs?queue=0:q&state=odd", 400), ("find?queue=0:q&older=-1", 400), ("jobs?state=dead", 400)]:
            self.assertEqual(ask(f"{board.url}api/look/{words}")[0], status, words)


class Scale(BoardTest):
    def test_how_many_workers_are_wanted(self):
        server = self.server()
        client = server.client
        for number in range(25):
            client.execute_command("DQ.ADD", "q:1", f"now-{number}", "x")
            client.execute_command("DQ.ADD", "q:1", f"soon-{number}", "x", "DELAY", 30 * 60_000)
        client.execute_command("DQ.POP", "q:1", "COUNT", 5)
        board = self.board(server, "--queue", "q:1", "--queue", "none", DQ_BOARD_TOKEN="0123456789abcdef")

        def wanted(words):
            status, _, text = ask(f"{board.url}api/scale?{words}", authorization="Bearer 0123456789abcdef")
            return json.loads(text) if status == 200 else status

        wait_until("it is read", lambda: wanted("queue=q:1&per=10")["attended"] is not None)
        self.assertEqual(wanted("queue=q:1&per=10"), {"workers": 3, "ready": 20, "reserved": 5, "coming": 0, "held": 0, "attended": True, "per": 10.0, "ahead": 60_000})
        self.assertEqual(wanted("queue=q%3A1&per=10&ahead=1h")["workers"], 5)
        self.assertEqual(wanted("queue=none&per=10")["workers"], 0)
        # Of 25 ready and reserved jobs without a group all may be worked on, of the 60 of three groups two each.
        for number in range(60):
            client.execute_command("DQ.ADD", "q:1", f"grouped-{number}", "x", "GROUP", f"g{number % 3}")
        self.assertEqual(wanted("queue=q:1&per=1&ahead=1h")["workers"], 110)
        client.execute_command("DQ.CFGSET", "q:1", "GROUPMAX", 2)
        self.assertEqual(wanted("queue=q:1&per=1&ahead=1h")["workers"], 56)
        # A paused group wants none for its 20 jobs, also among delayed ones of others; one of its own MAX more than the others.
        client.execute_command("DQ.PAUSE", "q:1", "GROUP", "g0")
        self.assertEqual((wanted("queue=q:1&per=1&ahead=1h")["workers"], wanted("queue=q:1&per=1")["held"]), (54, 20))
        client.execute_command("DQ.GROUPSET", "q:1", "g1", "MAX", 12)
        self.assertEqual(wanted("queue=q:1&per=1&ahead=1h")["workers"], 64)
        client.execute_command("DQ.CFGSET", "q:1", "MAXRESERVED", 9)
        self.assertEqual(wanted("queue=q:1&per=1&ahead=1h")["workers"], 9)
        for words, status in [("per=1", 400), ("queue=q:1", 400), ("queue=q:1&per=x", 400), ("queue=q:1&per=1&ahead=eon", 400), ("queue=other&per=1", 403), ("queue=q:1&per=1&db=1", 403)]:
            self.assertEqual(wanted(words), status, words)
        self.assertEqual(ask(board.url + "api/scale?queue=q:1&per=10")[0], 401)

    def test_the_forecast_and_the_scale_know_that_nobody_is_connected(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.ADD", "q", "job", "x")
        board = self.board(server)
        page = self.window()
        verdict = page.locator(".verdict")
        page.goto(board.url + "queue?queue=0:q")
        expect(verdict).to_have_text("no client asks for jobs: nothing is delivered until one does.")
        self.assertIs(json.loads(ask(board.url + "api/scale?queue=q&per=10")[2])["attended"], False)
        page.get_by_label("With", exact=True).fill("2")
        expect(verdict).to_contain_text("a second: this peak is cleared by")
        page.reload()
        expect(verdict).to_contain_text("a second: this peak is cleared by")
        page.goto(board.url + "queue?queue=0:q")
        worker = redis.Redis(port=server.port, single_connection_client=True)
        worker.execute_command("DQ.POP", "q", "TTR", HOUR)
        client.execute_command("DQ.ADD", "q", "another", "x")
        expect(verdict).to_contain_text("not while all workers are busy. The oldest job has been due for")
        # Another board has not seen the delivery, but the worker is connected: all say so.
        board = self.board(server)
        scale = lambda: json.loads(ask(board.url + "api/scale?queue=q&per=10")[2])["attended"]  # noqa: E731
        first = self.window()
        first.goto(board.url)
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".why")).to_have_text("1 job is ready; all workers are busy")
        expect(verdict).to_contain_text("not while all workers are busy")
        expect(first.locator(".needy li")).to_contain_text("1 job is ready; all workers are busy")
        wait_until("the queue is read", scale)
        # The lease outlives it.
        worker.close()
        expect(page.locator(".why")).to_contain_text("1 job is ready, and no client asks for any; the next lease ends in 59 min")
        expect(verdict).to_have_text("no client asks for jobs (1 reserved): nothing is delivered until one does.")
        expect(first.locator(".needy li")).to_contain_text("1 job is ready, and no client asks for any")
        self.assertIs(scale(), False)
        # One that takes a job and leaves is not at work.
        client.execute_command("DQ.ADD", "q", "short", "x", "PRIORITY", -1)
        client.execute_command("DQ.POP", "q", "ID", "short", "NOACK")
        expect(page.locator(".why")).to_have_text("1 job is ready; clients that do not wait took some lately")
        expect(verdict).to_contain_text("how long this takes is not known")
        wait_until("the delivery is seen", scale)
        self.assertEqual(page.wrong + first.wrong, [])

    def test_what_crashed_workers_left_comes_before_trifles(self):
        server = self.server()
        ago = lambda seconds: int(time.time() * 1000) - seconds * 1000  # noqa: E731
        for number in range(20):
            server.client.execute_command("DQ.ADD", "crashed", f"job-{number}", "x", "AT", ago(900))
        server.client.execute_command("DQ.ADD", "trifle", "job", "x", "AT", ago(90))
        worker = redis.Redis(port=server.port, single_connection_client=True)
        worker.execute_command("DQ.POP", "crashed", "COUNT", 3, "TTR", HOUR)
        worker.close()
        board = self.board(server)
        # The list has them in that order before anybody has asked for a first page.

        def looks():
            rows = Stream(board.url).until(lambda it: it["kind"] == "all")["rows"]
            return [(int(look), name) for look, name in sorted(((it.get("look", 0), it["name"]) for it in rows), reverse=True)]

        wait_until("the server was asked", lambda: looks() == [(6, "crashed"), (6, "trifle")])
        overview = lambda: [it["name"] for it in json.loads(ask(board.url + "api/look/overview")[2])["queues"]]  # noqa: E731
        wait_until("both are read", lambda: len(overview()) == 2)
        self.assertEqual(overview(), ["crashed", "trifle"])
        page = self.window()
        page.goto(board.url)
        expect(page.locator("[data-line] a")).to_have_text(["crashed", "trifle"])

    def test_the_workers_are_those_that_were_measured(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q")
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".ask .note")).to_have_text("(assumed: nothing was measured yet)")
        turn = 0

        def measured():
            nonlocal turn
            turn += 1
            for number in range(4):
                client.execute_command("DQ.ADD", "q", f"job-{turn}-{number}", "x")
            for id, _, token, _, _ in client.execute_command("DQ.POP", "q", "COUNT", 4)[turn % 2:]:
                client.execute_command("DQ.ACK", "q", "WITHTOKENS", id, token)
            return page.locator(".ask .note").text_content() == "(as measured)"

        wait_until("it is measured", measured)
        # What is taken with NOACK is never reserved.
        client.execute_command("DQ.CFGSET", "noack")
        other = self.window()
        other.goto(board.url + "queue?queue=0:noack")

        def is_unseen():
            client.execute_command("DQ.ADD", "noack", "*", "x")
            client.execute_command("DQ.POP", "noack", "NOACK")
            return "as with NOACK" in other.locator(".ask .note").text_content()

        # With nothing to do none is wanted, and a first one while nobody is there to be measured.
        scale = lambda: json.loads(ask(board.url + "api/scale?queue=noack")[2])  # noqa: E731
        self.assertEqual((scale()["workers"], scale()["per"]), (0, None))
        client.execute_command("DQ.ADD", "noack", "job", "x")
        wait_until("it is read", lambda: scale().get("attended") is False)
        self.assertEqual((scale()["workers"], scale()["ready"]), (1, 1))
        client.execute_command("DQ.ADD", "begun", "job", "x")
        client.execute_command("DQ.POP", "begun")
        wait_until("the worker is seen", lambda: "None was measured yet." in ask(board.url + "api/scale?queue=begun")[2])
        wait_until("it is known", is_unseen)
        expect(other.locator(".ask .note")).to_have_text("(assumed: no job was seen reserved, as with NOACK)")
        self.assertIn("This cannot be measured: no job was seen reserved, as with NOACK.", ask(board.url + "api/scale?queue=noack")[2])
        self.assertGreater(float(page.get_by_label("workers at").input_value()), 0)
        page.get_by_label("workers at").fill("7.5")
        expect(page.locator(".ask .note")).to_have_text("")
        self.assertEqual(page.wrong, [])


class Scope(BoardTest):
    def test_queues_and_databases_that_are_not_shown_cannot_be_reached(self):
        server = self.server()
        for db in [0, 1]:
            server.client.execute_command("SELECT", db)
            for name in ["orders", "other"]:
                server.client.execute_command("DQ.ADD", name, "job", "secret", "DELAY", HOUR)
        server.client.execute_command("SELECT", 0)
        for options, shown, hidden in [
            (["--queue", "orders"], [("orders", 0)], [("other", 0), ("orders", 1)]),
            ([], [("orders", 0), ("other", 0)], [("orders", 1)]),
            (["-n", "1"], [("orders", 1)], [("orders", 0)]),
            (["-n", "all"], [("orders", 0), ("other", 1)], []),
        ]:
            board = self.board(server, "--allow-actions", *options)
            for where, status in [(it, 200) for it in shown] + [(it, 403) for it in hidden]:
                queue = key(*where)
                for view in ["queue", "jobs", "job", "find", "forecast", "groups", "recurring", "died", "waiters"]:
                    answer = ask(f"{board.url}api/look/{view}?queue={queue}&id=job&state=delayed&zoom=hour")
                    self.assertEqual(answer[0], status, (options, view, queue))
                    self.assertEqual("secret" in answer[2], status == 200 and view in ["jobs", "job", "find"])
                for act in [{"act": "pause"}, {"act": "purge", "state": "all", "typed": where[0]}]:
                    if status == 403:
                        self.assertEqual(post(board.url + "api/act", {"queue": queue, **act})[0], 403)
        for db in [0, 1]:
            server.client.execute_command("SELECT", db)
            self.assertEqual([server.client.execute_command("DQ.LEN", name) for name in ["orders", "other"]], [1, 1])
