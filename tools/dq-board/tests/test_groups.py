"""The page of groups: what each has of its own, and actions on one."""

import json
import tempfile

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, calls, post


class Groups(BoardTest):
    def filled(self):
        """acme has three ready jobs, one of them reserved, and two dead ones; beta has one; the third group has a hostile name."""
        server = self.server()
        say = server.client.execute_command
        for group, ids in [("acme", "abcde"), ("beta", "f"), (HOSTILE[0], "g")]:
            for id in ids:
                say("DQ.ADD", "q", id, "x", "GROUP", group)
        for id in "de":
            say("DQ.POP", "q", "ID", id)
            say("DQ.NACK", "q", id, "FATAL")
        say("DQ.GROUPSET", "q", "acme", "WEIGHT", 3, "MAX", 1, "RATE", 9, 4 * HOUR, "MAXLEN", 7)
        say("DQ.POP", "q", "ID", "a", "TTR", HOUR)
        say("DQ.PAUSE", "q", "GROUP", HOSTILE[0])
        return server

    def test_what_each_has(self):
        server = self.filled()
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "groups?queue=0:q")
        cells = page.locator("tbody tr").first.locator("td")
        expect(cells.nth(0)).to_have_text("acme")
        expect(cells.nth(1)).to_have_text("2")
        expect(cells.nth(2)).to_have_text("1 (at its limit)")
        expect(cells.nth(3)).to_have_text("2")
        expect(cells.nth(4)).not_to_have_text("–")
        expect(cells.nth(5)).to_have_text("weight 3, 75 %")
        expect(cells.nth(6)).to_have_text("1 reserved at most, 9 in 4 h, 7 jobs at most")
        expect(cells.nth(7)).to_have_text("1 of 9")
        evil = page.locator("tbody tr").filter(has_text="<img")
        expect(evil.locator("td").nth(6)).to_have_text("paused")
        expect(evil.locator("td").nth(5)).to_have_text("–")
        expect(page.locator("tbody button")).to_have_count(0)
        page.get_by_role("link", name="Those with settings").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_role("link", name="acme").click()
        expect(page.locator("tbody tr")).to_have_count(5)
        self.assertEqual(page.wrong, [])

    def test_what_holds_them_now(self):
        server = self.server()
        say = server.client.execute_command
        say("DQ.CFGSET", "q", "GROUPMAX", 2, "GROUPRATE", 5, HOUR)
        for group, ids in [("acme", "ab"), ("beta", "cde")]:
            for id in ids:
                say("DQ.ADD", "q", id, "x", "GROUP", group)
            say("DQ.PAUSE", "q", "GROUP", group)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:q")
        why = page.locator(".why")
        expect(why).to_have_text("5 jobs are ready; their groups are paused")
        say("DQ.RESUME", "q", "GROUP", "beta")
        say("DQ.POP", "q", "COUNT", 2, "TTR", HOUR)
        expect(why).to_contain_text("3 jobs are ready; their groups are paused, or at GROUPMAX 2; the next lease ends in ")
        self.assertEqual(page.wrong, [])

    def test_actions_on_one(self):
        server = self.filled()
        say = server.client.execute_command
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        board = self.board(server, "--allow-actions", "--audit-log", log.name)
        page = self.window()
        page.goto(board.url + "groups?queue=0:q")

        def act(group, button, yes, said, command, scope=lambda box: None):
            page.locator("tbody tr").filter(has_text=group).get_by_role("button", name=button, exact=True).click()
            box = page.get_by_role("dialog")
            scope(box)
            expect(box.locator(".command")).to_contain_text(command)
            box.get_by_role("button", name=yes, exact=True).click()
            if said:
                expect(page.locator("#said")).to_have_text(said)

        def own(group):
            return dict(say("DQ.GROUPGET", "q", group))

        evil = HOSTILE[0].decode()
        act("<img", "Resume", "Resume", "The group is resumed.", "DQ.RESUME q GROUP")
        self.assertEqual(own(evil)[b"paused"], 0)
        act("<img", "Pause", "Pause", "The group is paused for 1h.", "DQ.PAUSE q 3600000 GROUP", lambda box: box.get_by_label("For how long").fill("3600"))
        self.assertGreater(own(evil)[b"paused"], 0)
        act("beta", "Set", "Set it", "The group is set.", "DQ.GROUPSET q beta WEIGHT 2 RATE 5 60000", lambda box: (
            box.get_by_label("Weight").fill("2"), box.get_by_label("Deliveries at most").fill("5"), box.get_by_label("… in").fill("60")))
        self.assertEqual((own("beta")[b"weight"], own("beta")[b"rate"], own("beta")[b"max"]), (2, [5, 60_000], None))
        act("acme", "Clear", "Clear it", "The queue's settings hold for the group.", "DQ.GROUPSET q acme CLEAR")
        self.assertIsNone(own("acme")[b"max"])
        act("acme", "Retry dead", "Retry them", None, "DQ.SCAN q 0 COUNT 500 STATE dead GROUP acme\nDQ.KICK q IDS 1 ID")
        expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("Done: 2 jobs changed.")
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        self.assertEqual(say("DQ.LEN", "q", "DEAD"), 0)
        act("acme", "Cancel", "Cancel them", None, "DQ.DEL q UNRESERVED IDS 1 ID", lambda box: box.get_by_label("Type the queue's name, q").fill("q"))
        expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("Done: 4 jobs changed.")
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        self.assertEqual((say("DQ.LEN", "q", "GROUP", "acme"), say("DQ.LEN", "q", "GROUP", "beta")), (1, 1))
        # Before its first job.
        page.get_by_role("button", name="Set a group").click()
        box = page.get_by_role("dialog")
        box.get_by_label("Group", exact=True).fill("later")
        box.get_by_label("Jobs at most").fill("3")
        box.get_by_role("button", name="Set it").click()
        expect(page.locator("#said")).to_have_text("The group is set.")
        self.assertEqual(own("later")[b"maxlen"], 3)
        told = [json.loads(line) for line in log.read().splitlines()]
        self.assertEqual([it["action"] for it in told if "action" in it and "group" in it],
                         ["group-resume", "group-pause", "group-set", "group-clear", "group-set"])
        self.assertTrue(any(it.get("group") == "beta" and it["weight"] == "2" and it["rate"] == "5" for it in told), told)
        self.assertEqual(page.wrong, [])

    def test_nobody_who_may_only_look_sets_a_group(self):
        server = self.filled()
        board = self.board(server)
        for act in ["group-set", "group-clear", "group-pause", "group-resume"]:
            status, _, _ = post(board.url + "api/act", {"act": act, "queue": "0:q", "group": "acme", "weight": "1"})
            self.assertEqual(status, 403, act)
        self.assertEqual(calls(server, "dq.resume"), 0)
        for what in [{"group": "acme"}, {"weight": "1"}, {"group": "acme", "weight": "many"}]:
            status, _, _ = post(board.url + "api/act", {"act": "group-set", "queue": "0:q", **what})
            self.assertEqual(status, 400, what)
