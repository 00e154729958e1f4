"""One job's timeline, the jobs that it is after, and the slowest done jobs."""

import datetime
import json
import os
import re
import tempfile
import time
import zoneinfo

import redis
from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, calls, micros, post, wait_until


class Life(BoardTest):
    def take(self, client, id, **ack):
        token = client.execute_command("DQ.POP", "q", "ID", id)[2]
        if "result" in ack:
            client.execute_command("DQ.ACK", "q", "RESULTS", id, token, ack["result"])
        return token

    def test_what_is_not_late_is_not_called_so(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.ADD", "q", "later", "x", "DELAY", HOUR, "TTL", 4 * HOUR)
        client.execute_command("DQ.ADD", "q", "signal", "x")
        token = self.take(client, "signal")
        client.execute_command("DQ.NACK", "q", "signal", "TOKEN", token, "SILENT", "AWAIT", "paid")
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "job?queue=0:q&id=later")
        expect(page.locator(".life b")).to_have_text(["now", "due", "expires"])
        self.assertNotIn("late by", page.locator(".life").inner_text())
        page.goto(board.url + "jobs?queue=0:q&state=delayed")
        expect(page.locator("tbody tr").filter(has_text="signal")).to_contain_text("until it is signalled")
        client.execute_command("DQ.DEL", "q", "later")
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".tile").filter(has_text="Delayed")).to_have_text("Delayed1until signalled")
        page.goto(board.url + "jobs?queue=0:q&state=delayed&id=signal")
        expect(page.locator("tbody .f2")).to_have_text("until it is signalled")
        page.goto(board.url + "job?queue=0:q&id=signal")
        expect(page.locator(".facts")).to_contain_text("until it is signalled")
        page.get_by_role("button", name="Run now").click()
        expect(page.get_by_role("dialog")).to_contain_text("signal becomes due at once, without its signal.")
        self.assertNotIn("years", page.locator("body").inner_text())
        self.assertEqual(page.wrong, [])

    def test_when_it_was_delivered_is_said_only_if_that_is_known(self):
        server = self.server()
        client = server.client
        due = round(time.time() * 1000) - 26_000
        for id in ["first", "again", "dead"]:
            client.execute_command("DQ.ADD", "q", id, "x", "AT", due)
        self.take(client, "first")
        self.take(client, "dead")
        client.execute_command("DQ.NACK", "q", "dead", "FATAL")
        client.execute_command("DQ.POP", "q", "ID", "again", "TTR", 1)
        wait_until("its lease has ended", lambda: client.execute_command("DQ.POP", "q", "ID", "again"))
        page, board = self.window(), self.board(server)
        for id, said in [("first", "late by 2"), ("again", "was delivered within 2"), ("dead", "was delivered within 2")]:
            page.goto(board.url + f"job?queue=0:q&id={id}")
            expect(page.locator(".life li").filter(has_text="due").first).to_contain_text(said)
        self.assertEqual(page.wrong, [])

    def test_times_to_the_millisecond_in_utc_too_and_a_signal_is_sent(self):
        server = self.server()
        client = server.client
        evil = HOSTILE[0].decode()
        client.execute_command("DQ.CFGSET", "q", "HISTORY", 5)
        for id in ["a", "b"]:
            client.execute_command("DQ.ADD", "q", id, "x")
        token = self.take(client, "a")
        client.execute_command("DQ.NACK", "q", "a", "TOKEN", token, "DELAY", 0, "REASON", "first")
        token = self.take(client, "a")
        client.execute_command("DQ.NACK", "q", "a", "TOKEN", token, "SILENT", "AWAIT", evil)
        page = self.window(timezone_id="America/New_York")
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        board = self.board(server, "--allow-actions", "--audit-log", log.name)
        page.goto(board.url + "job?queue=0:q&id=a")
        moments = page.locator(".life li")
        expect(moments.locator("b")).to_have_text(["delivered, attempt 1", "attempt failed: first", "now", f"goes on with the signal {evil}"])
        expect(moments.last.locator("time")).to_have_text("until it is signalled")
        expect(moments.nth(1)).to_have_class("waits")
        started = dict(client.execute_command("DQ.GET", "q", "a"))[b"history"][0][1]
        local = datetime.datetime.fromtimestamp(started / 1000, zoneinfo.ZoneInfo("America/New_York"))
        shown = "{:%H:%M:%S}." + f"{started % 1000:03}"
        expect(moments.first.locator("time")).to_contain_text(shown.format(local))
        expect(page.locator(".zone")).to_contain_text("Times are in America/New_York.")
        page.get_by_role("button", name="Show UTC").press("Enter")
        expect(page.locator(".zone button")).to_be_focused()
        expect(moments.first.locator("time")).to_contain_text(shown.format(local.astimezone(datetime.timezone.utc)))
        page.reload()
        expect(page.locator(".zone")).to_contain_text("Times are in UTC.")
        # The signal that it waits for is sent, with a value; another one by its name.
        page.get_by_role("button", name="Send a signal").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text(f"Send the signal {evil}?")
        box.get_by_label("Value").fill("by <b>Ada")
        expect(box.locator(".command")).to_contain_text("DQ.SIGNAL q a ")
        box.get_by_role("button", name="Send it").click()
        expect(page.locator("#said")).to_have_text("Signalled 1 job.")
        expect(page.locator(".steps li")).to_have_text(f"{evil} by <b>Ada")
        expect(page.locator(".badge")).to_have_text("ready")
        page.get_by_role("button", name="Send a signal").click()
        box.get_by_label("Name of the signal").fill(evil)
        box.get_by_role("button", name="Send it").click()
        expect(page.locator("#said")).to_have_text("Nothing done: the signal was there already, or the job is gone.")
        told = [json.loads(line) for line in log.read().splitlines()]
        self.assertEqual([(it["action"], it["signal"], it["count"]) for it in told if "action" in it], [("signal", evil, 1), ("signal", evil, 0)])
        for what in [{"id": "a"}, {"signal": "s"}, {"signal": "", "id": "a"}]:
            self.assertEqual(post(board.url + "api/act", {"act": "signal", "queue": "0:q", **what})[0], 400, what)
        self.assertEqual(page.wrong, [])

    def test_a_traceback_has_lines_and_a_short_name_a_whole_state(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "HISTORY", 5)
        client.execute_command("DQ.ADD", "q", "a", "x")
        for id, on_dead in [("b", "WAIT"), ("d", "RUN")]:
            client.execute_command("DQ.ADD", "q", id, "x", "AFTER", 1, "a", "ONDEAD", on_dead)
        traceback = 'Traceback (most recent call last):\r\n  File "<b>.py", line 1\nValueError: \\n \x1b[31m'
        self.take(client, "a")
        client.execute_command("DQ.NACK", "q", "a", "DELAY", 0, "REASON", "one\ntwo")
        self.take(client, "a")
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "job?queue=0:q&id=a")
        badge = page.locator("h1 .badge")
        expect(badge).to_have_text("reserved")
        self.assertEqual(badge.evaluate("(it) => it.scrollWidth - it.clientWidth"), 0)
        client.execute_command("DQ.NACK", "q", "a", "FATAL", "REASON", traceback)
        shown = traceback.replace("\r", "").replace("\x1b", "\\x1b")
        told = [page.locator(where).filter(has_text=words) for where, words in [(".facts dd", "Traceback"), (".life b", "Traceback"), (".life b", "two")]]
        for it, said in zip(told, [shown, f"attempt failed for good: {shown}", "attempt failed: one\ntwo"], strict=True):
            expect(it).to_be_visible()
            self.assertEqual(it.inner_text(), said)
        # In a list the line that tells them apart stands, and all lines are told where it is pointed at.
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        expect(page.locator("tbody td").last).to_have_attribute("title", shown)
        expect(page.locator("tbody td").last).to_have_text("ValueError: \\n \\x1b[31m")
        chip = page.get_by_role("navigation", name="Reasons").get_by_role("link")
        expect(chip).to_have_text("ValueError: \\n \\x1b[#1")
        chip.click()
        expect(page.locator("tbody td").last).to_have_text("ValueError: \\n \\x1b[31m")
        client.execute_command("DQ.ADD", "q", "c", "x")
        client.execute_command("DQ.NACK", "q", "c", "TOKEN", self.take(client, "c"), "FATAL", "REASON", "Error: no\n    at run (worker.js:7:1)")
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        expect(page.locator("tbody td").last).to_have_text("Error: no")
        # One that outlasts the death of another is told of it.
        page.goto(board.url + "job?queue=0:q&id=b")
        expect(page.locator("tbody td.o1")).to_have_text("dead")
        page.goto(board.url + "job?queue=0:q&id=d")
        expect(page.locator("tbody td.o2")).to_have_text("ValueError: \\n \\x1b[31m")
        self.assertEqual(page.wrong, [])

    def test_an_attempt_that_timed_out(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "HISTORY", 5)
        client.execute_command("DQ.ADD", "q", "a", "x")
        client.execute_command("DQ.POP", "q", "TTR", 1)
        wait_until("its lease has ended", lambda: client.execute_command("DQ.LEN", "q", "READY") == 1)
        page = self.window()
        page.goto(self.board(server).url + "job?queue=0:q&id=a")
        expect(page.locator(".life b").nth(2)).to_have_text("attempt timed out: its lease ended")

    def test_why_and_every_attempt_and_who_works(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "HISTORY", 10)
        for id in ["a", "<i>b"]:
            client.execute_command("DQ.ADD", "q", id, "x")
        for reason in ["<b>no room", "again"]:
            self.take(client, "a")
            client.execute_command("DQ.NACK", "q", "a", "DELAY", 0, "REASON", reason)
        name = "<b>&\"'</b>"
        worker = redis.Redis(port=server.port, single_connection_client=True, client_name=name)
        token = self.take(worker, "a")
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".why")).to_have_text("1 job is ready; all workers are busy")
        page.goto(board.url + "job?queue=0:q&id=%3Ci%3Eb")
        expect(page.locator(".why")).to_have_text("it could be delivered; all workers are busy")
        page.goto(board.url + "workers?queue=0:q")
        table = page.get_by_role("table", name="Who works")
        expect(table.locator("tbody tr td").first).to_have_text(f"{name} (1 job)")
        table.get_by_role("link", name="a").click()
        expect(page.locator(".why")).to_contain_text("a worker has it, its lease ends in")
        expect(page.locator(".life b")).to_contain_text(
            ["delivered, attempt 1", "attempt failed: <b>no room", "attempt failed: again", f"attempt 3, to {name}"]
        )
        expect(page.locator(".facts.wide")).to_contain_text(f"Works on it{name}")
        # The delivery that is shown is given back, and no other.
        page.get_by_role("button", name="Give back now").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("without counting as an attempt")
        expect(dialog).to_contain_text(f"({name}) goes on until it hears of it")
        expect(dialog.locator(".command")).to_contain_text(f"TOKEN {token.decode()} SILENT")
        client.execute_command("DQ.NACK", "q", "a", "SILENT")
        self.take(worker, "a")
        dialog.get_by_role("button", name="Give it back").click()
        expect(page.locator("#said")).to_have_text("Nothing done: this delivery is over.")
        self.assertEqual(client.execute_command("DQ.LEN", "q", "RESERVED"), 1)
        page.reload()
        page.get_by_role("button", name="Give back now").click()
        page.get_by_role("dialog").get_by_role("button", name="Give it back").click()
        expect(page.locator("#said")).to_have_text("Given back.")
        expect(page.locator(".badge").first).to_have_text("ready")
        job = client.execute_command("DQ.GET", "q", "a")
        self.assertEqual(job[b"attempts"], 2)
        self.assertEqual(page.wrong, [])

    def test_a_deploy_is_seen(self):
        server = self.server()
        client = server.client
        for name in ["q", "other"]:
            client.execute_command("DQ.ADD", name, "job", "x", "DELAY", HOUR)
        with open(os.path.join(os.path.dirname(__file__), "../../../docs/board.md"), encoding="utf-8") as docs:
            (rights,) = [line.split() for line in docs if "ACL SETUSER viewer" in line]
        client.execute_command(*rights)
        waiting = lambda: dict(client.execute_command("DQ.STATS", "q"))[b"waiting-clients"]  # noqa: E731

        def workers(count):
            connections = [redis.Connection(port=server.port) for _ in range(count)]
            for connection in connections:
                self.addCleanup(connection.disconnect)
                connection.send_command("DQ.BPOP", "q", 0)
            wait_until("they wait", lambda: waiting() == count)
            return connections

        old = workers(2)
        # A board that finds them younger says that they came.
        wait_until("they are no news", lambda: all(int(it["age"]) >= 3 for it in client.client_list() if it["cmd"] == "dq.bpop"))
        boards = [self.board(server), self.board(server, "--user", "viewer", REDISCLI_AUTH="secret")]
        pages = [self.window() for _ in range(4)]
        for page, address in zip(pages, [boards[0].url + "queue?queue=0:q", boards[1].url + "queue?queue=0:q", boards[0].url + "queue?queue=0:other", boards[0].url], strict=True):
            page.goto(address)
        readouts = [page.locator(".readout") for page in pages]
        # While nothing changes there is no mark, though both boards have looked.
        before = calls(server, "client|list")
        looked = calls(server, "dq.stats")
        wait_until("they have looked", lambda: calls(server, "client|list") >= before + 2 and calls(server, "dq.stats") > looked + 20)
        for page, readout in zip(pages, readouts, strict=True):
            expect(readout).not_to_contain_text("orkers")
            self.assertIn(page.locator("path.shift").get_attribute("d"), [None, ""])
        for connection in old:
            connection.disconnect()
        told = re.compile(r" Workers came or went once, last at .*: 2 workers( of any queue)? went\.$")
        for readout in readouts:
            expect(readout).to_have_text(told)
        workers(2)
        for page, readout, whose in zip(pages, readouts, ["", "", " of any queue", ""], strict=True):
            expect(readout).to_have_text(re.compile(f" Workers came or went once, last at .*: 2 workers{whose} went, 2 came\\.$"))
            self.assertEqual(page.locator("path.shift").get_attribute("d").count("M"), 1)
            expect(page.locator(".legend li.shift")).to_have_text("workers came or went")
            expect(page.locator("svg.forecast")).to_have_attribute("aria-label", re.compile("2 workers.* went, 2 came"))
        # A new tab is told the same.
        page = self.window()
        page.goto(boards[1].url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("2 workers went, 2 came")
        # The part of the chart says it too, to who walks there by key.
        page.get_by_role("button", name="minute", exact=True).click()
        page.locator("svg.forecast").focus()
        walked = page.locator(".card [role=status]").first

        def is_told():
            page.keyboard.press("ArrowLeft")
            return "delivered; 2 workers went, 2 came" in walked.inner_text()

        wait_until("the part is found", is_told)
        self.assertEqual(sum((page.wrong for page in pages), []), [])

    def test_of_more_than_500_that_are_worked_on_the_others_are_counted(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        for number in range(620):
            pipe.execute_command("DQ.ADD", "q", f"j{number:03}", "x")
        for name, count in [("a", 300), ("b", 319)]:
            pipe.execute_command("CLIENT", "SETNAME", name)
            pipe.execute_command("DQ.POP", "q", "COUNT", count, "TTR", HOUR)
        pipe.execute()
        other = redis.Redis(port=server.port, single_connection_client=True)
        self.take(other, "j619")
        other.close()
        page = self.window()
        page.goto(self.board(server).url + "workers?queue=0:q")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(500)
        expect(page.get_by_text("500 of 620 jobs that are reserved, by the end of the lease.")).to_be_visible()
        page.get_by_role("link", name="More jobs").click()
        expect(rows).to_have_count(120)
        page.get_by_role("link", name="First jobs").click()
        expect(rows).to_have_count(500)
        self.assertEqual(page.wrong, [])

    def test_a_line_of_time(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 10)
        for id in ["retried", "signal", "<i>dead"]:
            client.execute_command("DQ.ADD", "q", id, "x")
        token = self.take(client, "retried")
        client.execute_command("DQ.STEP", "q", "retried", token, "<b>paid", "ref-9", "sent", "")
        client.execute_command("DQ.NACK", "q", "retried", "DELAY", HOUR, "REASON", "<b>no room")
        self.take(client, "<i>dead")
        client.execute_command("DQ.NACK", "q", "<i>dead", "FATAL", "REASON", "never")
        self.take(client, "signal")
        client.execute_command("DQ.NACK", "q", "signal", "SILENT", "AWAIT", "approved")
        page = self.window()
        board = self.board(server)
        moments = page.locator(".life b")
        page.goto(board.url + "job?queue=0:q&id=retried")
        expect(moments).to_have_text(["attempt failed: <b>no room", "now", "due"])
        expect(page.locator(".life li").first).to_contain_text(re.compile("has waited .* for its next attempt"))
        expect(page.locator(".life li").nth(1)).to_contain_text(re.compile(r"5\d min( \d+ s)? to go"))
        expect(page.locator(".steps li")).to_have_text(["<b>paid ref-9", "sent "])
        # What happens while the page is open is shown, too.
        client.execute_command("DQ.RESCHEDULE", "q", "DELAY", 0, "retried")
        expect(moments.get_by_text("seen: ready")).to_be_visible()
        token = self.take(client, "retried")
        client.execute_command("DQ.TOUCH", "q", "retried", "PROGRESS", "40 %")
        expect(moments.filter(has_text="delivered, attempt 2")).to_be_visible()
        expect(moments.get_by_text("seen: progress 40 %")).to_be_visible()
        expect(moments.get_by_text("lease expires unless")).to_be_visible()
        client.execute_command("DQ.ACK", "q", "RESULTS", "retried", token, b"done")
        expect(moments.get_by_text("done", exact=True)).to_be_visible()
        # The server forgets an earlier error; an open page keeps it. No delivery is shown twice.
        expect(moments.get_by_text("seen: attempt failed: <b>no room")).to_be_visible()
        expect(moments.filter(has_text="delivered, attempt 2")).to_have_count(1)
        page.goto(board.url + "job?queue=0:q&id=%3Ci%3Edead")
        expect(moments).to_have_text(["due", "died: never"])
        page.goto(board.url + "job?queue=0:q&id=signal")
        expect(page.locator(".facts")).to_contain_text("Waits for the signalapproved")
        # An attempt that began and ended between two looks is shown once.
        client.execute_command("DQ.CFGSET", "q", "HISTORY", 5)
        client.execute_command("DQ.ADD", "q", "quick", "x")
        page.goto(board.url + "job?queue=0:q&id=quick")
        expect(moments).to_have_text(["due", "now"])
        both = client.pipeline()
        both.execute_command("DQ.POP", "q", "ID", "quick")
        both.execute_command("DQ.NACK", "q", "quick", "DELAY", HOUR, "REASON", "no route")
        both.execute()
        expect(moments.filter(has_text="attempt failed: no route")).to_have_count(1)
        expect(moments.filter(has_text="delivered, attempt 1")).to_have_count(1)
        self.assertEqual(page.wrong, [])

    def test_a_graph_of_a_thousand_stays_readable(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 2000)
        ids = [f"part-{number:03}" for number in range(1000)]
        pipe = client.pipeline(transaction=False)
        for id in ids:
            pipe.execute_command("DQ.ADD", "q", id, "x")
        pipe.execute_command("DQ.ADD", "q", "sum", "x", "AFTER", len(ids), *ids)
        for id, before in [("mail", "sum"), ("archive", "sum"), ("last", "mail"), ("beyond", "last"), ("too far", "beyond")]:
            pipe.execute_command("DQ.ADD", "q", id, "x", "AFTER", 1, before)
        pipe.execute_command("DQ.POP", "q", "COUNT", 991)
        pipe.execute_command("DQ.NACK", "q", "part-990", "FATAL")
        pipe.execute_command("DQ.ACK", "q", *ids[:990])
        pipe.execute()
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "job?queue=0:q&id=sum")
        nodes = page.locator(".flow .node text")
        expect(nodes).to_have_text(["part-990", *[f"part-{number:03}" for number in range(991, 1000)], "and 990 done", "sum", "archive", "mail", "last", "beyond"])
        expect(page.locator(".flow .node").first).to_have_attribute("data-tone", "bad")
        self.assertEqual(page.locator(".flow .edges").get_attribute("d").count("C"), 10 + 2 + 1 + 1)
        page.get_by_role("link", name="mail: blocked").click()
        expect(nodes.filter(has_text="too far")).to_be_visible()
        expect(page.locator(".flow .here text")).to_have_text("mail")
        # If there are too many jobs to read, the others are not said to be gone.
        for half in range(2):
            ids = [f"{half}-{number}" for number in range(600)]
            for id in ids:
                pipe.execute_command("DQ.ADD", "wide", id, "x", "DELAY", HOUR)
            pipe.execute_command("DQ.ADD", "wide", f"half-{half}", "x", "AFTER", len(ids), *ids)
        pipe.execute_command("DQ.ADD", "wide", "all", "x", "AFTER", 2, "half-0", "half-1")
        pipe.execute()
        page.goto(board.url + "job?queue=0:wide&id=all")
        expect(nodes.filter(has_text="and ")).to_have_text(["and 987 delayed", "and 203 unknown"])
        self.assertEqual(page.wrong, [])

    def test_json_is_folded(self):
        server = self.server()
        payload = {"big": 12345678901234567890, "list": [{"a": 1}, []], "long": list(range(100))}
        server.client.execute_command("DQ.ADD", "q", "job", json.dumps(payload), "DELAY", HOUR)
        page = self.window()
        page.goto(self.board(server).url + "job?queue=0:q&id=job")
        shown = page.get_by_label("Payload")
        self.assertEqual(json.loads(shown.text_content()), payload)
        self.assertEqual(shown.text_content(), json.dumps(payload, indent=2))
        expect(page.get_by_text("12345678901234567890")).to_be_visible()
        expect(page.get_by_text("99", exact=True)).to_be_hidden()
        page.get_by_role("button", name="Fold 100 items").click()
        expect(page.get_by_text("99", exact=True)).to_be_visible()
        page.get_by_role("button", name="Fold 3 fields").click()
        expect(page.get_by_text("99", exact=True)).to_be_hidden()
        self.assertEqual(page.wrong, [])

    def test_the_slowest_first(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 1000)
        for id in ["slow", *[f"fast-{number}" for number in range(60)]]:
            client.execute_command("DQ.ADD", "q", id, "x", "LABEL", HOSTILE[0] if id == "slow" else "quick")
        slow = client.execute_command("DQ.POP", "q", "ID", "slow")[2]
        begun = micros(client)
        for number in range(60):
            self.take(client, f"fast-{number}", result=b"x")
        # Slower than each of the others, however busy the machine is.
        while micros(client) < begun + 50_000:
            pass
        client.execute_command("DQ.ACK", "q", "RESULTS", "slow", slow, b"<b>at last")
        page = self.window()
        page.goto(self.board(server).url + "jobs?queue=0:q&state=done")
        page.get_by_role("link", name="Slowest first").click()
        jobs = page.get_by_role("table", name="Jobs").locator("tbody tr")
        expect(jobs).to_have_count(50)
        expect(jobs.first).to_contain_text("slow")
        expect(jobs.first).to_contain_text("<b>at last")
        # By label, the worst first; the label leads to its jobs.
        labels = page.get_by_role("table", name="Run times by label").locator("tbody tr")
        expect(labels.locator("td:first-child")).to_have_text([HOSTILE[0].decode(), "quick"])
        expect(labels.locator("td:nth-child(2)")).to_have_text(["1", "60"])
        slowest = labels.first.locator("td").nth(3).text_content()
        self.assertGreaterEqual(int(re.match(r"(\d+) ms$", slowest)[1]) if "ms" in slowest else 1000, 50)
        expect(page.get_by_role("status").filter(has_text="of 61 jobs checked")).to_contain_text("Half took at most")
        page.get_by_role("link", name=HOSTILE[0].decode()).click()
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text("slow")
        self.assertEqual(page.wrong, [])
