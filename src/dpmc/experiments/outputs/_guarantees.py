"""Table of the actual (epsilon, delta) of every result, used by captions and pages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from dpmc.types import UNAVAILABLE, DpmcError

KEYS = ["experiment", "problem", "label", "algorithm", "method", "variant", "epsilon"]
TEXTS = ["guarantee_neighbours", "guarantee_accountant", "outside", "status"]
COLUMNS = [*KEYS, "runs", "guarantee_epsilon", "guarantee_delta", *TEXTS]


def summary(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row per experiment, problem, method and epsilon that was asked for.

    Parameters
    ----------
    metrics : pandas.DataFrame
        One row per run. Chains know the substitution of one row alone, and name no relation.

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``: the largest epsilon and delta that runs of this row have (infinite
        without noise), the neighbouring relation (add_remove only where all have it), the
        accountants that prove it, and all that is outside of it. ``runs`` counts replicates;
        ``status`` says whether the data could be had.
    """
    if "guarantee_neighbours" not in metrics:
        metrics = metrics.assign(guarantee_neighbours="replace")
    rows = []
    for keys, group in metrics.groupby(KEYS, sort=False, dropna=False):
        real = group["guarantee_epsilon"]
        private = bool(real.map(math.isfinite).all())
        absent = bool(group["status"].str.startswith(UNAVAILABLE).all())
        added = bool(group["guarantee_neighbours"].eq("add_remove").fillna(False).all())
        relation = "add_remove" if added else "replace"
        rows.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                "runs": group["replicate"].nunique(),
                "guarantee_epsilon": real.max() if private else math.inf,
                "guarantee_delta": group["guarantee_delta"].max() if private else math.nan,
                "guarantee_neighbours": relation if private else "",
                "guarantee_accountant": ", ".join(
                    sorted(filter(None, set(group["guarantee_accountant"])))
                ),
                "outside": "; ".join(_parts(group["outside"])),
                "status": UNAVAILABLE if absent else "complete",
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def read(path: Path | str) -> pd.DataFrame:
    """Read a table that :func:`summary` made.

    Raises
    ------
    DpmcError
        If the file cannot be read or is another table.
    """
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    if list(table.columns) != COLUMNS:
        raise DpmcError(
            f"{path}: columns must be {', '.join(COLUMNS)}, got {', '.join(table.columns)}"
        )
    return table.assign(**{name: table[name].fillna("").astype(str) for name in TEXTS})


def _parts(texts: Iterable[object]) -> list[str]:
    uses = [part for text in texts if isinstance(text, str) for part in text.split("; ") if part]
    return list(dict.fromkeys(uses))
