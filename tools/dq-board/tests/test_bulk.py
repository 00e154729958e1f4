"""Actions on all jobs that a filter selects, recurring rules, and moving."""

import json
import pathlib
import re
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, ask, die, post, wait_until


class Bulk(BoardTest):
    def lengths(self, client, name="q"):
        return [client.execute_command("DQ.LEN", name, state) for state in ["READY", "DEAD"]]

    def begin(self, board, **order):
        """The task's number, and the status."""
        status, _, text = post(board.url + "api/tasks", {"queue": "0:q", **order})
        return json.loads(text).get("task"), status

    def told(self, board, number):
        return json.loads(ask(f"{board.url}api/tasks/{number}")[2])

    def run_task(self, board, **order):
        number, status = self.begin(board, **order)
        if status != 200:
            return status
        return wait_until("the task ends", lambda: (task := self.told(board, number))["state"] != "running" and task)

    def test_the_newest_dead_first(self):
        server = self.server()
        for begin in [0, 60]:
            for number in range(begin, begin + 60):
                server.client.execute_command("DQ.ADD", "q", f"job:{number}", "x")
                server.client.execute_command("DQ.POP", "q")
                server.client.execute_command("DQ.NACK", "q", f"job:{number}", "FATAL", "REASON", f"<b>{number}")
        page = self.window()
        page.goto(self.board(server).url + "jobs?queue=0:q&state=dead")
        jobs = page.locator("tbody tr")
        expect(jobs.first).to_contain_text("job:0")
        page.get_by_role("link", name="Newest first").click()
        expect(jobs.first).to_contain_text("job:119")
        expect(jobs.first).to_contain_text("<b>119")
        # Those of one instant stand together, so a page may have some fewer.
        shown = [int(it.split(":")[1]) for it in page.locator("tbody .j0").all_text_contents()]
        self.assertTrue(30 <= len(shown) <= 50, shown)
        self.assertEqual(sorted(shown, reverse=True)[:5], [119, 118, 117, 116, 115])
        page.get_by_role("link", name="Oldest first").click()
        expect(jobs.first).to_contain_text("job:0")
        # All of one instant, and few of them.
        server.client.execute_command("DQ.PURGE", "q", "dead")
        die(server.client, "q", 3)
        page.goto(page.url + "&newest=1")
        expect(jobs).to_have_count(3)
        self.assertEqual(page.wrong, [])

    def test_all_that_match_are_counted_then_changed_with_a_bar(self):
        server = self.server()
        client = server.client
        die(client, "q", 3000, lambda number: f"HTTP 503: order {number} waits" if number % 3 else "<b>no room</b>")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        log = pathlib.Path(folder.name, "audit")
        page = self.window()
        board = self.board(server, "--allow-actions", "--audit-log", str(log))
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        page.get_by_role("navigation", name="Reasons").get_by_role("link", name="HTTP 503").click()
        page.get_by_role("button", name="Retry all").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("dead, for the reason “HTTP 503: order # waits”")
        expect(box).to_contain_text("2,000 jobs become ready now")
        self.assertEqual(self.lengths(client), [0, 3000], "nothing yet")
        box.get_by_role("button", name="Retry them").click()
        expect(box.get_by_role("status")).to_have_text("Done: 2,000 jobs changed.")
        box.get_by_role("button", name="Close").click()
        self.assertEqual(self.lengths(client), [2000, 1000])
        page.goto(board.url + "jobs?queue=0:q&state=dead&id=job%3A9")
        page.get_by_role("button", name="Delete all").click()
        count = sum(f"job:{number}".startswith("job:9") for number in range(0, 3000, 3))
        expect(box).to_contain_text(f"{count} jobs are removed for good")
        expect(box.get_by_role("button", name="Delete them")).to_be_disabled()
        box.get_by_label("Type the queue's name").fill("q")
        box.get_by_role("button", name="Delete them").click()
        expect(box.get_by_role("status")).to_have_text(f"Done: {count} jobs changed.")
        self.assertEqual(self.lengths(client), [2000, 1000 - count])
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        told = [(line["action"], line.get("count"), line["outcome"], line["filter"]) for line in lines]
        self.assertEqual(told[1], ("kick", 2000, "done", "state dead, reason HTTP 503: order # waits"))
        self.assertEqual(told[2:], [("delete", None, "begun", "state dead, id contains job:9"), ("delete", count, "done", "state dead, id contains job:9")])
        self.assertEqual(page.wrong, [])

    def test_what_a_worker_has_stays_and_what_is_asked_wrongly_is_refused(self):
        server = self.server()
        client = server.client
        for id in ["PRIORITY", "a", "UNRESERVED", "b", "*", "AT"]:
            client.execute_command("DQ.ADD", "q", id, "x", "DELAY", HOUR, "GROUP", "g")
        board = self.board(server, "--allow-actions")
        self.assertEqual(self.run_task(board, act="count", filter="state=delayed&group=g")["found"], 6)
        self.assertEqual(self.run_task(board, act="now", filter="state=delayed&id=a")["changed"], 1)
        self.assertEqual(self.run_task(board, act="now", filter="state=delayed")["changed"], 5)
        client.execute_command("DQ.POP", "q", "ID", "a")
        self.assertEqual(self.run_task(board, act="cancel", filter="state=all&group=g", typed="q")["changed"], 5)
        self.assertEqual(dict(client.execute_command("DQ.GET", "q", "a"))[b"state"], b"reserved")
        self.assertEqual(self.run_task(board, act="delete", filter="state=reserved", typed="q")["changed"], 1)
        for order in [{"act": "cancel", "filter": "state=ready"}, {"act": "kick", "filter": ""}, {"act": "pause", "filter": "state=ready"}, {"act": "kick", "filter": "state=odd"}]:
            self.assertEqual(self.run_task(board, **order), 400, order)
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        looks = self.board(server, "--audit-log", log.name)
        self.assertEqual(self.run_task(looks, act="kick", filter="state=dead"), 403)
        self.assertEqual(post(looks.url + "api/tasks/1/stop", {})[0], 403)
        lines = [json.loads(line) for line in log.read().splitlines()]
        self.assertEqual([(it["action"], it.get("filter"), it["refused"][:17]) for it in lines], [("kick", "state dead", "You may only look"), ("stop", None, "You may only look")])
        self.assertEqual(self.run_task(looks, act="count", filter="state=dead")["found"], 0)
        self.assertEqual(ask(looks.url + "api/tasks/99")[0], 404)

    def test_a_task_can_be_stopped(self):
        server = self.server()
        client = server.client
        die(client, "q", 20_000)
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "jobs?queue=0:q&state=dead&group=g1")
        page.get_by_role("button", name="Retry all").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("6,667 jobs")
        # The server stops writing after the first steps.
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        box.get_by_role("button", name="Retry them").click()
        box.get_by_role("button", name="Stop").click()
        client.execute_command("CLIENT", "UNPAUSE")
        expect(box.get_by_role("status")).to_contain_text("Stopped: ")
        self.assertLess(self.lengths(client)[0], 6667)
        self.assertEqual(page.wrong, [])

    def test_who_only_counts_does_not_keep_others_from_acting(self):
        server = self.server()
        die(server.client, "q", 20)
        board = self.board(server, "--allow-actions")
        server.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        acting, _ = self.begin(board, act="kick", filter="state=dead")
        # As many tasks as are remembered, several at a time: the action that is held up does not wait for ever.
        with ThreadPoolExecutor(6) as counting:
            counts = counting.map(lambda _: self.run_task(board, act="count", filter="state=ready"), range(200))
            self.assertEqual({count["state"] for count in counts}, {"done"})
        self.assertEqual(self.told(board, acting)["state"], "running")
        server.process.send_signal(signal.SIGSTOP)
        orders = [{"act": "count", "filter": "state=dead"}] * 9
        self.assertEqual([self.begin(board, **order)[1] for order in orders], [200] * 8 + [409])
        self.assertEqual(self.begin(board, act="delete", filter="state=delayed", typed="q")[1], 200)
        server.process.send_signal(signal.SIGCONT)
        server.client.execute_command("CLIENT", "UNPAUSE")
        wait_until("all of it is done", lambda: self.told(board, acting)["state"] == "done")
        self.assertEqual(self.told(board, acting)["changed"], 20)

    def test_jobs_are_moved_with_all_they_have(self):
        server = self.server()
        client = server.client
        die(client, "q", 50)
        client.execute_command("DQ.ADD", "q", "job\0\xff", b"x\0y", "DELAY", HOUR, "PRIORITY", -3, "TTR", 90_000, "ATTEMPTS", 7, "BACKOFF", 2, 1000, 60_000, "TTL", 2 * HOUR, "GROUP", "acme", "KEEP", 5000)
        client.execute_command("DQ.ADD", "q", "taken", "x")
        client.execute_command("DQ.ADD", "other", "taken", "kept")
        before = dict(client.execute_command("DQ.GET", "q", "job\0\xff"))
        page = self.window()
        board = self.board(server, "--allow-actions")
        page.goto(board.url + "jobs?queue=0:q&state=delayed&group=acme")
        page.locator("tbody a").click()
        page.get_by_role("button", name="Move").click()
        page.get_by_label("To the queue").fill("other")
        # Only a script moves a job: it is told on request.
        expect(page.get_by_text("The script that is sent")).to_be_visible()
        expect(page.get_by_label("In redis-cli")).to_be_hidden()
        page.get_by_role("button", name="Move it").click()
        expect(page.locator("#said")).to_have_text("Moved.")
        after = dict(client.execute_command("DQ.GET", "other", "job\0\xff"))
        self.assertLess(abs(before.pop(b"expires") - after.pop(b"expires")), 1000)
        self.assertEqual(before, after)
        self.assertIsNone(client.execute_command("DQ.GET", "q", "job\0\xff"))
        self.assertEqual(self.run_task(board, act="move", filter="state=ready", to="other")["changed"], 0)
        self.assertEqual(dict(client.execute_command("DQ.GET", "other", "taken"))[b"payload"], b"kept")
        self.assertEqual(self.run_task(board, act="move", filter="state=dead&group=g1", to="other")["changed"], 17)
        self.assertEqual(client.execute_command("DQ.LEN", "other", "READY"), 18)
        # Of many jobs it is told how they are found; their script, too, on request.
        page.goto(board.url + "jobs?queue=0:q&state=dead&group=g2")
        page.get_by_role("button", name="Move all").click()
        page.get_by_label("To the queue").fill("other")
        expect(page.get_by_label("In redis-cli")).to_have_text("DQ.SCAN q 0 COUNT 500 STATE dead GROUP g2")
        page.get_by_text("The script that is sent").click()
        expect(page.get_by_label("Script", exact=True)).to_contain_text("EVAL ")
        # Jobs move only to queues that the board shows.
        bound = self.board(server, "--allow-actions", "--queue", "q")
        self.assertEqual(self.run_task(bound, act="move", filter="state=dead", to="other"), 403)
        self.assertEqual(post(bound.url + "api/act", {"queue": "0:q", "act": "move", "id": "job%3A0", "state": "dead", "to": "other"})[0], 403)
        self.assertEqual(page.wrong, [])

    def test_what_is_no_longer_in_its_state_is_left_alone(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "DONELEN", 100)
        die(client, "q", 4)
        board = self.board(server, "--allow-actions")
        page = self.window()
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        expect(page.locator("tbody tr")).to_have_count(4)
        page.get_by_label("Select all on this page").check()
        page.locator(".chosen").get_by_role("button", name="Retry", exact=True).click()
        # Meanwhile one is done, one is retried, and one dies no more.
        client.execute_command("DQ.KICK", "q", "IDS", 3, "job:0", "job:1", "job:2")
        client.execute_command("DQ.POP", "q", "ID", "job:0")
        client.execute_command("DQ.ACK", "q", "job:0")
        client.execute_command("DQ.POP", "q", "ID", "job:1")
        page.get_by_role("button", name="Retry them").click()
        expect(page.locator("#said")).to_have_text(re.compile("Changed 1 of 4 jobs: the job is (done|reserved|ready) now, not dead"))
        states = [dict(client.execute_command("DQ.GET", "q", f"job:{number}"))[b"state"] for number in range(4)]
        self.assertEqual(states, [b"done", b"reserved", b"ready", b"ready"])
        one = {"queue": "0:q", "act": "delete", "id": "job%3A0", "state": "dead"}
        self.assertEqual(json.loads(post(board.url + "api/act", one)[2])["done"], "nothing done: the job is done now, not dead")
        self.assertEqual(post(board.url + "api/act", {**one, "state": ""})[0], 400, "a state must be named")
        self.assertIsNotNone(client.execute_command("DQ.GET", "q", "job:0"))
        self.assertEqual(page.wrong, [])

    def test_all_that_match_are_compared_at_the_server(self):
        server = self.server()
        client = server.client
        die(client, "q", 300)
        board = self.board(server, "--allow-actions")
        # The board has read the jobs, and its change waits, when another client retries some of them.
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        number, _ = self.begin(board, act="delete", filter="state=dead", typed="q")
        wait_until("the script waits", lambda: any(it["cmd"] == "eval" for it in client.client_list()))
        with ThreadPoolExecutor(1) as other:
            # A transaction that has waited for as long runs first or last, but whole.
            kicked = other.submit(client.execute_command, "DQ.KICK", "q", "IDS", 2, "job:0", "job:299")
            wait_until("the retry waits too", lambda: sum(it["cmd"] == "dq.kick" for it in client.client_list()))
            client.execute_command("CLIENT", "UNPAUSE")
            retried = kicked.result()
        task = wait_until("the task ends", lambda: (it := self.told(board, number))["state"] != "running" and it)
        self.assertEqual((task["changed"], self.lengths(client)), (300 - retried, [retried, 0]))

    def test_without_the_right_for_scripts_nothing_is_sent(self):
        server = self.server()
        client = server.client
        die(client, "q", 2)
        client.execute_command("ACL", "SETUSER", "acts", "on", ">secret", "~*", "+@all", "-eval")
        board = self.board(server, "--allow-actions", "--user", "acts", REDISCLI_AUTH="secret")
        one = {"queue": "0:q", "act": "kick", "id": "job%3A0", "state": "dead"}
        self.assertIn("needs the right +eval", json.loads(post(board.url + "api/act", one)[2])["error"])
        self.assertIn("needs the right +eval", self.run_task(board, act="kick", filter="state=dead")["why"])
        self.assertEqual(self.lengths(client), [0, 2])

    def test_what_cannot_be_moved_whole_stays(self):
        server = self.server()
        client = server.client
        add = lambda *words: client.execute_command("DQ.ADD", "q", *words)  # noqa: E731
        for id in ["signal", "steps", "before", "free"]:
            add(id, "x")
        add("of group", "x", "GROUP", "g")
        add("behind", "x", "AFTER", 1, "before")
        add("behind the group", "x", "AFTER", "GROUP", "g")
        token = client.execute_command("DQ.POP", "q", "ID", "signal")[2]
        client.execute_command("DQ.NACK", "q", "signal", "TOKEN", token, "SILENT", "AWAIT", "paid")
        token = client.execute_command("DQ.POP", "q", "ID", "steps")[2]
        client.execute_command("DQ.STEP", "q", "steps", token, "one", "1")
        client.execute_command("DQ.NACK", "q", "steps", "TOKEN", token, "SILENT")
        client.execute_command("DQ.ADD", "other", "dead", "kept")
        client.execute_command("DQ.POP", "other")
        client.execute_command("DQ.NACK", "other", "dead", "FATAL")
        add("dead", "x")
        board = self.board(server, "--allow-actions")
        move = lambda id: json.loads(post(board.url + "api/act", {"queue": "0:q", "act": "move", "id": id, "state": "ready", "to": "other"})[2])["done"]  # noqa: E731
        for id, why in [("signal", "signal"), ("steps", "steps"), ("before", "blocked jobs wait for it"), ("of%20group", "blocked jobs wait for its group"), ("behind", "now, not ready"), ("dead", "its id is taken there")]:
            self.assertIn(why, move(id), id)
        self.assertEqual(move("free"), "moved")
        for state in ["delayed", "ready"]:
            self.run_task(board, act="move", filter=f"state={state}", to="other")
        self.assertEqual(client.execute_command("DQ.LEN", "q"), 7)
        self.assertEqual(client.execute_command("DQ.LEN", "q", "BLOCKED"), 2)
        page = self.window()
        page.goto(board.url + "jobs?queue=0:q&state=ready&id=before")
        page.get_by_role("button", name="Cancel all").click()
        expect(page.get_by_role("dialog")).to_contain_text("1 blocked job dies with them: behind.")
        self.assertEqual(page.wrong, [])

    def test_what_dies_with_a_job_is_told_before(self):
        server = self.server()
        client = server.client
        add = lambda *words: client.execute_command("DQ.ADD", "q", *words)  # noqa: E731
        for id in ["gate", "free", "kept", "held"]:
            add(id, "x")
        client.execute_command("DQ.POP", "q", "ID", "gate")
        client.execute_command("DQ.NACK", "q", "gate", "FATAL")
        client.execute_command("DQ.POP", "q", "ID", "held")
        for number in range(6):
            add(f"first {number}", "x", "AFTER", 1, "gate")
        add("second", "x", "AFTER", 1, "first 3", "ONDEAD", "DIE")
        add("third", "x", "AFTER", 1, "second")
        add("runs", "x", "AFTER", 1, "gate", "ONDEAD", "RUN")
        add("after the held", "x", "AFTER", 1, "held")
        board = self.board(server, "--allow-actions")
        page = self.window()
        dialog = page.get_by_role("dialog")

        def says(address, name, words):
            page.goto(board.url + address)
            page.get_by_role("button", name=name, exact=True).click()
            expect(dialog.get_by_role("status")).to_contain_text(words)
            dialog.get_by_role("button", name="Not now").click()

        says("job?queue=0:q&id=free", "Cancel", "No blocked job dies with it.")
        says("job?queue=0:q&id=gate", "Delete", "7 blocked jobs die with it: first")
        says("jobs?queue=0:q&state=dead&id=gate", "Delete all", "7 blocked jobs die with them: first")
        says("jobs?queue=0:q&all=1&id=e", "Cancel all", "and 2 more.")
        page.goto(board.url + "jobs?queue=0:q&state=dead")
        page.get_by_label("Select gate").check()
        page.get_by_role("group", name="Selected jobs").get_by_role("button", name="Delete").click()
        expect(dialog).to_contain_text("7 blocked jobs die with them")
        dialog.get_by_role("button", name="Delete them").click()
        expect(dialog).to_have_count(0)
        # All that was foretold, and nothing else.
        self.assertEqual(client.execute_command("DQ.LEN", "q", "DEAD"), 7)
        self.assertEqual(client.execute_command("DQ.LEN", "q", "BLOCKED"), 2)
        says("jobs?queue=0:q&state=dead", "Purge", "1 blocked job dies with them: third.")
        self.assertEqual(page.wrong, [])

    def test_who_is_freed_and_what_runs_no_more_is_told_before(self):
        server = self.server()
        client = server.client
        add = lambda *words: client.execute_command("DQ.ADD", "q", *words)  # noqa: E731
        for id in ["gate", "twice", "other"]:
            add(id, "x", "GROUP", "g" if id == "gate" else "h")
        evil = HOSTILE[0].decode()
        add(evil, "x", "AFTER", 1, "gate", "ONDEAD", "RUN")
        add("still waits", "x", "AFTER", 2, "gate", "other", "ONDEAD", "RUN")
        add("callback", "x", "AFTER", "GROUP", "g")
        add("dies", "x", "AFTER", 1, "gate", "GROUP", "h")
        client.execute_command("DQ.POP", "q", "ID", "twice")
        add("twice", "again", "NEXT")
        client.execute_command("DQ.NACK", "q", "twice", "DELAY", HOUR)
        board = self.board(server, "--allow-actions")
        page = self.window()
        status = page.get_by_role("dialog").get_by_role("status")

        def says(address, name, words):
            page.goto(board.url + address)
            page.get_by_role("button", name=name, exact=True).click()
            expect(status).to_have_text(words)

        says("job?queue=0:q&id=gate", "Cancel", f"1 blocked job dies with it: dies. 2 blocked jobs are freed, and may run: {evil}, callback.")
        says("job?queue=0:q&id=twice", "Cancel", "No blocked job dies with it. The run that was to follow (NEXT) goes with it.")
        says("jobs?queue=0:q&state=delayed&group=h", "Cancel all", "1 job is removed and will not run, except those that a worker has at that moment. No blocked job dies with them. 1 run that was to follow (NEXT) goes with them.")
        # What a move would leave behind, and why.
        says("job?queue=0:q&id=gate", "Move", "It stays here: blocked jobs wait for it.")
        says("job?queue=0:q&id=twice", "Move", "It stays here: it has a successor.")
        says("jobs?queue=0:q&state=ready&id=e", "Move all", "2 jobs go to the other queue with their options and no attempts used, except those whose ids are taken there. 2 of them stay here: gate (blocked jobs wait for it), other (blocked jobs wait for it).")
        page.goto(board.url + "jobs?queue=0:q&state=ready&group=g")
        page.get_by_role("button", name="Cancel all").click()
        expect(status).to_contain_text("freed, and may run")
        page.get_by_label("Type the queue's name").fill("q")
        page.get_by_role("button", name="Cancel them").click()
        expect(status).to_have_text("Done: 1 job changed.")
        states = {id: dict(client.execute_command("DQ.GET", "q", id))[b"state"].decode() for id in [evil, "callback", "dies", "still waits"]}
        self.assertEqual(states, {evil: "ready", "callback": "ready", "dies": "dead", "still waits": "blocked"}, "as foretold")
        self.assertEqual(page.wrong, [])

    def test_a_count_that_nobody_waits_for_ends(self):
        server = self.server()
        client = server.client
        pipe = client.pipeline(transaction=False)
        for number in range(5000):
            pipe.execute_command("DQ.ADD", "q", f"job {number}", "x", "DELAY", HOUR)
        pipe.execute()
        page = self.window()
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        board = self.board(server, "--allow-actions", "--audit-log", log.name)
        page.goto(board.url + "jobs?queue=0:q&state=delayed&id=job")
        expect(page.get_by_role("button", name="Cancel all")).to_be_visible()
        server.process.send_signal(signal.SIGSTOP)
        page.get_by_role("button", name="Cancel all").click()
        with page.expect_response("**/api/tasks/*/stop") as stopped:
            wait_until("it is counted", lambda: self.told(board, 1).get("state"))
            page.keyboard.press("Escape")
        self.assertEqual(stopped.value.status, 200)
        server.process.send_signal(signal.SIGCONT)
        wait_until("it has ended", lambda: self.told(board, 1)["state"] == "stopped")
        self.assertEqual(log.read(), b"", "counting is no action")
        self.assertEqual(page.wrong, [])

    def test_a_job_is_moved_from_among_many_blocked_ones(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q", "MAXLEN", 608)
        for id, *words in [("plain",), ("gate",), ("dead",), ("dead gate",), ("grouped", "GROUP", "g"), ("awaited", "GROUP", "h")]:
            client.execute_command("DQ.ADD", "q", id, "x", *words)
        for id in ["dead", "dead gate"]:
            client.execute_command("DQ.POP", "q", "ID", id)
            client.execute_command("DQ.NACK", "q", id, "FATAL")
        client.execute_command("DQ.ADD", "q", "behind the dead", "x", "AFTER", 1, "dead gate")
        pipe = client.pipeline(transaction=False)
        for number in range(603):
            pipe.execute_command("DQ.ADD", "q", f"behind {number}", "x", "AFTER", *((1, "gate") if number else ("GROUP", "h")))
        pipe.execute()
        board = self.board(server, "--allow-actions")
        move = lambda id, state: json.loads(post(board.url + "api/act", {"queue": "0:q", "act": "move", "id": id, "state": state, "to": "other"})[2])["done"]  # noqa: E731
        self.assertEqual(move("plain", "ready"), "moved")
        client.execute_command("DQ.ADD", "q", "fills it", "x")
        self.assertEqual(move("dead", "dead"), "moved")
        for id, state in [("gate", "ready"), ("dead%20gate", "dead")]:
            self.assertIn("blocked jobs wait for it", move(id, state))
        self.assertIn("blocked jobs wait for its group", move("awaited", "ready"))
        self.assertEqual(move("grouped", "ready"), "moved")
        fields = lambda name: sorted(client.execute_command("DQ.PEEK", name, "READY", "COUNT", 9), key=lambda it: it[0])  # noqa: E731
        self.assertEqual([it[:2] for it in fields("other")], [[b"dead", b"x"], [b"grouped", b"x"], [b"plain", b"x"]])
        self.assertEqual([it[0] for it in fields("q")], [b"awaited", b"fills it", b"gate"])
        self.assertEqual([client.execute_command("DQ.LEN", "q", state) for state in ["BLOCKED", "DEAD"]], [604, 1])

    def test_blocked_jobs_that_are_cancelled_end_none_of_each_other(self):
        server = self.server()
        client = server.client
        board = self.board(server, "--allow-actions")

        def fill():
            pipe = client.pipeline(transaction=False)
            pipe.execute_command("DQ.ADD", "q", "job 0000", "x", "DELAY", HOUR)
            for number in range(1, 1300):
                group = ["GROUP", "g"] if number == 700 else []
                on_dead = ["ONDEAD", ["WAIT", "RUN", "DIE"][number % 3]]
                pipe.execute_command("DQ.ADD", "q", f"job {number:04}", "x", "AFTER", 1, f"job {number - 1:04}", *group, *on_dead)
            pipe.execute_command("DQ.ADD", "q", "job of a group", "x", "AFTER", "GROUP", "g")
            pipe.execute()

        lengths = lambda: {state: client.execute_command("DQ.LEN", "q", state) for state in ["BLOCKED", "DELAYED", "READY", "DEAD"]}  # noqa: E731
        for state, count, delayed in [("blocked", 1300, 1), ("all", 1301, 0)]:
            fill()
            task = self.run_task(board, act="cancel", filter=f"state={state}&id=job", typed="q")
            self.assertEqual((task["state"], task["changed"]), ("done", count))
            self.assertEqual(lengths(), {"BLOCKED": 0, "DELAYED": delayed, "READY": 0, "DEAD": 0})
            client.execute_command("DQ.PURGE", "q", "ALL")

    def test_a_rule_is_added_and_changed_with_its_next_runs_in_sight(self):
        server = self.server()
        client = server.client
        client.execute_command("DQ.CFGSET", "q")
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "recurring?queue=0:q")
        page.get_by_role("button", name="Add a recurring job").click()
        box = page.get_by_role("dialog")
        box.get_by_label("Id").fill("report")
        box.get_by_label("Cron expression").fill("61 * * * *")
        expect(box.locator(".wrong").first).to_contain_text("minute")
        expect(box.get_by_role("button", name="Add it")).to_be_disabled()
        box.get_by_label("Cron expression").fill("0 9 * * MON-FRI")
        box.get_by_label("Time zone").fill("Europe/Berlin")
        runs = box.get_by_role("list", name="Next runs").get_by_role("listitem")
        expect(runs).to_have_count(5)
        box.get_by_role("button", name="Add it").click()
        expect(page.locator("#said")).to_have_text("Added.")
        real = client.execute_command("DQ.NEXT", "q", "report", "COUNT", 1)[0]
        moment = time.gmtime(real / 1000)
        expect(page.locator("tbody tr")).to_contain_text(f"{moment.tm_mday} {time.strftime('%b %Y, %H:%M:%S', moment)}")
        client.execute_command("DQ.ADD", "q", "report", "kept", "XX", "PRIORITY", 4, "GROUP", "g", "TTL", HOUR, "CRON", "0 9 * * MON-FRI", "TZ", "Europe/Berlin", "JITTER", 1000)
        page.get_by_role("link", name="report").click()
        page.get_by_role("button", name="Change the rule").click()
        expect(box.get_by_label("Cron expression")).to_have_value("0 9 * * MON-FRI")
        box.get_by_label("When").select_option("every")
        box.get_by_label("Every", exact=True).fill("2")
        expect(runs.first).to_contain_text(re.compile(r"in (2 min|1 min \d+ s)"))
        # What it amounts to is one command; the script that makes it is told on request.
        command, script = box.get_by_label("In redis-cli"), box.get_by_label("Script")
        expect(command).to_have_text(re.compile(r"^DQ\.ADD q report kept .* GROUP g XX EVERY 120000 JITTER 1000 TTL 3600000$"))
        expect(script).to_be_hidden()
        box.get_by_text("The script that is sent").click()
        expect(script).to_contain_text(re.compile("^EVAL "))
        client.copy("q", "typed")
        client.execute_command(*command.inner_text().replace(" q ", " typed ", 1).split())
        box.get_by_role("button", name="Change it").click()
        expect(page.locator("#said")).to_have_text("Changed.")
        job = dict(client.execute_command("DQ.GET", "q", "report"))
        self.assertEqual(job[b"expires"] - job[b"due"], HOUR)
        self.assertEqual([job[field] for field in [b"every", b"cron", b"payload", b"priority", b"group", b"jitter"]], [120_000, None, b"kept", 4, b"g", 1000])
        typed = dict(client.execute_command("DQ.GET", "typed", "report"))
        moves = [b"due", b"expires", b"occurrence"]
        self.assertEqual(*[{field: value for field, value in it.items() if field not in moves} for it in [typed, job]])
        self.assertEqual(page.wrong, [])
