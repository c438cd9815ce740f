# What a run does besides its jobs: it keeps others out, and starts the process that jobs are forks of.
# Snakemake calls the hooks of its main Snakefile alone: one that includes this workflow as a module
# calls `start_run` and `end_run` in its own.
import shlex
import time

from dpmc_papers.data._uci import FOLDER_VARIABLE
from dpmc_papers.pipeline import folders, preloaded, provenance
from dpmc_papers.pipeline.files import ABSENT

# The jobs, and the seconds, of max-jobs-per-timespan in profiles/default.
LIMIT_FOR_NONE = (3000, 30)


def start_run():
    """Do what comes before the first job, or stop with one line."""
    hold_results()
    tell_jobs()
    announce_costs()
    preload()
    lift_limit()


def end_run(failed=False):
    """Do what comes after the last job, and tell how to go on."""
    preloaded.end()
    if failed:
        lines = ["What is complete is kept: the same command goes on from here."]
    else:
        lines = [] if asked_for() else way_on()
    for line in lines:
        print(line, file=sys.stderr)


def way_on():
    """Return in lines where the results are, which files they lack, and where published ones are."""
    site = Path(RESULTS, SCALE, "site", "index.html").resolve()
    if not site.is_file():  # of a run that was to stop before
        return []
    lines = [f"Open {site} in a browser."]
    works = [workload(SCALE, paper) for paper in settings(SCALE).papers]
    jobs = [job for work in works for job in work.files.values()]
    raw = {job.raw for job in jobs if getattr(job, "raw", "")}
    lacking = {Path(path).stem for path in raw if ABSENT in raw_files.read(path)}
    if lacking:
        names = ", ".join(sorted(name.rpartition("-")[0] for name in lacking))
        lines.append(
            f"Without data that could not be had here: {names}. Put their files "
            f"into a folder that {FOLDER_VARIABLE} names (docs/reproduction.md), or try downloads "
            "again by `uv run snakemake --cores 1 --forcerun raw --until raw`; then run this command again."
        )
    if SCALE != "paper":
        lines.append(
            "The published grids: `make docs` shows the results that are kept in build/docs/index.html, "
            "`uv run snakemake --cores all --config scale=paper` runs them."
        )
    return lines


def hold_results():
    """Keep other runs out of the results of the scales of this run, or stop with one line.

    What earlier runs left unfinished there is removed.
    """
    try:
        for scale in scales_written():
            if not folders.hold(Path(RESULTS) / scale):
                print(
                    f"dpmc: {RESULTS}: no locks here, see that one run at a time writes"
                )
            folders.sweep(Path(RESULTS) / scale)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def scales_written():
    """Return the configured scale and those of files that the command names, sorted."""
    named = {
        scale for scale in reader.scales(ROOT) if f"{RESULTS}/{scale}/" in command()
    }
    return sorted({SCALE, *named})


def asked_for():
    """Return the files and rules that the command names, none for a whole run.

    They are not in Snakemake's documentation: without them, a whole run.
    """
    asked = getattr(getattr(workflow, "dag_settings", None), "targets", None)
    return set(asked or ())


def tell_jobs():
    """Let the jobs of this run know its process and the commit of the checkout.

    A job on this machine ends when the process does. This is called once a run, before the first
    job, and not in a job that reads the workflow again.
    """
    os.environ[SCHEDULER] = folders.this_process()
    os.environ.setdefault("DPMC_COMMIT", provenance.commit(ROOT) or "")


def preload():
    """Start the process that jobs on this machine are forks of, if there are many."""
    works = [workload(SCALE, paper) for paper in settings(SCALE).papers]
    files = (path for work in works for path in work.files)
    preloaded.start_for(files, ["snakemake.iocontainers", "snakemake.logging"])


def lift_limit():
    """Take away the limit of jobs in a timespan that the default profile sets; others stay.

    With a limit, every look for jobs has another look follow a timespan later, so that a run of a
    thousand jobs spends its time looking, and waits for the last look at its end. Snakemake looks at
    the end of each job anyway. It has no option for no limit: this is not in its documentation, and
    where it is not so, the limit stays.
    """
    limit = getattr(getattr(workflow, "scheduler", None), "job_rate_limiter", None)
    if limit is not None and (limit.max_jobs, limit.timespan) == LIMIT_FOR_NONE:
        workflow.scheduler.job_rate_limiter = None


def command():
    """Return the command of this run."""
    return shlex.join(["snakemake", *sys.argv[1:]])


# For the record of the run alone; jobs inherit them.
os.environ.setdefault("DPMC_COMMAND", command())
os.environ.setdefault("DPMC_STARTED", str(time.time()))
