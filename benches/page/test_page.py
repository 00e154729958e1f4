"""make bench-check: what the page and the harness must not let pass."""

import copy
import json
import os
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


def figures():
    return [json.loads((page.DATA / name).read_text()) for name in page.NAMES]


def made(core, *others):
    return page.filled(texts(), page.all_sections(core, *others))


def texts():
    return [path.read_text() for path in page.PAGES]


class Page(unittest.TestCase):
    def test_the_page_says_what_the_figures_say(self):
        self.assertEqual(made(*figures()), texts(), "run make bench-page")

    def test_another_figure_of_ours_makes_another_page(self):
        core, *others = figures()
        changed = copy.deepcopy(core)
        changed["parts"]["commands"]["rows"][0]["cells"][1] = "0.001 us"
        self.assertNotEqual(made(changed, *others), made(core, *others))

    def test_what_is_measured_again_takes_the_place_of_what_was(self):
        before = {"machine": "old", "subjects": {"throughput": {"ours": [1], "theirs": [2]}, "lateness": {"ours": [3]}}}
        before["measured_again"] = [{"throughput": ["ours"]}, {"throughput": ["ours", "theirs"]}]
        results = report.Results({"machine": "new"}, None, [], [])
        results.add("throughput", "ours", 4)
        results.add_to(before)
        self.assertEqual(results.subjects, {"throughput": {"ours": [4], "theirs": [2]}, "lateness": {"ours": [3]}})
        self.assertEqual(results.about, {"machine": "old", "measured_again": [{"throughput": ["theirs"]}, {"throughput": ["ours"]}]})

    def test_another_figure_of_an_opponent_makes_another_page(self):
        core, opponents, *others = figures()
        changed = copy.deepcopy(opponents)
        for sample in changed["subjects"]["lateness"]["BullMQ"]:
            sample["p99"] = 12345
        self.assertNotEqual(made(core, changed, *others), made(core, opponents, *others))

    def test_another_figure_of_a_library_makes_another_page(self):
        core, opponents, libraries, *others = figures()
        changed = copy.deepcopy(libraries)
        for sample in changed["subjects"]["throughput"]["asynq"]:
            sample["per_s"] *= 100
        self.assertIn("**missed**", made(core, opponents, changed, *others)[0])
        self.assertNotEqual(made(core, opponents, changed, *others), made(core, opponents, libraries, *others))

    def test_another_figure_of_tenants_makes_another_page(self):
        *others, tenants, large, compress = figures()
        changed = copy.deepcopy(tenants)
        for sample in changed["subjects"]["tenants"]["BullMQ, a queue per tenant"]:
            sample["connections"] = 7
        self.assertNotEqual(made(*others, changed, large, compress), made(*others, tenants, large, compress))

    def test_another_figure_of_flows_or_steps_makes_another_page(self):
        core, opponents, libraries, flows, steps, *others = figures()
        first = [core, opponents, libraries]
        before = made(*first, flows, steps, *others)
        for run, subject, system, figure in (
            (flows, "batch", "Celery, a chord", "10000_ms"),
            (steps, "durable", "DBOS", "per_s"),
        ):
            changed = copy.deepcopy(run)
            for sample in changed["subjects"][subject][system]:
                sample[figure] = 7
            pair = [changed if each is run else each for each in (flows, steps)]
            self.assertNotEqual(made(*first, *pair, *others), before)

    def test_another_figure_of_what_is_large_makes_another_page(self):
        *others, large, compress = figures()
        changed = copy.deepcopy(large)
        changed["parts"]["scale"]["rows"][0]["cells"][1] = "7 bytes"
        self.assertNotEqual(made(*others, changed, compress), made(*others, large, compress))

    def test_another_figure_of_compressed_jobs_makes_another_page(self):
        *others, compress = figures()
        changed = copy.deepcopy(compress)
        changed["rows"][1][3] = "7"
        self.assertNotEqual(made(*others, changed), made(*others, compress))

    def test_a_part_measured_by_itself_takes_the_place_of_the_whole_runs_and_names_its_machine(self):
        *others, large, compress = figures()
        part = copy.deepcopy(large["parts"]["scale"])
        part["rows"][0]["cells"][1] = "7 bytes"
        run = {"machine": "a computer, load 0.1", "mode": "full", "parts": {"scale": part, "unheard of": part}}
        page_text = made(*others, page.with_parts(large, run, is_large=True), compress)[0]
        self.assertIn("| 7 bytes (302 bytes) |", page_text)
        self.assertIn("In runs of their own, `scale`: a computer", page_text)
        self.assertNotIn("unheard of", page.with_parts(large, run, is_large=True)["parts"])
        self.assertEqual(page.with_parts(large, {**run, "mode": "quick"}, is_large=True), large)

    def test_a_part_older_than_the_whole_run_is_not_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            part, whole = (Path(folder) / name for name in ("scale-part.json", "scale.json"))
            part.write_text("{}")
            self.assertEqual(page.later_part(Path(folder), "scale.json"), [part])
            whole.write_text("{}")
            os.utime(whole, (time.time() + 60, time.time() + 60))
            self.assertEqual(page.later_part(Path(folder), "scale.json"), [])

    def test_the_files_are_as_they_are_written(self):
        for name, run in zip(page.NAMES, figures()):
            self.assertEqual(page.laid_out(page.rounded(run)) + "\n", (page.DATA / name).read_text(), name)

    def test_another_count_makes_another_page(self):
        (name, (plain, *others)), *_ = counts.recorded(counts.BUILDS[0]).items()
        self.assertGreater(plain, 1000)
        row = counts.row(name, (plain, *others), (1, 2, 3))
        self.assertNotEqual(row, counts.row(name, (plain + 1, *others), (1, 2, 3)))

    def test_a_page_without_a_place_for_a_section_is_refused(self):
        sections = {**page.all_sections(*figures()), "more": "text"}
        with self.assertRaises(SystemExit):
            page.filled(texts(), sections)

    def test_a_figure_that_the_reckoning_needs_and_is_not_there_is_refused(self):
        core, *_ = figures()
        del core["parts"]["durable"]
        with self.assertRaises(SystemExit):
            scale.sections(core)


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
