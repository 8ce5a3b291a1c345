#!/usr/bin/env bash
# collective and topology: tables, JSON, files, and exit code 2 with a reason for wrong input.
set -u
k3sim=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $1"; exit 1; }

"$k3sim" collective --ranks 8 --from "1 GiB" --to "1 GiB" | grep -q 'nvls *simple *16' || fail "table of one size"
"$k3sim" collective --ranks 64 --from "1 MiB" --to "4 MiB" --csv | head -1 | grep -q '^bytes,time_us,' || fail "CSV header"
json=$("$k3sim" collective --ranks 64 --from "1 MiB" --to "4 MiB" --json) || fail "JSON"
case $json in '{"operation":"all_reduce",'*'"bytes":4194304,'*) ;; *) fail "JSON: $json" ;; esac
"$k3sim" topology show --nodes 512 --svg "$scratch/t.svg" | grep -q '128 leaf, 128 spine, 64 core' || fail "summary"
[ -s "$scratch/t.svg" ] || fail "drawing"

"$k3sim" validate --kind collective | grep -q 'all_reduce between nodes' || fail "validation table"
json=$("$k3sim" validate --kind collective --json) || fail "validation JSON"
case $json in *'"median_abs_error_pct"'*'"independent_median_abs_error_pct"'*) ;; *) fail "validation keys" ;; esac

message=$("$k3sim" collective --op all_redcue 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of an unknown operation"
case $message in *"did you mean 'all_reduce'"*) ;; *) fail "hint: $message" ;; esac
message=$("$k3sim" topology show --nodes 2 --fault 'n9.nic0>leaf0' 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of an unknown link"
case $message in *"there is no link 'n9.nic0>leaf0'"*) ;; *) fail "fault: $message" ;; esac
echo ok
