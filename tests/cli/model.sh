#!/usr/bin/env bash
# model audits a zoo model, a file and a config.json; import hf-config writes YAML that model reads; errors exit with 2.
set -u
k3sim=$1
data=$(dirname "$0")/../data/hf
fail() { echo "FAILED: $1"; exit 1; }

json=$("$k3sim" model kimi_k3 --json) || fail "model kimi_k3"
case $json in *'"total_parameters":2779484476000,"active_parameters":104189612640,'*) ;; *) fail "totals: ${json:0:200}" ;; esac
case $json in *'"name":"kda","count":69,"parameters":443740384,"forward_flops_per_token":887160832.0'*) ;; *) fail "kda" ;; esac
[ "$(printf '%s\n' "$json" | wc -l)" -eq 1 ] || fail "json on one line"

"$k3sim" model kimi_k3 | grep -q 'total parameters   2,779,484,476,000' || fail "table"
"$k3sim" model "$data/kimi_k3.json" --json | grep -q '"total_parameters":2779484476000' || fail "model of a config.json"

copy=$(mktemp -d) || fail "mktemp"
trap 'rm -rf "$copy"' EXIT
"$k3sim" import hf-config "$data/kimi_k3.json" --name copy --out "$copy/copy.yaml" || fail "import"
"$k3sim" model "$copy/copy.yaml" --json | grep -q '"total_parameters":2779484476000' || fail "model of an imported file"

message=$("$k3sim" model kimi_k4 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of an unknown model"
case $message in *"did you mean 'kimi_k"*) ;; *) fail "suggestion: $message" ;; esac
sed 's/"hidden_size"/"hiden_size"/' "$data/llama3_8b.json" > "$copy/bad.json"
message=$("$k3sim" import hf-config "$copy/bad.json" 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of a missing key"
case $message in *bad.json*hidden_size*'is missing'*) ;; *) fail "message of a missing key: $message" ;; esac
"$k3sim" import hf-config "$copy/absent.json" >/dev/null 2>&1
[ $? -eq 2 ] || fail "exit code of an absent file"
echo ok
