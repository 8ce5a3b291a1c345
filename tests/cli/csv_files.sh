#!/usr/bin/env bash
# Every CSV file that a command writes: strict RFC 4180, columns as in the data dictionary, and opened by pandas without
# options with numbers as numbers (Debian's python3-pandas, which tools/test installs).
set -u
k3sim=$1
fail() { echo "FAILED: $1"; exit 1; }
dir=$(mktemp -d) || fail "mktemp"
trap 'rm -rf "$dir"' EXIT

space=tests/data/planner/small_space.yaml
small="k3_2048_h800 --set batch.global_tokens=33554432 --detail step"
write() {  # NAME ARGUMENTS...
  local name=$1
  shift
  "$k3sim" "$@" --out "$dir/$name" >/dev/null 2>"$dir/message" || fail "$name: $(cat "$dir/message")"
}
# shellcheck disable=SC2086
{
  write run run $small --no-sensitivity
  write ablate ablate $small
  write diff diff k3_2048_h800 k3_2048_h800 --set-a batch.global_tokens=33554432 --set-b batch.global_tokens=33554432 \
    --set-b parallel.vpp=1 --detail step
  write capacity capacity k3_2048_h800 --tokens 20T --days 60 --detail step
}
write plan plan $space --allow-assumed
write fit plan $space --allow-assumed --fit
write sweep sweep $space --allow-assumed
write validate validate --kind stack
write trace compare deepseek_v3_trace_h800 --kineto tests/data/kineto/deepseek_v3_train.json.gz
write replay compare --memory-snapshot tests/data/allocator/snapshot_protocol4.pickle --replay
mkdir "$dir/printed"
"$k3sim" collective --ranks 64 --from "1 MiB" --to "4 MiB" --csv >"$dir/printed/collective.csv" || fail "collective"
"$k3sim" kernels --gpu h200_sxm --measured scenarios/measurements/h200_kernels.csv --csv "$dir/printed/kernels.csv" \
  >/dev/null || fail "kernels"

python3 tests/cli/csv_strict.py "$dir" || fail "a file is not strict"
# DuckDB is no Debian package: checked where npm's @duckdb/node-api is found.
if node -e 'require("@duckdb/node-api")' 2>/dev/null; then node tests/cli/csv_duckdb.js "$dir" || fail "DuckDB"; fi
for python in python3 /usr/bin/python3; do
  "$python" -c 'import pandas' 2>/dev/null || continue
  "$python" tests/cli/csv_strict.py "$dir" --pandas || fail "pandas"
  echo ok
  exit 0
done
echo "ok; pandas is not installed: not opened with it"
