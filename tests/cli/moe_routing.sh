#!/usr/bin/env bash
# Skew reaches the step through `run`: MoonEP's iteration time is flat in MaxVio, DeepEP's grows and runs out of memory;
# switches for ablations, expert tables, balancing methods, the validation selection.
set -u
k3sim=$1
fail() { echo "FAILED: $1"; exit 1; }
dir=$(mktemp -d) || fail "mktemp"
trap 'rm -rf "$dir"' EXIT

# Four experts of rank 0 are hot: each has (1 + MaxVio) times the mean, the others share the rest.
python3 - "$dir" <<'PYTHON' || fail "counts"
import sys
experts, topk, ranks, tokens, hot = 384, 8, 8, 16384, 4
for violation in (0.2, 1, 10, 20):
    rows = tokens * topk
    each = int(rows / experts * (1 + violation))
    rest, others = rows - hot * each, experts - hot
    with open(f"{sys.argv[1]}/{violation}.csv", "w") as out:
        out.write("rank,expert,tokens\n")
        for r in range(ranks):
            for e in range(experts):
                n = each if e < hot else rest // others + (1 if (e - hot + r) % others < rest % others else 0)
                out.write(f"{r},{e},{n}\n")
PYTHON

predict() { "$k3sim" run moonep_h20 --json "$@" || fail "run $*"; }
for d in moonep deepep; do
  predict --set moe.dispatcher=$d > "$dir/$d.balanced.json"
  for v in 0.2 1 10 20; do
    predict --set moe.dispatcher=$d --set "moe.routing={source: file, file: $dir/$v.csv}" > "$dir/$d.$v.json"
  done
done
predict --set moe.dispatcher=deepep --set moe.routing.skew_sigma=0.3 --out "$dir/out" > /dev/null
predict --set moe.grouped_gemm=workload_aware --set moe.routing.skew_sigma=1 > "$dir/aware.json"
predict --set moe.routing.skew_sigma=1 > "$dir/fixed.json"
"$k3sim" balancing moonep_h20 --steps 8 --tokens 512 --json > "$dir/balancing.json" || fail "balancing"

python3 - "$dir" <<'PYTHON' || fail "contents"
import csv, json, sys
d = sys.argv[1]
read = lambda name: json.load(open(f"{d}/{name}.json"))
levels = ("0.2", "1", "10", "20")
moonep, deepep = (
    [read(f"{name}.{v}") for v in ("balanced",) + levels] for name in ("moonep", "deepep"))
for v, run in zip(levels, moonep[1:]):
    assert abs(run["moe"]["max_violation"]["max"] - float(v)) < 0.02 * float(v) + 0.01, (v, run["moe"])
    change = run["step_time_s"] / moonep[0]["step_time_s"] - 1
    assert abs(change) <= 0.03, ("MoonEP is not flat", v, change)
    assert run["fits"] and "ep" in run["folded"], v
times = [run["step_time_s"] for run in deepep]
assert all(b > a for a, b in zip(times, times[1:])), ("DeepEP does not grow", times)
assert times[-1] > 1.5 * times[0] and times[2] < moonep[2]["step_time_s"] * 1.2, times
assert [run["fits"] for run in deepep] == [True, True, True, True, False] or not deepep[-1]["fits"]
assert deepep[0]["fits"] and deepep[1]["fits"], "DeepEP fits while balanced"
assert "ep" not in deepep[3]["folded"], "stragglers unfold the expert-parallel group"
assert deepep[3]["imbalance_s"] > 0.05 * deepep[3]["step_time_s"], deepep[3]["imbalance_s"]

ranks = list(csv.DictReader(open(d + "/out/expert_ranks.csv", newline="")))
load = list(csv.DictReader(open(d + "/out/expert_load.csv", newline="")))
assert len(ranks) == 4 * 8 and len(load) == 4 * 384
for layer in "0123":
    assert abs(sum(float(r["rows_mean"]) for r in ranks if r["layer"] == layer) - 8 * 16384 * 8) < 1
    assert abs(sum(float(r["tokens_mean"]) for r in load if r["layer"] == layer) - 8 * 16384 * 8) < 1
    assert abs(sum(float(r["load"]) for r in load if r["layer"] == layer) / 384 - 1) < 1e-6

assert read("aware")["step_time_s"] <= read("fixed")["step_time_s"]
methods = {m["method"]: m for m in read("balancing")["methods"]}
assert methods["quantile"]["max_violation_global_batch"] < 0.6 * methods["none"]["max_violation_global_batch"]
assert methods["quantile"]["max_violation_micro_batch"] > methods["quantile"]["max_violation_global_batch"]
assert methods["quantile"]["bytes_per_layer"] == 384 * 1000 * 4 and methods["fixed_step"]["bytes_per_layer"] == 384 * 4
assert methods["quantile"]["all_layers_s"] > methods["fixed_step"]["all_layers_s"] > 0
PYTHON

message=$("$k3sim" run moonep_h20 --set moe.expert_width=full 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of a width without latent experts"
case $message in *'moe.expert_width'*'no latent experts'*) ;; *) fail "message: $message" ;; esac
message=$("$k3sim" run moonep_h20 --set moe.tolerance=0.1 2>&1 >/dev/null)
case $message in *'moe.tolerance'*'has no effect'*) ;; *) fail "message: $message" ;; esac
"$k3sim" validate --type moe --tier A --match kimi-k2 | grep -q nemo-automodel || fail "validate --match"
"$k3sim" validate --tier A --cross-validate >/dev/null 2>&1
[ $? -eq 2 ] || fail "a selection with --cross-validate"
echo ok
