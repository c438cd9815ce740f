# How the scheduler of this cluster is spoken to: three functions, here for SLURM.
# `git update-index --skip-worktree profiles/generic/scheduler.sh` keeps your own out of commits.

# Submit the script $1 under the name $2 with $3 megabytes and $4 minutes on one core, its output
# going to the file $5, and print the number of the job. The job needs the variables of this
# environment, such as PATH and those that begin with DPMC_: sbatch hands them on, qsub with -V.
submit_job() {
  sbatch --parsable --job-name="$2" --cpus-per-task=1 --mem="$3M" --time="$4" --output="$5" "$1"
}

# Succeed while the job of number $1 waits or runs; return 1 once it does not, and 2 if the
# scheduler does not answer.
is_active() {
  active_jobs=$(squeue --noheader --format=%i --user="$(id -un)") || return 2
  printf '%s\n' "$active_jobs" | grep -qxF "$1"
}

# Cancel the jobs of these numbers.
cancel_jobs() {
  scancel "$@"
}
