#!/usr/bin/env bash
# The speed gate: equal programs pass, one that is twice as slow fails after confirmation.
set -euo pipefail
gate=$(cd "$(dirname "$0")/../../tools/regress" && pwd)/speed_gate.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nsleep 0.03\n' > "$work/old"
printf '#!/bin/sh\nsleep 0.12\n' > "$work/slow"
chmod +x "$work/old" "$work/slow"
python3 "$gate" "$work/slow" "$work/old" --pairs 5 > "$work/out.txt" || { echo "FAIL: a faster program fails"; exit 1; }
grep -q '^pass' "$work/out.txt"
set +e
python3 "$gate" "$work/old" "$work/slow" --pairs 5 --confirm 3 > "$work/out.txt"
[ $? -eq 1 ] || { echo "FAIL: a slow program passes"; exit 1; }
grep -q 'suspect' "$work/out.txt" && grep -q '8 pairs' "$work/out.txt" || { echo "FAIL: no confirmation"; exit 1; }
echo ok
