"""Rows of the measurement CSV, the same format as calibrate/harness/measurement_file.cpp.

Rows go to FILE.partial while running and FILE is put in place at the end; rows that are present are not measured again.
Source: product specification, section 5.
"""
import os
from dataclasses import dataclass

COLUMNS = "section,kernel,pass,dtype,params,flops,bytes,median_us,p20_us,p80_us,reps"


@dataclass(frozen=True)
class KernelId:
    section: str
    kernel: str
    direction: str  # the column "pass"
    dtype: str
    params: str
    flops: float = 0
    bytes: float = 0

    def key(self):
        return ",".join((self.section, self.kernel, self.direction, self.dtype, self.params))


def join_params(**values):
    return ";".join(f"{name}={value}" for name, value in values.items())


def quantile(samples, q):
    """Linear interpolation between order statistics."""
    ordered = sorted(samples)
    rank = q * (len(ordered) - 1)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])


def stable(samples, min_reps=40, max_reps=200, rel_interval=0.02, max_total_us=150_000, floor_reps=5):
    """Whether to stop repeating: the 95 % interval of the median, by order statistics, is narrow enough."""
    n = len(samples)
    if n >= max_reps:
        return True
    if sum(samples) >= max_total_us:
        return n >= floor_reps
    if n < min_reps:
        return False
    ordered = sorted(samples)
    half = 0.98 * n**0.5
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(-(-(n / 2 + half) // 1)))
    return (ordered[high] - ordered[low]) / 2 < rel_interval * quantile(samples, 0.5)


class CsvWriter:
    def __init__(self, path, header):
        self.path = path
        self._keys, self._notes = set(), set()
        old_header, old_rows = self._previous(header[0] if header else "")
        self._file = open(path + ".partial", "w", encoding="utf-8")
        for line in old_header or header:
            self.note(line)
        self._line(COLUMNS)
        for row in old_rows:
            self._keys.add(row.rsplit(",", 6)[0])
            self._line(row)
        self.resumed = len(self._keys)

    def _previous(self, gpu_line):
        for candidate in (self.path + ".partial", self.path):
            if os.path.exists(candidate):
                with open(candidate, encoding="utf-8") as f:
                    lines = [line.rstrip("\n") for line in f if line.strip()]
                header = [line[2:] for line in lines if line.startswith("# ")]
                if not header or header[0] != gpu_line:
                    raise ValueError(f"{candidate} was measured on another machine; choose another file")
                return header, [line for line in lines if not line.startswith("#") and line != COLUMNS]
        return [], []

    def _line(self, text):
        self._file.write(text + "\n")
        self._file.flush()

    def note(self, text):
        if text not in self._notes:
            self._notes.add(text)
            self._line("# " + text)

    def done(self, row):
        return row.key() in self._keys

    def add(self, row, samples):
        if self.done(row):
            return
        self._keys.add(row.key())
        times = ",".join(f"{quantile(samples, q):.3f}" for q in (0.5, 0.2, 0.8))
        self._line(f"{row.key()},{row.flops:.0f},{row.bytes:.0f},{times},{len(samples)}")

    def finish(self):
        self._file.close()
        os.replace(self.path + ".partial", self.path)
