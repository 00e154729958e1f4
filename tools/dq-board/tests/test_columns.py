"""Every list sorts by its columns, in one and the same way."""

import json

import redis
from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, micros, wait_until

EVIL = HOSTILE[0].decode()


class Columns(BoardTest):
    def filled(self):
        server = self.server()
        say = server.client.execute_command
        say("DQ.CFGSET", "q", "DONELEN", 9)
        # Of each state three, whose orders by id, size, priority and instant differ.
        for number, (id, size, priority) in enumerate([("2", 30, 1), ("10", 10, 3), (EVIL, 20, 2)]):
            begun = micros(server.client)
            wait_until("a millisecond is over", lambda at=begun: micros(server.client) >= at + 1000)
            add = ["x" * size, "PRIORITY", priority]
            say("DQ.ADD", "q", f"delayed {id}", *add, "DELAY", HOUR * (3 - number))
            say("DQ.ADD", "q", f"dead {id}", *add, "GROUP", f"g{number}", "LABEL", f"l{number}")
            say("DQ.POP", "q", "ID", f"dead {id}")
            say("DQ.NACK", "q", f"dead {id}", "FATAL", "REASON", f"reason {size}")
            say("DQ.ADD", "q", f"done {id}", "x", "LABEL", f"l{number}")
            token = say("DQ.POP", "q", "ID", f"done {id}")[2]
            say("DQ.ACK", "q", "RESULTS", f"done {id}", token, f"result {size}")
            say("DQ.ADD", "q", f"held {id}", "x")
            worker = redis.Redis(port=server.port, single_connection_client=True, client_name=f"worker-{size}")
            self.addCleanup(worker.close)
            worker.execute_command("DQ.POP", "q", "ID", f"held {id}", "TTR", HOUR * (number + 1))
            for sub in range(number + 1):
                say("DQ.ADD", "q", f"grouped {id} {sub}", "x", "GROUP", f"g{number}")
            say("DQ.ADD", "q", f"rule {id}", "x", "EVERY", HOUR * (3 - number))
            say("DQ.ADD", "q", f"signal {id}", "x")
            token = say("DQ.POP", "q", "ID", f"signal {id}")[2]
            say("DQ.NACK", "q", f"signal {id}", "TOKEN", token, "SILENT", "AWAIT", f"s{3 - number}", "DELAY", HOUR * (number + 1))
        return server

    def test_names_are_cut_in_the_middle_and_a_blank_is_seen(self):
        server = self.server()
        say = server.client.execute_command
        long = [f"a-name-that-begins-as-others-do-{'x' * 90}-{number:04}" for number in range(2)]
        for name in [*long, " "]:
            worker = redis.Redis(port=server.port, single_connection_client=True, client_name=name.strip() or "w")
            self.addCleanup(worker.close)
            for queue in {"q", name}:
                say("DQ.ADD", queue, f"{name}r", "x", "GROUP", name, "EVERY", HOUR)
            say("DQ.ADD", "q", name, "x", "GROUP", name)
            worker.execute_command("DQ.POP", "q", "ID", name, "TTR", HOUR)
            say("DQ.ADD", "q", f"{name}s", "x")
            token = say("DQ.POP", "q", "ID", f"{name}s")[2]
            say("DQ.NACK", "q", f"{name}s", "TOKEN", token, "SILENT", "AWAIT", name)
        board = self.board(server)
        is_cut = "(all) => all.every((it) => it.firstChild.scrollWidth > it.firstChild.clientWidth)"
        is_end_seen = "(all) => all.every((it) => it.lastChild.scrollWidth <= it.lastChild.clientWidth && it.lastChild.getBoundingClientRect().right <= it.closest('td').getBoundingClientRect().right)"
        for width in [1440, 720, 390]:
            page = self.window(viewport={"width": width, "height": 860})
            for address, cuts in [("groups?queue=0:q", 2), ("workers?queue=0:q", 4), ("recurring", 6), ("signals?queue=0:q", 4), ("jobs?queue=0:q&state=reserved", 2), ("search?state=reserved", 2)]:
                page.goto(board.url + address)
                cut = page.locator("td .cut")
                expect(cut).to_have_count(cuts)
                self.assertTrue(cut.evaluate_all(is_end_seen), (address, width))
                # Where lines wrap there is more room.
                self.assertTrue(width < 1000 or cut.evaluate_all(is_cut), (address, width))
                self.assertIn(cut.first.get_attribute("title"), [f"{name}{more}" for name in long for more in ["", "r", "s"]])
            # A name of blanks alone can be seen, and clicked.
            page.goto(board.url + "jobs?queue=0:q&state=reserved")
            page.get_by_role("link", name="\\u{20}", exact=True).click()
            expect(page.get_by_role("heading", level=1)).to_contain_text("\\u{20} reserved")
            expect(page.locator(".facts")).to_contain_text("Attempts1")
            self.assertEqual(page.wrong, [])
        page.goto(board.url + "job?queue=0:%20&id=%20r")
        page.locator("#trail a").nth(1).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("\\u{20}")

    def test_each_list_sorts_alike(self):
        server = self.filled()
        board = self.board(server, "--allow-actions")
        page = self.window()
        both = [EVIL, "2", "10"]
        for address, label, cell, part, columns in [
            ("jobs?queue=0:q&state=dead", "Jobs", ".j0", "dead ", {"Id": (1, both), "Size": (-1, ["2", EVIL, "10"]), "Priority": (1, ["2", EVIL, "10"]), "Reason": (1, ["10", EVIL, "2"]), "Died": (-1, [EVIL, "10", "2"])}),
            ("jobs?queue=0:q&state=delayed&id=delayed", "Jobs found", ".f0", "delayed ", {"Id": (1, both), "Size": (-1, ["2", EVIL, "10"]), "When": (-1, ["2", "10", EVIL])}),
            ("jobs?queue=0:q&state=reserved", "Jobs", ".j0", "held ", {"Id": (1, both), "Lease expires": (1, ["2", "10", EVIL])}),
            ("jobs?queue=0:q&state=done", "Jobs", ".j0", "done ", {"Id": (1, both), "Finished": (-1, [EVIL, "10", "2"]), "Result": (1, ["10", EVIL, "2"])}),
            ("jobs?queue=0:q&state=done&slow=1", "Jobs", ".j0", "done ", {"Id": (1, both), "Finished": (-1, [EVIL, "10", "2"])}),
            ("search?state=dead", "Jobs found", ".f0", "dead ", {"Id": (1, both), "Label": (1, ["2", "10", EVIL]), "Reason, result or payload": (1, ["10", EVIL, "2"])}),
            ("workers?queue=0:q", "Who works", "td:nth-child(2)", "held ", {"Who": (1, ["10", EVIL, "2"]), "Job": (1, both), "Since": (1, ["2", "10", EVIL]), "Lease ends": (1, ["2", "10", EVIL])}),
            ("signals?queue=0:q", "Jobs that wait for a signal", "td:nth-child(2)", "signal ", {"Signal": (1, [EVIL, "10", "2"]), "Job": (1, both), "Goes on without it": (1, ["2", "10", EVIL])}),
            ("recurring", "Recurring jobs", ".r0", "rule ", {"Id": (1, both), "Rule": (1, [EVIL, "10", "2"]), "Next runs": (1, [EVIL, "10", "2"])}),
            ("groups?queue=0:q", "Groups", ".g0", "g", {"Group": (1, ["0", "1", "2"]), "Waiting": (-1, ["2", "1", "0"])}),
        ]:
            page.goto(board.url + address)
            table = page.get_by_role("table", name=label, exact=True)
            cells = table.locator(f"tbody {cell}")
            expect(cells).to_have_count(3)
            usual = cells.all_text_contents()
            for column, (way, wanted) in columns.items():
                title = table.get_by_role("columnheader", name=column, exact=True)
                button = title.get_by_role("button")
                ways = ["ascending", "descending"][::way]
                for said, order in zip([*ways, "none"], [wanted, wanted[::-1], None], strict=True):
                    # With the keyboard alone.
                    button.focus()
                    page.keyboard.press("Enter")
                    expect(cells).to_have_text(usual if order is None else [part + it for it in order])
                    expect(title).to_have_attribute("aria-sort", said)
                    self.assertEqual(table.locator("[aria-sort$=ing]").count(), 0 if order is None else 1, column)
                    expect(button).to_be_focused()
            self.assertEqual(page.wrong, [], address)

    def test_the_order_is_kept_while_the_list_is_refreshed(self):
        server = self.server()
        say = server.client.execute_command
        for number in [3, 1, 20]:
            say("DQ.ADD", "q", f"job {number}", "x", "DELAY", HOUR * (1 + number % 3))
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "jobs?queue=0:q&state=delayed")
        ids = page.locator("tbody .j0")
        expect(ids).to_have_text(["job 3", "job 1", "job 20"])
        title = page.get_by_role("columnheader", name="Id", exact=True)
        for _ in range(2):
            title.get_by_role("button").click()
        expect(ids).to_have_text(["job 20", "job 3", "job 1"])
        focused = page.get_by_role("link", name="job 3", exact=True)
        focused.focus()
        # What comes and goes takes its place, and the focus stays.
        say("DQ.ADD", "q", "job 4", "x", "DELAY", HOUR)
        expect(ids).to_have_text(["job 20", "job 4", "job 3", "job 1"])
        say("DQ.DEL", "q", "job 20")
        expect(ids).to_have_text(["job 4", "job 3", "job 1"])
        say("DQ.RESCHEDULE", "q", "DELAY", 2000 * HOUR, "job 4")
        page.get_by_role("columnheader", name="Due", exact=True).get_by_role("button").press("Enter")
        expect(ids).to_have_text(["job 3", "job 1", "job 4"])
        focused.focus()
        say("DQ.RESCHEDULE", "q", "DELAY", 3000 * HOUR, "job 3")
        expect(ids).to_have_text(["job 1", "job 4", "job 3"])
        expect(focused).to_be_focused()
        # Also by those who are sent the address, and on the next page.
        for number in range(60):
            say("DQ.ADD", "q", f"more {number}", "x", "DELAY", HOUR + number)
        other = self.window()
        other.goto(page.url)
        due = other.get_by_role("columnheader", name="Due", exact=True)
        expect(due).to_have_attribute("aria-sort", "ascending")
        due.get_by_role("button").click()
        expect(due).to_have_attribute("aria-sort", "descending")
        other.get_by_role("link", name="Next page").click()
        expect(other.locator("tbody .j0")).to_have_count(13)
        expect(due).to_have_attribute("aria-sort", "descending")
        expect(other.locator("tbody .j0").first).to_have_text("job 3")
        self.assertEqual(page.wrong + other.wrong, [])

    def test_what_is_chosen_stays_chosen_where_its_line_moves(self):
        server = self.filled()
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "jobs?queue=0:q&state=dead")
        page.get_by_label("Select dead 10").check()
        page.get_by_role("columnheader", name="Id", exact=True).get_by_role("button").click()
        boxes = page.locator("tbody input")
        expect(boxes.nth(2)).to_be_checked()
        # A range is that of the lines as they are seen.
        boxes.nth(1).click(modifiers=["Shift"])
        expect(page.get_by_role("group", name="Selected jobs")).to_contain_text("2 jobs selected")
        expect(boxes.nth(0)).not_to_be_checked()
        self.assertEqual(page.wrong, [])
