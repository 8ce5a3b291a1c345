#!/usr/bin/env python3
"""Is the new program slower than the old one? Interleaved paired runs, so that a noisy machine hits both alike.

    tools/regress/speed_gate.py OLD NEW -- run k3_2048_h800 --json

Both programs run the same arguments in turn, in an order that alternates from pair to pair. The verdict is the median of
the paired ratios new / old: above 1.10 after 9 pairs is a suspect, which 30 more pairs must confirm; above 1.20 then
fails (exit code 1). A one-sided sign test over the pairs is printed beside it.
Source: engine-design section 19; DuckDB's regression runner (paired medians, confirm suspects), Google Benchmark compare.py.
"""
import argparse
import math
import statistics
import subprocess
import sys
import time

PAIRS, CONFIRM_PAIRS = 9, 30
SUSPECT, FAIL = 1.10, 1.20


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def ratios(old, new, arguments, pairs, first):
    result = []
    for pair in range(first, first + pairs):
        programs = [("old", old), ("new", new)] if pair % 2 == 0 else [("new", new), ("old", old)]
        times = {name: seconds([program, *arguments]) for name, program in programs}
        result.append((times["new"] / times["old"], times["old"], times["new"]))
    return result


def sign_test(values):
    """Probability of at least this many slower pairs when both programs are equally fast."""
    n = sum(1 for v in values if v != 1)
    slower = sum(1 for v in values if v > 1)
    return sum(math.comb(n, k) for k in range(slower, n + 1)) / 2 ** n if n else 1.0


def report(results):
    values = [r[0] for r in results]
    median = statistics.median(values)
    print(f"{len(results)} pairs: old {statistics.median(r[1] for r in results):.4f} s, new "
          f"{statistics.median(r[2] for r in results):.4f} s, median ratio {median:.3f}, p(slower by chance) "
          f"{sign_test(values):.3g}")
    return median


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--confirm", type=int, default=CONFIRM_PAIRS)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    results = ratios(options.old, options.new, options.arguments, options.pairs, 0)
    median = report(results)
    if median > SUSPECT:
        print(f"suspect: above {SUSPECT}; {options.confirm} more pairs")
        results += ratios(options.old, options.new, options.arguments, options.confirm, options.pairs)
        median = report(results)
    slow = median > FAIL
    print("fail: slower" if slow else "pass")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
