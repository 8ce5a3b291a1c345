#!/usr/bin/env bash
# plan: the same answer with one thread, two threads and three MPI ranks, and without pruning; every reported plan gives
# the same numbers again with `run`; every configuration has one reason; a rank killed with -9 loses nothing that
# --resume does not bring back; --fit gives the same bytes on ranks.
set -uo pipefail
k3sim=$1
space=$(dirname "$0")/../data/planner/small_space.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$1"; exit 1; }
. "$(dirname "$0")/kill_rank.bash"
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

"$k3sim" plan "$space" --resume >/dev/null 2>&1
[ $? -eq 2 ] || fail "--resume without --out must be refused"
[ -z "$(find "$scratch" -name 'journal-*')" ] || fail "a finished plan leaves a journal"
"$k3sim" plan "$space" --fit --allow-assumed --out "$scratch/fit" >"$scratch/fit.txt" || fail "--fit failed"

command -v mpirun >/dev/null || exit 0
ldd "$k3sim" | grep -q libmpi || exit 0
mpi=(mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none)
"${mpi[@]}" -n 3 "$k3sim" plan "$space" --allow-assumed --top 3 --out "$scratch/ranks" >"$scratch/ranks.txt" \
  2>"$scratch/err" || { cat "$scratch/err"; fail "three ranks failed"; }
for f in plan.csv candidates.csv plan-1.yaml plan-2.yaml plan-3.yaml; do
  cmp "$scratch/one/$f" "$scratch/ranks/$f" || fail "three ranks differ in $f"
done
# mpirun may give its ranks a terminal, and these colours.
sed -i 's/\x1b\[[0-9;]*m//g' "$scratch/ranks.txt"
cmp "$scratch/one.txt" "$scratch/ranks.txt" || fail "three ranks print something else"

"${mpi[@]}" -n 3 "$k3sim" plan "$space" --fit --allow-assumed --out "$scratch/fit_ranks" >"$scratch/fit_ranks.txt" \
  2>"$scratch/err" || { cat "$scratch/err"; fail "--fit on three ranks failed"; }
sed -i 's/\x1b\[[0-9;]*m//g' "$scratch/fit_ranks.txt"
cmp "$scratch/fit.txt" "$scratch/fit_ranks.txt" || fail "--fit on three ranks prints something else"
for f in fit_frontier.csv fit_frontier.svg; do
  cmp "$scratch/fit/$f" "$scratch/fit_ranks/$f" || fail "--fit on three ranks differs in $f"
done

# Kill a rank with -9 as soon as some results of every rank are on disk.
# Longer steps than above, so that much is left to do then.
long=(--no-prune --set batch.global_sequences=256)
plan long "${long[@]}"
killed=("$k3sim" plan "$space" --allow-assumed --top 3 "${long[@]}" --out "$scratch/killed")
"${mpi[@]}" -n 3 "${killed[@]}" >/dev/null 2>&1 &
kill_rank $! plan "$scratch/killed" 20
"${mpi[@]}" -n 2 "${killed[@]}" --resume >"$scratch/killed.txt" 2>"$scratch/err" ||
  { cat "$scratch/err"; fail "resuming the plan failed"; }
known=$(sed -n 's/^\([0-9]*\) results were on disk.*/\1/p' "$scratch/err")
[ "${known:-0}" -ge $((kept - 3)) ] && [ "$known" -ge 17 ] || fail "$kept results were kept, $known taken"
sed -i 's/\x1b\[[0-9;]*m//g' "$scratch/killed.txt"
cmp "$scratch/long.txt" "$scratch/killed.txt" || fail "the resumed plan prints something else"
for f in plan.csv candidates.csv plan-1.yaml plan-2.yaml plan-3.yaml; do
  cmp "$scratch/long/$f" "$scratch/killed/$f" || fail "the resumed plan differs in $f"
done
