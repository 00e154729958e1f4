"""Queues of a shop for screenshots: a peak of jobs to come, jobs in all states, a worker."""

import json
import math
import random
import threading
import time


def fill(client):
    chance = random.Random(7)
    now = int(time.time() * 1000)
    pipe = client.pipeline(transaction=False)
    hour = 3_600_000
    for number in range(9000):
        # Two peaks in each of the next hours, which become smaller.
        hump = chance.choice([0.28, 0.72])
        at = now + int(hour * (max(chance.gauss(hump, 0.09), 0.01) + chance.choice([0, 0, 0, 1, 1, 2])))
        order = {"order": 70_000 + number, "customer": f"c{chance.randrange(900)}", "total": round(chance.uniform(9, 400), 2)}
        pipe.execute_command("DQ.ADD", "order-timeouts", f"order:{70_000 + number}", json.dumps(order), "AT", at)
    pipe.execute_command("DQ.CFGSET", "order-timeouts", "ATTEMPTS", 5, "BACKOFF", 4, 1000, 10_000, 60_000, 600_000)
    # It is shown also while it has no job.
    pipe.execute_command("DQ.CFGSET", "webhooks", "ATTEMPTS", 8)
    for name, count, delay in [("invoices", 340, 900), ("webhooks", 85, 40), ("reminders", 5200, 86_400)]:
        for number in range(count):
            pipe.execute_command("DQ.ADD", name, f"{name[:-1]}-{number}", "{}", "DELAY", chance.randrange(1000, delay * 1000))
    for number in range(48):
        pipe.execute_command("DQ.ADD", "mails", f"welcome-{number}", json.dumps({"to": f"user{number}@example.com", "template": "welcome"}), "PRIORITY", number % 3)
    for number, why in enumerate(["mailbox full", "550 no such user", "connection refused", "mailbox full"]):
        pipe.execute_command("DQ.ADD", "mails", f"bounced-{number}", json.dumps({"to": f"gone{number}@example.com"}), "PRIORITY", -5)
        pipe.execute_command("DQ.POP", "mails", "ID", f"bounced-{number}")
        pipe.execute_command("DQ.NACK", "mails", f"bounced-{number}", "FATAL", "REASON", why)
    pipe.execute_command("DQ.POP", "mails", "COUNT", 6, "TTR", 7_200_000)
    for id, rule in [
        ("daily-report", ["CRON", "0 9 * * MON-FRI", "TZ", "Europe/Berlin"]),
        ("cleanup", ["EVERY", 900_000]),
        ("billing", ["CRON", "0 2 L * *", "TZ", "America/New_York", "JITTER", 600_000]),
        ("heartbeat", ["CRON", "* * * * *"]),
    ]:
        pipe.execute_command("DQ.ADD", "schedules", id, json.dumps({"task": id}), *rule)
    pipe.execute_command("DQ.CFGSET", "exports", "GROUPMAX", 2)
    for tenant, count in [("acme", 4200), ("globex", 310), ("initech", 57), ("umbrella", 8), ("hooli", 1)]:
        for number in range(count):
            pipe.execute_command("DQ.ADD", "exports", f"{tenant}-{number}", "{}", "GROUP", tenant)
    pipe.execute_command("DQ.POP", "exports", "COUNT", 8, "TTR", 7_200_000)
    pipe.execute_command("DQ.CFGSET", "reports", "DONELEN", 1000, "DONETTL", 24 * hour)
    regions = ["eu", "us", "asia"]
    for region in regions:
        pipe.execute_command("DQ.ADD", "reports", f"collect-{region}", json.dumps({"region": region}))
    pipe.execute_command("DQ.ADD", "reports", "november", json.dumps({"month": "2026-11"}), "AFTER", 3, *[f"collect-{region}" for region in regions])
    for name in ["render", "mail", "archive"]:
        pipe.execute_command("DQ.ADD", "reports", f"{name}-november", "{}", "AFTER", 1, "november" if name == "render" else "render-november")
    pipe.execute_command("DQ.ADD", "newsletter", "issue-12", "{}")
    pipe.execute_command("DQ.PAUSE", "newsletter")
    pipe.execute()
    for number, signal in enumerate(["paid", "approved", "paid", "paid"]):
        client.execute_command("DQ.ADD", "orders", f"order-{number}", "{}")
        token = client.execute_command("DQ.POP", "orders", "ID", f"order-{number}")[2]
        client.execute_command("DQ.NACK", "orders", f"order-{number}", "TOKEN", token, "SILENT", "AWAIT", signal)
    for sold in [1203, 877]:
        id, _, token, _, _ = client.execute_command("DQ.POP", "reports")
        client.execute_command("DQ.ACK", "reports", "RESULTS", id, token, json.dumps({"sold": sold}))


class Worker(threading.Thread):
    """Adds and delivers some jobs, in varying numbers."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.over = threading.Event()

    def run(self):
        turn = 0
        while not self.over.wait(0.1):
            turn += 1
            count = 2 + int(5 * (1 + math.sin(turn / 9)))
            pipe = self.client.pipeline(transaction=False)
            for name, count in [("webhooks", count), ("order-timeouts", turn % 2), ("invoices", 0), ("reminders", 0), ("schedules", 0)]:
                for number in range(count):
                    pipe.execute_command("DQ.ADD", name, f"live-{turn}-{number}", "{}", "PRIORITY", -9)
                pipe.execute_command("DQ.POP", name, "COUNT", count + 2, "NOACK")
            pipe.execute()

    def stop(self):
        self.over.set()
        self.join()
