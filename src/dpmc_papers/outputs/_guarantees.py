"""Table of the actual (epsilon, delta) of every result, used by captions and pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.types import UNAVAILABLE, DpmcError
from dpmc_papers.verdicts import privacy_mark
from dpmc_papers.verdicts.verdict import NO_RECORDS

KEYS = ["experiment", "problem", "label", "algorithm", "method", "variant", "epsilon"]
TEXTS = ["guarantee_neighbours", "guarantee_accountant", "outside", "status"]
COLUMNS = [*KEYS, "runs", "privacy", "guarantee_epsilon", "guarantee_delta", *TEXTS]
# No guarantee whatever: its epsilon is infinite.
NONE = "none"


def summary(
    metrics: pd.DataFrame, config: Mapping[str, Any] = privacy_mark.NOTHING
) -> pd.DataFrame:
    """One row per experiment, problem, method and epsilon that was asked for.

    Parameters
    ----------
    metrics : pandas.DataFrame
        One row per run. Chains know the substitution of one row alone, and name no relation.
    config : mapping
        The resolved configuration of the document, which tells what is computed from records.

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``: the largest epsilon and delta that runs of this row have, the
        neighbouring relation (add_remove only where all have it), the accountants that prove it,
        and all that is outside of it. ``privacy`` is ``no records`` where nothing is computed
        from records (no epsilon), ``none`` where nothing is guaranteed (infinite epsilon), else
        the mark of :func:`dpmc_papers.verdicts.privacy_mark.privacy_of`: whether what was
        asked for holds. ``runs`` counts replicates; ``status`` says whether the data could be
        had.
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
        mark = "" if absent else _mark(group, private, config)
        rows.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                "runs": group["replicate"].nunique(),
                "privacy": mark,
                "guarantee_epsilon": _epsilon(mark, real),
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


def _mark(group: pd.DataFrame, private: bool, config: Mapping[str, Any]) -> str:
    if privacy_mark.without_records(config, str(group["experiment"].iloc[0])):
        return NO_RECORDS
    return privacy_mark.privacy_of([group], config) if private else NONE


def _epsilon(mark: str, real: pd.Series[float]) -> float:
    if mark in ("", NO_RECORDS):
        return math.nan
    return math.inf if mark == NONE else float(real.max())


def read(path: Path | str) -> pd.DataFrame:
    """Read a table that :func:`summary` made."""
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    if list(table.columns) != COLUMNS:
        raise DpmcError(
            f"{path}: columns must be {', '.join(COLUMNS)}, got {', '.join(table.columns)}"
        )
    return table.assign(
        **{name: table[name].fillna("").astype(str) for name in ("privacy", *TEXTS)}
    )


def _parts(texts: Iterable[object]) -> list[str]:
    uses = [part for text in texts if isinstance(text, str) for part in text.split("; ") if part]
    return list(dict.fromkeys(uses))
