"""The reports of plan, plan --fit, ablate, capacity and diff."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_checks  # noqa: E402
from report_checks import ReportChecks  # noqa: E402

SPACE = "tests/data/planner/small_space.yaml"
SMALL = ["k3_2048_h800", "--set", "batch.global_tokens=33554432", "--detail", "step"]


class Plan(ReportChecks, unittest.TestCase):
    arguments = ["plan", SPACE, "--allow-assumed", "--top", "3"]

    def test_figures_are_those_of_the_first_plan(self):
        self.check_figures(self.csv_file("plan.csv")[0])

    def test_the_table_is_plan_csv_and_sorts_and_filters(self):
        rows = self.csv_file("plan.csv")
        self.assertEqual(self.column("plans", "id"), [r["id"] for r in rows])
        self.assertEqual(self.column("plans", "step_time_s"), [float(r["step_time_s"]) for r in rows])
        self.check_sorting("plans", "mfu_pct")
        self.type_filter("plans", "parallel.pp", "= 2")
        self.assertEqual(sorted(self.column("plans", "id")), sorted(r["id"] for r in rows if r["parallel.pp"] == "2"))
        self.type_filter("plans", "parallel.pp", "")

    def test_a_click_on_a_point_shows_its_configuration_and_command(self):
        page, rows = self.page, self.csv_file("plan.csv")
        left, top, _, _ = page.place("#scatter")
        best = page.js("k3.scatter.front[0]")
        x, y = page.js(f"k3.scatter.graph.toDomCoords({rows[best]['step_time_s']}, {rows[best]['peak_reserved_gib']})")
        page.click(left + x, top + y)
        self.assertIn(rows[best]["id"], page.js("document.getElementById('chosen').textContent"))
        searched = rows[best]["policy_searched"] == "true"  # no setting of the space: a file of its own
        part = f"run plan-{rows[best]['rank']}.yaml" if searched else f"--set parallel.tp={rows[best]['parallel.tp']}"
        self.assertIn(part, page.js("document.getElementById('chosen-command').textContent"))
        self.check_zoom("#scatter", "k3.scatter.graph")

    def test_differences_of_first_and_second_add_up(self):
        rows = self.csv_file("plan.csv")
        apart = float(rows[1]["step_time_s"]) - float(rows[0]["step_time_s"])
        self.assertAlmostEqual(sum(self.column("duel", "change_s")), apart, delta=1e-4)

    def test_every_configuration_is_accounted_for(self):
        self.assertEqual(sum(self.column("reasons", "count")), 72)


class Fit(ReportChecks, unittest.TestCase):
    arguments = ["plan", SPACE, "--allow-assumed", "--fit"]

    def test_the_frontier_is_the_file(self):
        rows = self.csv_file("fit_frontier.csv")
        self.assertEqual(self.column("frontier_rows", "nodes"), [float(r["nodes"]) if r["nodes"] else None for r in rows])
        cells = self.page.js("k3.heats[0].grid.values.flat().filter(v => v !== null)")
        self.assertEqual(sorted(cells), sorted(float(r["nodes"]) for r in rows if r["nodes"]))

    def test_the_first_cell_is_the_answer_and_hover_reads_it(self):
        page = self.page
        self.assertEqual(float(self.figures()["nodes"][0]), float(self.csv_file("fit_frontier.csv")[0]["nodes"]))
        left, top, width, _ = page.place("#heat-frontier")
        page.mouse("mouseMoved", left + width - 30, top + 8)
        self.assertRegex(page.js("document.querySelector('#heat-frontier + .tip').textContent"), r"sequence length in tokens 65536: \d")

    def test_margins_and_used_add_up_to_the_capacity(self):
        capacity = float(self.figures()["capacity_gib"][0])
        for used, margin in zip(self.column("margin_h100_sxm", "used_gib"), self.column("margin_h100_sxm", "margin_gib")):
            self.assertAlmostEqual(used + margin, capacity, delta=1e-6)


class Ablation(ReportChecks, unittest.TestCase):
    arguments = ["ablate", *SMALL, "--sensitivity"]

    def test_figures_are_those_of_the_scenario(self):
        base = dict(self.csv_file("ablation.csv")[0])
        shown = self.figures()
        base["step_time_p95_s"] = shown["step_time_p95_s"][0]
        self.check_figures(base)

    def test_the_table_is_ablation_csv(self):
        rows = self.csv_file("ablation.csv")
        self.assertEqual(self.column("ablation", "mechanism"), [r["mechanism"] for r in rows])
        self.assertEqual(self.column("ablation", "step_change_s"), [float(r["step_change_s"]) if r["step_change_s"] else None for r in rows])
        self.check_sorting("ablation", "peak_reserved_gib")

    def test_the_waterfall_ends_at_the_last_cumulative_row(self):
        rows = [r for r in self.csv_file("ablation.csv") if r["mode"] == "cumulative" and r["step_time_s"]]
        falls = self.page.js("k3.data.sections.filter(s => s.type === 'deltas' && s.data.waterfall && s.data.unit === 's').map(s => s.data)")
        end = falls[0]["from"] + sum(r[1] for r in falls[0]["rows"])
        self.assertAlmostEqual(end, float(rows[-1]["step_time_s"]), delta=1e-5)

    def test_bars_name_themselves(self):
        texts = self.page.js("[...document.querySelectorAll('.deltas rect.delta title')].map(t => t.textContent)")
        self.assertGreater(len(texts), 20)
        self.assertTrue(all(": " in t for t in texts))


class Capacity(ReportChecks, unittest.TestCase):
    arguments = ["capacity", "k3_2048_h800", "--tokens", "20T", "--days", "60", "--detail", "step"]

    def test_figures_equal_capacity_json(self):
        self.assertGreaterEqual(len(self.check_figures(self.json_file("capacity.json"))), 12)

    def test_the_curve_passes_through_the_answer_and_zooms(self):
        answer = self.json_file("capacity.json")
        at = {r["gpus"]: r for r in self.csv_file("capacity.csv")}
        self.assertAlmostEqual(float(at[f"{answer['gpus']:.9g}"]["days"]), answer["days"], delta=1e-6 * answer["days"])
        self.assertEqual(self.column("curve", "days"), [float(r["days"]) for r in self.csv_file("capacity.csv")])
        self.check_zoom("#lines-days", "k3.lineCharts[0]")
        self.check_sorting("curve", "cost_usd")


class Difference(ReportChecks, unittest.TestCase):
    arguments = ["diff", "k3_2048_h800", "k3_2048_h800", "--set-a", "batch.global_tokens=33554432", "--set-b",
                 "batch.global_tokens=33554432", "--set-b", "parallel.vpp=1", "--detail", "step"]

    def test_parts_add_up_to_the_difference_of_the_steps(self):
        step = next(r for r in self.csv_file("diff.csv") if r["what"] == "step")
        shown = self.figures()
        self.assertAlmostEqual(float(shown["step_before_s"][0]), float(step["before_s"]), delta=1e-6)
        self.assertAlmostEqual(float(shown["step_after_s"][0]), float(step["after_s"]), delta=1e-6)
        self.assertAlmostEqual(sum(self.column("time", "change")), float(step["change_s"]), delta=1e-4)
        grown = float(shown["memory_after_gib"][0]) - float(shown["memory_before_gib"][0])
        self.assertAlmostEqual(sum(self.column("memory", "change")), grown, delta=1e-3)
        self.check_sorting("memory", "change")

    def test_the_changed_line_of_the_scenario_is_shown(self):
        self.assertIn("vpp: 1", self.page.js("[...document.querySelectorAll('pre')].map(p => p.textContent).join()"))


if __name__ == "__main__":
    report_checks.main()
