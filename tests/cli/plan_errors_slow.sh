#!/usr/bin/env bash
# What plans take for the common part of two layouts' errors is what the published runs give now.
set -euo pipefail
k3sim=$1
file=$(dirname "$0")/../../hardware_profiles/plan_errors.yaml
"$k3sim" validate --json | python3 -c '
import json, re, sys
now = json.load(sys.stdin)["choice"]["error_correlation"]
declared = float(re.search(r"^error_correlation: ([0-9.]+)", open(sys.argv[1]).read(), re.M).group(1))
assert abs(now - declared) <= 0.05, f"plan_errors.yaml says {declared}, the published runs give {now:.3f}: write that there"
' "$file"
