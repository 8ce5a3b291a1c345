"""What every report must hold, and the set-up that all browser tests share.

A test class derives from ReportChecks and unittest.TestCase and says how its report comes about:

    class Plan(ReportChecks, unittest.TestCase):
        arguments = ["plan", "space.yaml"]      # --out FOLDER is added; or override make(folder)

Run a file by hand with the program as argument, and --keep FOLDER for screenshots and the printed PDF.
"""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import devtools

K3SIM = sys.argv[1] if len(sys.argv) > 1 else "build/release/k3sim"
KEEP = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--keep" else None
WIDTHS = (("wide", 1400, False), ("phone", 400, False), ("dark", 1400, True))
_browser = []


def browser():
    if not _browser:
        _browser.append(devtools.Browser())
    return _browser[0]


def main():
    """Runs the tests of the calling file."""
    devtools.chromium_or_skip()
    try:
        unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() or sys.exit(1)
    finally:
        if _browser:
            _browser[0].close()


def number(text):
    """A number as the page shows it: 12.5 s, 31.13 M USD."""
    words = text.split("\u00a0")
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(words[1] if len(words) > 1 else "", 1)
    return float(words[0].replace("\u202f", "").replace("\u2212", "-")) * scale


class ReportChecks:
    arguments = []
    exit_codes = (0,)
    max_bytes = 1_500_000

    @classmethod
    def make(cls, folder):
        done = subprocess.run([K3SIM, *cls.arguments, "--out", folder], capture_output=True, text=True)
        if done.returncode not in cls.exit_codes:
            raise RuntimeError(f"{cls.arguments}: exit code {done.returncode}\n{done.stderr}")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="k3sim-report-")
        cls.make(cls.folder.name)
        cls.html = os.path.join(cls.folder.name, "report.html")
        cls.page = devtools.Page(browser(), cls.html)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.folder.cleanup()

    # What the files say.

    def json_file(self, name):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as file:
            return json.load(file)

    def csv_file(self, name):
        with open(os.path.join(self.folder.name, name), newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, strict=True))

    # What the page shows.

    def figures(self):
        """{key: [value, text]} of the figures."""
        return self.page.js("Object.fromEntries([...document.querySelectorAll('.figures [data-key]')].map(e => [e.dataset.key, "
                            "[e.dataset.value, e.textContent]]))")

    def column(self, table, key):
        """Cells of a column, of the rows that the table shows now."""
        return self.page.js(
            f"(() => {{ const t = document.getElementById('table-{table}'), k = [...t.tHead.rows[0].cells].findIndex("
            f"c => c.dataset.key === {json.dumps(key)}); return [...t.tBodies[0].rows].map(r => r.cells[k]).map("
            "c => c.dataset.value !== undefined ? +c.dataset.value : c.className === 'n' ? null : c.textContent); })()")

    def sort(self, table, key):
        self.page.js(f"document.querySelector('#table-{table} th[data-key=\"{key}\"] button').click()")

    def type_filter(self, table, key, text):
        self.page.js(
            f"(() => {{ const t = document.getElementById('table-{table}'), k = [...t.tHead.rows[0].cells].findIndex("
            f"c => c.dataset.key === {json.dumps(key)}), i = t.querySelectorAll('.filters input')[k];"
            f"i.value = {json.dumps(text)}; i.dispatchEvent(new Event('input')); }})()")

    def check_figures(self, expected):
        """Every figure is the expected number, with a unit where it has one, in the data and on the screen."""
        shown = self.figures()
        for key, (value, text) in shown.items():
            self.assertIn(key, expected)
            if isinstance(expected[key], (bool, str)) and not str(expected[key]).replace(".", "").isdigit():
                continue
            self.assertAlmostEqual(float(value), float(expected[key]), delta=1e-8 * abs(float(expected[key])), msg=key)  # nine digits
            self.assertAlmostEqual(number(text), float(expected[key]), delta=1e-4 * abs(float(expected[key])) + 1e-12, msg=key)
        return shown

    def check_sorting(self, table, key):
        self.sort(table, key)
        up = self.column(table, key)
        self.assertEqual(up, sorted(up))
        self.sort(table, key)
        self.assertEqual(self.column(table, key), sorted(up, reverse=True))

    def check_zoom(self, selector, graph):
        """A drag across a dygraph narrows its range."""
        page, extent = self.page, f"{graph}.xAxisRange()"
        page.frame()
        whole = page.js(extent)
        left, top, width, height = page.place(selector)
        page.drag(left + width * .4, top + height / 2, left + width * .7, top + height / 2)
        zoomed = page.js(extent)
        self.assertLess(zoomed[1] - zoomed[0], .6 * (whole[1] - whole[0]))
        page.js(f"{graph}.resetZoom()")

    # What holds for every report.

    def test_the_file_is_small_and_self_contained(self):
        self.assertLess(os.path.getsize(self.html), self.max_bytes)
        with open(self.html, encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"<(script|link|img)[^>]+(src|href)=\"(?!data:)")
        self.assertNotRegex(text, r"@import|url\((?!data:)")

    def test_the_first_line_is_an_answer_with_a_number(self):
        self.assertRegex(self.page.js("document.querySelector('h1').textContent"), r"\d")

    def test_tables_have_captions_and_headings_and_pictures_have_names(self):
        self.assertEqual(self.page.js(
            "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent || "
            "[...t.tHead.rows[0].cells].some(c => c.scope !== 'col')).map(t => t.id)"), [])
        self.assertEqual(self.page.js(
            "[...document.querySelectorAll('canvas[id], svg')].filter(c => !c.getAttribute('aria-label')).map(c => c.id)"), [])
        self.assertGreater(self.page.js("document.querySelectorAll('section table').length"), 0)

    def test_every_number_has_a_unit_and_a_source(self):
        """In the data of the page and on the screen; the unit of counts and ratios is 1 and not shown."""
        tables = self.page.js("k3.tables.map(t => ({id: t.id, source: t.source, columns: t.columns}))")
        self.assertGreater(len(tables), 0)
        for table in tables:
            for c in table["columns"]:
                self.assertTrue(c.get("source") or table["source"], (table["id"], c))
                self.assertTrue(c.get("text") or c.get("unit"), (table["id"], c["key"], "has no unit"))
        self.assertEqual(self.page.js(
            "k3.tables.flatMap(t => { const e = document.getElementById('table-' + t.id); if (!e) return []; return t.columns.flatMap((c, i) => {"
            "const head = e.tHead.rows[0].cells[i].textContent, unit = k3.unitOf(c), cells = [...e.tBodies[0].rows].map(r => [r.cells[i], +r.dataset.row]);"
            "if (c.text) return []; if (c.unit === 'mixed') return cells.filter(([d, r]) => d.textContent && "
            "!d.textContent.endsWith(k3.unitOf(c, t, t.rows[r]))).map(([d]) => d.textContent);"
            "return unit && !head.includes(unit) ? [t.id + ': ' + head] : []; }); })"), [])
        for key, (value, text) in self.figures().items():
            if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", str(value)):
                self.assertRegex(text, "^[^\u00a0]+\u00a0.+", f"{key} has no unit")
        self.assertEqual(self.page.js("[...document.querySelectorAll('.figures > div')].filter(e => "
                                      "!e.querySelector('.source').textContent).length"), 0)
        sections = "k3.data.sections.filter(s => s.type === '%s').flatMap(s => s.data)"
        self.assertEqual(self.page.js((sections % "heat") + ".filter(g => !g.unit || !g.source).map(g => g.id)"), [])
        self.assertEqual(self.page.js((sections % "deltas") + ".filter(d => !d.unit || !d.table.source).map(d => d.table.id)"), [])
        self.assertEqual(self.page.js(
            "[...document.querySelectorAll('svg.deltas')].flatMap(svg => { const unit = svg.dataset.unit; return [...svg.querySelectorAll('text.value, text.tick')]"
            ".map(t => t.textContent).filter(t => !t.endsWith('\u00a0' + unit)); })"), [])

    def test_small_dark_and_printed(self):
        for name, width, dark in WIDTHS:
            page = devtools.Page(browser(), self.html, width=width, dark=dark)
            self.assertLessEqual(page.js("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
            if KEEP:
                page.screenshot(os.path.join(KEEP, f"{type(self).__name__.lower()}_{name}.png"))
            self.assertEqual(page.problems(), [])
            page.close()
        pdf = self.page.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 10_000)
        # A canvas that is empty on paper leaves no image.
        drawn = self.page.js("k3.charts.filter(([, graph]) => graph()).length + document.querySelectorAll('canvas[id]').length")
        self.assertGreaterEqual(pdf.count(b"/Subtype /Image"), drawn, "an empty chart on paper")
        if KEEP:
            with open(os.path.join(KEEP, type(self).__name__.lower() + ".pdf"), "wb") as out:
                out.write(pdf)

    def test_the_page_is_rebuilt_to_the_same_bytes(self):
        with open(self.html, "rb") as file:
            before = file.read()
        subprocess.run([K3SIM, "report", self.folder.name], check=True, capture_output=True)
        with open(self.html, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_csv_columns_are_those_of_the_dictionary(self):
        words = self.csv_file("data_dictionary.csv")
        # data_dictionary.csv has the columns that it explains itself.
        self.assertEqual(sorted({w["file"] for w in words}),
                         sorted(n for n in os.listdir(self.folder.name) if n.endswith(".csv") and n != "data_dictionary.csv"))
        for name in sorted({w["file"] for w in words}):
            with open(os.path.join(self.folder.name, name), newline="", encoding="utf-8") as file:
                header = next(csv.reader(file, strict=True))
            self.assertEqual(header, [w["column"] for w in words if w["file"] == name], name)
        self.assertEqual([w for w in words if not w["unit"] or not w["source"]], [])

    def test_zz_nothing_was_logged_as_an_error(self):
        self.assertEqual(self.page.problems(), [])
