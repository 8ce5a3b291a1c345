#!/usr/bin/env bash
# The README's K3 table and picture say what the recorded predictions say, and the check notices when they do not.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v python3 >/dev/null || { echo "skipped: needs python3"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/tools/dev/k3_headline.py" --check || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tools/dev" "$scratch/scenarios" "$scratch/hardware_profiles"
cp "$here/hardware_profiles/step_errors.yaml" "$scratch/hardware_profiles/"
cp "$here"/tools/dev/*.py "$scratch/tools/dev/"
cp "$here/README.md" "$scratch/"
cp -r "$here/scenarios/k3_headline" "$here/scenarios/k3_headline.svg" "$scratch/scenarios/"
sed -i 's/"mfu_pct": {"value":[0-9.]*}/"mfu_pct": {"value":99.9}/' "$scratch/scenarios/k3_headline/h200_8192/expected.json"
out=$(python3 "$scratch/tools/dev/k3_headline.py" --check)
[ $? -eq 1 ] && grep -q 'README.md: is not' <<<"$out" && grep -q 'k3_headline.svg: is not' <<<"$out" || {
  echo "another prediction is not noticed: $out"; exit 1; }
