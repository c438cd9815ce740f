"""Record the digests of published outputs anew, where only the way of computing them has changed.

``uv run python benchmarks/renew_digests.py results/published/*/ --write``, after a change of
`dpmc_papers.pipeline.dependencies` or of what a job counts. ``provenance.json`` names the
commits that made the results. Each is checked out aside, and its digests are computed by the code
of today. An output that has today's digest there, made from results which all have today's names
at every one of these commits, would come out the same: its new digest is recorded. Others keep
their old one, and are stale. What was made with changes that are not committed counts as made at
its commit. Nothing is run, and without ``--write`` nothing is written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpmc import yaml_files
from dpmc.numerics import source_digest
from dpmc_papers.config import reader
from dpmc_papers.pipeline import provenance, stale
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[1]
PROVENANCE = "provenance.json"
WITH_CHANGES = " with changes"


@dataclass(frozen=True)
class Named:
    """What one version of the project would make: results in between, and outputs by digest."""

    files: frozenset[str]
    outputs: Mapping[str, str]


def named(folder: Path, paper: str) -> Named:
    """Return what the sources in a folder would make of a paper, by the code of today."""
    command = [sys.executable, __file__, "--inside", str(folder), paper]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{paper} at {folder}: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    return Named(frozenset(found["files"]), found["outputs"])


def print_named(folder: Path, paper: str) -> None:
    """Print what the sources in a folder would make of a paper at paper scale."""
    source_digest.ROOT = folder / "src"
    values = yaml_files.read_yaml(folder / "config" / "config.yaml")
    config = reader.load_config(values | {"scale": "paper", "papers": [paper]}, folder)
    work = Workload(config, paper)
    files = set(work.files) - {output.request for output in work.outputs.values()}
    print(json.dumps({"files": sorted(files), "outputs": stale.digests(work)}))


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out for a while."""
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "dpmc"
        git = ["git", "-C", str(ROOT), "worktree"]
        command = [*git, "add", "-q", "--detach", str(folder), commit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip()
            raise SystemExit(f"{commit}: must be a commit of this repository: {said}")
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def unchanged(now: Named, made: Iterable[Named], judged: Named | None) -> set[str]:
    """Return the outputs that would come out the same.

    Parameters
    ----------
    now : Named
        By the sources of today.
    made : iterable of Named
        By the sources of each commit that made results.
    judged : Named or None
        By those of the commit that judged the runs again, if any.
    """
    every = list(made)
    if any(now.files - version.files for version in every):
        return set()
    return {
        name
        for name, digest in now.outputs.items()
        if any(version.outputs.get(name) == digest for version in every)
        or (name == "verdict" and judged and judged.outputs.get(name) == digest)
    }


def renew(folder: Path, write: bool) -> str:
    """Renew the digests of the outputs of one document, and return in words what was found."""
    path = folder / PROVENANCE
    record = stale.read(path)
    paper = folder.resolve().name
    commits = sorted({name.removesuffix(WITH_CHANGES) for name in record["commits"]})
    judge = record.get("judged", {}).get("commit")
    versions = {}
    for commit in {*commits, *([judge] if judge else [])}:
        with checked_out(commit) as aside:
            versions[commit] = named(aside, paper)
    now = named(ROOT, paper)
    same = unchanged(now, [versions[commit] for commit in commits], versions.get(judge))
    others = sorted({*now.outputs} - same)
    if write and same:
        record["outputs"] |= {name: now.outputs[name] for name in same}
        record["digests"] = {"computed_at": provenance.commit(ROOT), "compared_with": commits}
        stale.write(path, record)
    return (
        f"{paper}: {len(same)} of {len(now.outputs)} outputs would come out the same as at "
        f"{', '.join(name[:8] for name in commits)}"
        + (f"; not {', '.join(others)}" if others else "")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="of published results")
    parser.add_argument("--write", action="store_true", help="record them in provenance.json")
    parser.add_argument("--inside", nargs=2, metavar=("FOLDER", "PAPER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        print_named(Path(asked.inside[0]).resolve(), asked.inside[1])
        return 0
    for folder in asked.folders:
        if (folder / PROVENANCE).is_file():
            print(renew(folder, asked.write), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
