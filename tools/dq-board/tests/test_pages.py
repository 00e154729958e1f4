"""The pages, and what they show."""

import json
import os
import re
import subprocess
import tempfile
import time

import demo
import redis
from playwright.sync_api import expect
from support import HOUR, PATIENCE_S, BoardTest, ask, calls, cell, die, row, wait_until


class Pages(BoardTest):
    def test_the_table_shows_every_queue_and_what_it_does(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server).url)
        expect(cell(page, "mails", "ready")).to_have_text("42")
        expect(cell(page, "mails", "dead")).to_have_text("4")
        expect(cell(page, "order-timeouts", "delayed")).to_have_text("9,000")
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
            ("jobs?queue=0:none&state=delayed", "No delayed jobs."),
            ("jobs?queue=0:none&state=dead", "No dead jobs."),
            ("recurring?queue=0:none", "No recurring jobs."),
            ("job?queue=0:none&id=x", "This job no longer exists"),
            ("nonsense", "Page not found"),
            ("__proto__?queue=0:none", "Page not found"),
        ]:
            page.goto(board.url + address)
            expect(page.locator("#main")).to_contain_text(said)
        self.assertEqual(page.wrong, [])

    def test_how_much_of_a_rate_is_used(self):
        server = self.server()
        server.client.execute_command("DQ.CFGSET", "q", "RATE", 100, HOUR)
        server.client.execute_command("DQ.ADD", "q", "job", "x", "COST", 30)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:q")
        rate = page.locator(".facts div").filter(has_text="Rate").locator("dd")
        expect(rate).to_have_text("100 in 1 h, 0 used (0 %)")
        server.client.execute_command("DQ.POP", "q")
        expect(rate).to_have_text("100 in 1 h, 30 used (30 %)")
        server.client.execute_command("DQ.TOUCH", "q", "job", "COST", 100)
        expect(rate).to_have_text("100 in 1 h, 100 used (100 %)")
        expect(rate).to_have_attribute("data-tone", "warn")
        self.assertEqual(page.wrong, [])

    def test_the_chart_is_the_forecast(self):
        server = self.server()
        now = int(time.time() * 1000)
        for number in range(1200):
            server.client.execute_command("DQ.ADD", "q", f"j{number}", "x", "AT", now + HOUR // 2)
        server.client.execute_command("DQ.ADD", "q", "late", "x", "DELAY", 400 * 24 * HOUR)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:q&workers=2&ms=1000")
        expect(page.locator(".readout")).to_contain_text("The next hour: 1,200 jobs due, 1 job later")
        # 1,200 jobs at 2 a second, all at half of the hour: ten minutes.
        expect(page.locator(".verdict")).to_contain_text("2.0 a second: this peak is cleared by")
        expect(page.locator(".verdict")).to_contain_text("the longest wait is 10 min")
        self.assertEqual(page.locator("path.ahead").get_attribute("d").count("z"), 1)
        expect(page.locator(".legend li:visible")).to_have_text(["due", "unknown", "capacity of the workers", "all done"])
        page.get_by_role("button", name="minute").click()
        expect(page.locator(".readout")).to_contain_text("The next minute: 0 jobs due, 1,201 jobs later")
        self.assertIn("zoom=minute", page.url)
        page.get_by_role("button", name="year").click()
        expect(page.locator(".readout")).to_contain_text("The next year: 1,200 jobs due, 1 job later")
        page.get_by_label("With", exact=True).fill("1")
        expect(page.locator(".verdict")).to_contain_text("1.0 a second")
        self.assertEqual(page.wrong, [])

    def test_any_range_can_be_looked_at_closer(self):
        server = self.server()
        now = int(time.time() * 1000)
        for minutes, count in [(10, 5), (40, 7)]:
            for number in range(count):
                server.client.execute_command("DQ.ADD", "q", f"{minutes}-{number}", "x", "AT", now + minutes * 60_000)
        board = self.board(server)
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        readout = page.locator(".readout")
        expect(readout).to_contain_text("The next hour: 12 jobs due")
        box = page.locator("svg.forecast").bounding_box()
        # The second half of the chart is the next hour: half an hour to fifty minutes.
        x = [box["x"] + box["width"] * (0.5 + minutes / 120) for minutes in (30, 50)]
        page.mouse.move(x[0], box["y"] + 60)
        page.mouse.down()
        page.mouse.move(x[1], box["y"] + 80, steps=4)
        expect(page.locator("path.picked")).to_have_attribute("d", re.compile("^M"))
        page.mouse.up()
        expect(readout).to_contain_text(": 7 jobs due")
        self.assertIn("from=", page.url)
        expect(page.locator(".verdict")).to_have_text("")
        expect(page.get_by_role("button", name="hour", exact=True)).to_have_attribute("aria-pressed", "false")
        other = self.window()
        other.goto(page.url)
        expect(other.locator(".readout")).to_contain_text(": 7 jobs due")
        # Zoom out until now is in the chart; move to the past; and back.
        for _ in range(3):
            other.get_by_role("button", name="Zoom out").click()
        expect(other.locator(".readout")).to_contain_text("0 jobs delivered, 12 jobs due")
        expect(other.locator(".forecast text").get_by_text("now")).to_be_visible()
        chart = other.get_by_role("img")
        chart.focus()
        for _ in range(3):
            other.keyboard.press("Shift+ArrowLeft")
        expect(other.locator(".readout")).to_have_text(re.compile(r": 0 jobs delivered\.$"))
        expect(other.locator(".legend li:visible")).to_have_text(["unknown"])
        other.keyboard.press("Escape")
        expect(other.locator(".readout")).to_contain_text("The next hour: 12 jobs due")
        other.keyboard.press("+")
        expect(other.locator(".readout")).to_contain_text("5 jobs due")
        for address in ["from=5&to=4", "from=0&to=9", "from=-9223372036854775808&to=9223372036854775807", "zoom=aeon"]:
            self.assertEqual(ask(board.url + f"api/look/forecast?queue=0:q&{address}")[0], 400, address)
        self.assertEqual(page.wrong + other.wrong, [])

    def test_what_is_due_already_is_drawn_and_the_scale_fits(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        for number in range(9):
            pipe.execute_command("DQ.ADD", "q", f"later-{number}", "x", "DELAY", HOUR // 2)
        for number in range(600):
            pipe.execute_command("DQ.ADD", "q", f"due-{number}", "x")
        pipe.execute()
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:q&workers=600&ms=10")
        expect(page.locator(".legend li:visible")).to_have_text(["already due", "due", "unknown", "all done"])
        labels = page.locator(".forecast text")
        # 600 beside 9 is cut and says so; the capacity is far above the scale, and pointed at.
        expect(labels.get_by_text("600", exact=True)).to_be_visible()
        expect(labels.get_by_text("10 jobs in 30 s")).to_be_visible()
        expect(labels.get_by_text("capacity 1.80M ↑")).to_be_visible()
        page.get_by_role("button", name="log").click()
        expect(labels.get_by_text("1,000 jobs in 30 s")).to_be_visible()
        self.assertIn("scale=log", page.url)
        heights = {name: float(re.search(r"V([\d.]+)h", page.locator(f"path.{name}").get_attribute("d"))[1]) for name in ["due", "ahead"]}
        self.assertLess(heights["due"], heights["ahead"])
        self.assertEqual(page.wrong, [])

    def test_the_forecast_knows_what_holds_a_queue_back(self):
        server = self.server()
        client = server.client
        for number in range(100):
            client.execute_command("DQ.ADD", "q", f"job-{number}", "x", "GROUP", f"g{number % 2}")
        page = self.window()
        verdict = page.locator(".verdict")
        page.goto(self.board(server).url + "queue?queue=0:q&workers=10&ms=1000")
        expect(verdict).to_contain_text("10 a second: this peak")
        client.execute_command("DQ.PAUSE", "q", "GROUP", "g1")
        expect(verdict).to_have_text(re.compile(r"^10 a second: this peak is cleared by [^;]*, but for the 50 jobs of 1 paused group\.$"))
        # Others that are delayed, or few that are ready, do not hide that; nor are the paused ones counted among those that go.
        ready = page.locator(".readout")
        for number in range(60):
            client.execute_command("DQ.ADD", "q", f"later-{number}", "x", "DELAY", 2 * HOUR)
        expect(ready).to_contain_text("60 jobs later")
        expect(verdict).to_have_text(re.compile(r"^10 a second: this peak is cleared by [^;]*, but for the 50 jobs of 1 paused group\.$"))
        client.execute_command("DQ.GROUPSET", "q", "g0", "RATE", 1, 5000)
        expect(verdict).to_contain_text("0.2 a second, at best, as RATE 1 in 5,000 ms of the group g0 allows:")
        client.execute_command("DQ.GROUPSET", "q", "g0", "MAX", 3, "RATE", 0, 0)
        expect(verdict).to_contain_text("3.0 a second, at best, as MAX 3 of the group g0 allows:")
        client.execute_command("DQ.GROUPSET", "q", "g0", "CLEAR")
        client.execute_command("DQ.RESUME", "q", "GROUP", "g1")
        expect(verdict).to_contain_text("; the longest wait is")
        for settings, said in [(["MAXRESERVED", 5], "5.0 a second, as MAXRESERVED 5 allows:"), (["GROUPMAX", 1], "2.0 a second, at best, as GROUPMAX 1 allows:"), (["RATE", 1, 1000], "1.0 a second, as RATE 1 in 1,000 ms allows:")]:
            client.execute_command("DQ.CFGSET", "q", *settings)
            expect(verdict).to_contain_text(said)
        client.execute_command("DQ.PAUSE", "q")
        expect(verdict).to_have_text("the queue is paused: nothing is delivered until it is resumed.")
        client.execute_command("DQ.CFGSET", "held", "GROUPMAX", 1)
        for number in range(6):
            client.execute_command("DQ.ADD", "held", f"job-{number}", "x", "GROUP", f"g{number % 2}", "AT", int(time.time() * 1000) - 241_000)
        client.execute_command("DQ.POP", "held", "COUNT", 2, "TTR", HOUR)
        page.goto(page.url.replace("queue=0:q&workers=10&ms=1000", "queue=0:held"))
        expect(verdict).to_contain_text("not while their groups are at GROUPMAX 1. The oldest job has been due for 4 min")
        expect(page.locator(".legend .end")).to_be_hidden()
        client.execute_command("DQ.CFGSET", "held", "GROUPMAX", 0, "MAXRESERVED", 2)
        expect(verdict).to_contain_text("not while 2 jobs are reserved, as many as MAXRESERVED allows.")
        client.execute_command("DQ.CFGSET", "held", "MAXRESERVED", 0)
        client.execute_command("DQ.POP", "held", "NOACK")
        client.execute_command("DQ.CFGSET", "held", "RATE", 1, HOUR)
        client.execute_command("DQ.POP", "held", "NOACK")
        expect(verdict).to_contain_text("as RATE is used up.")
        self.assertEqual(page.wrong, [])

    def test_queues_in_trouble_come_first_those_with_late_jobs_before_others(self):
        server = self.server()
        client = server.client
        for name, count in [("b-dead", 1), ("c-dead", 3)]:
            die(client, name, count)
        client.execute_command("DQ.ADD", "a-paused", "job", "x")
        client.execute_command("DQ.PAUSE", "a-paused")
        client.execute_command("DQ.ADD", "d-well", "job", "x", "DELAY", HOUR)
        client.execute_command("DQ.ADD", "z-late", "job", "x", "AT", 1)
        for width in [1280, 390]:
            page = self.window(viewport={"width": width, "height": 860})
            page.goto(self.board(server).url)
            expect(page.locator("[data-line] a")).to_have_text(["z-late", "c-dead", "b-dead", "a-paused", "d-well"])
            # On a phone, too.
            expect(row(page, "a-paused").locator(".badge")).to_be_visible()
            expect(cell(page, "z-late", "oldest")).to_be_visible()

    def test_past_deliveries_stand_beside_it(self):
        server = self.server()
        server.client.execute_command("DQ.CFGSET", "q")
        page = self.window()
        page.goto(self.board(server).url)
        # The queue's figures have been read once.
        expect(cell(page, "q", "ready")).to_have_text("0")
        page.get_by_role("link", name="q", exact=True).click()
        expect(page.locator(".readout")).to_contain_text("when the board started: 0 jobs delivered")
        for number in range(30):
            server.client.execute_command("DQ.ADD", "q", number, "x")
        server.client.execute_command("DQ.POP", "q", "COUNT", 30, "NOACK")
        expect(page.locator(".readout")).to_contain_text("30 jobs delivered")
        expect(page.locator("path.past")).to_have_attribute("d", re.compile("M.*z"))
        # Just left of "now", which is in the middle.
        left = float(re.match(r"M([\d.]+)", page.locator("path.past").get_attribute("d"))[1])
        middle = float(page.locator(".forecast text", has_text="now").get_attribute("x"))
        self.assertTrue(0.95 < left / middle <= 1, f"{left} of {middle}")
        # Lateness has an axis of its own, beside all bars.
        axis = page.locator(".forecast text.lateness")
        expect(axis.first).to_have_text(re.compile(r"^\d+(\.\d)? (µs|ms|s)$"))
        server.client.execute_command("DQ.ADD", "q", "last", "x", "DELAY", HOUR - 1000)
        expect(page.locator("path.ahead")).to_have_attribute("d", re.compile("M"))
        end = page.locator(".forecast").evaluate("(it) => Math.max(...[...it.querySelectorAll('.past, .ahead, .lines')].map((path) => path.getBBox().x + path.getBBox().width))")
        self.assertGreater(min(axis.evaluate_all("(all) => all.map((it) => it.getBBox().x)")), end)

    def test_how_late_is_a_bound_and_has_room(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q")
        board = self.board(server)
        first, page = [self.window(viewport={"width": 1440, "height": 860}) for _ in range(2)]
        first.goto(board.url)
        page.goto(board.url + "queue?queue=0:q")
        expect(cell(first, "q", "ready")).to_have_text("0")
        tile = page.locator(".tile").last
        expect(tile.locator(".small")).to_have_text("p99: –")
        client.execute_command("DQ.ADD", "q", "job", "x", "AT", int(time.time() * 1000) - 99_500)
        client.execute_command("DQ.POP", "q", "NOACK")
        late = re.compile(r"≤ 1 min (39|4\d) s$")
        for it in [tile.locator("dd").first, tile.locator(".small"), cell(first, "q", "p50"), cell(first, "q", "p99")]:
            expect(it).to_have_text(late)
            self.assertEqual(it.evaluate("(it) => it.scrollWidth > it.clientWidth"), False)
        self.assertEqual(first.wrong + page.wrong, [])

    def test_a_burst_of_failures_is_seen_in_the_minute(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "BACKOFF", 1, HOUR)
        board = self.board(server)
        page = self.window()
        page.goto(board.url)
        expect(cell(page, "q", "ready")).to_have_text("0")

        def burst(count):
            pipe = client.pipeline()
            for number in range(count):
                pipe.execute_command("DQ.ADD", "q", number, "x", "REPLACE")
            pipe.execute_command("DQ.POP", "q", "COUNT", count)
            for number in range(count):
                pipe.execute_command("DQ.NACK", "q", number)
            pipe.execute()

        def failed(zoom):
            return json.loads(ask(f"{board.url}api/look/forecast?queue=0:q&zoom={zoom}")[2])["failed"]

        burst(7)
        wait_until("the failures are seen", lambda: sum(failed("minute")) == 7)
        page.goto(board.url + "queue?queue=0:q&zoom=minute")
        expect(page.locator("path.failed")).to_have_attribute("d", re.compile("M.*z"))
        burst(5)
        wait_until("so are the others", lambda: sum(failed("minute")) == 12)
        for zoom in ["hour", "day", "year"]:
            self.assertEqual(sum(failed(zoom)), 12, zoom)

    def test_the_past_is_there_after_a_restart(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        options = ["--store", f"{folder.name}/history"]
        board = self.board(server, *options)
        forecast = lambda of: json.loads(ask(f"{of.url}api/look/forecast?queue=0:q&zoom=hour")[2])  # noqa: E731
        page = self.window()
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".facts").first).to_contain_text("Delivered0")
        for number in range(30):
            client.execute_command("DQ.ADD", "q", number, "x")
        client.execute_command("DQ.POP", "q", "COUNT", 25, "NOACK")
        for id, *_ in client.execute_command("DQ.POP", "q", "COUNT", 5):
            client.execute_command("DQ.NACK", "q", id)
        sums = lambda answer: [round(sum(answer[field])) for field in ["past", "failed"]]  # noqa: E731
        wait_until("the board has read it", lambda: sums(forecast(board)) == [30, 5])
        board.close()
        again = self.board(server, *options)
        answer = forecast(again)
        self.assertEqual(sums(answer), [30, 5])
        self.assertTrue(any(answer["known"]) and not all(answer["known"]))
        self.assertGreater(max(late or 0 for late in answer["late"]), 0)
        page.goto(again.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("30 jobs delivered")
        expect(page.locator(".legend li:visible")).to_have_text(["delivered", "failed", "lateness, 99 %", "already due", "unknown"])
        # A file of another board, or of another program, is not overwritten.
        self.assertIn("--store", self.refused("-p", str(server.port), *options))
        again.close()
        with open(options[1], "wb") as file:
            file.write(b"precious" * 1000)
        self.assertIn("--store", self.refused("-p", str(server.port), *options))
        with open(options[1], "rb") as file:
            self.assertEqual(file.read(), b"precious" * 1000)

    def refused(self, *options):
        words = [os.environ["DQ_PROGRAM"], "board", "--listen", "127.0.0.1:0", *options]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(ended.returncode, 1)
        return ended.stderr

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
        page.get_by_role("searchbox").fill("r:7012")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("tbody tr")).to_have_count(10)
        page.get_by_role("searchbox").fill("*[")
        page.keyboard.press("Enter")
        expect(page.locator(".empty")).to_have_text("No job matches.")

    def test_a_job_with_all_it_has(self):
        server = self.server()
        client = server.client
        payload = '{"big": 12345678901234567890, "list": [], "text": "a\\u0000"}'
        client.execute_command("DQ.ADD", "q", "job", payload, "TTR", 90_000, "ATTEMPTS", 7, "BACKOFF", 2, 1000, 60_000, "PRIORITY", -3)
        client.execute_command("DQ.POP", "q")
        client.execute_command("DQ.NACK", "q", "job", "DELAY", HOUR, "REASON", "no\nroom")
        page = self.window()
        page.goto(self.board(server).url + "job?queue=0:q&id=job")
        for said in ["delayed", "no room", "1 of 7", "-3", "1 min 30 s", "1.0 s, 1 min"]:
            expect(page.locator(".facts")).to_contain_text(said)
        # No digit is lost or rounded.
        expect(page.get_by_label("Payload")).to_contain_text('"big": 12345678901234567890,')
        expect(page.get_by_label("Payload")).to_contain_text('"list": [],')
        client.execute_command("DQ.DEL", "q", "job")
        expect(page.locator(".empty")).to_contain_text("This job no longer exists")

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
        expect(page.locator("main")).to_contain_text("Times are in UTC.")
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
        expect(page.locator("tbody tr").first).to_contain_text("<b>large30")
        expect(page.locator(".further")).to_contain_text("The 50 with most waiting jobs, of 121 checked.")
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
        # Until the first search is complete.
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
        # A page that is opened is asked for all the same.
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
        # As long as not all were read, nothing is said of the others.
        expect(page.get_by_role("heading", name=re.compile(r"^Still looking: [\d,]+ of 10,000 queues read$"))).to_be_visible()
        expect(page.locator(".first .note")).to_have_text("")
        self.assertLess(page.locator("[data-line]").count(), 60)
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("link", name="queue-09999")).to_be_visible()
        expect(cell(page, "queue-09999", "delayed")).to_have_text("1")
        self.assertLess(page.locator("[data-line]").count(), 60)
        page.get_by_role("searchbox").fill("queue-05")
        expect(page.locator("#sum")).to_have_text("1,000 of 10,000 queues")
