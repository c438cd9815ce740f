#!/bin/sh
# Submit a job script of Snakemake, and print by what name status.sh and cancel.sh know the job.
# usage: submit.sh name megabytes minutes script
# The job leaves its exit code in a folder of its own, so that schedulers need not remember it.
set -eu
. "$(dirname "$0")/scheduler.sh"

mkdir -p .snakemake/cluster
job=$(mktemp -d "$PWD/.snakemake/cluster/job.XXXXXXXX")
cp "$4" "$job/script"
quoted=\'$(printf '%s' "$job" | sed "s/'/'\\\\''/g")\'
cat > "$job/run" <<END
#!/bin/sh
job=$quoted
if [ -n "${DPMC_SCHEDULER:+told}" ] && [ -z "\${DPMC_SCHEDULER:-}" ]; then
  echo "dpmc: submit_job of scheduler.sh must hand its environment on to jobs, got none of it" >&2
  code=1
else
  code=0
  sh "\$job/script" || code=\$?
fi
echo \$code > "\$job/partial"
mv "\$job/partial" "\$job/code"
END
chmod u+x "$job/run"
number=$(submit_job "$job/run" "$1" "$2" "$3" "$job/output")
case $number in
  "" | *[!A-Za-z0-9._-]*)
    echo "dpmc: submit_job of scheduler.sh must print the number of the job, got: $number" >&2
    exit 1
    ;;
esac
echo "$number.$(basename "$job")"
