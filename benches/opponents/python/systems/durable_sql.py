"""Checkpoints in PostgreSQL, as Absurd keeps them: a table of jobs that workers claim with SKIP LOCKED and poll every
250 ms (its default), a table of steps, and a job that waits for a signal is given back until that is set."""

import threading

import psycopg

from systems.durable import AT_ONCE, Durable

POLL_S = 0.25

TABLES = """
CREATE TABLE jobs (id text PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(), attempt int NOT NULL DEFAULT 0,
    steps int NOT NULL, awaits text);
CREATE INDEX ON jobs (due) WHERE awaits IS NULL;
CREATE TABLE steps (job text NOT NULL, name text NOT NULL, value text, PRIMARY KEY (job, name));
"""
CLAIM = """
UPDATE jobs SET due = now() + interval '30 seconds', attempt = attempt + 1
WHERE id = (SELECT id FROM jobs WHERE due <= now() AND awaits IS NULL ORDER BY due FOR UPDATE SKIP LOCKED LIMIT 1)
RETURNING id, steps, attempt
"""
STEP = """
INSERT INTO steps SELECT id, %s, %s FROM jobs WHERE id = %s AND attempt = %s AND due > now()
ON CONFLICT (job, name) DO UPDATE SET value = excluded.value
"""
SIGNAL = """
WITH told AS (INSERT INTO steps VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING job)
UPDATE jobs SET awaits = NULL, due = now() FROM told WHERE id = told.job AND awaits = %s
"""


class System(Durable):
    def begin(self):
        self.own = self.connect()
        self.own.execute(TABLES)
        for _ in range(AT_ONCE):
            threading.Thread(target=self.work, daemon=True).start()

    def connect(self):
        return psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True)

    def start(self, id, steps):
        self.own.execute("INSERT INTO jobs (id, steps) VALUES (%s, %s)", (id, steps))

    def start_waiting(self, id):
        self.start(id, 0)

    def signal(self, id):
        self.own.execute(SIGNAL, (id, "signed", "by Ada", "signed"))

    def work(self):
        connection, idle = self.connect(), threading.Event()
        while True:
            job = connection.execute(CLAIM).fetchone()
            if job is None:
                idle.wait(POLL_S)
            else:
                self.handle(connection, *job)

    def handle(self, connection, id, steps, attempt):
        kept = dict(connection.execute("SELECT name, value FROM steps WHERE job = %s", (id,)).fetchall())
        for number in range(steps):
            if str(number) not in kept:
                connection.execute(STEP, (str(number), self.step_done(), id, attempt))
        if steps == 0 and "signed" not in kept:
            self.waits()
            with connection.transaction():
                connection.execute("UPDATE jobs SET awaits = 'signed' WHERE id = %s AND attempt = %s", (id, attempt))
            return
        self.resumed() if steps == 0 else self.job_done()
        with connection.transaction():
            connection.execute("DELETE FROM jobs WHERE id = %s AND attempt = %s", (id, attempt))
            connection.execute("DELETE FROM steps WHERE job = %s", (id,))
