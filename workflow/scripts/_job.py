"""What every script does: log to its own file, check what it reads, tell errors in one line."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Each job uses one core. Snakemake tells libraries of numbers to use all that a job reserves, and
# one that reserves all to be alone would measure threads that wait for each other. They look once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from dpmc.numerics.source_digest import short_digest  # noqa: E402
from dpmc.types import DpmcError  # noqa: E402
from dpmc_papers.pipeline import files  # noqa: E402

SECONDS_BETWEEN_LINES = 10.0
# What a disk says, in place of a fault of the code.
OF_THE_DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EIO,
    errno.ESTALE,
}


class Log:
    """The log of a job, which is told how much is done.

    Nothing is buffered: a killed job has told all that it had to tell.
    """

    def __init__(self, path: str) -> None:
        self.last = time.monotonic()
        try:
            self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError:
            self.descriptor = -1

    def line(self, text: str) -> None:
        """Write a line; what has no place on the disk goes to standard error."""
        data = f"{text}\n".encode()
        try:
            written = os.write(self.descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            sys.stderr.write(f"{text}\n")

    def __call__(self, done: int, total: int, info: str) -> None:
        """Say now and then that `done` of `total` are done."""
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            self.line(", ".join(filter(None, (f"{done} of {total} ({done / total:.0%})", info))))


@contextmanager
def job(snakemake: Any) -> Iterator[Log]:
    """Do what a job does around its work, and send errors to its log, which Snakemake shows.

    Results that it reads must be made with the settings of the configuration.

    Parameters
    ----------
    snakemake : object
        What Snakemake hands to a script.
    """
    log = Log(snakemake.log[0])
    try:
        for path, digest in _read(snakemake):
            from dpmc_papers.pipeline import store

            store.check(path, digest)
        _redate(snakemake)
        yield log
        log.line(f"done, {time.process_time():.1f} s of processor time")
    except DpmcError as error:
        log.line(f"dpmc: {error}")
        sys.exit(1)
    except OSError as error:
        if error.errno not in OF_THE_DISK:
            log.line(traceback.format_exc())
        else:
            path = error.filename or snakemake.output[0]
            log.line(f"dpmc: {path}: {os.strerror(error.errno)}; then run again")
        sys.exit(1)
    except MemoryError:
        log.line(f"dpmc: {snakemake.rule}: must have more memory: see mem_mb in workflow/rules")
        sys.exit(1)
    except Exception:
        log.line(traceback.format_exc())
        sys.exit(1)


def _redate(snakemake: Any) -> None:
    """Have no file be newer than the present, which Snakemake would not let its job end with."""
    if any(Path(path).stat().st_mtime > time.time() for path in snakemake.input):
        files.redate(map(Path, snakemake.input))
        # All at once: an order of dates that lie in the future would make results anew.
        scale = snakemake.wildcards.get("scale")
        results = [path for path in map(Path, snakemake.input) if scale in path.parts]
        for folder in {Path(*path.parts[: path.parts.index(scale) + 1]) for path in results}:
            files.redate(path for path in folder.rglob("*") if path.is_file())


def _read(snakemake: Any) -> Iterator[tuple[str, str]]:
    """Results that a job reads, with the digests of what they should be made from."""
    expected = snakemake.params.get("reads", {})
    for path in snakemake.input if expected else ():
        inside = in_paper(snakemake, path)
        if inside in expected:
            yield path, expected[inside]


def in_paper(snakemake: Any, path: str) -> str:
    """The place of a file in the folder of its paper."""
    wildcards = snakemake.wildcards
    return path.partition(f"/{wildcards.scale}/{wildcards.paper}/")[2]


def made(snakemake: Any, settings: str = "settings") -> dict[str, Any]:
    """What the result of a job says of itself: its settings, and the digests of what it read."""
    return {**snakemake.params[settings], "reads": dict(snakemake.params.reads)}


def checkout(snakemake: Any) -> Path:
    """The folder of the workflow's checkout."""
    return Path(snakemake.scriptdir).resolve().parents[1]


def configuration(snakemake: Any, papers: list[str], scale: str) -> Any:
    """The configuration of a run, which has been checked when the run began."""
    from dpmc.yaml_files import read_yaml
    from dpmc_papers.config import foreign_methods

    root = checkout(snakemake)
    defaults = read_yaml(root / "config" / "config.yaml")
    values = {**defaults, **snakemake.config, "papers": papers, "scale": scale}
    if "league" not in papers:
        values.pop("methods", None)
    return foreign_methods.load_config(values, root, check=False)


def read_context(snakemake: Any, name: str = "") -> Any:
    """What an output is made from: the settings that it may read, and results."""
    from dpmc_papers.pipeline import results

    wildcards = snakemake.wildcards
    config = configuration(snakemake, [wildcards.paper], wildcards.scale)
    paper = config.papers[wildcards.paper]
    settings = (paper.part(name) if name else paper).determining()
    if (
        short_digest({**settings, "reads": dict(snakemake.params.reads)})
        != snakemake.params.settings
    ):
        raise DpmcError("`config` must stay as it is while a run goes on: run again")
    return results.read(settings, snakemake.input)
