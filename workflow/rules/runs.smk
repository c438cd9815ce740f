# What a run does besides its jobs: it keeps others out, starts the process that jobs are forks of, and
# sees to the pace at which Snakemake looks for further ones.
import shlex
import threading
import time

from dpmc.experiments.pipeline import folders, preloaded, provenance

SECONDS_BETWEEN_THINNING = 5.0
LOOKS_OVER = threading.Event()


def hold_results():
    """Keep other runs out of the results of the scales of this run, or stop with one line.

    These are the configured scale and those of files that the command names. What earlier runs
    left unfinished there is removed.
    """
    named = {
        scale for scale in reader.scales(ROOT) if f"{RESULTS}/{scale}/" in command()
    }
    try:
        for scale in sorted({SCALE, *named}):
            if not folders.hold(Path(RESULTS) / scale):
                print(
                    f"dpmc: {RESULTS}: no locks here, see that one run at a time writes"
                )
            folders.sweep(Path(RESULTS) / scale)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def tell_jobs():
    """Let the jobs of this run know its process and the commit of the checkout.

    A job on this machine ends when the process does. Snakemake calls this once a run, before the
    first job, and not in a job that reads the workflow again.
    """
    os.environ[SCHEDULER] = folders.this_process()
    os.environ.setdefault("DPMC_COMMIT", provenance.commit(ROOT) or "")


def preload():
    """Start the process that jobs on this machine are forks of, if there are many."""
    works = [workload(SCALE, paper) for paper in settings(SCALE).papers]
    files = (path for work in works for path in work.files)
    preloaded.start_for(files, ["snakemake.iocontainers", "snakemake.logging"])


def looks():
    """Return the timers by which Snakemake will look for further jobs, the last set at the end.

    Whenever it looks it sets another, of the timespan of max-jobs-per-timespan, so that with every
    job it looks more often.
    """
    every = [it for it in threading.enumerate() if isinstance(it, threading.Timer)]
    return [it for it in every if it.function.__module__.startswith("snakemake.")]


def thin_looks(over):
    """Cancel all timers but the first and the last, again and again.

    Snakemake looks at the end of a job anyway; these two are for those who limit its pace.
    """
    while not over.wait(SECONDS_BETWEEN_THINNING):
        for timer in looks()[1:-1]:
            timer.cancel()


def end_looks():
    """End all of them: the process would wait for the last."""
    LOOKS_OVER.set()
    for timer in looks():
        timer.cancel()


def command():
    """Return the command of this run."""
    return shlex.join(["snakemake", *sys.argv[1:]])


# For the record of the run alone; jobs inherit them.
os.environ.setdefault("DPMC_COMMAND", command())
os.environ.setdefault("DPMC_STARTED", str(time.time()))
