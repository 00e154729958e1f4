"""Everything works with the keyboard alone."""

import re

import demo
import test_appearance
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support import BoardTest, some, wait_until

# All elements that a mouse can use, and the focused one. Elements of the same radio group or hidden ones are not
# counted.
USABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((it) => !it.disabled && it.tabIndex >= 0 && it.checkVisibility({ visibilityProperty: true }))"""
NUMBER = f"() => {{ const all = ({USABLE})(); all.forEach((it, at) => (it.dataset.reach = at)); return all.length; }}"
FOCUSED = """() => {
    const it = document.activeElement;
    if (!it || it === document.body) return null;
    const box = it.getBoundingClientRect();
    const style = getComputedStyle(it);
    const marked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
    return { at: it.dataset.reach, marked, seen, what: it.outerHTML.slice(0, 120) };
}"""


class Keyboard(BoardTest):
    def test_arrow_keys_on_a_chart_are_spoken_and_back_leads_to_the_place(self):
        server = self.server()
        for number in range(60):
            server.client.execute_command("DQ.ADD", "q", f"job:{number:02}", "x", "DELAY", 60_000 * (number + 1))
        page = self.window()
        board = self.board(server)
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".readout")).to_contain_text("jobs due")
        page.locator("svg.forecast").focus()
        page.keyboard.press("ArrowRight")
        spoken = page.locator(".card [role=status]").first
        expect(spoken).to_have_text(re.compile(r"^(\d\d:\d\d:\d\d) to (?!\1)\d\d:\d\d:\d\d: \d+ jobs? due"))
        page.keyboard.press("+")
        expect(spoken).to_have_text(re.compile("jobs? delivered, .* jobs? due"))
        page.goto(board.url + "jobs?queue=0:q&state=delayed")
        job = page.get_by_role("link", name="job:45")
        job.scroll_into_view_if_needed()
        place = page.evaluate("scrollY")
        self.assertGreater(place, 300)
        job.click()
        expect(page.get_by_label("Payload")).to_be_visible()
        page.go_back()
        page.wait_for_function("(place) => Math.abs(scrollY - place) < 2", arg=place)
        expect(job).to_be_focused()
        self.assertEqual(page.wrong, [])

    def reach(self, page):
        """Presses Tab through the whole page: which usable elements got the focus, and whether it was visible."""
        page.keyboard.press("p")  # what is refreshed may be made anew
        count = page.evaluate(NUMBER)
        reached = set()
        for _ in range(2 * count + 10):
            page.keyboard.press("Tab")
            focused = page.evaluate(FOCUSED)
            if focused is None or focused["at"] in reached:
                if len(reached) >= count:
                    break
                continue
            if focused["at"] is not None:
                self.assertTrue(focused["marked"] and focused["seen"], focused)
                reached.add(focused["at"])
        return count, len(reached)

    def test_each_page_is_gone_through_with_the_focus_in_sight(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server, "--allow-actions")
        for width in some([1280, 320]):
            page = self.window(viewport={"width": width, "height": 860})
            for name, (address, there) in test_appearance.Appearance.PAGES.items():
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
                count, reached = self.reach(page)
                self.assertGreater(count, 5, name)
                self.assertEqual(reached, count, f"{name} at {width}")
            self.assertEqual(page.wrong, [])

    def test_each_dialog_is_opened_gone_through_and_left(self):
        """At 200 % and in forced colours, where axe finds nothing either."""
        server = self.server()
        demo.fill(server.client)
        board = self.board(server, "--allow-actions")
        page = self.window(viewport={"width": 720, "height": 430}, device_scale_factor=2, color_scheme="dark", forced_colors="active")
        axe, dialog, opened, refused = Axe(), page.locator("dialog[open]"), set(), []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        jobs = {"held": "job?queue=0:exports&id=acme-0", "rule": "job?queue=0:schedules&id=cleanup", "done": "job?queue=0:reports&id=collect-eu", "due": "job?queue=0:invoices&id=invoice-0", "found": "jobs?queue=0:mails&state=ready&id=welcome"}
        pages = [(address, there) for name, (address, there) in test_appearance.Appearance.PAGES.items() if name in ["queue", "dead", "job", "waits", "recurring", "signals", "groups"]]
        for address, there in pages + [(address, ".actions button") for address in jobs.values()]:
            page.goto(board.url + address)
            expect(page.locator(there).first).to_be_visible()
            expect(page.locator(".actions button").first).to_be_visible()
            # What is refreshed may be made anew.
            self.press(page, "p")
            buttons = page.locator("main :is(.actions, td, .bulk) button:visible, main button:visible:text-matches('^(Change|Set a group|Add a recurring job)$')")
            for index, words in enumerate(buttons.all_text_contents()):
                if (address.split("?")[0], words) in opened:
                    continue
                opened.add((address.split("?")[0], words))
                buttons.nth(index).press("Enter")
                # With all that it looks up.
                expect(page.locator("dialog[open]:not([aria-busy])")).to_be_visible()
                inside = "(it) => { const box = it.getBoundingClientRect(); return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight && it.scrollWidth <= it.clientWidth; }"
                self.assertTrue(dialog.evaluate(inside), words)
                test_appearance.Appearance.check(self, axe, page, f"{address}, {words}", test_appearance.COLOURS)
                count = page.evaluate(NUMBER.replace("document.querySelectorAll", "document.querySelector('dialog').querySelectorAll"))
                reached = set()
                while len(reached) < count:
                    before = len(reached)
                    for _ in range(count + 2):
                        self.press(page, "Tab")
                        focused = page.evaluate(FOCUSED)
                        if focused and focused["at"] is not None:
                            self.assertTrue(focused["marked"] and focused["seen"], focused)
                            reached.add(focused["at"])
                    self.assertGreater(len(reached), before, words)
                self.press(page, "Escape")
                expect(dialog).to_have_count(0)
                expect(buttons.nth(index)).to_be_focused()
        self.assertGreater(len(opened), 25)
        self.assertEqual((page.wrong, refused), ([], []))

    def test_a_dialog_is_busy_until_it_has_all_buttons(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url + "job?queue=0:mails&id=bounced-1")
        asked, dialog = [], page.locator("dialog[open]")
        page.route("**/api/tasks", lambda route: asked.append(route))
        for address, button, yes in [(page.url, "Move", "Not now"), (page.url.split("job?")[0] + "jobs?queue=0:mails&state=dead", "Retry dead jobs", "Retry them")]:
            page.goto(address)
            page.get_by_role("button", name=button, exact=True).click()
            expect(dialog).to_have_attribute("aria-busy", "true")
            wait_until("it looks", lambda: page.evaluate("1") and asked)
            asked.pop().continue_()
            expect(page.locator("dialog[open]:not([aria-busy])").get_by_role("button", name=yes)).to_be_enabled()
        self.assertEqual(page.wrong, [])

    def test_what_no_key_reaches_is_noticed(self):
        page = self.window()
        page.set_content("<button>a</button><div tabindex='0' onkeydown='event.preventDefault()'>trap</div><button>b</button>")
        count, reached = self.reach(page)
        self.assertEqual((count, reached), (3, 2))

    def press(self, page, *keys):
        for key in keys:
            page.keyboard.press(key)

    def tab_to(self, page, locator):
        """Presses Tab until that element has the focus."""
        for _ in range(200):
            if locator.evaluate("it => it === document.activeElement"):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to {locator}")

    def test_from_the_table_to_a_job_and_what_is_done_to_it(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server, "--allow-actions").url)
        expect(page.locator("[data-line]").first).to_be_visible()
        self.press(page, "/")
        page.keyboard.type("mails")
        self.press(page, "Escape", "ArrowDown", "Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("mails")
        self.tab_to(page, page.locator(".tabs a").filter(has_text="Dead"))
        self.press(page, "Enter")
        expect(page.locator("tbody tr")).to_have_count(4)
        first = page.locator("tbody tr a").first
        id = first.inner_text()
        self.tab_to(page, first)
        self.press(page, "Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text(id)
        # A dialog keeps the focus; Escape returns it to where it was.
        retry = page.locator(".actions").get_by_role("button", name="Retry now")
        self.tab_to(page, retry)
        self.press(page, "Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        for _ in range(8):
            self.press(page, "Tab")
            self.assertTrue(page.evaluate("() => !document.activeElement || document.activeElement === document.body || !!document.activeElement.closest('dialog')"))
        self.press(page, "Escape")
        expect(dialog).to_have_count(0)
        expect(retry).to_be_focused()
        self.press(page, "Enter")
        self.tab_to(page, dialog.get_by_role("button", name="Retry it"))
        self.press(page, "Enter")
        expect(page.locator("#said")).to_have_text("Kicked 1 job.")
        self.assertEqual(dict(server.client.execute_command("DQ.GET", "mails", id))[b"state"], b"ready")
        self.press(page, "u")
        expect(page.get_by_role("heading", level=1)).not_to_contain_text(id)
        self.assertEqual(page.wrong, [])

    def test_the_focus_stays_where_something_is_done(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server, "--allow-actions")
        page = self.window()
        focused = page.locator(":focus")
        dialog = page.get_by_role("dialog")

        def act(address, button, yes, index=0):
            page.goto(board.url + address)
            page.locator("main").get_by_role("button", name=button, exact=True).nth(index).press("Enter")
            dialog.get_by_role("button", name=yes, exact=True).press("Enter")
            expect(dialog).to_have_count(0)

        # Other buttons take the place of those that were used, or there is none any more.
        act("job?queue=0:mails&id=bounced-0", "Retry now", "Retry it")
        expect(page.locator("h1 .badge")).to_have_text("ready")
        expect(focused).to_have_text("Reschedule")
        act("job?queue=0:mails&id=bounced-1", "Delete", "Delete it")
        expect(page.locator("main")).to_be_focused()
        act("groups?queue=0:exports", "Pause", "Pause", 1)
        expect(page.locator("tbody tr").first.get_by_role("button", name="Resume")).to_be_visible()
        expect(page.locator("tbody tr").first.locator(":focus")).to_have_text("Set")
        act("queue?queue=0:newsletter", "Resume", "Resume")
        expect(focused).to_have_text("Pause")
        # The line that goes leaves it to the next one.
        page.goto(board.url + "signals?queue=0:orders")
        expect(page.locator("tbody tr")).to_have_count(4)
        act("signals?queue=0:orders", "Send", "Send it", 1)
        expect(page.locator("tbody tr")).to_have_count(3)
        expect(page.locator("tbody tr").nth(1).locator(":focus")).to_have_count(1)
        act("recurring?queue=0:schedules", "Run now", "Run it now", 1)
        expect(page.locator("tbody tr").filter(has=page.locator("td").get_by_text("ready", exact=True)).locator("a:focus")).to_have_count(1)
        self.assertEqual(page.wrong, [])

    def test_a_chart_reads_out_its_parts(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:order-timeouts")
        chart = page.get_by_role("img")
        expect(page.locator(".readout")).to_contain_text("jobs due")
        page.get_by_label("workers at", exact=True).fill("100")
        self.tab_to(page, chart)
        self.press(page, "ArrowRight")
        expect(page.locator(".readout")).to_contain_text("that the workers can handle")
        self.press(page, "ArrowLeft")
        expect(page.locator(".readout")).to_contain_text("delivered")
