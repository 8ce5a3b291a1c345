#!/usr/bin/env bash
# Exit codes and streams: wrong usage is 2 with a message on stderr, nothing on stdout and nothing written.
set -uo pipefail
k3sim=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect CODE PATTERN ARGUMENT...: runs k3sim; checks code, that stdout is empty unless CODE is 0, and stderr's text.
expect() {
  local code=$1 pattern=$2
  shift 2
  (cd "$scratch" && "$k3sim" "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null)
  local got=$?
  if [ "$got" -ne "$code" ]; then echo "k3sim $*: exit code $got, expected $code"; failures=$((failures + 1)); fi
  if [ "$code" -ne 0 ] && [ -s "$scratch/.out" ]; then echo "k3sim $*: wrote to stdout"; failures=$((failures + 1)); fi
  if ! cat "$scratch/.out" "$scratch/.err" | grep -q -- "$pattern"; then
    echo "k3sim $*: no '$pattern' in:"; cat "$scratch/.err"; failures=$((failures + 1))
  fi
}

expect 0 'Exit codes' --help
expect 0 '^k3sim [0-9]' --version
expect 0 'Example:' schema --help
expect 0 '"\$schema"' schema
expect 2 'needs a command'
expect 2 "unknown command 'schem' (did you mean 'schema'?)" schem
expect 2 "unknown option '--versoin' (did you mean '--version'?)" --versoin
expect 2 "unexpected argument 'x'" schema x

# Every command explains itself and shows an example.
for command in $("$k3sim" --help | awk '/^Subcommands:/ {on = 1; next} on && NF {print $1} on && !NF {exit}'); do
  expect 0 'Example:' "$command" --help
done

# A full disk or a closed pipe is an error, not a silent success.
"$k3sim" schema >/dev/full 2>"$scratch/.err"
[ $? -eq 2 ] || { echo "schema to a full device must fail"; failures=$((failures + 1)); }

rm -f "$scratch/.out" "$scratch/.err"
[ -z "$(ls -A "$scratch")" ] || { echo "files were written: $(ls -A "$scratch")"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ]
