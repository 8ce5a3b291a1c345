#!/usr/bin/env bash
# sweep: two threads, five shards and three MPI ranks write the same bytes; a rank killed with -9 loses nothing that
# --resume does not bring back.
set -uo pipefail
k3sim=$1
space=$(dirname "$0")/../data/planner/small_space.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$1"; exit 1; }
. "$(dirname "$0")/kill_rank.bash"

"$k3sim" sweep "$space" --out "$scratch/one" --allow-assumed >/dev/null || fail "one thread failed"
"$k3sim" sweep "$space" --out "$scratch/two" --allow-assumed --threads 2 >/dev/null || fail "two threads failed"
cmp "$scratch/one/sweep.csv" "$scratch/two/sweep.csv" || fail "two threads differ"
for i in 0 1 2 3 4; do
  "$k3sim" sweep "$space" --out "$scratch/shards" --allow-assumed --shard $i/5 >/dev/null || fail "shard $i failed"
done
"$k3sim" sweep "$space" --out "$scratch/shards" --allow-assumed --merge >/dev/null || fail "merge failed"
cmp "$scratch/one/sweep.csv" "$scratch/shards/sweep.csv" || fail "shards differ"
rm "$scratch/shards/shard-3-of-5.csv"
"$k3sim" sweep "$space" --out "$scratch/shards" --allow-assumed --merge 2>"$scratch/err" && fail "merged without shard 3"
grep -q 'shard 3 of 5 is missing' "$scratch/err" || fail "no word about shard 3"
"$k3sim" sweep "$space" --out "$scratch/x" --shard 5/5 2>/dev/null
[ $? -eq 2 ] || fail "shard 5/5 must be refused"

command -v mpirun >/dev/null || exit 0
ldd "$k3sim" | grep -q libmpi || exit 0
mpi=(mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none)
"${mpi[@]}" -n 3 "$k3sim" sweep "$space" --out "$scratch/ranks" --allow-assumed >/dev/null 2>"$scratch/err" ||
  { cat "$scratch/err"; fail "three ranks failed"; }
cmp "$scratch/one/sweep.csv" "$scratch/ranks/sweep.csv" || fail "three ranks differ"

# Kill a rank with -9 as soon as six rows are on disk.
"${mpi[@]}" -n 3 "$k3sim" sweep "$space" --out "$scratch/killed" --allow-assumed >/dev/null 2>&1 &
kill_rank $! sweep "$scratch/killed" 6
[ "$kept" -ge 6 ] || fail "only $kept rows were kept"
"${mpi[@]}" -n 2 "$k3sim" sweep "$space" --out "$scratch/killed" --allow-assumed --resume >"$scratch/out" 2>&1 ||
  { cat "$scratch/out"; fail "resume failed"; }
now=$(sed -n 's/.*configurations, \([0-9]*\) evaluated.*/\1/p' "$scratch/out")
total=$(($(wc -l <"$scratch/one/sweep.csv") - 1))
# Every row that was on disk is kept; a row cut off in the middle is the only one that may be evaluated again, per rank.
[ $((total - now)) -ge $((kept - 3)) ] || fail "resume evaluated $now of $total although $kept rows were kept"
[ "$now" -lt "$total" ] || fail "resume started over"
cmp "$scratch/one/sweep.csv" "$scratch/killed/sweep.csv" || fail "the resumed run differs"
