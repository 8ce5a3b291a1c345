#!/usr/bin/env bash
# regress: planted schedule changes, baselines of scenarios, tolerances, added and removed rows, exit codes, GitHub
# annotations within their limits, the CI examples run as shell.
set -euo pipefail
k3sim=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
code() { set +e; "$@" > "$work/out.txt" 2> "$work/err.txt"; local rc=$?; set -e; echo "$rc"; }

python3 "$here/regress_planted.py" "$k3sim" "$work/planted" | grep -q '^30 planted' || fail "planted changes"

# A scenario folder: record, check, a slower and a bigger step, a broken layout.
mkdir -p "$work/s/dense"
cat > "$work/s/dense/scenario.yaml" <<'YAML'
model: llama3_8b
cluster: {gpu: h100_sxm, nodes: 4}
parallel: {tp: 2, pp: 4}
batch: {sequence: 8192, micro_batch: 1, global_sequences: 64}
YAML
[ "$(code "$k3sim" regress check "$work/s" --json)" = 0 ] || fail "no baseline yet is no failure"
grep -q '"rows_added"' "$work/out.txt" || fail "rows_added"
[ "$(code "$k3sim" regress record "$work/s")" = 0 ] && [ -s "$work/s/dense/expected.json" ] || fail "record"
[ "$(code "$k3sim" regress check "$work/s")" = 0 ] || fail "an unchanged scenario fails"
echo 'activation: {policy: full}' >> "$work/s/dense/scenario.yaml"
[ "$(code "$k3sim" regress check "$work/s" --json --junit "$work/j.xml")" = 1 ] || fail "recomputing everything passes"
python3 - "$work/out.txt" "$work/j.xml" <<'PY' || fail "report of a slower step"
import json, sys, xml.etree.ElementTree as E
report = json.load(open(sys.argv[1]))
rows = {r["metric"]: r for r in report["rows"]}
step = rows["step_time_s"]
assert rows["peak_allocated_gib"]["category"] == "improvement" and step["category"] == "regression", rows
assert report["result"] == "fail" and step["scenario"] == "dense", report
assert any(m["what"].startswith("rank ") for m in step["moved"]) and any("_s" in m["what"] for m in step["moved"]), step
suite = E.parse(sys.argv[2]).getroot().find("testsuite")
assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) > 0
assert int(suite.get("tests")) == len(suite.findall("testcase"))
PY
sed -i 's/tp: 2, pp: 4/tp: 3, pp: 4/' "$work/s/dense/scenario.yaml"
[ "$(code "$k3sim" regress check "$work/s")" = 1 ] || fail "a broken layout passes"
grep -q 'FAIL status_change dense: status .* -> error: parallel' "$work/out.txt" || fail "reason of a broken layout: $(cat "$work/out.txt")"
rm "$work/s/dense/scenario.yaml"
[ "$(code "$k3sim" regress check "$work/s")" = 1 ] && grep -q rows_removed "$work/out.txt" || fail "rows_removed"

# Tolerances belong to the file and survive a new record; a moved neutral number is drift.
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > "$work/t.csv"
"$k3sim" regress record "$work/t.csv" > /dev/null
sed -i 's/"makespan": {"value":[0-9.]*/"makespan": {"value":8.5,"rtol":0.1/' "$work/t.expected.json"
[ "$(code "$k3sim" regress check "$work/t.csv")" = 0 ] || fail "a tolerance is ignored"
"$k3sim" regress record "$work/t.csv" > /dev/null
grep -q '"rtol":0.1' "$work/t.expected.json" || fail "record forgets a tolerance"
sed -i 's/"microbatches": {"value":2.0/"microbatches": {"value":3.0/' "$work/t.expected.json"
[ "$(code "$k3sim" regress check "$work/t.csv")" = 1 ] && grep -q 'FAIL drift' "$work/out.txt" || fail "drift does not block"
echo '{' > "$work/t.expected.json"
[ "$(code "$k3sim" regress check "$work/t.csv")" = 2 ] || fail "a damaged baseline is exit code 2"
[ "$(code "$k3sim" regress check "$work/nowhere")" = 2 ] || fail "a missing folder is exit code 2"

# GitHub: at most ten errors, special characters escaped, the table in the step summary.
mkdir "$work/many"
for i in $(seq 14); do printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > "$work/many/a,b$i.csv"; done
"$k3sim" regress record "$work/many" > /dev/null
for i in $(seq 14); do printf '0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n' > "$work/many/a,b$i.csv"; done
export GITHUB_STEP_SUMMARY=$work/summary.md
[ "$(code "$k3sim" regress check "$work/many" --github)" = 1 ] || fail "slower schedules pass"
[ "$(grep -c '^::error ' "$work/out.txt")" = 10 ] || fail "number of annotations"
grep -q '^::error file=.*a%2Cb1.csv,title=k3sim regression%3A a%2Cb' "$work/out.txt" || fail "escaping: $(grep -m1 ::error "$work/out.txt")"
grep -q '^| \*\*regression\*\* | a,b' "$work/summary.md" || fail "step summary"
unset GITHUB_STEP_SUMMARY

# The examples for GitHub Actions and GitLab CI, their script lines run as they stand.
for example in "$root"/tools/regress/ci_examples/*.yml; do
  python3 - "$example" > "$work/steps.sh" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
block = re.search(r"# begin script\n(.*?)# end script", text, re.S).group(1)
lines = [re.sub(r"^\s*(- )?(run: )?", "", line) for line in block.splitlines()]
print("\n".join(line for line in lines if line and line != "|"))
PY
  mkdir -p "$work/ci/schedules" && printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > "$work/ci/schedules/mine.csv"
  (cd "$work/ci" && mkdir -p bin && ln -sf "$(realpath "$k3sim")" bin/k3sim && PATH=$PWD/bin:$PATH bash -e "$work/steps.sh" > log.txt 2>&1) ||
    fail "$example: $(cat "$work/ci/log.txt")"
  [ -s "$work/ci/regress.xml" ] || fail "$example wrote no JUnit file"
  rm -rf "$work/ci"
done
echo ok
