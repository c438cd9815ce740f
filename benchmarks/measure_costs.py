"""Learn from finished runs what studies cost: the last part of ``config/costs.yaml``.

``uv run python benchmarks/measure_costs.py results/paper``. Of every study in the folder whose
jobs have benchmarks, the processor time of one run and thousand units of work is written to
``config/costs.yaml``; entries of other studies stay as they are. Jobs whose data could not be had
are left out. Without ``--write`` the numbers are only printed.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpmc.experiments.config import reader
from dpmc.experiments.pipeline import costs
from dpmc.experiments.pipeline.files import is_absence
from dpmc.experiments.pipeline.jobs import StudyJob
from dpmc.experiments.pipeline.provenance import times
from dpmc.experiments.pipeline.workload import Workload


def seconds_of(folder: Path, study: StudyJob) -> float | None:
    """Return the processor time of a job, None if there is no benchmark of it."""
    stage, *place, point, name = Path(study.path).relative_to(folder).with_suffix(".jsonl").parts
    # Whatever its digest: runs of earlier code cost what they cost.
    pattern = "/".join([stage, *place, f"{point.rpartition('-')[0]}-????????", name])
    found = times(folder, sorted((folder / "benchmarks").glob(pattern))[-1:])
    return found["all"]["cpu_seconds"] if found else None


def is_absent(study: StudyJob) -> bool:
    """Return whether the data of a job could not be had in the run."""
    path = Path(study.data)
    found = path.parent.glob(f"{path.stem.rpartition('-')[0]}-????????.parquet")
    return any(is_absence(entry) for entry in found)


def learn(work: Workload, known: costs.Costs) -> dict[str, float]:
    """Return seconds per run and thousand units of every method that has benchmarks."""
    units: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for study in work.studies:
        took = seconds_of(Path(work.folder), study)
        if took is None or is_absent(study):
            continue
        key = f"{work.paper.paper}/{study.experiment}/{study.problem}/{study.label}"
        runs = len(study.setup.points) * (study.last - study.first + 1)
        units[key] += runs * costs.work_of(study).units
        seconds[key] += max(took - known.start_up - known.seconds["study"], 0.01)
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
    source = reader.read_yaml(Path("config/config.yaml"))
    source |= {"scale": asked.folder.name, "results_dir": str(asked.folder.parent)}
    source["papers"] = [paper for paper in source["papers"] if (asked.folder / paper).is_dir()]
    if not source["papers"]:
        print(f"{asked.folder}: no results of a paper", file=sys.stderr)
        return 1
    config = reader.load_config(source)
    for paper in config.papers:
        found = learn(Workload(config, paper), known)
        for key, value in found.items():
            print(f"{value:10.3g}  {key}")
        measured |= found
    if asked.write:
        write(path, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
