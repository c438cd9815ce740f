"""Results that the configuration does not ask for: made with other settings, or no longer named.

Snakemake sees changes by its records of earlier runs. Where these were lost, files tell themselves
what they were made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dpmc.types import DpmcError
from dpmc_papers.pipeline import provenance, store
from dpmc_papers.pipeline.workload import Workload

# Folders that hold no results: what jobs said and took, and pages, which are copies of outputs.
ASIDE = ("logs", "benchmarks", "page")
PROVENANCE = "provenance.json"
OTHERWISE, UNASKED = "made with other settings", "nothing asks for it"


def found(works: Iterable[Workload]) -> dict[str, str]:
    """Files of some papers that the configuration does not ask for, each with the reason."""
    return {path: why for work in works for path, why in _of(work)}


def to_remove(works: Iterable[Workload], stale: Mapping[str, str]) -> list[str]:
    """The same files, and all that was made from those of other settings."""
    gone = {path for path, why in stale.items() if why == OTHERWISE}
    for work in works:
        for job in [*work.files.values(), *work.outputs.values()]:  # each after what it reads
            if gone.intersection(job.given):
                gone.update(job.paths)
    return sorted(path for path in gone | set(stale) if Path(path).is_file())


def _of(work: Workload) -> Iterator[tuple[str, str]]:
    record = Path(work.folder, PROVENANCE)
    outputs = provenance.read(record).get("outputs", {}) if record.is_file() else {}
    for name, job in work.outputs.items():
        if outputs.get(name, job.digest) != job.digest:
            yield from ((path, OTHERWISE) for path in job.paths if Path(path).is_file())
    asked = {path for job in work.outputs.values() for path in job.paths}
    asked |= {path for job in work.files.values() for path in (*job.paths, *job.given)}
    for path in sorted(Path(work.folder).rglob("*")):
        kind = path.relative_to(work.folder).parts[0]
        if not path.is_file() or kind in ASIDE or path == record:
            continue
        if str(path) not in asked:
            yield str(path), UNASKED
        elif str(path) in work.files and not _is_made_so(path, work.files[str(path)].digest):
            yield str(path), OTHERWISE


def _is_made_so(path: Path, digest: str) -> bool:
    try:
        store.check(path, digest)
    except DpmcError:
        return False
    return True
