"""Provenance of a run: time taken and machine used. Dates and host names appear nowhere else."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGES = (
    "arviz",
    "dp-accounting",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "snakemake",
)
# What counts as a change of a checkout, in Git's words.
SOURCES = ("--", ".", ":(exclude)results")


def machine() -> dict[str, Any]:
    """Return the processor, its cores, the system, Python and the versions of packages.

    The last digits of results depend on the processor that code is compiled for, as LLVM calls it
    (``target``), and on the kernels of linear algebra (``linear_algebra``).
    """
    # Here, since whoever lays out the workflow imports this module and need not wait for LLVM.
    import llvmlite.binding

    return {
        "processor": _processor(),
        "target": llvmlite.binding.get_host_cpu_name(),
        "linear_algebra": _linear_algebra(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def commit(folder: Path) -> str | None:
    """Return the git commit of `folder`, marked if files differ from it; None outside git.

    Published results are no sources: a run after another was published is one of the same commit.
    """
    if not (folder / ".git").exists():
        return None
    try:
        head = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", *SOURCES)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + (" with changes" if changed else "")


def times(folder: Path, benchmarks: Iterable[Path]) -> dict[str, Any]:
    """Return the number of jobs, their seconds and their largest memory, by stage and in all.

    Parameters
    ----------
    folder : Path
        Folder of results: benchmark files lie in ``benchmarks``, in a folder for each
        stage, and log files in ``logs`` under the same names.
    benchmarks : iterable of Path
        Snakemake benchmark files, one JSON object per line. Missing ones are left out.

    Returns
    -------
    dict
        ``wall_seconds`` is the sum over jobs, however many ran side by side.
    """
    stages: dict[str, dict[str, float]] = {}
    for path in sorted(path for path in benchmarks if path.is_file()):
        entry = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        inside = path.relative_to(folder / "benchmarks")
        sampled = _number(entry["cpu_time"])
        used, held = _logged((folder / "logs" / inside).with_suffix(".log"))
        for name in (inside.parts[0] if len(inside.parts) > 1 else "outputs", "all"):
            stage = stages.setdefault(
                name, {"jobs": 0, "wall_seconds": 0.0, "cpu_seconds": 0.0, "max_rss_mb": 0.0}
            )
            stage["jobs"] += 1
            stage["wall_seconds"] += _number(entry["s"])
            stage["cpu_seconds"] += max(sampled, used)
            stage["max_rss_mb"] = max(stage["max_rss_mb"], held, _number(entry["max_rss"]))
    return {
        name: {key: round(value, 1) for key, value in stage.items()}
        for name, stage in stages.items()
    }


def commits(folder: Path, benchmarks: Iterable[Path]) -> dict[str, int]:
    """Return how many of the jobs behind a result were run at which commit.

    Parameters
    ----------
    folder, benchmarks
        As for :func:`times`.

    Returns
    -------
    dict of str to int
        Jobs by commit, as the log of each job tells it; most jobs first.
    """
    logs = [
        (folder / "logs" / path.relative_to(folder / "benchmarks")).with_suffix(".log")
        for path in benchmarks
        if path.is_file()
    ]
    told = [re.findall(r"^done, .* commit (.+)$", _text(log), re.MULTILINE) for log in logs]
    return dict(Counter(found[-1] if found else "unknown" for found in told).most_common())


def now() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")


def _logged(path: Path) -> tuple[float, float]:
    """Return the processor seconds and the megabytes that the log of a job tells, 0 if it does not.

    A job that was handed over is not below the process that benchmarks look at.
    """
    found = re.findall(r"done, ([0-9.]+) s of processor time(?:, ([0-9]+) MB)?", _text(path))
    return (float(found[-1][0]), float(found[-1][1] or 0)) if found else (0.0, 0.0)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _number(value: object) -> float:
    # A job too short to be sampled has no figures.
    return float(value) if isinstance(value, int | float) else 0.0


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _linear_algebra() -> list[str]:
    """Return the libraries that NumPy and SciPy call, each with its version and its kernels."""
    import threadpoolctl

    # What is loaded is told of, and SciPy loads a library of its own.
    importlib.import_module("scipy.linalg")
    keys = ("internal_api", "version", "architecture")
    return sorted(
        {
            " ".join(str(library[key]) for key in keys if library.get(key))
            for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"
        }
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
