"""Provenance of results: commit, versions and processor. Dates appear nowhere else."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmc.types import DpmcError

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
    """Processor, its cores, the system, Python and the versions of packages.

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
    """Git commit of `folder`, marked if files differ from it; None outside git.

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


def record(root: Path, settings: str, outputs: Mapping[str, str]) -> dict[str, Any]:
    """What results are made by, with digests of settings and of what each output is made from."""
    known = {"date": now(), "commit": commit(root), "settings": settings, **machine()}
    return {**known, "outputs": dict(outputs)}


def read(path: Path) -> dict[str, Any]:
    """Read a record."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    return found


def now() -> str:
    """Date and time in UTC, to the second."""
    return datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _linear_algebra() -> list[str]:
    """Libraries that NumPy and SciPy call, each with its version and its kernels."""
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
