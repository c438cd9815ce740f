#!/bin/sh
# Cancel the jobs that submit.sh printed this of.
set -eu
. "$(dirname "$0")/scheduler.sh"

for name; do
  set -- "$@" "${name%.job.*}"
  shift
done
cancel_jobs "$@"
