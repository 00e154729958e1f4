"""Each recipe as a program, as somebody would try it."""

import glob, os, re, subprocess, sys

from support import RECIPES, Recipe

# What the end of each one's output must have.
SAYS = {
    "callbacks": "ALERT: paid:17 is dead",
    "close_unpaid": "{'book': 'paid', 'lamp': 'closed'}",
    "debounce": "20 edits, indexed: ['novel']",
    "exactly_once": "after the second delivery: {'ada': 100}",
    "locked": "booking:4 of bob at attempt 1",
    "move_job": "moved {'id': 'report'",
    "no_show": "{'ada': 'came', 'bob': 'no-show'} freed: ['bob']",
    "partner": "called after",
    "reminders": "standup begins in",
    "token_budget": "answered ada:0 bob:0 ada:1 ada:2 ada:3",
    "transfer": "after the second delivery: ['70', '30']",
    "settle_batch": "10000 trades, 49995000 in all",
}
SHORTER = {"callbacks": ["--step", "0.05"], "close_unpaid": ["--within", "0.3"], "exactly_once": ["--lease", "0.1"],
           "locked": ["--each", "0.02"], "no_show": ["--start", "0.3"], "partner": ["--per", "0.1"],
           "reminders": ["--before", "0.3"], "settle_batch": ["--due", "0.5"],
           "token_budget": ["--per", "0.5"], "transfer": ["--lease", "0.1"]}


class Programs(Recipe):
    def test_each(self):
        names = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(RECIPES, "*.py"))} - {"commands"}
        self.assertEqual(names, SAYS.keys())
        runs = [(name, self.start(name)) for name in sorted(names)]
        for name, run in runs:
            with self.subTest(name):
                output, errors = run.communicate(timeout=300)
                self.assertEqual(run.returncode, 0, errors)
                self.assertIn(SAYS[name], output)
        self.assertEqual(self.db.keys(), [], "they clean up")

    def start(self, name):
        command = [sys.executable, os.path.join(RECIPES, f"{name}.py"), "--url", self.server.url]
        return subprocess.Popen(command + SHORTER.get(name, []), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_the_demo_tells_how_it_stands(self):
        command = [sys.executable, os.path.join(RECIPES, "../order_timeout.py"), "--orders", "300", "--placing", "2"]
        run = subprocess.run(command + ["--crash", "2.5", "--kill", "1.5"], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertGreater(len(re.findall(r"^ +\d+\.\d s  \d+ delayed, \d+ ready, ", run.stdout, re.M)), 3, run.stdout)
        self.assertIn("Everything is accounted for.", run.stdout)

    def test_each_is_told_of(self):
        with open(os.path.join(RECIPES, "../../docs/recipes.md")) as file:
            text = file.read()
        for name in SAYS:
            self.assertIn(f"(../examples/recipes/{name}.py)", text)
