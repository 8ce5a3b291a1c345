"""What the checks share: the tracked files and a way to report."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tracked(*suffixes):
    """Tracked files (paths relative to the root) with one of the suffixes; all when none is given."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [n for n in listing.decode().split("\0") if n and (ROOT / n).is_file()]
    return [n for n in names if not suffixes or n.endswith(suffixes)]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def finish(problems, what):
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problem(s): {what}")
    sys.exit(1 if problems else 0)
