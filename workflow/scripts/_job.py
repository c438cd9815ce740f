"""What every script does: log to its own file, finish its files, and tell bad input in one line."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Each job uses one core. Snakemake tells libraries of numbers to use all that a job reserves, and
# one that reserves all to be alone would measure threads that wait for each other. They look once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import _handover  # noqa: E402

_handover.hand_over(getattr(sys.modules["__main__"], "snakemake", None))

from dpmc.types import DpmcError  # noqa: E402
from dpmc_papers.pipeline import files, folders  # noqa: E402

SECONDS_BETWEEN_LINES = 5.0
SECONDS_OF_SILENCE = 60.0
# The workflow puts the process that started a job here, where both are on one machine.
SCHEDULER = "DPMC_SCHEDULER"
# And the commit of the code.
COMMIT = "DPMC_COMMIT"
LOGS, CHAINS, PROVENANCE = "logs", "chains", "provenance.json"
# Folders of a paper whose files provenance.json tells of; figures and tables are in none of them.
TOLD_OF = {
    *("data", "reference", "baselines", CHAINS, "studies", "run_times", "metrics", "accounting"),
    "",
}
# What the disk says, in place of a fault of the code: where something is written, and anywhere.
OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
OF_THE_DISK = {*OF_WRITING, errno.EACCES, errno.EIO, errno.ESTALE}


class Log:
    """The log of a job; what cannot be written there goes to standard error.

    Nothing is buffered: a killed job has told all that it had to tell.
    """

    def __init__(self, path: str) -> None:
        self.last = time.monotonic()
        try:
            self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError:
            self.descriptor = -1

    def write(self, text: str) -> None:
        """Write a text."""
        self.last = time.monotonic()
        data = text.encode()
        try:
            written = os.write(self.descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            sys.stderr.write(text)

    def line(self, text: str) -> None:
        """Write a line."""
        self.write(f"{text}\n")


class Progress:
    """Writes a line now and then: how much is done, what the chain says, time left.

    Parameters
    ----------
    log : Log
        Where to.
    unit : str
        What is counted.
    clock : callable
        Returns seconds.
    """

    def __init__(self, log: Log, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.log, self.unit, self.clock = log, unit, clock
        self.start = self.last = clock()
        self.done = 0

    def __call__(self, done: int, total: int, info: str) -> None:
        """Tell that `done` of `total` are done."""
        now = self.clock()
        if done < total and now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        left = (now - self.start) * (total - done) / max(done - self.done, 1)
        if not self.done:  # what comes before is no measure of the speed
            self.start, self.done = now, done
        share = f"{done} of {total} {self.unit} ({done / total:.0%})"
        self.log.write(", ".join(filter(None, (share, info, f"{duration(left)} left"))) + "\n")


def duration(seconds: float) -> str:
    """Return a time in the two largest of its units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def job(snakemake: Any) -> Iterator[Progress]:
    """Do what a job does around its work, and send errors to its log, which Snakemake shows.

    Inputs are compared with what the logs of other jobs tell of them. The names in
    ``snakemake.output`` become hidden ones of this process; when all is done, the files get
    their real names, and the log tells their digests. A job of a run that was killed ends.

    Parameters
    ----------
    snakemake : object
        What Snakemake hands to a script. Its output names are replaced.
    """
    log = Log(snakemake.log[0])
    with _failures_told(log, [*snakemake.output, snakemake.log[0]]), _silence_broken(log):
        _end_with_scheduler(log)
        folders.check(map(Path, snakemake.input))
        folder, kind = _place(snakemake)
        _forget_provenance(folder, kind)
        with _finished(snakemake, log):
            yield Progress(log, "iterations" if kind == CHAINS else "steps")
        # Benchmarks sample both and miss the end of a job, and one that is handed over.
        commit = os.environ.get(COMMIT) or "unknown"
        used = f"{time.process_time():.2f} s of processor time, {_megabytes()} MB"
        log.write(f"done, {used}, commit {commit}\n")


def _place(snakemake: Any) -> tuple[Path | None, str]:
    """Return the folder of the paper of a job, if any, and that of its files there, if any.

    Outputs and log have the first in common, and the log stands in its folder of logs as they stand
    in itself. Names of rules are no help: who includes the workflow may give them others.
    """
    log, *outputs = [Path(path).absolute() for path in (snakemake.log[0], *snakemake.output)]
    folder = Path(os.path.commonpath([log, *outputs]))
    if not outputs:
        return None, ""
    of_log, of_output = (path.relative_to(folder).parts[:-1] for path in (log, outputs[0]))
    if of_log != (LOGS, *of_output):
        return None, ""
    return folder, of_output[0] if of_output else ""


def _forget_provenance(folder: Path | None, kind: str) -> None:
    """Remove the record of how results were made, if this job makes one of them anew."""
    if folder and kind in TOLD_OF:
        (folder / PROVENANCE).unlink(missing_ok=True)


def _is_own(error: OSError, own: list[str]) -> bool:
    """Return whether an error is about a file that a job writes, or about a folder of one."""
    files = [path for name in own for path in (Path(name), folders.own_name(Path(name)))]
    places = {place for path in files for place in (path.absolute(), *path.absolute().parents)}
    return error.filename is not None and Path(str(error.filename)).absolute() in places


def _megabytes() -> int:
    """Return the most memory that this process has held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (2**20 if sys.platform == "darwin" else 2**10))


@contextmanager
def _failures_told(log: Log, own: list[str]) -> Iterator[None]:
    """Tell in the log why a job ends, in one line where it is no fault of the code.

    `own` are the files that it writes.
    """
    try:
        yield
    except DpmcError as error:
        log.write(f"dpmc: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        log.write("stopped from outside\n")
        sys.exit(1)
    except OSError as error:
        if error.errno in OF_WRITING or (error.errno in OF_THE_DISK and _is_own(error, own)):
            path = error.filename or own[0]
            log.write(f"dpmc: {folders.unwritable(path, error)}; then run again\n")
        elif error.errno in OF_THE_DISK:
            path = error.filename or own[0]
            log.write(f"dpmc: {path}: {os.strerror(error.errno)}\n")
        else:
            traceback.print_exc(file=log)
        sys.exit(1)
    except Exception:
        traceback.print_exc(file=log)
        sys.exit(1)


class Outputs(list[str]):
    """Paths of files to write, by number and, as attributes, by name.

    Parameters
    ----------
    files : sequence of str
        What Snakemake hands to a script.
    own : callable
        Returns the path to write to in place of one of them.
    """

    def __init__(self, files: Any, own: Callable[[str], str]) -> None:
        super().__init__(map(own, files))
        for name, value in files.items():
            setattr(self, name, own(value))


@contextmanager
def _finished(snakemake: Any, log: Log) -> Iterator[None]:
    """Hand out names of this process alone; at the end their files get the real ones, on disk."""
    pairs = [(folders.own_name(Path(path)), Path(path)) for path in snakemake.output]
    snakemake.output = Outputs(snakemake.output, lambda path: str(folders.own_name(Path(path))))
    try:
        yield
        lines = [folders.told(partial, path.name) for partial, path in pairs]
        files.flush(partial for partial, _ in pairs)
        for line in lines:
            log.write(f"{line}\n")
        for partial, path in pairs:
            partial.replace(path)
        files.flush({path.parent for _, path in pairs})
    finally:
        for partial, _ in pairs:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


@contextmanager
def _silence_broken(log: Log) -> Iterator[None]:
    """Write a line whenever there was none for a while: the job lives, and works or waits."""
    over, start = threading.Event(), time.monotonic()

    def tell() -> None:
        while not over.wait(max(0.05, log.last + SECONDS_OF_SILENCE - time.monotonic())):
            if time.monotonic() - log.last >= SECONDS_OF_SILENCE:
                passed, used = time.monotonic() - start, time.process_time()
                log.write(f"at work for {duration(passed)}, {duration(used)} of processor time\n")

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _end_with_scheduler(log: Log) -> None:
    """End when the process that started this job does: the next run does it again."""
    scheduler = os.environ.get(SCHEDULER, "")
    if not scheduler:
        return
    if not folders.ends_with(scheduler):
        log.write("not started by its scheduler, but by a cluster or in a container: ends alone\n")
        return
    pid = int(scheduler.partition("@")[0])

    def watch() -> None:
        with suppress(ProcessLookupError):
            _wait_for_end(pid)
        log.write("the scheduler has ended, and so does this job\n")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end(pid: int) -> None:
    """Wait for the end of a process that is not ours, or raise that there is none."""
    try:
        select.select([os.pidfd_open(pid)], [], [])
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):  # a system without, or one that forbids it
        while True:
            os.kill(pid, 0)
            time.sleep(1.0)
