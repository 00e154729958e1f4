#!/usr/bin/env python3
"""Measures what the board costs: processor time of the server and of the board with 10,000 queues of 1,000,000 jobs in
all, for some tabs, each of which asks for all pages at their own pace. More than 10 % of a core of the server, or 5 % of the
board, for 20 tabs is an error. Also what visitors wait for: the first paint of the table.

    DQ_SERVER=... DQ_MODULE=... DQ_PROGRAM=... DQ_BROWSER=... cost.py [seconds]
"""

import os
import statistics
import sys
import threading
import time
import urllib.request

from playwright.sync_api import expect, sync_playwright
from support import Board, Server

PAINTS = 15


QUEUES = 10_000
MOST = {"server": 0.10, "board": 0.05}
# What the pages ask for, and after how many seconds again.
PAGES = {
    "overview": 5, "forecast?zoom=hour&queue=0:queue-7": 3, "queue?queue=0:queue-7": 5, "jobs?state=delayed&queue=0:queue-7": 1, "workers?queue=0:queue-7": 5,
    "signals?queue=0:queue-7": 10, "groups?queue=0:queue-7": 5, "recurring?": 10, "find?state=all&id=job-99": 10,
}


def tab(url, over, number):
    """Acts as a browser's tab: listens to the table, and asks for what one page after the other asks for."""
    live = urllib.request.urlopen(url + "api/live", timeout=120)
    threading.Thread(target=lambda: [None for _ in iter(live.readline, b"")], daemon=True).start()
    view, pause = list(PAGES.items())[number % len(PAGES)]
    while not over.wait(pause):
        urllib.request.urlopen(f"{url}api/look/{view}", timeout=120).read()


def spent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, tabs, seconds):
    """The shares of a core of the server and of the board."""
    board = Board("-p", str(server.port)) if tabs else None
    over = threading.Event()
    threads = [threading.Thread(target=tab, args=(board.url, over, number), daemon=True) for number in range(tabs)]
    for thread in threads:
        thread.start()
    time.sleep(5)
    pids = {"server": server.process.pid, **({"board": board.process.pid} if board else {})}
    before, begin = {name: spent(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(seconds)
    shares = {name: (spent(pid) - before[name]) / (time.monotonic() - begin) for name, pid in pids.items()}
    over.set()
    for thread in threads:
        thread.join()
    if board:
        board.close()
    return shares


def first_paint(server):
    """In new windows, with nothing of the page cached: the time to the first paint, and until the table has lines."""
    board = Board("-p", str(server.port))
    paints, lines = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["DQ_BROWSER"], args=["--no-sandbox", "--disable-dev-shm-usage"])
        for turn in range(PAINTS + 1):
            context = browser.new_context(viewport={"width": 1280, "height": 860})
            page = context.new_page()
            page.add_init_script("""new MutationObserver((_, all) => {
                if (!document.querySelector("[data-line]")) return;
                window.lines = performance.now();
                all.disconnect();
            }).observe(document, { subtree: true, childList: true });""")
            page.goto(board.url)
            expect(page.locator("#sum")).to_have_text("10,000 queues")
            # The first load warms the browser up.
            if turn:
                paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                lines.append(page.evaluate("window.lines"))
            context.close()
        browser.close()
    board.close()
    for what, took in [("first paint", paints), ("the table's first lines", lines)]:
        print(f"{what}: {statistics.median(took):.0f} ms, {min(took):.0f} to {max(took):.0f}, 10,000 queues", flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    server = Server()
    try:
        for queue in range(QUEUES):
            pipe = server.client.pipeline(transaction=False)
            for job in range(100):
                pipe.execute_command("DQ.ADD", f"queue-{queue}", f"job-{job}", "x" * 40, "DELAY", 1_000_000 + 79_190 * job)
            pipe.execute()
        wrong = []
        for tabs in [0, 1, 20, 100, 0]:
            shares = measure(server, tabs, seconds)
            print(f"{tabs:4} tabs: " + ", ".join(f"{100 * share:.2f} % of a core of the {name}" for name, share in shares.items()), flush=True)
            wrong += [name for name, share in shares.items() if tabs == 20 and share > MOST[name]]
        first_paint(server)
        if wrong:
            sys.exit(f"Too much for 20 tabs: {', '.join(wrong)}.")
    finally:
        server.close()


if __name__ == "__main__":
    main()
