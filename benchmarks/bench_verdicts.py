"""Time the verdicts on published runs: picked from tables in parts, and from the whole table.

``uv run python benchmarks/bench_verdicts.py``; names of documents restrict it. Times are those of
the processor, in one run, and both ways must give the same verdicts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

import pandas as pd

from dpmc.experiments.pipeline import runs_file
from dpmc.experiments.verdicts import claim_file, judge
from dpmc.experiments.verdicts.evidence import Parts

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "published"


class Whole:
    """The table as it was read, and all of it for every rule."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self.whole = runs

    def of(self, filters: Mapping[str, Any]) -> pd.DataFrame:
        """Return all runs."""
        return self.whole


def main() -> None:
    """Print a line for each document."""
    known = sorted(path.parent.name for path in PUBLISHED.glob("*/runs.parquet"))
    parser = argparse.ArgumentParser(description="Time the verdicts on published runs.")
    parser.add_argument("paper", nargs="*", help=", ".join(known))
    print(f"{'document':22} {'verdicts':>8} {'parts, s':>9} {'whole, s':>9} {'ratio':>6}")
    for paper in parser.parse_args().paper or known:
        context = runs_file.read(PUBLISHED / paper / "runs.parquet")
        claims = claim_file.load(ROOT / "config" / "published" / f"{paper}.yaml")
        taken, made = [], []
        for parts in (Parts, Whole):
            with mock.patch(f"{judge.__name__}.Parts", parts):
                start = process_time()
                made.append(judge.verdicts(claims, context.metrics, context.baselines, context))
                taken.append(process_time() - start)
        pd.testing.assert_frame_equal(made[0], made[1])
        first, second = taken
        row = f"{paper:22} {len(made[0]):8,} {first:9.1f} {second:9.1f} {first / second:6.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
