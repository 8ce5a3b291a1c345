#!/usr/bin/env bash
# Every C++ and CUDA source is as clang-format writes it. With --fix, writes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mode=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then mode=(-i); fi
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -r -P 2 -n 40 clang-format "${mode[@]}"
