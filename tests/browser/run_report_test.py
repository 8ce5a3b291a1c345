"""The report of a run in headless Chromium: right numbers, working zoom, hover, sort and click, screenshots, print."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import devtools  # noqa: E402

K3SIM = sys.argv[1] if len(sys.argv) > 1 else "build/release/k3sim"
KEEP = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--keep" else None
SCENARIO = "scenarios/k3_2048_h800/scenario.yaml"
MAX_BYTES = 1_500_000


class RunReport(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="k3sim-report-")
        subprocess.run([K3SIM, "run", SCENARIO, "--out", cls.folder.name], check=True, capture_output=True)
        cls.html = os.path.join(cls.folder.name, "report.html")
        with open(os.path.join(cls.folder.name, "summary.json"), encoding="utf-8") as file:
            cls.summary = json.load(file)
        cls.browser = devtools.Browser()
        cls.page = devtools.Page(cls.browser, cls.html)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def test_the_file_is_small_and_self_contained(self):
        self.assertLess(os.path.getsize(self.html), MAX_BYTES)
        with open(self.html, encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"<(script|link|img)[^>]+(src|href)=\"(?!data:)")
        self.assertNotRegex(text, r"@import|url\((?!data:)")

    def test_figures_equal_summary_json(self):
        shown = self.page.js("Object.fromEntries([...document.querySelectorAll('[data-key]')].map(e => [e.dataset.key, "
                             "[e.dataset.value, e.textContent]]))")
        self.assertGreaterEqual(len(shown), 14)
        for key, (value, text) in shown.items():
            expected = self.summary[key]
            if isinstance(expected, bool):
                self.assertEqual(text, "yes" if expected else "no")
                continue
            self.assertEqual(float(value), expected, key)
            number = float(text.split("\u00a0")[0].replace("\u202f", ""))
            self.assertAlmostEqual(number, expected, delta=1e-5 * abs(expected) + 1e-12, msg=key)
            self.assertRegex(text, "\u00a0.+", f"{key} has no unit")

    def test_first_line_is_the_answer_with_its_error_bar(self):
        answer = self.page.js("document.querySelector('h1').textContent")
        self.assertIn(f"step {self.summary['step_time_s']:.3f} s (+", answer)
        self.assertIn("95 % confidence", answer)

    def test_parts_of_every_rank_add_up_to_the_step(self):
        rows = self.page.js("k3.data.sections.find(s => s.type === 'waterfall').data.ranks")
        for row in rows:
            self.assertAlmostEqual(sum(row), self.summary["step_time_s"], delta=1e-4 * self.summary["step_time_s"])

    def test_every_table_has_a_caption_headings_and_a_source(self):
        bad = self.page.js("[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent || "
                           "[...t.tHead.rows[0].cells].some(c => c.scope !== 'col')).map(t => t.id)")
        self.assertEqual(bad, [])
        self.assertEqual(self.page.js("[...document.querySelectorAll('canvas')].filter(c => !c.getAttribute('aria-label') && "
                                      "c.id).length"), 0)

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

    def test_streams_appear_on_demand(self):
        page = self.page
        before = page.js("k3.timeline.lanes.length")
        page.js("(() => { const s = document.querySelector('#section-timeline-2 select'); s.value = '0';"
                "s.dispatchEvent(new Event('change')); })()")
        self.assertGreater(page.js("k3.timeline.lanes.length"), before)

    def test_a_click_on_a_bar_opens_its_kernels(self):
        page = self.page
        page.js("k3.showKernels(1, 1, 'F')")
        self.assertIn("forward of stage 1", page.js("document.querySelector('#section-kernels-3 select').selectedOptions[0].text"))
        self.assertGreater(page.js("k3.kernelView.drawn"), 10)

    def test_memory_curve_peaks_where_the_table_says_and_zooms(self):
        page = self.page
        most = page.js("(() => { const m = k3.data.sections.find(s => s.type === 'memory').data, t = k3.data.sections.find("
                       "s => s.type === 'timeline').data; return Math.max(...k3.memoryCurve(m, m.worst, t).rows.map(r => "
                       "r.slice(1).reduce((a, b) => a + b))); })()")
        self.assertAlmostEqual(most, self.summary["peak_reserved_gib"], delta=0.02)
        graph = "document.getElementById('memory-curve').k3graph"
        whole = page.js(graph + ".xAxisRange()")
        left, top, width, height = page.place("#memory-curve")
        page.drag(left + width * .4, top + height / 2, left + width * .6, top + height / 2)
        zoomed = page.js(graph + ".xAxisRange()")
        self.assertLess(zoomed[1] - zoomed[0], .5 * (whole[1] - whole[0]))

    def test_tables_sort(self):
        page = self.page
        page.js("document.querySelector('#table-costs th:nth-child(2) button').click()")
        values = page.js("[...document.querySelectorAll('#table-costs tbody td:nth-child(2)')].map(c => +c.dataset.value)")
        self.assertEqual(values, sorted(values))
        self.assertEqual(page.js("document.querySelector('#table-costs th:nth-child(2)').ariaSort"), "ascending")

    def test_small_dark_and_printed(self):
        for name, width, dark in (("wide", 1400, False), ("phone", 400, False), ("dark", 1400, True)):
            page = devtools.Page(self.browser, self.html, width=width, dark=dark)
            self.assertLessEqual(page.js("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
            if KEEP:
                page.screenshot(os.path.join(KEEP, f"run_{name}.png"))
            self.assertEqual(page.problems(), [])
            page.close()
        pdf = self.page.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 50_000)
        if KEEP:
            with open(os.path.join(KEEP, "run.pdf"), "wb") as out:
                out.write(pdf)

    def test_nothing_was_logged_as_an_error(self):
        self.assertEqual(self.page.problems(), [])


if __name__ == "__main__":
    devtools.chromium_or_skip()
    unittest.main(argv=sys.argv[:1])
