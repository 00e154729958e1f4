#!/usr/bin/env python3
"""Measures what the board costs the server: processor time with 1,000 queues of 1,000,000 jobs in all, for some tabs.
Also what visitors wait for: the first paint of the table of 10,000 queues.

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


def tab(url, over):
    """Acts as a browser's tab: listens to the table, and asks each second for one queue's page."""
    live = urllib.request.urlopen(url + "api/live", timeout=120)
    threading.Thread(target=lambda: [None for _ in iter(live.readline, b"")], daemon=True).start()
    while not over.wait(1):
        for view in ["forecast?zoom=hour&", "queue?"]:
            urllib.request.urlopen(f"{url}api/look/{view}queue=0:queue-7", timeout=120).read()


def spent(client):
    used = client.info("cpu")
    return used["used_cpu_user"] + used["used_cpu_sys"]


def measure(server, tabs, seconds):
    board = Board("-p", str(server.port)) if tabs else None
    over = threading.Event()
    threads = [threading.Thread(target=tab, args=(board.url, over), daemon=True) for _ in range(tabs)]
    for thread in threads:
        thread.start()
    time.sleep(5)
    before, begin = spent(server.client), time.monotonic()
    time.sleep(seconds)
    share = (spent(server.client) - before) / (time.monotonic() - begin)
    over.set()
    for thread in threads:
        thread.join()
    if board:
        board.close()
    return share


def first_paint(server):
    """In new windows, with nothing of the page cached: the time to the first paint, and until the table has lines."""
    pipe = server.client.pipeline(transaction=False)
    for queue in range(1000, 10_000):
        pipe.execute_command("DQ.ADD", f"queue-{queue}", "job", "x", "DELAY", 1_000_000)
    pipe.execute()
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
        for queue in range(1000):
            pipe = server.client.pipeline(transaction=False)
            for job in range(1000):
                pipe.execute_command("DQ.ADD", f"queue-{queue}", f"job-{job}", "x" * 40, "DELAY", 1_000_000 + 7919 * job)
            pipe.execute()
        for tabs in [0, 1, 10, 100, 0]:
            print(f"{tabs:4} tabs: {100 * measure(server, tabs, seconds):.2f} % of a core of the server", flush=True)
        first_paint(server)
    finally:
        server.close()


if __name__ == "__main__":
    main()
