#!/usr/bin/env python3
"""Includes only point left, and sim/ knows no LLM. The order is the one of CMakeLists.txt and models/README.md."""
import re

import sources

# Folders of one group may include each other; a later group may include an earlier one.
GROUPS = [
    ["sim/base"],
    ["sim/graph"],
    ["sim/engine", "sim/net", "sim/mem"],
    ["sim/trace"],
    ["models/config"],
    ["models/transformer", "models/moe", "models/schedule", "models/cost", "models/comm", "models/memory",
     "models/failure"],
    ["models/build"],
    ["calibrate/fit", "calibrate/harness", "tools/planner", "tools/sweep", "tools/import", "tools/report",
     "tools/regress", "tools/validation", "tools/result_pages"],
    ["tools/commands"],
    ["tools"],
]
RANK = {folder: rank for rank, group in enumerate(GROUPS) for folder in group}
ALLOWED_ELSEWHERE = {"calibrate/kernels": ("sim/base", "calibrate/")}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
LLM_WORDS = re.compile(r"\b(experts?|attention|transformers?)\b", re.IGNORECASE)


def folder_of(path):
    return path.rsplit("/", 1)[0] if "/" in path else ""


def main():
    problems = []
    for name in sources.tracked(".h", ".cpp", ".cu", ".cuh"):
        folder, text = folder_of(name), sources.text(name)
        if folder.startswith("sim/"):
            for number, line in enumerate(text.splitlines(), 1):
                if word := LLM_WORDS.search(line):
                    problems.append(f"{name}:{number}: sim/ must not know '{word.group(0)}'")
        if folder.startswith("tests"):
            continue
        for target in INCLUDE.findall(text):
            to = folder_of(target)
            if folder in ALLOWED_ELSEWHERE:
                if not target.startswith(ALLOWED_ELSEWHERE[folder]):
                    problems.append(f"{name}: includes {target}, may include {', '.join(ALLOWED_ELSEWHERE[folder])}")
            elif folder not in RANK or to not in RANK:
                problems.append(f"{name}: includes {target}; the folder is in no group of tools/dev/check_layers.py")
            elif RANK[to] > RANK[folder]:
                problems.append(f"{name}: includes {target}, which is to the right of {folder}")
    sources.finish(problems, "move the code, or pass what is needed as an argument")


if __name__ == "__main__":
    main()
