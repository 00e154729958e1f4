#!/usr/bin/env python3
"""What the board costs the server: its processor time with 1,000 queues of 1,000,000 jobs in all, for some tabs.

    DQ_SERVER=... DQ_MODULE=... DQ_BOARD=... cost.py [seconds]
"""

import sys
import threading
import time
import urllib.request

from support import Board, Server


def tab(url, over):
    """As a browser's: it listens to the table, and asks each second for one queue's page."""
    live = urllib.request.urlopen(url + "api/live", timeout=120)
    threading.Thread(target=lambda: [None for _ in iter(live.readline, b"")], daemon=True).start()
    while not over.wait(1):
        for view in ["hill?zoom=hour&", "queue?"]:
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
    finally:
        server.close()


if __name__ == "__main__":
    main()
