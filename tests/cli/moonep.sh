#!/usr/bin/env bash
# moonep plans the first test vector of k3-facts section 3.5 and reports wrong input with file and line.
set -u
k3sim=$1
data=$(dirname "$0")/../data/moe
fail() { echo "FAILED: $1"; exit 1; }

json=$("$k3sim" moonep --counts "$data/vector1.csv" --experts 8 --ranks 4 --json) || fail "planning"
case $json in *'"alloc":[[4,2,0,0,0,0,0,0],[0,0,3,1,0,0,2,0],[6,0,0,0,0,0,0,0],[0,0,0,0,0,0,3,3]]'*) ;; *) fail "alloc: $json" ;; esac
case $json in *'"experts_to_copy":[[-1,-1],[6,-1],[0,-1],[-1,-1]]'*) ;; *) fail "experts_to_copy: $json" ;; esac
case $json in *'"rows_per_rank":[6,6,6,6]'*) ;; *) fail "rows_per_rank: $json" ;; esac
case $json in *'"replicas_received":[0,1,1,0],"replicas_sent":[1,0,0,1]'*) ;; *) fail "replicas: $json" ;; esac

"$k3sim" moonep --counts "$data/vector1.csv" --experts 8 --ranks 4 | grep -q 'rows moved *8 (33.33 %)' || fail "table"

message=$("$k3sim" moonep --counts "$data/vector1.csv" --experts 4 --ranks 4 2>&1 >/dev/null)
[ $? -eq 2 ] || fail "exit code of an expert out of range"
case $message in *vector1.csv:7:3:*'6 is outside 0 ... 3'*) ;; *) fail "place of the error: $message" ;; esac
"$k3sim" moonep --counts "$data/vector1.csv" --experts 7 --ranks 4 >/dev/null 2>&1
[ $? -eq 2 ] || fail "exit code of experts that do not divide"
"$k3sim" moonep --counts "$data/absent.csv" --experts 8 --ranks 4 >/dev/null 2>&1
[ $? -eq 2 ] || fail "exit code of a missing file"
echo ok
