"""A sweep report of 10,000 rows: size, speed, sort, filter, Pareto front, ranges, click for details and its command."""
import csv
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import devtools  # noqa: E402
import report_checks  # noqa: E402
from report_checks import K3SIM, ReportChecks, browser  # noqa: E402

ROWS = 10_000
MAX_SECONDS = 2.0
SPACE = "tests/data/planner/small_space.yaml"
PP, STEP, MEMORY, FITS, MFU = "parallel.pp", "step_time_s", "peak_reserved_gib", "fits", "mfu_pct"


def many_rows(few):
    """Rows like those of a real sweep, varied by a small generator, the same every time."""
    state = 12345
    few = [r for r in few if r["status"] == "predicted"]
    for i in range(ROWS):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        noise = (state >> 33) / 2**31
        row = dict(few[i % len(few)], id=f"{state:016x}", fingerprint=f"{state * 7 % 2**64:016x}")
        for key, value in row.items():
            if key.endswith(("_s", "_pct", "_gib", "_gpu", "_step")) and value:
                row[key] = f"{float(value) * (.5 + noise):.9g}"
        row[PP] = (4, 8, 16, 32)[i % 4]
        row[FITS] = "true" if float(row[MEMORY]) < float(few[0]["capacity_gib"]) else "false"
        yield row


class Sweep(ReportChecks, unittest.TestCase):
    max_bytes = 6_000_000

    @classmethod
    def make(cls, folder):
        subprocess.run([K3SIM, "sweep", SPACE, "--allow-assumed", "--out", folder], check=True, capture_output=True)
        path = os.path.join(folder, "sweep.csv")
        with open(path, newline="", encoding="utf-8") as file:
            few = list(csv.DictReader(file, strict=True))
        cls.rows = list(many_rows(few))
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(few[0]))
            writer.writeheader()
            writer.writerows(cls.rows)
        subprocess.run([K3SIM, "report", folder, "--from-csv"], check=True, capture_output=True)

    def test_the_page_is_rebuilt_to_the_same_bytes(self):
        """Here from the rows that were multiplied; the small sweep below holds the usual way."""

    def status(self):
        return self.page.js("document.querySelector('.pages span').textContent")

    def by_step(self):
        return sorted(range(ROWS), key=lambda i: (float(self.rows[i][STEP]), i))

    def test_interactive_soon(self):
        times = []
        for _ in range(3):  # other programs may keep the machine busy; the best of three is what the page takes
            page = devtools.Page(browser(), self.html)
            times.append(page.js("k3.interactiveMs") / 1000)
            page.close()
        self.assertLess(min(times), MAX_SECONDS)

    def test_cells_are_those_of_the_file_and_sorting_orders_all_rows_both_ways(self):
        self.sort("results", STEP)
        if self.column("results", STEP)[0] > self.column("results", STEP)[-1]:
            self.sort("results", STEP)
        order = self.by_step()[:100]
        self.assertEqual(self.column("results", STEP), [float(self.rows[i][STEP]) for i in order])
        self.assertEqual(self.column("results", "id"), [self.rows[i]["id"] for i in order])
        self.sort("results", STEP)
        self.assertEqual(self.column("results", STEP), sorted((float(r[STEP]) for r in self.rows), reverse=True)[:100])
        self.sort("results", STEP)

    def test_filters_on_numbers_and_text_combine(self):
        self.type_filter("results", PP, "= 16")
        self.type_filter("results", FITS, "tru")
        self.type_filter("results", MFU, "<20")
        expected = [r for r in self.rows if r[PP] == 16 and r[FITS] == "true" and float(r[MFU]) < 20]
        self.assertIn(f"of {len(expected)} ({ROWS} in all)" if expected else "no row", self.status())
        for key in (PP, FITS, MFU):
            self.type_filter("results", key, "")
        self.assertIn(f"of {ROWS}", self.status())

    def test_pareto_front_is_right_and_only_of_what_fits(self):
        front = self.page.js("k3.scatter.front")
        points = [(float(r[STEP]), float(r[MEMORY])) for r in self.rows]
        expected, best = [], float("inf")
        for i in sorted((k for k in range(ROWS) if self.rows[k][FITS] == "true"), key=lambda k: (points[k], k)):
            if points[i][1] < best:
                best = points[i][1]
                expected.append(i)
        self.assertEqual(front, expected)

    def test_a_click_on_a_point_shows_its_configuration(self):
        page, row = self.page, self.page.js("k3.scatter.front[0]")
        left, top, _, _ = page.place("#scatter")
        x, y = page.js(f"k3.scatter.graph.toDomCoords({self.rows[row][STEP]}, {self.rows[row][MEMORY]})")
        page.click(left + x, top + y)
        chosen = page.js("k3.scatter.chosen")
        self.assertEqual((self.rows[chosen][STEP], self.rows[chosen][MEMORY]), (self.rows[row][STEP], self.rows[row][MEMORY]))
        self.assertIn(self.rows[chosen]["id"], page.js("document.getElementById('chosen').textContent"))
        self.assertEqual(page.js("document.querySelector('#table-results tr.chosen').dataset.row"), str(chosen))
        shown = page.js("Object.fromEntries([...document.querySelectorAll('#chosen td[data-key]')].map(e => [e.dataset.key, e.dataset.value]))")
        for key in (STEP, MEMORY, MFU, PP):
            self.assertEqual(float(shown[key]), float(self.rows[chosen][key]))

    def test_a_click_on_a_row_shows_the_same(self):
        self.page.js("document.querySelector('#table-results tbody tr:nth-child(5) button').click()")
        name = self.page.js("document.querySelector('#table-results tr.chosen').cells[0].textContent")
        self.assertIn("Chosen: " + name, self.page.js("document.querySelector('#chosen h3').textContent"))

    def test_a_range_on_an_axis_keeps_only_those_rows(self):
        page = self.page
        axis = page.js(f"k3.parallel.keys.findIndex(k => k3.parallel.table.columns[k].key === '{PP}')")
        left, top, _, height = page.place("#parallel")
        x = page.js(f"k3.parallel.x({axis})")
        page.drag(left + x, top + 20, left + x, top + 34 + (height - 56) * .4)
        self.assertEqual(page.js("k3.parallel.order.length"), sum(1 for r in self.rows if r[PP] >= 32))
        self.assertIn(f"({ROWS} in all)", self.status())
        page.click(left + x, top + 60)
        self.assertEqual(page.js("k3.parallel.order.length"), ROWS)

    def test_scatter_zooms(self):
        self.check_zoom("#scatter", "k3.scatter.graph")


class SmallSweep(ReportChecks, unittest.TestCase):
    arguments = ["sweep", SPACE, "--allow-assumed"]

    def test_figures_are_those_of_the_fastest_that_fits(self):
        rows = [r for r in self.csv_file("sweep.csv") if r["fits"] == "true"]
        self.check_figures(min(rows, key=lambda r: float(r[STEP])))

    def test_the_command_of_a_chosen_row_gives_its_numbers(self):
        page = self.page
        page.js("document.querySelector('#table-results tbody tr button').click()")
        command = page.js("document.getElementById('chosen-command').textContent").split()
        self.assertEqual(command[:2], ["k3sim", "run"])
        words = [w.strip("'") for w in command[1:]]
        done = subprocess.run([K3SIM, *words, "--allow-assumed", "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = page.js("document.querySelector('#table-results tr.chosen').cells[0].textContent")
        row = next(r for r in self.csv_file("sweep.csv") if r["id"] == name)
        self.assertIn(f'"fingerprint": "{row["fingerprint"]}"', done.stdout)


if __name__ == "__main__":
    report_checks.main()
