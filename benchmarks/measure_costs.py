"""Learn from finished runs what studies cost: the last part of ``config/costs.yaml``.

``uv run python benchmarks/measure_costs.py results/paper``. Of every study in the folder, the
processor time of one run and thousand units of work, by the logs of its jobs, is written to
``config/costs.yaml``; entries of other studies stay as they are. Left out are jobs whose data could
not be had, and parts of which an earlier table had some. Without ``--write`` the numbers are only
printed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpmc import yaml_files
from dpmc_papers.config import reader
from dpmc_papers.pipeline import costs
from dpmc_papers.pipeline.files import is_absence
from dpmc_papers.pipeline.jobs import StudyJob
from dpmc_papers.pipeline.workload import Workload

LINE = re.compile(r"(?m)^([0-9.]+) s of processor time: (.*)$")


def seconds_told(folder: Path, study: StudyJob) -> dict[str, float]:
    """Return the processor time of the parts of a study on a problem, by what logs call them."""
    # Whatever the digest: runs of earlier code cost what they cost.
    logs = folder / "logs" / Path(study.path).parts[-3] / study.experiment
    found = sorted(
        logs.glob(f"{study.problem}-????????.log"), key=lambda path: path.stat().st_mtime
    )
    lines = (LINE.findall(path.read_text(encoding="utf-8")) for path in found)
    return {told: float(seconds) for each in lines for seconds, told in each}


def is_absent(study: StudyJob) -> bool:
    """Return whether the data of a job could not be had in the run."""
    path = Path(study.data)
    found = path.parent.glob(f"{path.stem.rpartition('-')[0]}-????????.parquet")
    return any(is_absence(entry) for entry in found)


def learn(work: Workload) -> dict[str, float]:
    """Return seconds per run and thousand units of every method that logs tell of."""
    units: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for study in work.studies:
        if is_absent(study):
            continue
        told = seconds_told(Path(work.folder), study)
        for part in study.parts:
            if part.told in told:
                key = costs.place_of(part.setup)
                units[key] += costs.runs_of(part) * costs.work_of(part.setup).units
                seconds[key] += told[part.told]
    return {key: float(f"{seconds[key] / units[key]:.3g}") for key in seconds}


def write(path: Path, measured: Mapping[str, float]) -> None:
    """Replace the last part of the file of costs, everything before it as it stands."""
    head, mark, _ = path.read_text(encoding="utf-8").partition("measured:")
    # YAML takes 4e-05 for a text.
    texts = {key: np.format_float_positional(value, trim="-") for key, value in measured.items()}
    rows = [f"  {key}: {text}" for key, text in sorted(texts.items())]
    path.write_text(head + mark + "\n" + "\n".join(rows) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="results of one scale, such as results/paper")
    parser.add_argument("--write", action="store_true", help="change config/costs.yaml")
    asked = parser.parse_args()
    path = Path("config/costs.yaml")
    known = costs.load(path)
    measured = dict(known.measured)
    source = yaml_files.read_yaml(Path("config/config.yaml"))
    source |= {"scale": asked.folder.name, "results_dir": str(asked.folder.parent)}
    source["papers"] = [paper for paper in source["papers"] if (asked.folder / paper).is_dir()]
    if not source["papers"]:
        print(f"{asked.folder}: no results of a paper", file=sys.stderr)
        return 1
    config = reader.load_config(source)
    for paper in config.papers:
        found = learn(Workload(config, paper))
        for key, value in found.items():
            print(f"{value:10.3g}  {key}")
        measured |= found
    if asked.write:
        write(path, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
