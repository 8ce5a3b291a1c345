#!/usr/bin/env bash
# validate --cross-validate: accuracy on runs that the constants have not seen, and intervals that cover what they claim.
set -euo pipefail
k3sim=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$k3sim" validate --cross-validate --json > "$work/cv.json"
python3 - "$work/cv.json" hardware_profiles/step_errors.yaml <<'PY'
import json
import re
import sys

result = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {(r["cases"], r["constants"]): r for r in result["cross_validation"]}
families, sources = "held-out families, five folds", "held-out sources"
both = rows["tiers A and B", families]
assert both["n"] >= 670, both
assert both["median_abs_error_pct"] <= 8 and both["p90_abs_error_pct"] <= 20 and abs(both["bias_pct"]) <= 2, both
assert rows["tier A, BF16/FP16", families]["median_abs_error_pct"] <= 6, rows["tier A, BF16/FP16", families]
assert rows["tiers A and B", sources]["median_abs_error_pct"] <= 10, rows["tiers A and B", sources]
assert rows["MoE, tiers A and B", families]["median_abs_error_pct"] <= 8, rows["MoE, tiers A and B", families]
vtrain = rows["vTrain, A100, several nodes", "nominal, fitted to no training run"]
assert vtrain["n"] == 87 and vtrain["mean_abs_error_pct"] <= 8, vtrain
floor = rows["all", "lookup: the same, knowing the source"]
assert rows["all", sources]["median_abs_error_pct"] < floor["median_abs_error_pct"]

text = open(sys.argv[2], encoding="utf-8").read()
assert [i["kind"] for i in result["intervals"]] == ["dense", "moe"]
for i in result["intervals"]:
    assert abs(i["covers80_pct"] - 80) <= 5 and abs(i["covers95_pct"] - 95) <= 5, i
    written = dict(re.findall(r"(\w+): ([\d.]+)", re.search(rf"^{i['kind']}: (.*)$", text, re.M)[1]))
    for key in ("low95", "low80", "high80", "high95"):  # what `run` prints is what was measured
        assert abs(float(written[key]) - i[key]) <= 0.0011, (i["kind"], key, written[key], i[key])
    assert int(written["runs"]) == i["runs"]
PY

"$k3sim" validate --json > "$work/all.json"
python3 - "$work/all.json" <<'PY'
import json
import sys

choice = json.load(open(sys.argv[1], encoding="utf-8"))["choice"]
assert choice["groups"] >= 17 and choice["layouts"] >= 144, choice
assert choice["mean_regret_pct"] <= 2 and choice["worst_regret_pct"] <= 10 and choice["kendall_tau"] >= 0.85, choice
PY
