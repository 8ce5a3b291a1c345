#!/usr/bin/env bash
# plan: the same answer with one thread, two threads and three MPI ranks, and without pruning; every reported plan gives
# the same numbers again with `run`; every configuration has one reason.
set -uo pipefail
k3sim=$1
space=$(dirname "$0")/../data/planner/small_space.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$1"; exit 1; }
plan() { "$k3sim" plan "$space" --allow-assumed --top 3 --out "$scratch/$1" "${@:2}" >"$scratch/$1.txt" || fail "plan $1 failed"; }

plan one --threads 1
plan two --threads 2
for f in plan.csv candidates.csv plan-1.yaml plan-2.yaml plan-3.yaml; do
  cmp "$scratch/one/$f" "$scratch/two/$f" || fail "two threads differ in $f"
done
plan whole --no-prune
cmp "$scratch/one/plan-1.yaml" "$scratch/whole/plan-1.yaml" || fail "without pruning another plan wins"

python3 - "$k3sim" "$scratch/one" <<'PY' || fail "a reported plan is not what run gives"
import csv, json, subprocess, sys
k3sim, folder = sys.argv[1:]
rows = {r["rank"]: r for r in csv.DictReader(open(folder + "/plan.csv", newline=""))}
for rank in ("1", "2", "3"):
    run = subprocess.run([k3sim, "run", f"{folder}/plan-{rank}.yaml", "--allow-assumed", "--json"], capture_output=True, check=True)
    again = json.loads(run.stdout)
    for key in ("step_time_s", "mfu_pct", "peak_reserved_gib", "fingerprint"):
        reported, now = rows[rank][key], again[key]
        same = reported == now if key == "fingerprint" else abs(float(reported) - now) <= 1e-8 * abs(now)
        assert same, (rank, key, reported, now)
reasons = [r["reason"] for r in csv.DictReader(open(folder + "/candidates.csv", newline=""))]
assert len(reasons) == 72 and all(reasons), "every configuration has a reason"
assert reasons.count("ok") == sum(r["rank"] != "" and r["policy_searched"] == "false" for r in rows.values())
PY

command -v mpirun >/dev/null || exit 0
ldd "$k3sim" | grep -q libmpi || exit 0
mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none -n 3 \
  "$k3sim" plan "$space" --allow-assumed --top 3 --out "$scratch/ranks" >"$scratch/ranks.txt" 2>"$scratch/err" ||
  { cat "$scratch/err"; fail "three ranks failed"; }
for f in plan.csv candidates.csv plan-1.yaml plan-2.yaml plan-3.yaml; do
  cmp "$scratch/one/$f" "$scratch/ranks/$f" || fail "three ranks differ in $f"
done
# mpirun may give its ranks a terminal, and these colours.
sed -i 's/\x1b\[[0-9;]*m//g' "$scratch/ranks.txt"
cmp "$scratch/one.txt" "$scratch/ranks.txt" || fail "three ranks print something else"
