#!/bin/sh
# Print running, success or failed for what submit.sh printed of a job.
set -eu
. "$(dirname "$0")/scheduler.sh"

number=${1%.job.*}
job=.snakemake/cluster/job.${1##*.job.}

ended() {
  [ -e "$job/code" ] || return 1
  if [ "$(cat "$job/code")" = 0 ]; then
    rm -rf "$job"
    echo success
  else
    echo "dpmc: $1: $job/output tells why it failed" >&2
    echo failed
  fi
}

ended "$1" && exit
active=0
is_active "$number" || active=$?
if [ "$active" != 1 ]; then
  echo running
  exit
fi
# It may have ended a moment ago, and a shared file system shows its files a little later.
waited=0
while [ "$waited" -lt "${DPMC_SECONDS_TO_SHOW:-30}" ]; do
  ended "$1" && exit
  sleep 1
  waited=$((waited + 1))
done
echo "dpmc: $1 ended without an exit code: it was cancelled, or exceeded its limits" >&2
echo failed
