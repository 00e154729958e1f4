"""The driver's side of a probe: commands are written, events are read."""

import json
import os
import select
import signal
import threading
import time

PATIENCE_S = 30


class Probe:
    def __init__(self, process):
        self.process = process
        self._events = []
        self._line = b""
        self._news = threading.Condition()
        self._ended = False
        self._written = self._poll()
        threading.Thread(target=self._listen, daemon=True).start()
        self.wait("ready")

    def _poll(self):
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        return poll

    def _listen(self):
        written = self._poll()  # its own, as two threads cannot wait on one
        while not self._ended:
            written.poll()
            with self._news:
                self._read()

    def _read(self):
        """Reads all that the probe has written so far, without waiting. The caller holds ``_news``."""
        while not self._ended and self._written.poll(0):
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            *lines, self._line = (self._line + read).split(b"\n")
            self._events += [{**json.loads(line), "at": time.monotonic()} for line in lines]
            self._ended = not read
            self._news.notify_all()

    # --- Orders

    def order(self, do, **fields):
        self.process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, do, answer, **fields):
        seen = len(self._events)
        self.order(do, **fields)
        event = self._await(lambda: self._first((answer, "answer", "refused", "error"), {}, seen), f"answer to {do}")
        assert event["event"] == answer, event
        return event

    def finish(self):
        """Stops the worker, so that all its events have been read."""
        self.order("stop")
        self.wait("stopped")

    def call(self, queue, method, **args):
        return self.ask("call", "answer", queue=queue, method=method, args=args)["value"]

    # --- Events

    def events(self, event=None, /, **fields):
        """The events written before the call: once the server knows a job's end, all earlier events are there."""
        with self._news:
            self._read()
            return [it for it in self._events if fits(it, event and (event,), fields)]

    def _first(self, names, fields, since=0):
        return next((it for it in self._events[since:] if fits(it, names, fields)), None)

    def wait(self, event, /, count=1, patience_s=PATIENCE_S, **fields):
        """The ``count``-th event of that name with those fields."""

        def found():
            matching = [it for it in self._events if fits(it, (event,), fields)]
            return matching[count - 1] if len(matching) >= count else None

        return self._await(found, f"{event} {fields or ''} ({count})", patience_s)

    def _await(self, found, what, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        with self._news:
            while True:
                event = found()
                if event:
                    return event
                left = end - time.monotonic()
                assert not self._ended, f"the probe ended before: {what}; events: {self._events[-8:]}"
                assert left > 0, f"not within {patience_s} s: {what}; events: {self._events[-8:]}"
                self._news.wait(left)

    # --- The process

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def exit_code(self, patience_s=PATIENCE_S):
        return self.process.wait(patience_s)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        self.process.stdin.close()


def fits(event, names, fields):
    if names and event["event"] not in names:
        return False
    return all(event.get(field) == value for field, value in fields.items())
