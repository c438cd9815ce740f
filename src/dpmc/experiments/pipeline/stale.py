"""Published outputs that the code and the settings of today would make anew."""

from __future__ import annotations

import json
from pathlib import Path

from dpmc.experiments.pipeline.workload import Workload
from dpmc.types import DpmcError

PAGE = "page"


def digest_of(request: str) -> str:
    """Return the digest in the name of a file of settings."""
    return Path(request).stem.rpartition("-")[2]


def digests(work: Workload) -> dict[str, str]:
    """Return the digest of each output but the page, which depends on where results lie."""
    return {name: digest_of(o.request) for name, o in work.outputs.items() if name != PAGE}


def outputs(work: Workload, provenance: Path) -> dict[str, str]:
    """Return the outputs of a document that were made otherwise, each with what is known of it.

    Digests cover the settings of an output and the code that makes it and everything below it, so
    that one that is the same would come out the same.

    Parameters
    ----------
    work : Workload
        The document, at the scale of the results.
    provenance : Path
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
    try:
        record = json.loads(provenance.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DpmcError(f"{provenance}: {str(error).splitlines()[0]}") from None
    if "outputs" not in record:
        raise DpmcError(f"{provenance}: `outputs` is missing: made before digests were recorded")
    there, now = record["outputs"], digests(work)
    found = {name: "not there" for name in now if name not in there}
    found |= {name: "made otherwise" for name in now if there.get(name, now[name]) != now[name]}
    return found | {name: "no longer made" for name in there if name not in now}
