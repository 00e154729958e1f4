"""Runs unittest tests in parallel, one after the other in each process: most of them spend their time waiting.

    beside.py processes [module | module.Class | module.Class.test]...

Without names: all test_*.py in the current folder. A test whose process dies has failed.
"""

import faulthandler
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest


PATIENCE_S = 600


def each(suite):
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


class Canary(unittest.TestCase):
    """A failure that must be noticed; otherwise this program's result is worth nothing."""

    def fails(self):
        self.fail("as it must")

    def dies(self):
        os._exit(0)

    def hangs(self):
        threading.Event().wait()


CANARIES = ["beside.Canary.fails", "beside.Canary.dies", "beside.Canary.hangs"]


def work():
    """Reads a test's name per line, and writes its result."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for name in map(str.strip, sys.stdin):
        # One that waits for ever ends its process, which says in which line.
        faulthandler.dump_traceback_later(1 if name in CANARIES else PATIENCE_S, exit=True)
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromName(name).run(result)
        faulthandler.cancel_dump_traceback_later()
        wrong = [text for _, text in result.failures + result.errors]
        wrong += ["it passed, which was not expected"] * len(result.unexpectedSuccesses)
        skipped = [why for _, why in result.skipped]
        out.write(json.dumps({"wrong": "".join(wrong), "skipped": "".join(skipped), "ran": result.testsRun}) + "\n")


class Side:
    """Runs tests one after the other, in a process that is started anew if a test has ended it."""

    def __init__(self, todo, report):
        self.todo, self.report, self.process = todo, report, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for name in self.todo:
            begun = time.monotonic()
            self.report(name, self.one(name), time.monotonic() - begun)
        if self.process:
            self.process.communicate()

    def one(self, name):
        if self.process is None:
            words = [sys.executable, __file__, "work"]
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if said:
            return json.loads(said)
        code, self.process = self.process.wait(), None
        return {"wrong": f"its process ended, {code}\n", "skipped": "", "ran": 0}


class Turns:
    """An iterator that several threads can share."""

    def __init__(self, names):
        self.names, self.lock = iter(names), threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            return next(self.names)


def main(processes, names):
    loader = unittest.defaultTestLoader
    tests = [test.id() for test in each(loader.loadTestsFromNames(names) if names else loader.discover("."))]
    broken = list(loader.errors)
    begun, lock, ends = time.monotonic(), threading.Lock(), {}

    def report(name, end, took):
        with lock:
            ends[name] = end
            if name not in CANARIES:
                state = "FAILED" if end["wrong"] else f"skipped: {end['skipped']}" if end["skipped"] else "ok"
                print(f"{name} ... {state} ({took:.1f} s)", flush=True)

    turns = Turns(itertools.chain(CANARIES, tests))
    for side in [Side(turns, report) for _ in range(processes)]:
        side.thread.join()
    noticed = [bool(ends.pop(name)["wrong"]) for name in CANARIES]
    wrong = {name: end["wrong"] or "it did not run" for name, end in ends.items() if end["wrong"] or end["ran"] != 1}
    for name, text in wrong.items():
        print(f"\n{name}\n{text}")
    if not all(noticed):
        print("A canary was not noticed: nothing above counts.")
    print("".join(broken) + f"Ran {len(ends)} tests in {time.monotonic() - begun:.1f} s: {len(wrong)} failed")
    return 1 if wrong or broken or not tests or len(ends) != len(set(tests)) or not all(noticed) else 0


if __name__ == "__main__":
    sys.path[:0] = [os.getcwd(), str(pathlib.Path(__file__).parent)]
    sys.exit(work() if sys.argv[1] == "work" else main(int(sys.argv[1]), sys.argv[2:]))
