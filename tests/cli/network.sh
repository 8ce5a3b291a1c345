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

# The step's communication as flows: on by default, shares add up, and what breaks the symmetry unfolds and says so.
python3 - "$k3sim" <<'PYTHON' || fail "network of a step"
import json, subprocess, sys
def run(*args):
    return json.loads(subprocess.run([sys.argv[1], "run", *args, "--json"], check=True, capture_output=True).stdout)
flows, closed = run("k3_2048_h800"), run("k3_2048_h800", "--set", "network.mode=closed_form")
n = flows["network"]
assert n["mode"] == "flows" and n["unfolding"] == "none" and closed["network"] == {"mode": "closed_form"}
assert flows["folded"] == ["ep", "dp"] and n["communications"] > 10000
assert all(0 <= c["peak_utilisation"] <= 1 + 1e-9 and c["links_used"] <= c["links"] for c in n["classes"])
assert sum(n["lost_s"].values()) > 0 and flows["step_time_s"] > closed["step_time_s"]
assert n["hottest"] == sorted(n["hottest"], key=lambda h: -h["mean_utilisation"])
# What leaves the NICs: expert rows to other nodes, sends between stages, gradients, parameters.
nic = next(c for c in n["classes"] if c["class"] == "nic")
assert nic["bytes"] > 0 and nic["links"] == 2 * 2048
tight = run("k3_2048_h800", "--set", "cluster.oversubscription=4")
assert tight["folded"] == ["ep", "dp"] and tight["network"]["unfolding"] == "flows"
assert tight["network"]["unfold_reason"] == "leaves are oversubscribed 4:1"
small = run("deepseek_v3_trace_h800", "--set", "network.faults=[n3.nic5>leaf5=0.5]")
assert small["folded"] == [] and small["network"]["unfolding"] == "ranks"
assert small["step_time_s"] > run("deepseek_v3_trace_h800")["step_time_s"]
PYTHON
message=$("$k3sim" run deepseek_v3_trace_h800 --set 'network.faults=[n99.nic0>leaf0=0]' 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of a fault on an unknown link"
case $message in *"there is no link 'n99.nic0>leaf0'"*) ;; *) fail "fault of a step: $message" ;; esac
"$k3sim" run k3_2048_h800 --set network.mode=fast >/dev/null 2>&1
[ $? -eq 2 ] || fail "exit code of an unknown mode"
echo ok
