#!/usr/bin/env bash
# run --out writes every file of the spec, the same bytes each time; report rebuilds the page; traces hold what they should.
set -u
k3sim=$1
fail() { echo "FAILED: $1"; exit 1; }
dir=$(mktemp -d) || fail "mktemp"
trap 'rm -rf "$dir"' EXIT

for n in 1 2; do "$k3sim" run k3_2048_h800 --out "$dir/$n" >"$dir/printed" 2>/dev/null || fail "run $n"; done
for f in summary.json ranks.csv breakdown.csv memory.csv memory_peak.csv memory_curve.csv trace.json.gz report.html; do
  [ -s "$dir/1/$f" ] || fail "$f is missing"
done
diff -r "$dir/1" "$dir/2" || fail "two runs differ"
[ "$(wc -l < "$dir/printed")" -lt 40 ] || fail "the terminal summary has $(wc -l < "$dir/printed") lines"
"$k3sim" run k3_vision_h800 --set activation.policy=none --detail step >"$dir/short" 2>/dev/null || fail "a run that does not fit"
[ "$(wc -l < "$dir/short")" -lt 40 ] || fail "the summary of a run that does not fit has $(wc -l < "$dir/short") lines"
grep -q "what would save it" "$dir/short" || fail "no advice where memory is short"
[ "$(wc -c < "$dir/1/report.html")" -lt 1500000 ] || fail "the report is over 1.5 MB"

cp "$dir/1/report.html" "$dir/kept.html"
rm "$dir/1/report.html"
"$k3sim" report "$dir/1" >/dev/null || fail "report"
cmp "$dir/1/report.html" "$dir/kept.html" || fail "the rebuilt report differs"
"$k3sim" report "$dir/nothing" >/dev/null 2>&1
[ $? -eq 2 ] || fail "exit code of a folder that is not there"

"$k3sim" run k3_2048_h800 --out "$dir/3" --trace-ranks 4000 >/dev/null 2>"$dir/message"
[ $? -eq 2 ] || fail "exit code of a rank that is not there"
grep -q "there are ranks 0 to 2047" "$dir/message" || fail "message: $(cat "$dir/message")"
[ ! -e "$dir/3/summary.json" ] || fail "an error left files"

python3 - "$dir/1" <<'PYTHON' || fail "contents"
import csv, gzip, json, sys
folder = sys.argv[1]
summary = json.load(open(folder + "/summary.json"))
keys = ("step_time_s step_time_p95_s tokens_per_s_per_gpu model_tflops_per_gpu mfu_pct hfu_pct peak_allocated_gib "
        "peak_reserved_gib capacity_gib fits step_time_80_s step_time_95_s bubble_pct exposed_comm_s compute_s host_bound_s imbalance_s goodput_pct "
        "cost_usd_per_step provenance folded fingerprint k3sim_version scenario_sha256").split()
assert [k for k in keys if k not in summary] == [], keys
assert 95 < summary["goodput_pct"] < 100
ranks = list(csv.DictReader(open(folder + "/ranks.csv", newline="")))
for row in ranks:
    parts = sum(float(v) for k, v in row.items() if k.endswith("_s") and k != "step_s")
    assert abs(parts - summary["step_time_s"]) < 1e-6 * parts, row
for name in ("ranks.csv", "breakdown.csv", "memory.csv", "memory_peak.csv", "memory_curve.csv"):
    header = open(folder + "/" + name, newline="").readline().strip().split(",")
    words = [r["column"] for r in csv.DictReader(open(folder + "/data_dictionary.csv", newline="")) if r["file"] == name]
    assert words == header, name
peak = list(csv.DictReader(open(folder + "/memory_peak.csv", newline="")))
assert {r["moment"] for r in peak} == {"peak", "outside"}, peak
memory = list(csv.DictReader(open(folder + "/memory.csv", newline="")))
outside = sum(int(r["bytes"]) for r in peak if r["moment"] == "outside")
assert {int(r["bytes"]) for r in memory if r["category"] == "outside_allocator"} == {outside}
curve = list(csv.DictReader(open(folder + "/memory_curve.csv", newline="")))
own = ("allocated_bytes", "reserved_bytes")
for row in curve:
    assert sum(int(v) for k, v in row.items() if k.endswith("_bytes") and k not in own) == int(row[own[0]]), row
    assert int(row[own[0]]) <= int(row[own[1]]), row
events = json.load(gzip.open(folder + "/trace.json.gz"))["traceEvents"]
busy, starts, finishes, counters = {}, {}, {}, {}
for e in events:
    if e["ph"] == "X":
        assert e["ts"] >= busy.get(e["tid"], 0) - 1e-6, e
        busy[e["tid"]] = e["ts"] + e["dur"]
    if e["ph"] == "s": starts[e["id"]] = e
    if e["ph"] == "f": finishes[e["id"]] = e
    if e["ph"] == "C": counters.setdefault((e["pid"], e["name"]), []).append(list(e["args"].values())[0])
assert starts.keys() == finishes.keys() and len(starts) > 100, len(starts)
assert all(starts[i]["ts"] <= finishes[i]["ts"] and starts[i]["pid"] != finishes[i]["pid"] for i in starts)
assert counters and all(v[0] == v[-1] for v in counters.values())
names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
assert len(names) == len(ranks) and len(set(names)) == len(names)
PYTHON
echo ok
