"""make bench-check: what the page and the harness must not let pass."""

import os
import re
import sys
import tempfile
import time
import unittest
from pathlib import Path

import counts
import page
import scale
import tables

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "opponents" / folder) for folder in ("python", "harness")]

import program  # noqa: E402 - of the opponents
import report  # noqa: E402
import speed  # noqa: E402


def texts():
    return [path.read_text() for path in page.PAGES]


def row(what, ours, other="", verdict=""):
    """Of `make bench`: three rounds of both sides, and the cells as it prints them."""
    cells = [what, f"{ours} us", "zadd" if other else "", f"{other} us" if other else "", "", "", "", verdict, "1 .. 9"]
    return {"what": what, "ours": [ours, ours, 9 * ours], "other": [other or None] * 3, "cells": cells, "verdict": verdict}


def core(*rows):
    return {"machine": "a computer, load 0.1", "mode": "full", "parts": {"commands": {"rows": list(rows)}}}


class Page(unittest.TestCase):
    def test_the_pages_say_the_medians(self):
        self.assertEqual(page.medians(texts()), page.MEDIANS.read_text(), "run make bench-page")

    def test_another_figure_on_a_page_and_a_row_too_few_are_noticed(self):
        first, second = texts()
        row = next(line for line in first.splitlines() if line.startswith("| BullMQ | "))
        for changed in first.replace(row, row.replace("| BullMQ | ", "| BullMQ | 7")), first.replace(f"{row}\n", ""):
            self.assertFalse(page.medians([changed, second]) == page.MEDIANS.read_text(), row)

    def test_the_spread_of_the_rounds_is_no_median(self):
        table = "<!-- begin a -->\n\n| | us |\n| --- | --- |\n| x, 1 | 5 (-1.2 .. 9) | 0.1 .. 2 |\n\n<!-- end a -->"
        self.assertEqual(page.medians([table]), "a | x, 1 | 5\n")

    def test_a_table_is_filled_in_where_its_place_is(self):
        text = "A\n<!-- begin a -->\nold\n<!-- end a -->\nB"
        self.assertEqual(page.filled([text], {"a": "new"}), [text.replace("old", "\nnew\n")])
        for places in ({}, {"a": "x", "more": "text"}):
            with self.assertRaises(SystemExit):
                page.filled([text], places)

    def test_the_page_says_what_was_counted(self):
        self.assertEqual(page.filled_one(texts()[1], {**old_sections(texts()[1]), **counts.sections()}), texts()[1])

    def test_another_count_makes_another_page(self):
        (name, (plain, *others)), *_ = counts.recorded(counts.BUILDS[0]).items()
        self.assertGreater(plain, 1000)
        line = counts.row(name, (plain, *others), (1, 2, 3))
        self.assertNotEqual(line, counts.row(name, (plain + 1, *others), (1, 2, 3)))

    def test_figures_are_their_median_and_their_spread(self):
        rounds = {"BullMQ": [{"p50": 1, "p99": ms, "max": 5, "early": 0, "earliest": 1} for ms in (4, 2, 9)]}
        self.assertEqual(report.rows("lateness", rounds)[1][:3], ["BullMQ", "1 (1 .. 1)", "4 (2 .. 9)"])

    def test_a_library_is_compared_with_the_fastest_by_the_ratio_of_the_rounds(self):
        goal = ("jobs/s", "ours", ["slow", "fast"], 2, 3)
        systems = {"ours": [40, 90, 50], "slow": [1, 1, 1], "fast": [20, 30, 50]}
        systems = {name: [{"per_s": each} for each in rounds] for name, rounds in systems.items()}
        said = speed.row(systems, "per_s", *goal, reaches=speed.at_least)
        self.assertEqual(said[3:10], ["fast", "30", "2x", "2x", "3x", "at least", "1 .. 3"])
        systems["fast"] = [{"per_s": 100}] * 3
        self.assertIn("**missed**", speed.row(systems, "per_s", *goal, reaches=speed.at_least))
        alone = speed.row(systems, "per_s", "CPU", "ours", [], 60, 40, reaches=speed.at_most)
        self.assertEqual(alone[3:], ["", "", "", "60", "40", "at least", "40 .. 90"])

    def test_rows_are_goals_or_told(self):
        self.assertEqual(tables.goal(row("an add", 2, 3, "MISSED"))[7], "**missed**")
        self.assertEqual(tables.told(row("an add", 2, 3)), ["an add", "2 us", "zadd", "3 us", "", "1 .. 9"])
        self.assertFalse(tables.is_told(row("by MEMORY USAGE", 2)) or tables.is_told(row("an add", 2, 3, "aim")))

    def test_what_is_measured_again_takes_the_place_of_what_was(self):
        before = {"machine": "old", "subjects": {"throughput": {"ours": [1], "theirs": [2]}, "lateness": {"ours": [3]}}}
        before["measured_again"] = [{"throughput": ["ours"]}, {"throughput": ["ours", "theirs"]}]
        results = report.Results({"machine": "new"}, None, [], [])
        results.add("throughput", "ours", 4)
        results.add_to(before)
        self.assertEqual(results.subjects, {"throughput": {"ours": [4], "theirs": [2]}, "lateness": {"ours": [3]}})
        self.assertEqual(results.about, {"machine": "old", "measured_again": [{"throughput": ["theirs"]}, {"throughput": ["ours"]}]})

    def test_a_part_measured_by_itself_takes_the_place_of_the_whole_runs_and_names_its_machine(self):
        large = {"mode": "full", "parts": {"scale": {"rows": [row("memory per job, 1e7 jobs", 1)]}, "huge": {"rows": []}}}
        part = {"rows": [row("memory per job, 1e7 jobs", 7, 3)]}
        run = {"machine": "another, load 0.1", "mode": "full", "parts": {"scale": part, "unheard of": part}}
        after = page.with_parts(large, run, is_large=True)
        self.assertEqual(tables.sizes(after["parts"])[1][:2], ["memory per job", "7 us (3 us)"])
        self.assertEqual(after["parts"]["scale"]["machine"], "another, load 0.1")
        self.assertNotIn("unheard of", after["parts"])
        self.assertEqual(page.with_parts(large, {**run, "mode": "quick"}, is_large=True), large)

    def test_a_part_older_than_the_whole_run_is_not_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            part, whole = (Path(folder) / name for name in ("scale-part.json", "scale.json"))
            part.write_text("{}")
            self.assertEqual(page.later_part(Path(folder), "scale.json"), [part])
            whole.write_text("{}")
            os.utime(whole, (time.time() + 60, time.time() + 60))
            self.assertEqual(page.later_part(Path(folder), "scale.json"), [])

    def test_what_was_never_measured_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench.json").write_text('{"module": "mine", "parts": [0.12345678912]}')
            with self.assertRaisesRegex(SystemExit, "without opponents.json, .*scale.json: unpack"):
                page.take(Path(folder), Path(folder) / "figures")
            self.assertEqual((Path(folder) / "figures/bench.json").read_text(), '{"parts": [0.123456789]}\n')

    def test_a_figure_that_the_reckoning_needs_and_is_not_there_is_refused(self):
        names = ["DQ.ADD (far) at 1e6 jobs", "DQ.POP", "DQ.ACK", "POP COUNT", "DQ.ADD (far), pipeline 1",
                 "DQ.ADD (far), pipeline 64", "one wake-up"]
        names += [f"{step} with {what}" for step in ("DQ.ADD", "DQ.POP", "DQ.ACK") for what in ("AOF", "a replica")]
        rows = [row(name, 3, 2) for name in names]
        self.assertIn("| 9.0 | 67,000 | 50,000 | 40,000 |", scale.sections(core(*rows))["scale-core"])
        with self.assertRaises(SystemExit):
            scale.sections(core(*rows[1:]))


def old_sections(text):
    """What stands on the page."""
    return {name: text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0] for name in page.places_of(text)}


class Programs(unittest.TestCase):
    def test_all_of_them_can_be_read_by_the_python_at_hand(self):
        paths = list(page.DOCS.parent.glob("benches/**/*.py"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            compile(path.read_text(), path, "exec")


class Worker(unittest.TestCase):
    def setUp(self):
        self.told = []
        self.tell, program.tell = program.tell, lambda **facts: self.told.append(facts)

    def tearDown(self):
        program.tell = self.tell

    def give(self, *numbers):
        seen = program.Seen(3)
        for number in numbers:
            seen.handle(program.payload(1, number))
        return self.told

    def test_all_jobs_are_enough(self):
        told = self.give(0, 1, 2)
        self.assertEqual((told[0]["twice"], len(told[0]["late_us"])), (0, 3))

    def test_the_warm_up_is_told_once(self):
        seen = program.Seen(3, 1)
        for number in 0, 0, 1, 2:
            seen.handle(program.payload(0, number))
        self.assertEqual([each for each in self.told if "warm" in each], [{"warm": True}])
        self.assertEqual(len(self.told), 2)

    def test_a_lost_job_is_never_enough(self):
        self.assertEqual(self.give(0, 1), [])

    def test_a_job_that_comes_twice_does_not_stand_for_a_lost_one(self):
        self.assertEqual(self.give(0, 1, 1), [])

    def test_a_job_that_comes_twice_is_told(self):
        self.assertEqual(self.give(0, 0, 1, 2)[0]["twice"], 1)


if __name__ == "__main__":
    unittest.main()
