"""A server of our own for the tests of the recipes, and waiting for conditions."""

import logging, os, subprocess, sys, tempfile, threading, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPES = os.path.join(HERE, "../../examples/recipes")
sys.path.insert(0, RECIPES)

import redis

import commands

MODULE = os.path.abspath(os.environ.get("DQ_MODULE") or os.path.join(HERE, "../../target/release/libdq.so"))
PATIENCE_S = 60     # until a condition that should come is given up: nothing is slow enough to need it


def wait_until(what, condition):
    give_up = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(f"waited {PATIENCE_S} s for {what}")
        time.sleep(0.01)
    return value


class Server:
    def __init__(self, module=MODULE, program=None, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="dq-recipes-")
        self.program = program or os.environ.get("DQ_SERVER") or "redis-server"
        self.module, self.options = module, options
        self.url = f"unix://{os.path.join(self.folder.name, 'socket')}"
        self.start()

    def start(self):
        """Also once more, after kill(); then empty."""
        log = os.path.join(self.folder.name, "log")
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                [self.program, "--port", "0", "--unixsocket", self.url[len("unix://"):], "--dir", self.folder.name, "--save", "",
                 *self.options, "--loadmodule", self.module],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

        def answers():
            try:
                return commands.connect(self.url).ping()
            except redis.ConnectionError:
                assert self.process.poll() is None, open(log).read()

        wait_until("the server", answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def discard(self):
        died = self.process.poll()
        self.kill()
        self.folder.cleanup()
        return died

    def stop(self):
        died = self.discard()
        assert died is None, f"the server ended by itself: {died}"


#: Ids that users may choose, and that commands would read as options where they stand first.
WORDS = ("IDS", "unreserved", "WITHTOKENS", "Results", "AT", "DELAY", "PRIORITY", "COUNT")


class Recipe(unittest.TestCase):
    """Tests on one server, each on an empty database, with a folder for files."""

    @classmethod
    def setUpClass(cls):
        logging.disable(logging.WARNING)    # what handlers raise on purpose
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.db = commands.connect(self.server.url)
        self.db.flushall()
        folder = tempfile.TemporaryDirectory(prefix="dq-recipes-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "database")

    def queue(self, key="{test}:queue"):
        return commands.Queue(self.db, key)

    def wait_for_len(self, queue, jobs=0):
        wait_until(f"{jobs} jobs left", lambda: queue.run("LEN") == jobs)

    def server_ms(self):
        seconds, micros = self.db.time()
        return seconds * 1000 + micros // 1000


def at_once(*functions):
    """Runs them in threads that begin together; what they returned, or raises what one raised."""
    gate, results, errors = threading.Barrier(len(functions)), [None] * len(functions), []

    def run(n):
        try:
            gate.wait()
            results[n] = functions[n]()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
