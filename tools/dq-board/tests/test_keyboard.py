"""Everything works with the keyboard alone."""

import re

import demo
import test_appearance
from playwright.sync_api import expect
from support import BoardTest

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
        for width in [1280, 320]:
            page = self.window(viewport={"width": width, "height": 860})
            for name, (address, there) in test_appearance.Appearance.PAGES.items():
                page.goto(board.url + address)
                expect(page.locator(there).first).to_be_visible()
                count, reached = self.reach(page)
                self.assertGreater(count, 5, name)
                self.assertEqual(reached, count, f"{name} at {width}")
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

    def test_a_chart_reads_out_its_parts(self):
        server = self.server()
        demo.fill(server.client)
        page = self.window()
        page.goto(self.board(server).url + "queue?queue=0:order-timeouts")
        chart = page.get_by_role("img")
        expect(page.locator(".readout")).to_contain_text("jobs due")
        self.tab_to(page, chart)
        self.press(page, "ArrowRight")
        expect(page.locator(".readout")).to_contain_text("that the workers can handle")
        self.press(page, "ArrowLeft")
        expect(page.locator(".readout")).to_contain_text("delivered")
