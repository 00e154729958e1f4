"""Actions: what they do, and what their dialogs say before."""

import json
import socket
import tempfile

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, die, key, post


class Actions(BoardTest):
    def do(self, page, button, yes, said, scope=None):
        page.locator(".actions").get_by_role("button", name=button, exact=True).click()
        if scope:
            scope(page.get_by_role("dialog"))
        page.get_by_role("dialog").get_by_role("button", name=yes, exact=True).click()
        expect(page.locator("#said")).to_have_text(said)
        expect(page.get_by_role("dialog")).to_have_count(0)

    def test_a_queue_that_vanished_can_only_be_begun_anew(self):
        server = self.server()
        die(server.client, "q", 1)
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "queue?queue=0:q")
        buttons = page.locator(".actions button")
        expect(buttons).to_have_text(["Pause", "Add a test job", "Retry dead jobs", "Purge"])
        server.client.delete("q")
        expect(buttons).to_have_text(["Add a test job"])
        expect(page.locator(".queue-head .badge")).to_have_text("no such queue")
        expect(buttons).to_have_text(["Add a test job"])
        expect(page.get_by_role("button", name="Change")).to_be_hidden()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        expect(buttons).to_have_text(["Pause", "Add a test job", "Purge"])
        self.assertEqual(page.wrong, [])

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
        page.locator(".actions").get_by_role("button", name="Retry dead jobs").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("2 jobs become ready now")
        box.get_by_role("button", name="Retry them").click()
        expect(box.get_by_role("status")).to_have_text("Done: 2 jobs changed.")
        box.get_by_role("button", name="Close").click()
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
        # A server splits an inline command as redis-cli splits its input.
        with socket.create_connection(("127.0.0.1", server.port)) as inline:
            inline.sendall(shown.text_content().encode() + b"\r\n")
            self.assertTrue(inline.recv(100).startswith(b"$"), "DQ.ADD answers with the id")
        self.assertEqual(dict(server.client.execute_command("DQ.GET", "q", 'a "$(b)" é'))[b"state"], b"delayed")
        page.get_by_role("button", name="Not now").click()
        page.locator(".actions").get_by_role("button", name="Purge").click()
        expect(shown).to_have_text("DQ.PURGE q all")
        self.assertEqual(server.client.execute_command("DQ.LEN", "q"), 1, "nothing is sent before the yes")

    def test_settings_are_changed_and_only_those(self):
        server = self.server()
        client = server.client
        evil = HOSTILE[0]
        client.execute_command("DQ.CFGSET", evil, "RATE", 100, HOUR, "ATTEMPTS", 3, "MAXLEN", 5)
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        board = self.board(server, "--allow-actions", "--audit-log", log.name)
        page = self.window()
        page.goto(board.url + f"queue?queue={key(evil)}")
        box = page.get_by_role("dialog")

        def change(said, *fills):
            page.get_by_role("button", name="Change", exact=True).click()
            for label, value in fills:
                box.get_by_label(f"{label}:").fill(value)
            expect(box.locator(".command")).to_contain_text(said)
            for name in ["Copy for redis-cli", "Not now", "Change them"]:
                expect(box.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
            box.get_by_role("button", name="Change them").click()

        def settings():
            return dict(client.execute_command("DQ.CFGGET", evil))

        name = json.dumps(evil.decode())
        change(f"DQ.CFGSET {name} MAXRESERVED 4 BACKOFF 2 1000 60000", ("MAXRESERVED", "4"), ("BACKOFF", "1000, 60000"))
        expect(page.locator("#said")).to_have_text("The settings are changed.")
        self.assertEqual([settings()[it] for it in [b"maxreserved", b"backoff", b"rate", b"attempts", b"maxlen"]], [4, [1000, 60_000], [100, HOUR], 3, 5])
        facts = page.locator(".facts").last
        expect(facts).to_contain_text("Max reserved4")
        expect(facts).to_contain_text("Backoff1.0 s, 1 min")
        change("ATTEMPTS 0 GROUPMAX 2 DONELEN 7 HISTORY 9 RATE 0 0 BACKOFF DEFAULT", ("ATTEMPTS", "0"), ("GROUPMAX", "2"), ("DONELEN", "7"), ("HISTORY", "9"), ("RATE", "0"), ("BACKOFF", ""))
        expect(facts).to_contain_text("Failed attempts toldthe last 9 of each job")
        self.assertEqual([settings()[it] for it in [b"attempts", b"groupmax", b"donelen", b"history", b"rate", b"backoff", b"maxreserved"]], [0, 2, 7, 9, [0, 0], [], 4])
        # What is no number, or nothing, is refused; and what the server refuses is told.
        for what in [{"attempts": "many"}, {"backoff": "1, x"}, {}]:
            self.assertEqual(post(board.url + "api/act", {"act": "configure", "queue": key(evil), **what})[0], 400, what)
        page.get_by_role("button", name="Change", exact=True).click()
        box.get_by_label("HISTORY:").fill("101")
        box.get_by_role("button", name="Change them").click()
        expect(box.get_by_role("alert")).to_have_text("ERR value is not an integer or out of range")
        box.get_by_role("button", name="Not now").click()
        told = [json.loads(line) for line in log.read().splitlines()]
        told = [it for it in told if "action" in it]
        self.assertEqual([it["action"] for it in told], ["configure"] * 3)
        self.assertEqual((told[0]["maxreserved"], told[0]["backoff"], "attempts" in told[0]), ("4", "1000, 60000", False))
        self.assertIn("refused", told[2])
        looks = self.board(server)
        page.goto(looks.url + f"queue?queue={key(evil)}")
        expect(facts).to_contain_text("Max reserved4")
        expect(page.get_by_role("button", name="Change", exact=True)).to_have_count(0)
        self.assertEqual(post(looks.url + "api/act", {"act": "configure", "queue": key(evil), "attempts": "1"})[0], 403)
        self.assertEqual(page.wrong, [])

    def test_several_at_once(self):
        server = self.server()
        client = server.client
        die(client, "q", 70, lambda number: f"HTTP 503: order {number} waits" if number % 7 else "<b>no room</b>")
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        reasons = page.get_by_role("navigation", name="Reasons")
        expect(reasons.get_by_role("link")).to_have_text(["HTTP 503: order # waits60", "<b>no room</b>10"])
        reasons.get_by_role("link").first.click()
        expect(page.locator("tbody tr")).to_have_count(60)
        self.assertEqual(page.get_by_text("no room").count(), 1, "in the list of reasons only")
        page.get_by_label("Select all on this page").check()
        expect(page.get_by_role("status").filter(has_text="60 jobs selected")).to_be_visible()
        page.locator(".chosen").get_by_role("button", name="Retry", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("The 60 jobs selected become ready now")
        page.get_by_role("button", name="Retry them").click()
        expect(page.locator("#said")).to_have_text("Changed 60 of 60 jobs.")
        self.assertEqual([client.execute_command("DQ.LEN", "q", state) for state in ["READY", "DEAD"]], [60, 10])
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        expect(page.locator("tbody tr")).to_have_count(10)
        for id in ["job:0", "job:7"]:
            page.get_by_label(f"Select {id}", exact=True).check()
        # One of the chosen jobs is gone before the others are deleted.
        page.locator(".chosen").get_by_role("button", name="Delete").click()
        client.execute_command("DQ.DEL", "q", "job:7")
        page.get_by_role("button", name="Delete them").click()
        expect(page.locator("#said")).to_have_text("Changed 1 of 2 jobs: the job no longer exists.")
        expect(page.locator("tbody tr")).to_have_count(8)
        expect(page.locator(".chosen")).to_be_hidden()
        self.assertEqual(client.execute_command("DQ.LEN", "q", "DEAD"), 8)
        body = json.dumps({"queue": "0:q", "act": "purge", "state": "all", "ids": ["a"], "typed": "q"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq="1")[0], 400)
        self.assertEqual(page.wrong, [])

    def test_who_only_looks_has_nothing_to_choose(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        page = self.window()
        page.goto(self.board(server).url + "jobs?queue=0:q&state=ready")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody .pick")).to_be_hidden()

    def test_a_purge_says_that_rules_go_too(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "report", "x", "EVERY", HOUR)
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "jobs?queue=0:q&state=delayed")
        page.locator(".actions").get_by_role("button", name="Purge").click()
        expect(page.get_by_role("dialog")).to_contain_text("Recurring jobs among them go with their rules")

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
        # The board's server also refuses a request that skips the dialog.
        body = json.dumps({"queue": "0:precious", "act": "purge", "state": "all"}).encode()
        self.assertEqual(ask(board.url + "api/act", "POST", body, x_dq="1")[0], 400)
        self.do(page, "Purge", "Purge", "Purged 1 job.", lambda it: it.get_by_role("textbox").fill("precious"))
        self.assertEqual(server.client.execute_command("DQ.LEN", "precious"), 0)


class Copying(BoardTest):
    """On plain HTTP away from localhost, browsers have no navigator.clipboard."""

    NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
    REFUSED = "document.execCommand = () => false"
    PAYLOAD = 'two  words\nand "one" line'

    def job(self, *scripts):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", self.PAYLOAD, "DELAY", HOUR)
        page = self.window(permissions=["clipboard-read", "clipboard-write"])
        for script in scripts:
            page.add_init_script(script)
        page.goto(self.board(server, "--allow-actions").url + "job?queue=0:q&id=job")
        expect(page.get_by_label("Payload")).to_have_text(self.PAYLOAD)
        return page

    def test_a_name_that_is_cut_is_copied_in_one_piece(self):
        server = self.server()
        name = "team-0:service-17:deliveries-of-the-$&-warehouse"
        server.client.execute_command("DQ.ADD", name, "job", "x")
        page = self.window(permissions=["clipboard-read", "clipboard-write"])
        page.goto(self.board(server).url)
        expect(page.get_by_role("link", name=name)).to_be_visible()
        page.evaluate("getSelection().selectAllChildren(document.querySelector('.table'))")
        page.keyboard.press("Control+c")
        self.assertIn(name, self.pasted(page).splitlines())
        self.assertEqual(page.wrong, [])

    def pasted(self, page):
        """The clipboard's text, read by a page that has access to it."""
        other = page.context.new_page()
        other.goto(page.url.split("job?")[0])
        other.bring_to_front()
        return other.evaluate("navigator.clipboard.readText()")

    def test_with_a_clipboard(self):
        page = self.job()
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        self.assertEqual(self.pasted(page), page.get_by_label("Payload").text_content())
        self.assertEqual(page.wrong, [])

    def test_without_one(self):
        page = self.job(self.NO_CLIPBOARD)
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        self.assertEqual(self.pasted(page), page.get_by_label("Payload").text_content())
        page.bring_to_front()
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.get_by_role("button", name="Copy for redis-cli").click()
        expect(page.get_by_role("dialog").get_by_role("button", name="Copied")).to_be_visible()
        self.assertEqual(self.pasted(page), page.get_by_label("In redis-cli").text_content())
        self.assertEqual(page.wrong, [])

    def test_what_cannot_be_copied_is_selected(self):
        page = self.job(self.NO_CLIPBOARD, self.REFUSED)
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Selected: copy it with the keyboard")).to_be_visible()
        self.assertEqual(page.evaluate("getSelection().toString()"), page.get_by_label("Payload").text_content())
        self.assertEqual(page.wrong, [])
