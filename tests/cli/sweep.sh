#!/usr/bin/env bash
# sweep: two threads, five shards and three MPI ranks write the same bytes; a rank killed with -9 loses nothing that
# --resume does not bring back.
set -uo pipefail
k3sim=$1
space=$(dirname "$0")/../data/planner/small_space.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$1"; exit 1; }

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

# Kill rank 1 as soon as a few rows are on disk.
"${mpi[@]}" -n 3 "$k3sim" sweep "$space" --out "$scratch/killed" --allow-assumed >/dev/null 2>&1 &
job=$!
for _ in $(seq 400); do
  rows=$(cat "$scratch"/killed/journal-rank-* 2>/dev/null | wc -l)
  [ "$rows" -ge 6 ] && break
  kill -0 $job 2>/dev/null || break
  sleep 0.01
done
victim=$(pgrep -P $job -f "sweep .*killed" | sed -n 2p)
[ -n "$victim" ] && kill -9 "$victim"
wait $job
if [ ! -e "$scratch/killed/sweep.csv" ]; then
  kept=$(cat "$scratch"/killed/journal-rank-* | grep -c '|')
  "${mpi[@]}" -n 2 "$k3sim" sweep "$space" --out "$scratch/killed" --allow-assumed --resume >"$scratch/out" 2>&1 ||
    { cat "$scratch/out"; fail "resume failed"; }
  now=$(sed -n 's/.*configurations, \([0-9]*\) evaluated.*/\1/p' "$scratch/out")
  total=$(($(wc -l <"$scratch/one/sweep.csv") - 1))
  [ $((total - now)) -ge $((kept - 3)) ] || fail "resume evaluated $now of $total although $kept rows were kept"
fi
cmp "$scratch/one/sweep.csv" "$scratch/killed/sweep.csv" || fail "the resumed run differs"
