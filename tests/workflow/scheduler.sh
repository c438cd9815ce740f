# A scheduler for tests, in place of profiles/generic/scheduler.sh: jobs run at once on this
# machine, and it forgets each when it ends. Of the first submission of chains nothing is run.

submit_job() {
  printf '%s %s %s\n' "$2" "$3" "$4" >> "$FAKE_SCHEDULER/requests"
  submitted=$(wc -l < "$FAKE_SCHEDULER/requests" | tr -d ' ')
  case $2 in
    chains_*) [ -e "$FAKE_SCHEDULER/lost" ] || : > "$FAKE_SCHEDULER/lost.$submitted" ;;
  esac
  if [ -e "$FAKE_SCHEDULER/lost.$submitted" ]; then
    mv "$FAKE_SCHEDULER/lost.$submitted" "$FAKE_SCHEDULER/lost"
  else
    setsid sh "$1" > "$5" 2>&1 < /dev/null &
    echo $! > "$FAKE_SCHEDULER/$submitted.pid"
  fi
  echo "$submitted.fake"
}

is_active() {
  [ ! -e "$FAKE_SCHEDULER/silent" ] || return 2
  read -r pid < "$FAKE_SCHEDULER/${1%.fake}.pid" && kill -0 "$pid" || return 1
} 2> /dev/null

cancel_jobs() {
  for number; do
    echo "$number" >> "$FAKE_SCHEDULER/cancelled"
    read -r pid < "$FAKE_SCHEDULER/${number%.fake}.pid"
    kill -- "-$pid"
  done
}
