#!/usr/bin/env python3
"""Rules about the repository itself: sources named, folders explained, no machine's paths, no unfinished markers."""
import re

import sources

HEADER_LINES = 15
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/[\w.]")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
TEXT = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".md", ".yaml", ".yml", ".cmake", ".txt", ".json", ".csv")
THIS = "tools/dev/check_repository.py"


def has_source(name):
    return any("Source:" in line for line in sources.text(name).splitlines()[:HEADER_LINES])


def main():
    problems = []
    files = sources.tracked()
    for name in files:
        if name.startswith("models/") and name.endswith((".h", ".cpp")) and not has_source(name):
            problems.append(f"{name}: no 'Source:' line in the first {HEADER_LINES} lines")
        if not name.endswith(TEXT) or name == THIS:
            continue
        in_code = name.endswith((".h", ".cpp", ".cu", ".cuh", ".py", ".sh"))
        for number, line in enumerate(sources.text(name).splitlines(), 1):
            if MACHINE_PATH.search(line):
                problems.append(f"{name}:{number}: a machine's path")
            if in_code and UNFINISHED.search(line):
                problems.append(f"{name}:{number}: unfinished work is an issue, not a comment")
    for folder in sorted({n.split("/")[0] for n in files if "/" in n and not n.startswith(".")}):
        if f"{folder}/README.md" not in files:
            problems.append(f"{folder}/: no README.md")
    sources.finish(problems, "see CONTRIBUTING.md")


if __name__ == "__main__":
    main()
