#!/usr/bin/env bash
# import: public launch scripts and recipes become scenarios that run; unknown arguments are listed with their line.
set -euo pipefail
k3sim=$1
data=$(cd "$(dirname "$0")/../data/launch" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

count=0
for file in "$data"/*; do
  name=$(basename "$file")
  case $name in README.md) continue ;; *.toml) kind=torchtitan ;; nemo* | bridge*) kind=recipe ;; *) kind=megatron-args ;; esac
  read -r -a options <<< "$(sed -n 's/^# import: //p' "$file" | head -1)"
  "$k3sim" import "$kind" "$file" "${options[@]}" --out "$work/$name.yaml" 2> "$work/err.txt" || fail "$name: $(cat "$work/err.txt")"
  "$k3sim" run "$work/$name.yaml" --json > "$work/out.json" 2> "$work/err.txt" || fail "run of $name: $(cat "$work/err.txt")"
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["step_time_s"] > 0' "$work/out.json" || fail "$name"
  count=$((count + 1))
done
[ "$count" -ge 25 ] || fail "only $count launches"

yaml=$("$k3sim" import megatron-args "$data/zoo_deepseek_v3.yaml" $(sed -n 's/^# import: //p' "$data/zoo_deepseek_v3.yaml") 2> /dev/null)
grep -q 'stage_layers: \[1, 2, 2,.*2, 0\]' <<< "$yaml" || fail "layout string: $yaml"
grep -q 'parallel: {tp: 2, pp: 8, vpp: 4, cp: 1, ep: 64, etp: 1' <<< "$yaml" || fail "degrees: $yaml"
grep -q 'compute: fp8_block' <<< "$yaml" && grep -q 'mtp: true' <<< "$yaml" || fail "precision or MTP"
grep -q 'recompute: \[mla_up_proj, ffn_up, activation, ffn_down\]' <<< "$yaml" || fail "recompute modules"

script='torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8
  --seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --bf16 --frobnicate 7'
printf '%s\n' "${script//$'\n'/ }" > "$work/unknown.sh"
"$k3sim" import megatron-args "$work/unknown.sh" > "$work/out.yaml" 2> "$work/err.txt"
grep -q 'unknown argument: --frobnicate 7 (line 1)' "$work/err.txt" || fail "unknown argument not listed"
grep -q '^# unknown, without effect here: --frobnicate 7' "$work/out.yaml" || fail "unknown argument not in the YAML"
set +e
"$k3sim" import megatron-args "$work/unknown.sh" --strict > /dev/null 2>&1; [ $? -eq 2 ] || fail "--strict"
echo 'python pretrain_gpt.py --num-layers $L --hidden-size 512 --num-attention-heads 8 --seq-length 512' > "$work/env.sh"
message=$("$k3sim" import megatron-args "$work/env.sh" 2>&1 > /dev/null); [ $? -eq 2 ] || fail "an unknown variable passes"
case $message in *'depends on $L'*'--env L=VALUE'*) ;; *) fail "message: $message" ;; esac
"$k3sim" import megatron-args "$work/env.sh" --env L=6 2> /dev/null | grep -q 'count: 6' || fail "--env"
printf '[model]\nname = "llama3"\nflavor = "8b"\n' > "$work/t.toml"
message=$("$k3sim" import torchtitan "$work/t.toml" 2>&1 > /dev/null); [ $? -eq 2 ] || fail "an unknown flavour passes"
case $message in *"did you mean '8B'"*) ;; *) fail "hint: $message" ;; esac
printf '[model\n' > "$work/t.toml"
"$k3sim" import torchtitan "$work/t.toml" > /dev/null 2>&1; [ $? -eq 2 ] || fail "broken TOML"
echo ok
