#!/usr/bin/env bash
# Is the program slower than that of another revision? Builds BASE beside the working tree and runs both in turn
# (tools/regress/speed_gate.py).
#   tools/dev/speed_gate.sh [BASE] [-- k3sim arguments]     default: main -- run k3_2048_h800 --json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
base=main
if [ $# -gt 0 ] && [ "$1" != -- ]; then base=$1; shift; fi
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- run k3_2048_h800 --json
old=build/speed-base
mkdir -p "$old/source"
git archive "$base" | tar -x -C "$old/source"
cmake -S "$old/source" -B "$old/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DK3SIM_TESTS=OFF -DK3SIM_CUDA=OFF > /dev/null
ninja -C "$old/build" k3sim
[ -x build/release/k3sim ] || { echo "build/release/k3sim is missing: build first" >&2; exit 2; }
exec python3 tools/regress/speed_gate.py "$old/build/k3sim" build/release/k3sim -- "$@"
