"""What needs a look, over all queues, and what they do together."""

import json
import re
import signal

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, calls, cell, die, micros, wait_until


class Overview(BoardTest):
    def test_what_needs_a_look_and_why(self):
        server = self.server()
        say = server.client.execute_command
        die(server.client, "b-dead", 3)
        die(server.client, HOSTILE[0], 1)
        die(server.client, "f-known", 2)
        say("DQ.ADD", "c-late", "job", "x", "AT", 1)
        say("DQ.ADD", "d-paused", "job", "x")
        say("DQ.PAUSE", "d-paused")
        say("DQ.ADD", "e-well", "job", "x", "DELAY", HOUR)
        page = self.window()
        board = self.board(server)
        page.goto(board.url)
        lines = page.locator(".needy li")
        # What hurts most comes first, in the list, too.
        expect(page.get_by_role("heading", name="5 queues need a look")).to_be_visible()
        expect(lines.nth(0)).to_have_text(re.compile(r"^c-late a job has been due for \d+ years; 1 job is ready, and no client asks for any$"))
        # What died before the board began counts, too.
        expect(lines.nth(1)).to_have_text("b-dead 3 jobs are dead, all of them died since yesterday")
        expect(lines.nth(2)).to_have_text("f-known 2 jobs are dead, all of them died since yesterday")
        expect(lines.nth(3)).to_have_text(f"{HOSTILE[0].decode()} 1 job is dead, it died since yesterday")
        expect(lines.nth(4)).to_have_text(re.compile(r"^d-paused a job has been due for .*; the queue is paused until it is resumed"))
        expect(page.locator(".first .note")).to_have_text("1 is calm.")
        expect(page.locator("[data-line] a")).to_have_text(["c-late", "b-dead", "f-known", HOSTILE[0].decode(), "d-paused", "e-well"])
        expect(cell(page, "c-late", "ready")).to_have_attribute("data-tone", "bad")
        say("DQ.PURGE", "f-known", "dead")
        # More than are counted.
        die(server.client, "b-dead", 120)
        expect(lines.nth(1)).to_have_text("b-dead 120 jobs are dead, at least 100 of them died since yesterday")
        for name in ["b-dead", HOSTILE[0]]:
            say("DQ.PURGE", name, "dead")
        expect(page.get_by_role("heading", name="2 queues need a look")).to_be_visible()
        say("DQ.POP", "c-late")
        say("DQ.RESUME", "d-paused")
        say("DQ.POP", "d-paused")
        expect(page.get_by_role("heading", name="No queue needs a look")).to_be_visible()
        expect(lines).to_have_count(0)
        self.assertEqual(page.wrong, [])

    def test_a_page_that_stays_open_begins_anew_with_its_board(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x", "DELAY", HOUR)
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(page.get_by_role("heading", name="No queue needs a look")).to_be_visible()
        # Another board, which cannot read anything yet.
        server.process.send_signal(signal.SIGSTOP)
        board.close()
        self.board(server, "--listen", board.url.split("/")[2])
        expect(page.get_by_role("heading", name=re.compile("^(Still looking: 0 of|No queue can be read)"))).to_be_visible()
        server.process.send_signal(signal.SIGCONT)
        die(server.client, "q", 1)
        expect(page.get_by_role("heading", name="1 queue needs a look")).to_be_visible()
        self.assertEqual(page.wrong, [])

    def test_the_last_hour_of_all_queues(self):
        server = self.server()
        say = server.client.execute_command
        for name in ["a", "b"]:
            say("DQ.CFGSET", name)
        page = self.window(viewport={"width": 390, "height": 860})
        page.goto(self.board(server).url)
        told = page.locator(".first .readout")
        expect(told).to_contain_text("0 jobs delivered, 0 failed; 0 ready at most, 0 now.")
        for name in ["a", "b"]:
            for number in range(9):
                say("DQ.ADD", name, number, "x")
            for id, _, token, _, _ in say("DQ.POP", name, "COUNT", 6)[:2]:
                say("DQ.NACK", name, id, "TOKEN", token)
        expect(told).to_contain_text(re.compile(r"1[123] jobs delivered, [34] failed; \d+ ready at most"))
        # What is ready now is no maximum of some seconds.
        say("DQ.PURGE", "a", "ready")
        left = sum(say("DQ.LEN", name, "READY") for name in ["a", "b"])
        expect(told).to_have_text(re.compile(rf" (\d\d|[{left + 1}-9]) ready at most, {left} now\.$"))
        for path in ["past", "failed", "waiting"]:
            expect(page.locator(f".first path.{path}")).to_have_attribute("d", re.compile("^M"))
        expect(page.locator(".first svg")).to_have_attribute("aria-label", re.compile("jobs delivered"))
        # Which server this is, and in which role, is said on a phone, too.
        expect(page.locator("#server")).to_be_in_viewport()
        expect(page.locator("#server")).to_have_text(re.compile(r"^127\.0\.0\.1:\d+ · (Redis|Valkey) [\d.]+ · master$"))
        self.assertEqual(page.wrong, [])

    def test_what_a_new_queue_did_before_it_was_read_counts(self):
        server = self.server()
        say = server.client.execute_command
        say("DQ.CFGSET", "old")
        board = self.board(server)
        # Without a tab it reads every ten seconds: all queues are known, then one begins.
        wait_until("it has searched", lambda: json.loads(ask(board.url + "api/look/overview?")[2])["known"][-1] and calls(server, "dq.stats") > 0)
        searched = calls(server, "scan")
        for number in range(40):
            say("DQ.ADD", "new", number, "x", "DELAY" if number > 30 else "PRIORITY", HOUR)
        say("DQ.POP", "new", "COUNT", 30)
        say("DQ.ADD", "old", "job", "x")
        say("RENAME", "old", "renamed")
        wait_until("it has searched again", lambda: calls(server, "scan") > searched)
        page = self.window()
        for zoom in ["hour", "minute"]:
            page.goto(board.url + f"queue?queue=0:new&zoom={zoom}")
            expect(page.locator(".readout")).to_contain_text("30 jobs delivered")
        self.assertEqual(page.wrong, [])

    def test_names_that_begin_alike_are_told_apart_and_empty_columns_left_out(self):
        server = self.server()
        say = server.client.execute_command
        names = [f"team-0:service-1:a-rather-long-name-of-a-queue-of-{'x' * 40}:{number:04}" for number in range(30)]
        for name in names:
            say("DQ.ADD", name, "job", "x", "DELAY", HOUR)
        board = self.board(server)
        pages = [self.window(viewport={"width": width, "height": 860}) for width in [320, 390, 1440]]
        for page in pages:
            page.goto(board.url)
            expect(page.locator("[data-line] a").first).to_have_text(names[0])
            # The end of each name is seen whole.
            end = "(all) => all.every((it) => it.lastChild.scrollWidth <= it.lastChild.clientWidth && it.lastChild.getBoundingClientRect().right <= innerWidth)"
            self.assertTrue(page.locator("[data-line] a").evaluate_all(end))
            is_cut = page.locator("[data-line] a").first.evaluate("(it) => it.firstChild.scrollWidth > it.firstChild.clientWidth")
            self.assertEqual(is_cut, page is not pages[-1])
            self.assertFalse(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        wide = pages[-1]
        heads = wide.locator("[role=columnheader]:visible")
        expect(heads).to_have_text(["Queue", "Ready", "Delayed", "Next due"])
        say("DQ.ADD", names[3], "late", "x", "AT", 1)
        say("DQ.ADD", names[3], "next", "x", "AFTER", 1, "late")
        for name, is_shown in [("Blocked", True), ("Oldest ready", True), ("Done", False), ("Dead", False)]:
            expect(wide.get_by_role("button", name=name, exact=True)).to_have_count(int(is_shown))
        die(server.client, names[5], 1)
        expect(wide.get_by_role("button", name="Dead", exact=True)).to_be_visible()
        # A column stays while the page is open: what is seen does not jump.
        say("DQ.PURGE", names[5], "dead")
        expect(cell(wide, names[5], "dead")).to_have_text("0")
        expect(wide.get_by_role("button", name="Dead", exact=True)).to_be_visible()
        self.assertEqual([page.wrong for page in pages], [[]] * 3)

    def test_of_last_runs_only_what_is_known_is_said(self):
        server = self.server()
        say = server.client.execute_command

        def run(id, *fails):
            token = say("DQ.POP", "q", "ID", id)[2]
            say(*(["DQ.NACK", "q", id, "TOKEN", token, *fails] if fails else ["DQ.ACK", "q", "WITHTOKENS", id, token]))
            say("DQ.RESCHEDULE", "q", "DELAY", 0, id)

        for id, keep in [("fine", []), ("kept", ["KEEP", HOUR])]:
            say("DQ.ADD", "q", id, "x", "EVERY", HOUR, "DELAY", 0, *keep)
            run(id, "FATAL", "REASON", "no <b>room")
            for _ in range(3):
                run(id)
        say("DQ.ADD", "q", "tries", "x", "EVERY", HOUR, "DELAY", 0)
        run("tries")
        run("tries", "REASON", "busy")
        say("DQ.ADD", "q", "late", "x", "EVERY", HOUR, "DELAY", 0, "GRACE", 1)
        wait_until("it is missed", lambda: dict(say("DQ.STATS", "q"))[b"missed"] == 1)
        # A success after the death may have made room for another job.
        say("DQ.CFGSET", "few", "DONELEN", 1)
        say("DQ.ADD", "few", "dies", "x", "EVERY", HOUR, "DELAY", 0)
        say("DQ.POP", "few")
        say("DQ.NACK", "few", "dies", "FATAL")
        say("DQ.ADD", "few", "other", "x")
        say("DQ.ACK", "few", "WITHTOKENS", "other", say("DQ.POP", "few")[2])
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "recurring?queue=0:few")
        expect(page.locator("td.r3")).to_have_text(re.compile(r"^last death .*; later successes may no longer be kept$"))
        page.goto(board.url + "recurring?queue=0:q")
        ago = r"(now|[\d.]+ (ms|s) ago)"
        none = r"successes are not kept \(DONELEN, KEEP\)"
        for id, said in [
            ("fine", f"last death {ago}: no <b>room; {none}"),
            ("kept", rf"done, ran for \d+ ms, {ago}"),
            ("tries", f"not known: {none}; last failed attempt {ago}: busy"),
            ("late", rf"not known: {none}; 1 run of any rule of this queue skipped since it came to this server \(GRACE\)"),
        ]:
            line = page.locator("tbody tr").filter(has=page.get_by_role("link", name=id, exact=True))
            expect(line.locator(".r3")).to_have_text(re.compile(f"^{said}$"))
        self.assertEqual(page.wrong, [])

    def test_runs_that_are_overdue_or_were_all_skipped(self):
        server = self.server()
        say = server.client.execute_command
        say("DQ.ADD", "late", "beat", "x", "EVERY", HOUR, "AT", micros(server.client) // 1000 - HOUR // 6)
        say("DQ.ADD", "skips", "beat", "x", "EVERY", HOUR, "DELAY", 0, "GRACE", 1)
        wait_until("it is skipped", lambda: dict(say("DQ.STATS", "skips"))[b"missed"] == 1)
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "recurring?queue=0:late")
        expect(page.locator(".r2 .run").first).to_have_text(re.compile(r"^due 1\d min( \d+ s)? ago: "))
        expect(page.locator(".r2 .run").first).to_have_attribute("data-tone", "bad")
        expect(page.locator(".r2 .run")).to_have_count(4)
        page.goto(board.url + "recurring?queue=0:skips")
        expect(page.locator("td.r3")).to_have_text("none was delivered; 1 run of any rule of this queue skipped since it came to this server (GRACE)")
        expect(page.locator("td.r4")).to_have_text("1, all skipped (GRACE)")
        page.locator("td.r0 a").click()
        expect(page.locator(".facts.wide")).to_contain_text("Runs so far1, all skipped (GRACE)")
        # Others may have been skipped.
        say("DQ.ADD", "skips", "other", "x", "EVERY", HOUR, "DELAY", HOUR)
        page.goto(board.url + "recurring?queue=0:skips")
        runs = page.locator("td.r4").first
        expect(runs).to_have_text("1, with skipped ones (GRACE)")
        lines = "(it) => { const all = document.createRange(); all.selectNodeContents(it); return all.getClientRects().length; }"
        self.assertLessEqual(runs.evaluate(lines), 2)
        self.assertEqual(page.wrong, [])

    def test_a_late_answer_does_not_replace_a_newer_one(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x", "DELAY", HOUR)
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(page.get_by_text("No queue needs a look")).to_be_visible()
        held = []
        page.route("**/api/look/overview*", lambda route: route.continue_() if held else held.append(route))
        page.reload()
        expect(page.get_by_text("No queue needs a look")).to_be_visible()
        with page.expect_event("requestfinished", lambda request: request == held[0].request):
            held[0].continue_()
        page.evaluate("new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))")
        self.assertEqual(page.locator(".first h2").first.inner_text(), "No queue needs a look")
        self.assertEqual(page.wrong, [])

    def test_a_run_that_has_passed_is_no_next_run(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x", "EVERY", HOUR, "DELAY", 9000)
        page = self.window()
        page.clock.install()
        page.goto(self.board(server).url + "recurring?queue=0:q")
        run = page.locator("td.r2 .run").first
        expect(run).to_have_text(re.compile("^in "))
        # Its own turn to ask never comes.
        page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)
        expect(run).to_have_text(re.compile("^due "))
        self.assertEqual(page.wrong, [])

    def test_runs_and_skipped_ones_are_of_one_moment(self):
        server = self.server()
        say = server.client.execute_command
        say("DQ.ADD", "skips", "beat", "x", "EVERY", 1000, "GRACE", 1)
        wait_until("one is skipped", lambda: dict(say("DQ.STATS", "skips"))[b"missed"] > 0)
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "recurring?queue=0:skips")
        expect(page.locator("td.r4")).to_contain_text("all skipped (GRACE)")
        shown = lambda: [int(re.search(r"([\d,]*\d)(, | runs? )", text)[1].replace(",", "")) for text in page.locator("td:is(.r3, .r4)").all_text_contents()]  # noqa: E731
        # The figures of the queue go on in the stream meanwhile.
        missed = lambda: page.evaluate("async () => (await import('./assets/live.js')).rows.get('0:skips').totals[8]")  # noqa: E731
        first = missed()
        wait_until("two more are skipped", lambda: missed() > first + 1)
        runs, skipped = shown()
        self.assertEqual(runs, skipped)
        self.assertEqual(page.wrong, [])

    def test_who_works_is_told_as_of_when_it_was_read(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        server.client.execute_command("DQ.POP", "q", "TTR", HOUR)
        page = self.window()
        page.goto(self.board(server).url + "workers?queue=0:q")
        since = page.locator("td.c2")
        expect(since).to_have_text(re.compile(r" s ago$"))
        expect(page.locator("main .note").first).to_have_text(re.compile(r"^At .*\d\.$"))
        # From now on nothing is read.
        page.route("**/api/look/workers*", lambda route: route.abort())
        expect(page.get_by_role("alert").filter(has_text="The board does not answer.")).to_be_visible()
        said = since.text_content()
        begin = micros(server.client)
        wait_until("time has passed, and the stream goes on", lambda: server.client.execute_command("DQ.ADD", "q", "*", "x") and micros(server.client) > begin + 3_000_000)
        self.assertEqual(since.text_content(), said)
        self.assertEqual(page.wrong, [])

    def test_recurring_jobs_of_all_queues(self):
        server = self.server()
        say = server.client.execute_command
        names = ["b", HOSTILE[0], "c"]
        for name in names:
            say("DQ.CFGSET", name, "DONELEN", 100)
            say("DQ.ADD", name, "job", "x", "EVERY", HOUR, "DELAY", 0)
        say("DQ.ADD", "a", "none", "x", "DELAY", HOUR)
        # One has run, one has died, one is to run.
        say("DQ.ADD", "d", "lost", "x", "EVERY", HOUR, "DELAY", 0)
        for queue, id in [("b", "job"), ("d", "lost")]:
            say("DQ.ACK", queue, "WITHTOKENS", id, say("DQ.POP", queue)[2])
        say("DQ.POP", HOSTILE[0])
        say("DQ.NACK", HOSTILE[0], "job", "FATAL", "REASON", HOSTILE[1])
        board = self.board(server, "--allow-actions")
        page = self.window()
        page.goto(board.url)
        expect(cell(page, "c", "ready")).to_have_text("1")
        page.get_by_role("link", name="Recurring jobs").click()
        lines = page.locator("tbody tr")
        expect(lines).to_have_count(4)
        expect(lines.filter(has_text="lost").locator(".r3")).to_have_text("not known: successes are not kept (DONELEN, KEEP)")
        expect(lines.filter(has_text="lost").locator(".r4")).to_have_text("1")
        say("DQ.DEL", "d", "lost")
        died = lines.filter(has_text=HOSTILE[0].decode())
        expect(died.locator(".r3")).to_contain_text(f"dead: {HOSTILE[1].decode()}, ")
        expect(died.locator(".r2 .run").first).to_contain_text("in 59 min")
        ran = lines.filter(has=page.get_by_role("link", name="b", exact=True))
        expect(ran.locator(".r1")).to_have_text("every 1h")
        expect(ran.locator(".r3")).to_contain_text("done, ran for ")
        expect(lines.filter(has=page.get_by_role("link", name="c", exact=True)).locator(".r3")).to_have_text("–")
        inside = "(it) => it.getBoundingClientRect().right <= it.parentElement.getBoundingClientRect().right"
        self.assertTrue(ran.get_by_role("button", name="Run now").evaluate(inside), "not cut off")
        ran.get_by_role("button", name="Run now").click()
        page.get_by_role("dialog").get_by_role("button", name="Run it now").click()
        expect(page.locator("#said")).to_have_text("Due now.")
        self.assertEqual(say("DQ.LEN", "b", "READY"), 1)
        expect(ran.locator(".r5")).to_have_text("ready")
        # Step by step, none is left out or told twice.
        for number in range(130):
            say("DQ.ADD", f"many-{number:03}", "job", "x", "EVERY", HOUR)

        def walk():
            found, steps, cursor = [], 0, ""
            while cursor is not None:
                answer = json.loads(ask(f"{board.url}api/look/recurring?{cursor and 'cursor=' + cursor}")[2])
                found += [it["queue"]["name"] for it in answer["jobs"]]
                cursor, steps = answer["more"], steps + 1
            return found, steps

        wait_until("all are known", lambda: len(walk()[0]) == 133)
        found, steps = walk()
        self.assertEqual(len(set(found)), 133)
        self.assertGreater(steps, 2)
        # Page by page the same.
        page.goto(board.url + "recurring")
        shown, further = [], page.get_by_role("link", name="Search further")
        for turn in range(steps):
            expect(lines).to_have_count(50 if turn + 1 < steps else 133 - 50 * (steps - 1))
            shown += page.locator("tbody .fq").all_text_contents()
            if turn + 1 < steps:
                further.click()
                expect(page.locator("tbody .fq").first).not_to_have_text(shown[-50])
        self.assertEqual(sorted(shown), sorted(found))
        page.get_by_role("link", name="First jobs").click()
        expect(lines).to_have_count(50)
        self.assertEqual(page.wrong, [])
