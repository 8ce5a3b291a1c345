"""The Python writer produces the rows that the C++ reader takes, resumes, and refuses another machine's file."""
import os
import tempfile
import unittest

import stand_ins  # noqa: F401  (sets the path)
from calibrate.adapters.csv_rows import COLUMNS, CsvWriter, KernelId, join_params, quantile, stable

ROW = KernelId("kda", "flash_kda", "fwd", "bf16", join_params(T=512, H=8, D=128, nseq=1), 0, 5242880)


class CsvRows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "out.csv")

    def tearDown(self):
        self.folder.cleanup()

    def test_a_row_reads_as_in_the_shipped_file(self):
        writer = CsvWriter(self.path, ["gpu: x"])
        writer.add(ROW, [68.0, 69.0, 70.0])
        writer.finish()
        with open(self.path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[:2], ["# gpu: x", COLUMNS])
        self.assertEqual(lines[2], "kda,flash_kda,fwd,bf16,T=512;H=8;D=128;nseq=1,0,5242880,69.000,68.400,69.600,3")

    def test_an_interrupted_run_is_resumed_and_no_row_is_measured_twice(self):
        writer = CsvWriter(self.path, ["gpu: x"])
        writer.add(ROW, [1.0])
        writer._file.close()
        self.assertFalse(os.path.exists(self.path))
        again = CsvWriter(self.path, ["gpu: x"])
        self.assertEqual(again.resumed, 1)
        self.assertTrue(again.done(ROW))
        again.add(ROW, [99.0])
        again.finish()
        with open(self.path, encoding="utf-8") as f:
            self.assertIn(",1.000,1.000,1.000,1", f.read())
        self.assertFalse(os.path.exists(self.path + ".partial"))

    def test_another_machines_file_is_refused(self):
        CsvWriter(self.path, ["gpu: x"]).finish()
        with self.assertRaises(ValueError):
            CsvWriter(self.path, ["gpu: y"])

    def test_statistics(self):
        self.assertEqual(quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertFalse(stable([10.0] * 39))
        self.assertTrue(stable([10.0] * 40))
        self.assertFalse(stable([10.0, 20.0] * 20))
        self.assertTrue(stable([10.0, 20.0] * 100))  # the maximum number of repeats
        self.assertTrue(stable([60_000.0] * 5))      # the time budget, not below five


if __name__ == "__main__":
    unittest.main()
