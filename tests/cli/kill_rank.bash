# Sourced by tests of commands that run under MPI and resume; needs fail().
# kill_rank JOB COMMAND FOLDER ROWS: kills the second rank of the mpirun with this process number with -9 once ROWS
# results are in FOLDER's journals; ranks under `timeout` stop on their own otherwise. No table may be left. Sets `kept`,
# the results on disk.
kill_rank() {
  local job=$1 command=$2 folder=$3 least=$4 rows victim
  for _ in $(seq 4000); do
    rows=$(cat "$folder"/journal-rank-* 2>/dev/null | grep -c '|')
    [ "$rows" -ge "$least" ] && break
    kill -0 "$job" 2>/dev/null || break
    sleep 0.005
  done
  victim=$(pgrep -P "$job" -f "$command .*$(basename "$folder")" | sed -n 2p)
  [ -n "$victim" ] || fail "no rank to kill: the $command was over before $least results were on disk"
  kill -9 "$victim"
  wait "$job" && fail "mpirun did not notice the killed rank"
  [ -e "$folder/$command.csv" ] && fail "a killed $command must not leave a table"
  kept=$(cat "$folder"/journal-rank-* | grep -c '|')
}
