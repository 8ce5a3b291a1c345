#!/usr/bin/env python3
"""Writes fitted constants into hardware_profiles/software.

usage: update_software_constants.py software_constants.csv [stack ...]
The CSV is written by `k3sim validate --cross-validate --out DIR`. Without names: every stack of the CSV that has a profile,
but not `default` (what stacks without cases get) and not stacks whose profile says "No constant is fitted".
"""
import csv
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "hardware_profiles" / "software"
KEYS = {"matmul_efficiency": r"(\n  matmul_efficiency: )[0-9.]+", "attention_efficiency": r"(\n  attention_efficiency: )[0-9.]+",
        "memory_efficiency": r"(\n  memory_efficiency: )[0-9.]+", "hopper_efficiency": r"(\n  hopper_efficiency: )[0-9.]+",
        "blackwell_efficiency": r"(\n  blackwell_efficiency: )[0-9.]+", "fp8_efficiency": r"(\n  fp8_efficiency: )[0-9.]+",
        "communication_efficiency": r"(communication: \{efficiency: )[0-9.]+", "ep_efficiency": r"(ep_efficiency: )[0-9.]+", "host_time": r"(\nhost: \{.*factor: )[0-9.]+"}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="", encoding="utf-8") as f:
        rows = {r["software"]: r for r in csv.DictReader(f)}
    for name in sys.argv[2:] or [n for n in rows if n != "default"]:
        path = FOLDER / f"{name}.yaml"
        text = path.read_text(encoding="utf-8")
        if "No constant is fitted" in text:
            continue
        for key, pattern in KEYS.items():
            text, found = re.subn(pattern, lambda m: m.group(1) + f"{float(rows[name][key]):.3f}", text, count=1)  # noqa: B023
            if found == 0:
                sys.exit(f"error: {path}: no {key}")
        path.write_text(text, encoding="utf-8")
        print(f"updated {name}")


if __name__ == "__main__":
    main()
