"""Published outputs that the code and the settings of today would make anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpmc.types import DpmcError
from dpmc_papers.pipeline import files, provenance
from dpmc_papers.pipeline.workload import Workload

PAGE, VERDICTS = "page", "verdict"
# It is made from the same runs as the verdicts.
OF_THE_SAME_RUNS = "guarantees"


def digest_of(request: str) -> str:
    """Return the digest in the name of a file of settings."""
    return Path(request).stem.rpartition("-")[2]


def digests(work: Workload) -> dict[str, str]:
    """Return the digest of each output but the page, which depends on where results lie."""
    return {name: digest_of(o.request) for name, o in work.outputs.items() if name != PAGE}


def outputs(work: Workload, path: Path) -> dict[str, str]:
    """Return the outputs of a document that were made otherwise, each with what is known of it.

    Digests cover the settings of an output and the code that makes it and everything below it, so
    that one that is the same would come out the same.

    Parameters
    ----------
    work : Workload
        The document, at the scale of the results.
    path : Path
        File that says how the results were made.

    Returns
    -------
    dict of str to str
        Names of outputs, with one of "made otherwise", "not there" and "no longer made".

    Raises
    ------
    DpmcError
        If the file cannot be read, or does not tell the digests of its outputs.
    """
    there, now = read(path)["outputs"], digests(work)
    found = {name: "not there" for name in now if name not in there}
    found |= {name: "made otherwise" for name in now if there.get(name, now[name]) != now[name]}
    return found | {name: "no longer made" for name in there if name not in now}


def record_verdicts(work: Workload, path: Path, commit: str | None) -> str:
    """Record that verdicts were made again from published runs, by the code of today.

    Parameters
    ----------
    work : Workload
        The document, at the scale of the results.
    path : Path
        File that says how the results were made.
    commit : str or None
        Of the code that judged them.

    Returns
    -------
    str
        In words, whether they now count as made by the code of today: they do if these runs are
        those that it would make.

    Raises
    ------
    DpmcError
        If the file cannot be read, or does not tell the digests of its outputs.
    """
    record, now = read(path), digests(work)
    if record["outputs"].get(OF_THE_SAME_RUNS) != now[OF_THE_SAME_RUNS]:
        return "still stale: the code of today would make other runs"
    record["outputs"][VERDICTS] = now[VERDICTS]
    record["judged"] = {"date": provenance.now(), "commit": commit}
    write(path, record)
    return "no longer stale"


def write(path: Path, record: dict[str, Any]) -> None:
    """Write the file that says how results were made."""
    files.write_text(path, json.dumps(record, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Read the file that says how results were made.

    Raises
    ------
    DpmcError
        If it cannot be read, or does not tell the digests of its outputs.
    """
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    if "outputs" not in record:
        raise DpmcError(f"{path}: `outputs` is missing: made before digests were recorded")
    return record
