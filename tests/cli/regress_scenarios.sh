#!/usr/bin/env bash
# The shipped scenarios predict what their baselines say; nothing else in the folder is taken for a schedule. To accept a
# change: k3sim regress record scenarios, with the reason in CHANGELOG.md.
set -euo pipefail
k3sim=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$k3sim" regress check "$root/scenarios" --junit "$work/junit.xml" > "$work/out.txt" || { cat "$work/out.txt"; exit 1; }
! grep -q "rows_added" "$work/out.txt" || { echo "FAIL: a scenario without a baseline, or a table taken for a schedule"; cat "$work/out.txt"; exit 1; }
python3 - "$root/scenarios" "$work/junit.xml" <<'PY'
import pathlib, sys, xml.etree.ElementTree as E
folders = {p.parent.name for p in pathlib.Path(sys.argv[1]).glob("*/scenario.yaml")}
suites = {s.get("name") for s in E.parse(sys.argv[2]).getroot().iter("testsuite")}
cases = [c for c in E.parse(sys.argv[2]).getroot().iter("testcase")]
seen = {c.get("classname") for c in cases} | suites
missing = [f for f in folders if not any(s and f in s for s in seen)]
assert not missing and cases, (missing, seen)
PY
echo ok
