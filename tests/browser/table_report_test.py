"""A sweep report of 10,000 rows in headless Chromium: size, speed, sort, filter, Pareto front, ranges, click for details."""
import csv
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
ROWS = 10_000
MAX_BYTES = 6_000_000
MAX_SECONDS = 2.0
COLUMNS = ["id", "parallel.pp", "parallel.ep", "parallel.cp", "activation.policy", "fits", "step_time_s", "step_time_p95_s",
           "mfu_pct", "hfu_pct", "tokens_per_s_per_gpu", "peak_reserved_gib", "bubble_pct", "exposed_comm_s.ep", "goodput_pct",
           "cost_usd_per_step", "fingerprint"]


def rows():
    """Plausible configurations from a small generator, the same every time."""
    state = 12345
    for i in range(ROWS):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        noise = (state >> 33) / 2**31
        pp, ep, cp = (4, 8, 16, 32)[i % 4], (8, 16, 32, 64)[i // 4 % 4], (1, 2)[i // 16 % 2]
        step = 60 + 30 * noise + 200 / pp + 300 / ep
        memory = 40 + 400 / pp + 20 * (1 - noise) + (i * 7919 % 1000) / 100
        yield [f"c{i:05d}", pp, ep, cp, ("none", "full", "unified")[i % 3], str(memory < 79.1).lower(), f"{step:.6f}",
               f"{step * 1.1:.6f}", f"{2400 / step:.5f}", f"{2600 / step:.5f}", f"{32768 / step:.4f}", f"{memory:.5f}",
               f"{100 / pp + noise:.5f}", f"{step / 5:.5f}", f"{98 - noise:.5f}", f"{step * 1.14:.5f}", f"{state:016x}"]


class TableReport(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="k3sim-sweep-")
        cls.rows = list(rows())
        with open(os.path.join(cls.folder.name, "sweep.csv"), "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *cls.rows])
        subprocess.run([K3SIM, "report", cls.folder.name], check=True, capture_output=True)
        cls.html = os.path.join(cls.folder.name, "report.html")
        cls.browser = devtools.Browser()
        cls.page = devtools.Page(cls.browser, cls.html)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def column(self, number):
        return self.page.js(f"[...document.querySelectorAll('#table-results tbody td:nth-child({number})')].map("
                            "c => c.dataset.value === undefined ? c.textContent : +c.dataset.value)")

    def status(self):
        return self.page.js("document.querySelector('#section-explore-0 > .controls span').textContent")

    def type_filter(self, number, text):
        self.page.js(f"(() => {{ const i = document.querySelectorAll('#table-results .filters input')[{number - 1}];"
                     f"i.value = {json.dumps(text)}; i.dispatchEvent(new Event('input')); }})()")

    def test_small_enough_and_interactive_soon(self):
        self.assertLess(os.path.getsize(self.html), MAX_BYTES)
        times = []
        for _ in range(3):  # other programs may keep the machine busy; the best of three is what the page takes
            page = devtools.Page(self.browser, self.html)
            times.append(page.js("k3.interactiveMs") / 1000)
            page.close()
        self.assertLess(min(times), MAX_SECONDS)

    def test_cells_are_those_of_the_file(self):
        self.assertEqual(self.column(1)[:3], [r[0] for r in self.rows[:3]])
        self.assertEqual(self.column(7)[:50], [float(r[6]) for r in self.rows[:50]])

    def test_sorting_orders_all_rows_both_ways(self):
        expected = sorted(float(r[6]) for r in self.rows)
        button = "document.querySelector('#table-results th:nth-child(7) button').click()"
        self.page.js(button)
        self.assertEqual(self.column(7), expected[:100])
        self.page.js(button)
        self.assertEqual(self.column(7), expected[:-101:-1])

    def test_filters_on_numbers_and_text_combine(self):
        self.type_filter(2, "= 16")
        self.type_filter(5, "uni")
        self.type_filter(12, "<75")
        expected = [r for r in self.rows if r[1] == 16 and r[4] == "unified" and float(r[11]) < 75]
        self.assertIn(f"of {len(expected)} ({ROWS} in all)", self.status())
        for number in (2, 5, 12):
            self.type_filter(number, "")
        self.assertIn(f"of {ROWS}", self.status())

    def test_pareto_front_is_right(self):
        front = self.page.js("k3.scatter.front")
        points = [(float(r[6]), float(r[11])) for r in self.rows]
        expected, best = [], float("inf")
        for i in sorted(range(ROWS), key=lambda k: (points[k], k)):
            if points[i][1] < best:
                best = points[i][1]
                expected.append(i)
        self.assertEqual(front, expected)

    def test_a_click_on_a_point_shows_its_configuration(self):
        page, row = self.page, self.page.js("k3.scatter.front[1]")
        left, top, _, _ = page.place("#scatter")
        x, y = page.js(f"k3.scatter.graph.toDomCoords({self.rows[row][6]}, {self.rows[row][11]})")
        page.click(left + x, top + y)
        self.assertEqual(page.js("k3.scatter.chosen"), row)
        self.assertIn(self.rows[row][0], page.js("document.getElementById('chosen').textContent"))
        self.assertEqual(page.js("document.querySelector('#table-results tr.chosen').dataset.row"), str(row))

    def test_a_click_on_a_row_shows_the_same(self):
        self.page.js("document.querySelector('#table-results tbody tr:nth-child(5) button').click()")
        name = self.page.js("document.querySelector('#table-results tr.chosen').cells[0].textContent")
        self.assertIn("Chosen: " + name, self.page.js("document.querySelector('#chosen caption').textContent"))

    def test_a_range_on_an_axis_keeps_only_those_rows(self):
        page = self.page
        left, top, _, height = page.place("#parallel")
        x = page.js("k3.parallel.x(0)")
        page.drag(left + x, top + 20, left + x, top + 34 + (height - 56) * .4)
        kept = page.js("k3.parallel.order.length")
        self.assertEqual(kept, sum(1 for r in self.rows if r[1] >= 32))
        self.assertIn(f"({ROWS} in all)", self.status())
        page.click(left + x, top + 60)
        self.assertEqual(page.js("k3.parallel.order.length"), ROWS)

    def test_scatter_zooms(self):
        page, range_of_x = self.page, "k3.scatter.graph.xAxisRange()"
        whole = page.js(range_of_x)
        left, top, width, height = page.place("#scatter")
        page.drag(left + width * .4, top + height / 2, left + width * .7, top + height / 2)
        zoomed = page.js(range_of_x)
        self.assertLess(zoomed[1] - zoomed[0], .6 * (whole[1] - whole[0]))

    def test_z_small_dark_and_printed(self):
        for name, width, dark in (("wide", 1400, False), ("phone", 400, False), ("dark", 1400, True)):
            page = devtools.Page(self.browser, self.html, width=width, dark=dark)
            self.assertLessEqual(page.js("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
            if KEEP:
                page.screenshot(os.path.join(KEEP, f"sweep_{name}.png"))
            self.assertEqual(page.problems(), [])
            page.close()
        self.assertTrue(self.page.pdf().startswith(b"%PDF"))
        self.assertEqual(self.page.problems(), [])


if __name__ == "__main__":
    devtools.chromium_or_skip()
    unittest.main(argv=sys.argv[:1])
