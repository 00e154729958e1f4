"""The page of a whole flow."""

import urllib.parse

from playwright.sync_api import expect
from support import HOSTILE, HOUR, BoardTest, wait_until


class Flow(BoardTest):
    def test_a_whole_flow_in_layers_and_a_batch_with_its_callback(self):
        server = self.server()
        client = server.client
        say = client.execute_command
        evil = HOSTILE[0]
        say("DQ.CFGSET", "release", "DONELEN", 9)
        say("DQ.ADD", "release", "test", "x")
        say("DQ.ADD", "release", "deploy", "x", "AFTER", 1, "test")
        token = say("DQ.POP", "release")[2]
        say("DQ.NACK", "release", "test", "TOKEN", token, "FATAL")
        say("DQ.CFGSET", "q", "DONELEN", 1000)
        parts = [f"part-{number:02}" for number in range(50)]
        say("DQ.ADD", "q", "begin", "x")
        for id in parts:
            say("DQ.ADD", "q", id, "x", "AFTER", 1, "begin")
        say("DQ.ADD", "q", evil, "x", "AFTER", 1, "part-07", "ONDEAD", "wait")
        say("DQ.ADD", "q", "other", "x", "AFTER", 1, "part-08")
        say("DQ.ADD", "q", "end", "x", "AFTER", 52, evil, "other", *parts)
        say("DQ.ADD", "q", "stranger", "x")
        for number in range(5):
            say("DQ.ADD", "q", f"member-{number}", "x", "GROUP", evil)
        callback = HOSTILE[4].decode()
        say("DQ.ADD", "q", callback, "x", "AFTER", "GROUP", evil)
        say("DQ.ADD", "q", "last", "x", "AFTER", 1, callback)

        def end(id, *how):
            token = say("DQ.POP", "q", "ID", id)[2]
            say(*(["DQ.NACK", "q", id, "FATAL"] if how else ["DQ.ACK", "q", "WITHTOKENS", id, token]))

        end("begin")
        for id in parts[10:32]:
            end(id)
        end("part-07", "dead")
        for number in range(2):
            end(f"member-{number}")
        board = self.board(server)
        pages = [self.window(viewport={"width": width, "height": 860}) for width in [320, 1280]]
        for page in pages:
            page.goto(board.url + "job?queue=0:q&id=other")
            page.get_by_role("link", name="The whole flow").click()
            # Others may have been done of which nothing is known.
            expect(page.locator("main").get_by_role("status")).to_have_text("30 left, 1 dead, at least 23 done.")
            expect(page.get_by_label("Done", exact=True)).to_be_hidden()
            # A done job stands beside those of its stage.
            expect(page.locator("summary")).to_have_text(["Layer 1: 1 done", "Layer 2: 22 done, 1 dead, 27 ready", "Layer 3: 2 blocked", "Layer 4: 1 blocked"])
            layers = page.locator(".layer")
            # What is done is folded; the failed branch comes first.
            self.assertEqual([it.get_attribute("open") is not None for it in layers.all()], [False, True, True, True])
            expect(layers.nth(1).locator("li").first).to_have_text("part-07 dead")
            expect(layers.nth(2).locator("li")).to_have_text([f"{evil.decode()} blocked: part-07 is dead", "other blocked"])
            expect(layers.nth(3).locator("li")).to_have_text("end blocked: part-07 is dead")
            expect(page.locator(".layer [aria-current]")).to_have_text("other")
            expect(page.locator(".layer [aria-current]")).to_be_in_viewport()
            expect(page.get_by_role("list", name="Legend").get_by_role("listitem")).to_have_text(["dead", "reserved", "ready", "delayed", "blocked", "done"])
            marks = page.get_by_role("list", name="Legend").get_by_role("listitem").evaluate_all("""(all) => all.map((it) => getComputedStyle(it, "::before")).map((it) => `${it.backgroundColor} ${it.borderTopWidth}`)""")
            self.assertEqual(len(set(marks)), 6, marks)
            self.assertFalse(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        page = pages[1]
        # From a member of the batch, one that has ended as well.
        for id in ["member-4", "member-1"]:
            page.goto(board.url + f"job?queue=0:q&id={id}")
            page.get_by_role("link", name="How far the group is").click()
            expect(page.locator(".needy li")).to_have_text(f"Group {evil.decode()} 2 of 5 done, then {callback}")
        # A group is named, and so is what holds a job back from afar.
        page.goto(board.url + "job?queue=0:q&id=" + urllib.parse.quote(callback, safe=""))
        expect(page.locator(".why")).to_have_text(f"it waits for the group {evil.decode()}")
        page.goto(board.url + "job?queue=0:q&id=end")
        expect(page.get_by_text("It waits as part-07 is dead.")).to_be_visible()
        page.goto(board.url + "flow?queue=0:q&id=other")
        expect(page.locator("summary").first).to_be_visible()
        self.assertNotIn("stranger", page.locator("main").inner_text())
        page.goto(board.url + "job?queue=0:q&id=" + urllib.parse.quote(callback, safe=""))
        page.get_by_role("link", name="How far the group is").click()
        expect(page.locator(".needy li")).to_have_text(f"Group {evil.decode()} 2 of 5 done, then {callback}")
        self.assertEqual(page.locator(".needy progress").evaluate("(it) => it.value"), 0.4)
        # By the keyboard alone, and what becomes of it is seen.
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".layer").first.locator("li")).to_be_hidden()
        # What is folded stays folded when a job of it has ended.
        page.clock.install()
        page.goto(board.url + "flow?queue=0:q&id=other")
        second = page.locator(".layer").nth(1)
        second.locator("summary").click()
        end("part-40")
        expect(second.locator("summary")).to_have_text("Layer 2: 22 done, 1 dead, 27 ready")
        page.clock.fast_forward(31_000)
        expect(second.locator("summary")).to_have_text("Layer 2: 23 done, 1 dead, 26 ready")
        expect(second.locator("li").first).to_be_hidden()
        page.goto(board.url + "flow?queue=0:release&id=deploy")
        expect(page.locator("main").get_by_role("status")).to_have_text("0 of 2 done, 1 dead.")
        page.goto(board.url + "flow?queue=0:q&id=none")
        expect(page.locator("main").get_by_role("status")).to_have_text("0 of 1 done.")
        self.assertEqual(sum((page.wrong for page in pages), []), [])

    def test_of_a_batch_only_what_is_known_is_said(self):
        server = self.server()
        say = server.client.execute_command
        page = self.window()
        board = self.board(server)

        def told(name, done, *settings, keep=(), dead=0):
            if settings:
                say("DQ.CFGSET", name, *settings)
            for number in range(30):
                say("DQ.ADD", name, f"member-{number}", "x", "GROUP", "g", *keep)
            say("DQ.ADD", name, "callback", "x", "AFTER", "GROUP", "g")
            for job in say("DQ.POP", name, "COUNT", dead) if dead else []:
                say("DQ.NACK", name, job[0], "FATAL")
            for job in say("DQ.POP", name, "COUNT", done):
                say("DQ.ACK", name, "WITHTOKENS", job[0], job[2])
            page.goto(board.url + f"flow?queue=0:{name}&id=callback")
            line = page.locator(".needy li")
            expect(line).to_contain_text("then callback")
            return line.inner_text(), line.locator("progress").is_visible()

        none = "(none of its done jobs is kept: see DONELEN and DONETTL)"
        status = page.locator("main").get_by_role("status")
        self.assertEqual(told("none", 11), (f"Group g 19 left {none}, then callback", False))
        self.assertEqual(told("dead", 11, dead=2), (f"Group g 17 left {none}, 2 dead, then callback", False))
        self.assertEqual(told("few", 11, "DONELEN", 1), ("Group g 19 left (1 done job is still kept: see DONELEN and DONETTL), then callback", False))
        self.assertEqual(told("ttl", 11, "DONETTL", HOUR), ("Group g 19 left (11 done jobs are still kept: see DONELEN and DONETTL), then callback", False))
        self.assertEqual(told("own", 11, "DONELEN", 99, keep=["KEEP", 0]), (f"Group g 19 left {none}, then callback", False))
        said, is_seen = told("all", 11, "DONELEN", 99, dead=1)
        expect(status).to_have_text("0 of 1 done, without the jobs of groups.")
        self.assertEqual((" ".join(said.split()), is_seen), ("Group g 11 of 30 done, 1 dead, then callback", True))
        self.assertEqual(page.wrong, [])

    def test_a_flow_of_a_thousand(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        for number in range(1200):
            pipe.execute_command("DQ.ADD", "q", f"job-{number:04}", "x", *(["AFTER", 1, "job-0000"] if number else []))
        pipe.execute()
        page = self.window()
        page.goto(self.board(server).url + "flow?queue=0:q&id=job-0000")
        status = page.locator("main").get_by_role("status")
        expect(status).to_have_text("0 of 1,000 done, as far as the board has looked.")
        wait_until("all are there", lambda: page.locator(".layer li").count() == 1000)
        self.assertEqual(page.wrong, [])
