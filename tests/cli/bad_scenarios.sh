#!/usr/bin/env bash
# `run` on every malformed scenario: exit code 2, "error: FILE:" lines on stderr, nothing on stdout, nothing written.
set -uo pipefail
k3sim=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "$1"; failures=$((failures + 1)); }

count=0
for file in "$here"/../data/malformed/*.yaml; do
  count=$((count + 1))
  overrides=()
  while IFS= read -r assignment; do overrides+=(--set "$assignment"); done < <(sed -n 's/^# set: //p' "$file")
  output=$("$k3sim" run "$file" --out "$scratch/out" "${overrides[@]}" 2>"$scratch/err")
  code=$?
  name=$(basename "$file")
  [ "$code" -eq 2 ] || fail "$name: exit code $code"
  [ -z "$output" ] || fail "$name: wrote to stdout"
  [ ! -e "$scratch/out" ] || fail "$name: wrote files"
  expected=$(grep -c '^# expect: ' "$file")
  got=$(grep -c '^error: ' "$scratch/err")
  [ "$expected" -eq "$got" ] || fail "$name: $got errors on stderr, expected $expected"
done
[ "$count" -ge 40 ] || fail "only $count malformed files"
output=$("$k3sim" run no/such/scenario.yaml 2>"$scratch/err")
[ $? -eq 2 ] && [ -z "$output" ] && grep -q '^error: no/such/scenario.yaml: no such file' "$scratch/err" ||
  fail "a missing scenario must be an error that names it"
[ "$failures" -eq 0 ]
