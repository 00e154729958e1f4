"""What each published module must do on each server: deliver, and keep a queue through its files."""

import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../recipes"))

from support import Server, wait_until

import commands


def run(test, module, program=None):
    """Returns what the server calls itself."""
    server = Server(module, program, "--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--enable-debug-command", "yes")
    test.addCleanup(server.discard)
    db, queue = connect(server)
    deliver(test, queue)
    held, before = fill(queue), digest(db)
    db.bgrewriteaof()
    wait_until("the AOF", lambda: persistence(db)["aof_rewrite_in_progress"] == 0)
    test.assertEqual(persistence(db)["aof_last_bgrewrite_status"], "ok")
    db.execute_command("DEBUG", "RELOAD")
    test.assertEqual(digest(db), before, "after an RDB")
    server.kill()
    server.start()
    db, queue = connect(server)
    test.assertEqual(digest(db), before, "after an AOF")
    test.assertEqual(queue.ack(held), 1, "a lease goes on")
    info = db.info("server")
    server.stop()
    return f"{info.get('server_name', 'redis').capitalize()} {info.get('valkey_version') or info['redis_version']}"


def connect(server):
    db = commands.connect(server.url)
    db.get_connection_kwargs()["socket_timeout"] = 60        # an emulated processor takes its time
    return db, commands.Queue(db, "mails")


def deliver(test, queue):
    test.assertTrue(queue.add("now", "x" * 5000))
    test.assertEqual(queue.ack(queue.take()), 1)
    test.assertTrue(queue.add("soon", "y", "DELAY", 200))
    job = queue.take(30)                # by the timer
    test.assertEqual((job.id, job.payload), ("soon", "y"))
    test.assertEqual(queue.run("NACK", job.id, "TOKEN", job.token, "REASON", "tried"), "delayed")
    test.assertEqual(queue.run("PURGE", "ALL"), 1)
    with test.assertRaisesRegex(Exception, "1 to 1024 bytes"):
        queue.add("")


def fill(queue):
    """One job of each kind; returns the one that is being worked on."""
    queue.add("worked on", "z", "TTR", 3600000)
    held = queue.take()
    for n in range(200):
        queue.add(f"later:{n}", "p" * n, "DELAY", 3600000 + n, "PRIORITY", n % 3)
    queue.add("each night", "", "CRON", "0 3 * * *", "TZ", "Europe/Berlin")
    queue.add("of a group", "", "GROUP", "tenant")
    return held


def digest(db):
    return db.execute_command("DEBUG", "DIGEST")


def persistence(db):
    return db.info("persistence")
