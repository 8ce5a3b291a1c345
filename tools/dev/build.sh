# build_release TARGET...: configures the release preset once and builds the targets quietly. Sourced, not run.

build_release() {
  local jobs log=build/release/build.log
  jobs=$(nproc)
  mkdir -p build/release
  if [ ! -f build/release/build.ninja ]; then
    echo "configuring build/release" >&2
    cmake --preset release >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  fi
  if [ -f build/release/.ninja_log ]; then echo "building $*" >&2
  else echo "building $* (the first time takes a few minutes on two cores)" >&2
  fi
  # Ninja prints its progress in place on a terminal; elsewhere only a failure is worth reading.
  if [ -t 1 ]; then
    ninja -C build/release -j"$jobs" "$@"
  else
    ninja -C build/release -j"$jobs" "$@" >"$log" 2>&1 || { grep -A30 -m3 'FAILED\|error:' "$log" >&2; return 1; }
  fi
}
