#!/usr/bin/env python3
"""The README has at most 120 lines and what it names exists. With --commands, prints the lines of its ```sh blocks, which
CI runs in order."""
import re
import sys

import sources

MAX_LINES = 120


def commands(text):
    """One command a line, comments dropped."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            line = re.sub(r"\s+#.*$", "", line).strip()
            if line and not line.startswith("#"):
                yield line


def main():
    text = sources.text("README.md")
    if "--commands" in sys.argv:
        print("\n".join(commands(text)))
        return
    problems = []
    if text.count("\n") > MAX_LINES:
        problems.append(f"README.md: {text.count(chr(10))} lines, at most {MAX_LINES}")
    found = list(commands(text))
    for needed in ("tools/quickstart", "tools/test"):
        if needed not in found:
            problems.append(f"README.md: the command '{needed}' is missing")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (sources.ROOT / target).exists():
            problems.append(f"README.md: links to {target}, which does not exist")
    sources.finish(problems, "the README is what people see first")


if __name__ == "__main__":
    main()
