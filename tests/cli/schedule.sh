#!/usr/bin/env bash
# The schedule commands: list, show, lint (exit codes, JSON keys) and convert (round trip of PyTorch's files).
set -euo pipefail
k3sim=$1
data=$(dirname "$0")/../data/schedules
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

"$k3sim" schedule list > "$work/list.txt"
grep -q "zb_v .*published for m >= 2p-1, derived below" "$work/list.txt" || fail "list: zb_v's formula says not where it is from"

for file in "$data"/*.csv; do
  "$k3sim" schedule lint "$file" > /dev/null || fail "lint rejects $file"
  "$k3sim" schedule lint --json "$file" | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["valid"] is True and report["problems"] == [], report
assert {"ranks", "stages", "microbatches", "dialect"} <= report.keys(), report
' || fail "lint --json of $file"
done

"$k3sim" schedule convert "$data/dualpipev_4rank_10mb.csv" --lf --out "$work/same.csv"
cmp -s "$work/same.csv" "$data/dualpipev_4rank_10mb.csv" || fail "convert changed a file in the current dialect"
"$k3sim" schedule convert dualpipe_v --ranks 4 --microbatches 10 --lf --out "$work/generated.csv"
cmp -s "$work/generated.csv" "$data/dualpipev_4rank_10mb.csv" || fail "generated DualPipeV differs from PyTorch's"

"$k3sim" schedule convert zb_v --ranks 4 --microbatches 8 --to compute_comms --out "$work/full.csv"
"$k3sim" schedule lint "$work/full.csv" | grep -q "no deadlock" || fail "lowered zb_v"
[ "$("$k3sim" schedule convert 1f1b --ranks 2 --microbatches 2 | od -c | grep -c '\\r  *\\n')" -ge 1 ] || fail "CRLF is the default"

printf '0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n' > "$work/deadlock.csv"
if "$k3sim" schedule lint "$work/deadlock.csv" > "$work/out.txt"; then fail "a deadlock was accepted"; else [ $? -eq 1 ] || fail "exit code of an invalid schedule"; fi
grep -q "rank 0 | 0F0 >0B0<" "$work/out.txt" || fail "the failing prefix is not drawn"
printf '0F0,2BW0x\n' > "$work/bad.csv"
if "$k3sim" schedule lint --json "$work/bad.csv" > "$work/out.json"; then fail "trailing characters were accepted"; fi
grep -q '"valid":false' "$work/out.json" || fail "JSON of a bad file"

if "$k3sim" schedule convert dualpipe --ranks 4 --microbatches 8 2> "$work/err.txt"; then fail "bidirectional was written"; else [ $? -eq 2 ] || fail "exit code of a refusal"; fi
grep -q "dualpipe_v" "$work/err.txt" || fail "the refusal names no way out"
if "$k3sim" schedule show zbv 2> "$work/err.txt"; then fail "unknown name accepted"; else [ $? -eq 2 ] || fail "exit code of an unknown name"; fi
grep -q "did you mean 'zb_v'" "$work/err.txt" || fail "no suggestion"

"$k3sim" schedule show k3 --ranks 3 --chunks 4 --microbatches 6 --svg "$work/k3.svg" > "$work/k3.txt" || fail "show"
grep -q "makespan" "$work/k3.txt" || fail "show: no makespan"
grep -q "72 backwards re-run the dispatch; 72 weight-gradient blocks" "$work/k3.txt" || fail "show: the dispatch re-run is missing"
grep -q "dispatch again" "$work/k3.txt" || fail "show: the order inside a layer is missing"
[ "$(grep -c "dispatch re-run" "$work/k3.svg")" = 72 ] || fail "show: the SVG does not mark the dispatch re-run"
"$k3sim" schedule show 1f1b --ranks 2 --microbatches 4 | grep -q "dispatch" && fail "show: 1f1b has no dispatch"
grep -q "</svg>" "$work/k3.svg" || fail "svg"
"$k3sim" schedule show automatic --ranks 8 --chunks 1 --microbatches 32 --memory-limit 16 --json |
  python3 -c 'import json, sys; assert json.load(sys.stdin)["bubble_s"] == 0' || fail "automatic with 2p activations has a bubble"

printf 'stage,forward,input_grad,weight_grad,transfer\n0,2 ms,2 ms,1 ms,0 ms\n1,1 ms,1 ms,1 ms,0 ms\n' > "$work/times.csv"
"$k3sim" schedule show 1f1b --ranks 2 --microbatches 4 --stage-times "$work/times.csv" --json |
  python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["per_rank"][0]["busy_s"] == 0.02 and r["per_rank"][1]["busy_s"] == 0.012, r' ||
  fail "times per stage"
"$k3sim" schedule show k3 --scenario k3_2048_h800 --svg "$work/scale.svg" --json |
  python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["ranks"] == 16 and 40 < r["makespan_s"] < 150, r["makespan_s"]' ||
  fail "durations of a scenario"
grep -q "</svg>" "$work/scale.svg" || fail "svg to scale"
for p2p in true false; do
  "$k3sim" schedule show k3 --scenario k3_2048_h800 --set overlap.p2p=$p2p > "$work/$p2p.txt"
done
grep -q "routed experts, beside the send of their backward" "$work/true.txt" || fail "weight gradients beside the send"
grep -q "beside the send" "$work/false.txt" && fail "a send that nothing may overlap is drawn beside weight gradients"

if "$k3sim" schedule show 1f1b --ranks 3 --microbatches 4 --stage-times "$work/times.csv" 2> "$work/err.txt"; then fail "times of two stages for three"; fi
grep -q "times for 2 stages" "$work/err.txt" || fail "message about missing stage times"
echo ok
