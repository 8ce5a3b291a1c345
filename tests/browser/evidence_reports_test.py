"""The reports of compare and validate: predictions beside measurements."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_checks  # noqa: E402
from report_checks import K3SIM, ReportChecks  # noqa: E402


class ProfilerTrace(ReportChecks, unittest.TestCase):
    arguments = ["compare", "deepseek_v3_trace_h800", "--kineto", "tests/data/kineto/deepseek_v3_train.json.gz"]

    def test_figures_equal_compare_json(self):
        result = self.json_file("compare.json")
        self.check_figures({**result["span"], "covered_pct": result["covered_pct"]})

    def test_families_are_those_of_the_file_and_sort(self):
        rows = [r for r in self.csv_file("compare.csv") if r["group"] == "family"]
        self.assertEqual(self.column("families", "name"), [r["name"] for r in rows])
        self.assertEqual(self.column("families", "measured_ms"), [float(r["measured_ms"]) for r in rows])
        self.check_sorting("families", "measured_ms")

    def test_the_parts_of_the_span_add_up(self):
        parts = [self.column("breakdown", k) for k in ("compute_ms", "communication_ms", "memory_ms", "idle_ms")]
        for span, *rest in zip(self.column("breakdown", "span_ms"), *parts):
            self.assertAlmostEqual(span, sum(rest), delta=1e-3 * span)


class SnapshotReplay(ReportChecks, unittest.TestCase):
    arguments = ["compare", "--memory-snapshot", "tests/data/allocator/snapshot_protocol4.pickle", "--replay"]

    def test_peaks_equal_compare_json(self):
        result = self.json_file("compare.json")
        self.assertEqual(self.column("peaks", "measured_bytes"), [result["measured"]["peak_allocated"], result["measured"]["peak_reserved"]])
        self.assertEqual(self.column("peaks", "emulated_bytes"), [result["emulated"]["peak_allocated"], result["emulated"]["peak_reserved"]])
        self.assertEqual(float(self.figures()["requests"][0]), result["requests"])


class Snapshot(ReportChecks, unittest.TestCase):
    arguments = ["compare", "k3_2048_h800", "--set", "batch.global_tokens=33554432", "--memory-snapshot",
                 "tests/data/allocator/snapshot_protocol4.pickle"]

    def test_peaks_equal_compare_json(self):
        result = self.json_file("compare.json")
        self.assertEqual(self.column("memory", "predicted_bytes")[:2], [result["predicted"]["peak_allocated"], result["predicted"]["peak_reserved"]])
        self.assertEqual(self.column("memory", "error_pct")[2], None)


class KernelValidation(ReportChecks, unittest.TestCase):
    arguments = ["validate", "--kind", "kernel"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([K3SIM, *cls.arguments, "--json"], check=True, capture_output=True, text=True)
        cls.answer = json.loads(done.stdout)

    def test_figures_equal_the_summary(self):
        shown = self.figures()
        for key in ("predicted", "skipped"):
            self.assertEqual(float(shown[key][0]), self.answer["summary"][key])
        for key in ("median_abs_error_pct", "p90_abs_error_pct", "bias_pct"):
            self.assertAlmostEqual(float(shown[key][0]), self.answer["summary"][key], delta=1e-6, msg=key)

    def test_the_table_holds_the_cases_and_sorts_and_filters(self):
        rows = self.csv_file("validation.csv")
        self.assertEqual(len(rows), len(self.answer["cases"]))
        self.type_filter("cases", "error_pct", "")  # back to the first page
        self.assertEqual(self.column("cases", "id"), [r["id"] for r in rows[:100]])
        self.type_filter("cases", "error_pct", ">20")
        self.assertTrue(all(v > 20 for v in self.column("cases", "error_pct")))
        self.type_filter("cases", "error_pct", "")
        self.sort("cases", "error_pct")
        up = [v for v in self.column("cases", "error_pct") if v is not None]
        self.assertEqual(up, sorted(up))

    def test_a_click_on_a_point_shows_its_case_and_the_scatter_zooms(self):
        page = self.page
        index = page.js("k3.scatter.points[Math.floor(k3.scatter.points.length / 2)]")
        page.js(f"k3.scatter.onPick({index})")
        name = page.js(f"k3.scatter.table.rows[{index}][0]")
        self.assertIn(name, page.js("document.querySelector('#chosen h3').textContent"))
        self.check_zoom("#scatter", "k3.scatter.graph")


class ModuleValidation(KernelValidation):
    arguments = ["validate", "--kind", "stack"]


class CollectiveValidation(KernelValidation):
    arguments = ["validate", "--kind", "collective"]


def write_cases(path, wanted, every=1):
    """Some of the shipped cases; all of them would take minutes."""
    with open("scenarios/validation/cases.yaml", encoding="utf-8") as file:
        head, *cases = re.split(r"(?m)^(?=- id: )", file.read())
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "".join([c for c in cases if re.search(wanted, c)][::every]))


class SomeCases:
    """A report over the shipped cases that `wanted` finds, or every so manieth of them: `options` of validate."""

    options, wanted, every = [], "", 1

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile(suffix=".yaml") as cases:
            write_cases(cases.name, cls.wanted, cls.every)
            cls.arguments = ["validate", *cls.options, cases.name]
            super().setUpClass()


class ScheduleValidation(SomeCases, KernelValidation):
    """Relative speeds, peak memory and the DualPipe step: rows of several units in one table."""

    options, wanted = ["--kind", "schedule"], r"^- id: (vocabpar-4b-s2k|dsv3-isca)"

    def test_figures_equal_the_summary(self):
        for key in ("predicted", "skipped"):
            self.assertEqual(float(self.figures()[key][0]), sum(kind[key] for kind in self.answer["summary"].values()))

    def test_every_row_names_the_unit_of_its_values(self):
        units = {r["metric"]: r["unit"] for r in self.csv_file("validation.csv")}
        self.assertEqual(units, {"speed_vs_1f1b": "1", "peak_reserved_gib": "GiB", "step_time_s": "s", "pair_ms": "ms"})

    def test_the_parts_of_the_published_step_are_shown_beside_ours(self):
        rows = self.answer["dualpipe_step"]
        for key in ("measured_s", "predicted_s"):
            for shown, row in zip(self.column("dualpipe_step", key), rows, strict=True):
                self.assertAlmostEqual(shown, row[key], delta=1e-8 * row[key])


class CrossValidation(SomeCases, ReportChecks, unittest.TestCase):
    options, every = ["--cross-validate"], 12
    wanted = r"group: (megatron-bridge|nanotron)[^$]*\n  hardware: \{gpu: H100"

    def test_the_table_is_the_file_and_the_headline_its_second_row(self):
        rows = self.csv_file("cross_validation.csv")
        self.assertEqual(self.column("scores", "constants"), [r["constants"] for r in rows])
        self.assertEqual(self.column("scores", "median_abs_error_pct"), [float(r["median_abs_error_pct"]) for r in rows])
        answer = self.page.js("document.querySelector('h1').textContent")
        self.assertIn(f"median absolute error {float(rows[1]['median_abs_error_pct']):.1f} %", answer)
        self.check_sorting("scores", "bias_pct")


class StepValidation(KernelValidation):
    arguments = ["validate", "--kind", "step"]


class MemoryValidation(SomeCases, KernelValidation):
    options, wanted = ["--kind", "memory"], r"^- id: vocabpar-4b-s4k"


class RunValidation(SomeCases, KernelValidation):
    wanted, every = r"^- id: mbridge-26.0.*h100", 3


if __name__ == "__main__":
    report_checks.main()
