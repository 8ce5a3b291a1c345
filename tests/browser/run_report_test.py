"""The report of a run: right numbers, timeline, kernels, memory, network, expert load, sensitivity, 200,000 bars."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_checks  # noqa: E402
from report_checks import ReportChecks, number  # noqa: E402

TIMELINE, KERNELS, MEMORY = "#section-timeline-2", "#section-kernels-3", "k3.data.sections.find(s => s.type === 'memory').data"


class Run(ReportChecks, unittest.TestCase):
    arguments = ["run", "scenarios/k3_2048_h800/scenario.yaml"]

    def setUp(self):
        self.summary = self.json_file("summary.json")

    def test_figures_equal_summary_json(self):
        shown = self.figures()
        self.assertGreaterEqual(len(shown), 14)
        for key, (value, text) in shown.items():
            expected = self.summary[key]
            if isinstance(expected, bool):
                self.assertEqual(text, "yes" if expected else "no")
                continue
            self.assertEqual(float(value), expected, key)
            self.assertAlmostEqual(number(text), expected, delta=1e-4 * abs(expected) + 1e-12, msg=key)

    def test_first_line_is_the_answer_with_its_error_bar(self):
        answer = self.page.js("document.querySelector('h1').textContent")
        self.assertIn(f"step {self.summary['step_time_s']:.3f} s (80 % interval ", answer)
        low, high = self.summary["step_time_80_s"]
        self.assertIn(f"{low:.2f} to {high:.2f} s", answer)

    def test_parts_of_every_rank_add_up_to_the_step(self):
        for row in self.page.js("k3.data.sections.find(s => s.type === 'waterfall').data.ranks"):
            self.assertAlmostEqual(sum(row), self.summary["step_time_s"], delta=1e-4 * self.summary["step_time_s"])
        mean = dict(zip(self.column("breakdown", "part"), self.column("breakdown", "s")))
        self.assertAlmostEqual(mean["compute"], self.summary["compute_s"], delta=1e-6)
        self.assertAlmostEqual(mean["ep"], self.summary["exposed_comm_s"]["ep"], delta=1e-6)

    def test_timeline_zooms_pans_and_explains_bars(self):
        page, view = self.page, "[k3.timeline.from, k3.timeline.to]"
        whole = page.js(view)
        left, top, width, _ = page.place("#timeline")
        page.mouse("mouseWheel", left + width / 2, top + 30, deltaX=0, deltaY=-300)
        page.frame()
        near = page.js(view)
        self.assertLess(near[1] - near[0], whole[1] - whole[0])
        page.drag(left + width / 2, top + 30, left + width / 2 - 200, top + 30)
        moved = page.js(view)
        self.assertGreater(moved[0], near[0])
        self.assertAlmostEqual(moved[1] - moved[0], near[1] - near[0], delta=2)
        page.mouse("mouseMoved", left + 400, top + 10)
        tip = page.js("document.querySelector('#timeline + .tip').textContent")
        self.assertRegex(tip, r"(micro-batch \d+\nfrom .* s, duration|cause: )")
        page.click(left + 400, top + 10)
        self.assertEqual(page.js("document.querySelector('.detail').textContent"), tip)
        page.js("document.querySelector('[aria-label=\"show the whole\"]').click()")
        page.frame()
        self.assertEqual(page.js(view), whole)

    def test_the_keyboard_reads_zooms_and_walks_the_timeline(self):
        page, detail = self.page, f"document.querySelector('{TIMELINE} .detail').textContent"
        page.place("#timeline")
        page.js("document.getElementById('timeline').focus()")
        page.key("ArrowDown")
        first = page.js(detail)
        self.assertRegex(first, r"rank 0")
        page.key(".")
        second = page.js(detail)
        self.assertNotEqual(first, second)
        page.key("ArrowDown")
        self.assertRegex(page.js(detail), r"rank 1")
        whole = page.js("k3.timeline.to - k3.timeline.from")
        page.key("+")
        page.frame()
        self.assertLess(page.js("k3.timeline.to - k3.timeline.from"), whole)
        page.key("Home")
        page.frame()
        self.assertEqual(page.js("k3.timeline.to - k3.timeline.from"), whole)

    def test_every_gap_in_the_timeline_has_a_cause(self):
        self.assertEqual(self.page.js("k3.timeline.lanes.flatMap(l => l.items || []).filter(b => b.cause !== undefined && "
                                      "!k3.describeBar(k3.data.sections.find(s => s.type === 'timeline').data, "
                                      "{label: 'r', items: [b], start: [b.start]}, 0).includes('cause: ')).length"), 0)

    def test_streams_appear_on_demand(self):
        page = self.page
        before = page.js("k3.timeline.lanes.length")
        choose = (f"(() => {{ const s = document.querySelector('{TIMELINE} select'); s.value = '%s';"
                  "s.dispatchEvent(new Event('change')); })()")
        page.js(choose % 0)
        self.assertGreater(page.js("k3.timeline.lanes.length"), before)
        page.js(choose % -1)
        self.assertEqual(page.js("k3.timeline.lanes.length"), before)

    def test_a_click_on_a_bar_opens_its_kernels(self):
        page = self.page
        page.js("k3.showKernels(1, 1, 'F')")
        self.assertIn("forward of stage 1", page.js(f"document.querySelector('{KERNELS} select').selectedOptions[0].text"))
        self.assertGreater(page.js("k3.kernelView.drawn"), 10)

    def test_200000_bars_stay_smooth(self):
        """Every frame of a zoom through 200,000 bars costs less than a frame of 30 per second, in the median."""
        times = self.page.js(
            "(() => { const box = document.createElement('div'); document.body.append(box);"
            "const view = new k3.Lanes(box, {id: 'many', length: 1e6, tick: 1e-6, palette: ['#0072b2', '#e69f00'], label: 'many',"
            "describe: () => ''}); view.lanes = Array.from({length: 20}, (_, r) => ({label: 'r' + r, "
            "start: Float64Array.from({length: 10000}, (_, i) => i * 100 + r), length: new Float64Array(10000).fill(80),"
            "colour: Uint16Array.from({length: 10000}, (_, i) => i % 2)}));"
            "const times = []; for (let k = 0; k < 30; ++k) { view.to = 1e6 * .8 ** k; const t = performance.now(); view.draw();"
            "times.push(performance.now() - t); } k3.redraws.pop(); box.remove(); return times.sort((a, b) => a - b); })()")
        self.assertLess(times[len(times) // 2], 33)

    def test_memory_curve_peaks_where_the_table_says_and_zooms(self):
        most = self.page.js(f"(() => {{ const m = {MEMORY}, t = k3.data.sections.find(s => s.type === 'timeline').data;"
                            "return Math.max(...k3.memoryCurve(m, m.worst, t).rows.map(r => r.slice(1).reduce((a, b) => a + b))); })()")
        self.assertAlmostEqual(most, self.summary["peak_reserved_gib"], delta=0.02)
        held = sum(v for where, v in zip(self.column("peak", "where"), self.column("peak", "size_gib")) if where == "GPU")
        self.assertAlmostEqual(held, self.summary["peak_reserved_gib"], delta=1e-3)
        self.check_zoom("#memory-curve", "document.getElementById('memory-curve').k3graph")

    def test_network_heat_holds_the_bytes_of_the_network_table(self):
        """Bins of all ranks together carry what the collectives send; hover and keyboard read a cell."""
        page = self.page
        sent = sum(self.column("network", "nic_gb"))
        bins = page.js("(() => { const g = k3.heats.find(h => h.grid.id === 'nic').grid; return g.values.map(r => r.reduce((a, b) => a + b)) })()")
        seconds = self.summary["step_time_s"] / 96
        self.assertAlmostEqual(sum(bins) * seconds / len(bins), sent, delta=.02 * sent)
        left, top, width, _ = page.place("#heat-nic")
        page.mouse("mouseMoved", left + width / 2, top + 30)
        self.assertRegex(page.js("document.querySelector('#heat-nic + .tip').textContent"), r"pipeline rank 1, seconds into the step .*GB/s|nothing")
        page.js("document.getElementById('heat-nic').focus()")
        page.key("ArrowRight")
        self.assertIn("pipeline rank 0", page.js("k3.heats.find(h => h.grid.id === 'nic').detail.textContent"))

    def test_expert_load_shows_routing_and_what_the_dispatcher_makes_of_it(self):
        grids = {g["id"]: g for g in self.page.js("k3.heats.map(h => ({id: h.grid.id, values: h.grid.values}))")}
        for row in grids["arriving"]["values"]:
            self.assertEqual(len(row), 64)
            self.assertAlmostEqual(sum(row) / 64, 1, delta=2e-3)
        self.assertLess(max(map(max, grids["computed"]["values"])), max(map(max, grids["arriving"]["values"])))
        self.assertGreater(max(map(max, grids["replicas"]["values"])), 0)

    def test_sensitivity_is_ordered_and_signed(self):
        worse = self.column("sensitivity", "worse_pct")
        self.assertGreaterEqual(len(worse), 8)
        self.assertEqual([abs(v) for v in worse], sorted((abs(v) for v in worse), reverse=True))
        self.assertGreater(worse[0], 0)
        self.assertLess(self.column("sensitivity", "better_pct")[0], 0)
        self.assertGreaterEqual(self.page.js("document.querySelectorAll('.deltas rect.delta').length"), 2 * len(worse))

    def test_tables_sort(self):
        self.check_sorting("costs", "time_s")


if __name__ == "__main__":
    report_checks.main()
