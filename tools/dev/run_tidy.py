#!/usr/bin/env python3
"""clang-tidy over every source of ours, two at a time. A file whose text, headers and settings are as in an earlier clean
run is skipped (the cache holds nothing but hashes).  Usage: run_tidy.py BUILD_DIR [FILE...]"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import sources

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "k3sim-tidy"


@functools.lru_cache(maxsize=None)
def headers(name):
    """Our own headers that a file includes, with theirs."""
    found = set()
    for target in INCLUDE.findall(sources.text(name)):
        if (sources.ROOT / target).is_file() and target not in found:
            found |= {target} | set(headers(target))
    return frozenset(found)


def key_of(name, version):
    digest = hashlib.sha256(version)
    for part in [".clang-tidy", "CMakeLists.txt", name, *sorted(headers(name))]:
        digest.update(part.encode() + b"\0" + sources.text(part).encode() + b"\0")
    return digest.hexdigest()


def check(name, build, version):
    mark = CACHE / key_of(name, version)
    if mark.exists():
        return name, None, ""
    # The database holds g++ options; its warnings are g++'s business.
    command = ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-error"]
    run = subprocess.run([*command, name], cwd=sources.ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        mark.touch()
    return name, run.returncode, run.stdout


def main():
    build = sys.argv[1]
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)
    database = json.loads((sources.ROOT / build / "compile_commands.json").read_text())
    compiled = {os.path.relpath(os.path.join(e["directory"], e["file"]), sources.ROOT) for e in database}
    wanted = sys.argv[2:] or sources.tracked(".cpp")
    names = [n for n in wanted if n in compiled and not n.startswith("tests/")]
    failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for name, code, output in pool.map(lambda n: check(n, build, version), names):
            skipped += code is None
            if code:
                failed += 1
                print(f"{name}:\n{output}")
    print(f"clang-tidy: {len(names)} files, {skipped} unchanged, {failed} with problems")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
