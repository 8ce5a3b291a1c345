#!/usr/bin/env bash
# The repository checks find what they are for: each rule is broken once in a scratch repository.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v python3 >/dev/null && command -v git >/dev/null || { echo "skipped: needs python3 and git"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

mkdir -p "$scratch/tools/dev" "$scratch/sim/base" "$scratch/models/cost"
cp "$here"/tools/dev/*.py "$scratch/tools/dev/"
cd "$scratch" && git init -q .
for folder in tools sim models; do echo "# $folder" >$folder/README.md; done
printf '// Purpose.\n// Source: a paper.\n#pragma once\nint cost();\n' >models/cost/cost.h
printf '```sh\ntools/quickstart\ntools/test\n```\n' >README.md

# check SCRIPT CODE PATTERN: runs one check on the scratch repository.
check() {
  git add -A
  local output code
  output=$(python3 "tools/dev/$1" 2>&1)
  code=$?
  if [ "$code" -ne "$2" ] || ! grep -q -- "$3" <<<"$output"; then
    echo "$1: exit code $code (expected $2), no '$3' in: $output"
    failures=$((failures + 1))
  fi
}

for script in check_sizes check_layers check_repository check_readme; do check $script.py 0 ''; done

{ echo 'int f(int a) {'; for _ in $(seq 62); do echo '  a += 1;'; done; echo '  return a;'; echo '}'; } >sim/base/long.cpp
check check_sizes.py 1 'sim/base/long.cpp:1: f has 65 lines'
for _ in $(seq 401); do echo '// line'; done >sim/base/long.cpp
check check_sizes.py 1 'sim/base/long.cpp: 401 lines'
printf '#include "models/cost/cost.h"\n' >sim/base/long.cpp
check check_layers.py 1 'sim/base/long.cpp: includes models/cost/cost.h, which is to the right of sim/base'
printf 'int expert = 0;\n' >sim/base/long.cpp
check check_layers.py 1 "sim/ must not know 'expert'"
rm sim/base/long.cpp
printf '// Purpose only.\nint cost() { return 1; }\n' >models/cost/cost.cpp
check check_repository.py 1 "models/cost/cost.cpp: no 'Source:' line"
printf '// Source: x\n// see /ho%s/me/notes\n' me >models/cost/cost.cpp
check check_repository.py 1 "models/cost/cost.cpp:2: a machine's path"
printf '// Source: x\n// TO%s: later\n' DO >models/cost/cost.cpp
check check_repository.py 1 'models/cost/cost.cpp:2: unfinished'
rm models/cost/cost.cpp sim/README.md
printf '#pragma once\n' >sim/base/a.h
check check_repository.py 1 'sim/: no README.md'
for _ in $(seq 121); do echo line; done >>README.md
check check_readme.py 1 'at most 120'
printf '```sh\ntools/test  # all of them\n```\n[map](no/such.md)\n' >README.md
check check_readme.py 1 "'tools/quickstart' is missing"
check check_readme.py 1 'links to no/such.md'
[ "$failures" -eq 0 ]
