"""Estimate what networks on the year data cost, on a machine that does not have them.

``uv run python benchmarks/measure_absent.py --write``. Rows of the same number and width are drawn
at random; how long a pass takes does not depend on what they say. Of each method one pass and two
passes are timed, and what passes of a whole run would take, for a thousand of them, is written to
``config/costs.yaml``. EP, whose sites take 68 GB, is left out.
Without ``--write`` the numbers are only printed.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from time import process_time

import msgspec
import numpy as np

from dpmc import registry, yaml_files
from dpmc.progress import silent
from dpmc.types import Dataset
from dpmc_papers.config import reader
from dpmc_papers.config.setups import StudySetup
from dpmc_papers.data import uci
from dpmc_papers.pipeline import costs
from dpmc_papers.pipeline.workload import Workload
from measure_costs import write

PAPER, TABLE, ROWS = "vinaroz2022dpsep", "year", 515_345
NOWHERE = Dataset(TABLE, np.zeros((1, 1)))  # networks read the table themselves


@functools.cache
def simulated() -> uci.RawTable:
    """Return a table of the size of the year data, of random numbers."""
    table = uci.TABLES[TABLE]
    columns = (*table.features, table.target)
    rng = np.random.default_rng(0)
    numbers = rng.normal(30, 20, (ROWS, len(columns)))
    numbers[:, -1] = 1998 + np.tanh(numbers[:, 0]) + 10 * rng.standard_normal(ROWS)
    return uci.RawTable(TABLE, columns, numbers, "shape")


def seconds(setup: StudySetup, num_passes: int) -> float:
    """Return the processor time of one run with so many passes."""
    setup = msgspec.structs.replace(setup, params=setup.params | {"num_passes": num_passes})
    study = registry.load("study", setup.study)
    began = process_time()
    study.run(setup, NOWHERE, [0], silent)
    return process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change config/costs.yaml")
    asked = parser.parse_args()
    path = Path("config/costs.yaml")
    measured = dict(costs.load(path).measured)
    source = yaml_files.read_yaml(Path("config/config.yaml")) | {
        "scale": "paper",
        "papers": [PAPER],
    }
    work = Workload(reader.load_config(source), PAPER)
    uci.load = lambda name, path=None: simulated()
    setups = {
        costs.place_of(part.setup): part.setup
        for study in work.studies
        for part in study.parts
        if part.setup.problem.data.params.get("dataset") == TABLE and part.setup.method != "ep"
    }
    seconds(next(iter(setups.values())), 1)  # compiles
    for place, setup in setups.items():
        one, two = (seconds(setup, num_passes) for num_passes in (1, 2))
        passes = setup.params["num_passes"]
        measured[place] = float(f"{1000 * (one + (passes - 1) * (two - one)) / passes:.3g}")
        print(f"{measured[place]:10.3g}  {place}", flush=True)
    if asked.write:
        write(path, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
