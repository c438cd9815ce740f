"""The runs behind the verdicts on a document, in one small file: anybody can judge them again.

It holds one row per run, as the metrics and studies have them, with the settings of the document
and the curves of its accountants: all that verdicts are made from but the claims.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpmc_papers.pipeline import store
from dpmc_papers.pipeline.results import Context

NAME = "runs.parquet"
# The experiment that exact samples are in.
BASELINE = "baseline"
# What a study says of each run in many words, and no claim is about.
LEFT_OUT = ("diagnostics", "iac_components", "selected_counts", "noise_multipliers", "outside")


def write(path: str | Path, context: Context) -> None:
    """Write the runs, the settings and the curves of a context.

    Columns of long texts that no claim reads are left out. The file appears under its name once
    it is complete and on disk.
    """
    rows = context.metrics
    if not context.baselines.empty:
        rows = pd.concat([rows, context.baselines], ignore_index=True)
    head = {
        "config": context.config,
        "curves": {name: curve.to_dict("list") for name, curve in context.curves.items()},
    }
    store.write_table(path, rows.drop(columns=[c for c in LEFT_OUT if c in rows]), head)


def read(path: str | Path) -> Context:
    """Read what :func:`write` wrote.

    Raises
    ------
    DpmcError
        If the file is missing, truncated, damaged or of another kind.
    """
    head, rows = store.read_head(path), store.read_tables([path])
    exact = rows["experiment"] == BASELINE
    return Context(
        config=head["config"],
        metrics=rows[~exact].reset_index(drop=True),
        baselines=rows[exact].reset_index(drop=True),
        curves={name: pd.DataFrame(curve) for name, curve in head["curves"].items()},
    )
