#!/usr/bin/env bash
# fit, kernels and validate --kind kernel on the shipped measurements: files, JSON keys, refusals and exit codes.
set -euo pipefail
k3sim=$(realpath "$1")
here=$(cd "$(dirname "$0")/.." && pwd)
csv=$here/data/measurements/h200_kernels.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $1" >&2; exit 1; }

own=$here/../calibrate/measurements
"$k3sim" fit "$csv" "$own/h200_kernels.csv" --out both.yaml > both.txt 2> both_notes.txt
grep -q "left out: 257.6 us in .*h200_kernels.csv, 202.16 us in" both_notes.txt || fail "fit does not name rows on which the files disagree"
"$k3sim" kernels --measured "$own/h200_libraries.csv" --against "$csv" --json > agree.json
python3 -c '
import json
k = {x["kernel"]: x for x in json.load(open("agree.json"))["kernels"]}
assert k["kda,flash_kda,fwd"]["n"] == 24 and k["kda,flash_kda,fwd"]["within_5_pct"] == 24, k["kda,flash_kda,fwd"]
' || fail "kernels --against"
"$k3sim" fit "$csv" --out mine.yaml > fit.txt 2> notes.txt
grep -q "461 of 544 rows fitted" fit.txt || fail "fit does not tell how many rows it used"
grep -q "host-bound" notes.txt || fail "fit does not name the rows it left out"
[ -s mine.yaml ] || fail "no profile was written"

"$k3sim" kernels --gpu mine.yaml --measured "$csv" --json > rows.json
python3 - <<'PY' || fail "kernels --json lacks keys or is off"
import json
d = json.load(open("rows.json"))
assert len(d["rows"]) == 544
for r in d["rows"]:
    assert {"family", "kernel", "pass", "params", "measured_us", "predicted_us", "error_pct", "provenance"} <= set(r)
    if r["predicted_us"] is None: assert r["reason"]
f = {x["family"]: x for x in d["families"]}
for name in ("gemm", "grouped_gemm", "attention", "flash_kda", "triton_kda"):
    assert f[name]["median_abs_error_pct"] <= 5 and f[name]["p90_abs_error_pct"] <= 12, f[name]
PY

"$k3sim" kernels --gpu h200_sxm --measured "$csv" --cross-validate --csv out.csv > families.txt
grep -q "grouped_gemm" families.txt || fail "no families in the text output"
[ "$(wc -l < out.csv)" = 545 ] || fail "the CSV lacks rows"

"$k3sim" kernels --gpu h100_sxm | grep -q "mla_core" || fail "no usual kernels without measurements"

head -n 20 "$csv" > few.csv
set +e
"$k3sim" fit few.csv --out few.yaml > /dev/null 2> few.err
[ $? = 2 ] || fail "too few rows must give exit code 2"
grep -q "only 14 rows for the curve gemm_bf16, which needs 20" few.err || fail "the refusal does not name the curve: $(cat few.err)"
[ -e few.yaml ] && fail "a refused fit wrote a file"
"$k3sim" kernels --gpu h200_sxm --cross-validate > /dev/null 2>&1
[ $? = 2 ] || fail "--cross-validate without --measured must be refused"
"$k3sim" kernels --gpu h200_sxn > /dev/null 2> gpu.err
[ $? = 2 ] && grep -q "h200_sxm" gpu.err || fail "no suggestion for a misspelt GPU"
set -e
"$k3sim" validate --kind kernel --json > published.json
python3 -c '
import json
d = json.load(open("published.json"))
assert d["summary"]["predicted"] > 800, d["summary"]
assert {"id", "group", "status", "measured", "predicted", "error_pct"} <= set(d["cases"][0])'
echo ok
