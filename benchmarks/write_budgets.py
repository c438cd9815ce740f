"""Write what the budgets of the published grids buy to ``config/budgets.json``.

``uv run python benchmarks/write_budgets.py``, in some minutes. ``dpmc plan`` takes from there what
accountants have been asked before. An answer counts for its settings and for the code that knows
of releases; when either changes, a plan asks anew, and a test says that the file is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpmc_papers.config import reader
from dpmc_papers.pipeline import affordable, costs, plan
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[1]


def main() -> int:
    source = {"papers": list(reader.papers(ROOT))}
    known = costs.load(ROOT / "config" / "costs.yaml")
    config = reader.load_config({**source, "scale": "paper", "results_dir": "nowhere"}, ROOT)
    for paper in config.papers:
        list(plan.lines(Workload(config, paper), known))
    affordable.ship(affordable.shipped(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
