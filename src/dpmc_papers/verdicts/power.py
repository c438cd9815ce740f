"""Power of verdicts: what they say once print, or the runs, are made wrong on purpose.

Printed numbers are changed one by one and compared again with the same runs. Runs are dealt at
random over methods and settings, so that no claim about their order is true, and claims are judged
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmc.rng import stream
from dpmc_papers.verdicts import printed_series
from dpmc_papers.verdicts.agreement import compare
from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.evidence import AS_PUBLISHED, NotRunError, Parts
from dpmc_papers.verdicts.judge import decision_on, evidence_for, measurements_of
from dpmc_papers.verdicts.printed_series import TOGETHER
from dpmc_papers.verdicts.verdict import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    REPRODUCED,
    UNDECIDED,
)

if TYPE_CHECKING:
    from dpmc_papers.pipeline.results import Context

# Factors by which print is made wrong: on numbers, on their odds if they are shares.
FACTORS = (1.1, 1.2, 1.3, 2.0)
ANOTHER_METHOD = "number of another method"
REVERSED = "axis reversed"
# By how much two printed numbers differ.
DISTANCES = {1.1: "within 1.1", 1.3: "1.1 to 1.3", 2.0: "1.3 to 2", math.inf: "over 2"}
DEALT = "runs dealt at random"
# Which numbers are changed.
ALL = "all"
COLUMNS = ("what", "of", "change", "numbers", REPRODUCED, UNDECIDED, CONTRADICTED)
# Claims about the order of groups of runs, which runs dealt at random do not have.
ORDERS = ("ratio", "order", "follows", "regret", "difference")
# What verdicts beside print are counted as.
AS_OF_PRINT = {HOLDS: REPRODUCED, FAILS: CONTRADICTED}
# Columns of runs that say what was measured, and not what was run.
MEASURED = (
    "mmd", "mmd_u", "mmd_fixed", "mmd_white", "mean_error", "mean_norm", "tail_fraction",
    "variance_ratio", "ratio_clip_fraction", "gradient_clip_fraction", "acceptance_rate", "rhat",
    "iac", "iac_sokal", "squared_error", "reference_squared_error", "mse", "estimation",
    "prediction", "mmd_squared", "rmse", "loglik", "autocorrelation", "selected_median",
    "microseconds", "seconds", "information", "f_published", "kl_published", "sd",
    "covariance_error", "kl_to_truth", "kl_from_truth", "sliced_wasserstein", "worst_mean_error",
    "square_error", "deviation_ratio", "worst_deviation", "effective_draws", "bulk_ess",
    "predictive", "coverage_50", "coverage_90", "attack_epsilon", "ledger_epsilon", "cost",
    "against_theory", "slope_error", "against_nothing",
)  # fmt: skip


@dataclass(frozen=True)
class _Cell:
    """A printed number with the measurement that it is compared with."""

    entry: Mapping[str, Any]
    measurement: Measurement
    row: tuple[str, ...]
    point: int

    @property
    def middle(self) -> float:
        """Printed number on its scale."""
        scale = self.measurement.scale
        return (scale.of(self.entry["low"]) + scale.of(self.entry["high"])) / 2

    @property
    def width(self) -> float:
        """How far rounding may move the number on its scale."""
        scale = self.measurement.scale
        return (scale.of(self.entry["high"]) - scale.of(self.entry["low"])) / 2

    def apart(self, other: _Cell) -> str:
        """In words by how much two printed numbers differ."""
        factor = math.exp(min(abs(other.middle - self.middle), 700.0))
        return next(words for limit, words in DISTANCES.items() if factor <= limit)

    def printed_as_it_is(self, error_rate: float) -> bool:
        """Whether the number that is printed is reproduced."""
        limit_se = self.measurement.limit_se
        return self.against(self.middle, limit_se, error_rate) == REPRODUCED

    def against(self, middle: float, limit_se: float, error_rate: float) -> str:
        """Verdict were `middle`, on the scale, printed with this standard error."""
        scale = self.measurement.scale
        changed = replace(self.measurement, limit_se=limit_se)
        low, high = (scale.back(middle + sign * self.width) for sign in (-1, 1))
        return compare(changed, low, high, error_rate, self.entry["family"]).verdict


def table(published: Mapping[str, Any], context: Context) -> pd.DataFrame:
    """Power of the verdicts on printed numbers, and then on claims."""
    return pd.concat(
        [of_print(published, context), of_dealt_runs(published, context)], ignore_index=True
    )


def of_print(published: Mapping[str, Any], context: Context) -> pd.DataFrame:
    """What becomes of printed numbers once print is changed, by metric and change.

    Parameters
    ----------
    published : mapping
        As :func:`dpmc_papers.verdicts.claim_file.load` returns it.
    context : Context
        Holds the runs.

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``: the metric, the change, whether of all numbers or of those that are
        reproduced as they are printed, how many were changed, and the shares of them that are
        reproduced then, undecided and contradicted. Every number is multiplied and divided by
        ``FACTORS``, replaced by those of all other methods at the same setting, and by that at
        the opposite end of its axis; the last two by how far apart the two are in print.
    """
    parts = Parts(context.metrics)
    rows = [
        row
        for block in printed_series.judged(published)
        for cells in [_measured(block, published, parts, context)]
        for row in _changed(block, cells, float(published["error_rate"]))
    ]
    return _shares(rows)


def of_dealt_runs(published: Mapping[str, Any], context: Context, draws: int = 10) -> pd.DataFrame:
    """How claims about orders are judged on runs that were dealt at random.

    Within each experiment and problem, what was measured is dealt anew to the runs, whatever their
    method and setting, `draws` times. Claims that groups are equal are true of such runs, and are
    counted apart. The table is as of :func:`of_print`.
    """
    entries = [e for e in published["entries"] if e["rule"]["kind"] in ORDERS]
    entries = [e for e in entries if not e["rule"].get("exact")]
    found = []
    for draw in range(draws):
        rng = stream(published["seed"], "dealt", draw)
        rows = _dealt(context.metrics, rng)
        if not context.baselines.empty:
            rows = pd.concat([rows, context.baselines], ignore_index=True)
        parts = Parts(rows)
        for entry in entries:
            for variant in entry.get("variants", [AS_PUBLISHED]):
                evidence = evidence_for(entry, variant, published, parts, context)
                verdict = decision_on(entry, variant, published, evidence).verdict
                found.append((_kind_of(entry), DEALT, ALL, AS_OF_PRINT.get(verdict, verdict)))
    return _shares(found)


def _kind_of(entry: Mapping[str, Any]) -> str:
    low, high = entry.get("low", -math.inf), entry.get("high", math.inf)
    return "claims of equality" if math.isfinite(low) and math.isfinite(high) else "claims of order"


def _dealt(metrics: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    dealt = metrics.copy()
    columns = [name for name in MEASURED if name in dealt]
    for _, part in dealt.groupby(["experiment", "problem"], sort=False):
        dealt.loc[part.index, columns] = part[columns].to_numpy()[rng.permutation(len(part))]
    return dealt


def _measured(
    block: Mapping[str, Any], published: Mapping[str, Any], parts: Parts, context: Context
) -> list[_Cell]:
    """Numbers of a series that were run with an error, for variants of print."""
    if "decimals" not in block or block["rule"].get("count") == 0:
        return []
    cells = []
    order: dict[tuple[str, ...], int] = {}
    of_print = block.get("printed_variants", published["printed_variants"])
    for entry in printed_series.expand(block):
        if TOGETHER in entry["rule"]:
            continue
        row = tuple(entry["id"].split("/")[1:-1])
        order[row] = order.get(row, -1) + 1
        for variant in entry.get("variants", [AS_PUBLISHED]):
            if variant not in of_print:
                continue
            evidence = evidence_for(entry, variant, published, parts, context)
            try:
                (found,) = measurements_of(entry, variant, published, evidence)
            except NotRunError:
                continue
            if found.runs > 1 and not math.isnan(found.se):
                cells.append(_Cell(entry, found, (*row, variant), order[row]))
    return cells


def _changed(
    block: Mapping[str, Any], cells: list[_Cell], error_rate: float
) -> Iterator[tuple[str, str, str, str]]:
    metric = block["rule"].get("metric", "")
    for cell in cells:
        groups = (ALL, REPRODUCED) if cell.printed_as_it_is(error_rate) else (ALL,)
        for change, middle, limit_se in _changes(cell, cells):
            verdict = cell.against(middle, limit_se, error_rate)
            for group in groups:
                yield metric, change, group, verdict


def _changes(cell: _Cell, cells: list[_Cell]) -> Iterator[tuple[str, float, float]]:
    """Change of a number in words, and what is printed then, with its standard error."""
    for factor in FACTORS:
        for sign in (-1, 1):
            middle = cell.middle + sign * math.log(factor)
            yield f"times {factor:g}", middle, cell.measurement.limit_se
    for other in cells:
        if other.point == cell.point and _differs_by_method(cell, other):
            change = f"{ANOTHER_METHOD}, {cell.apart(other)}"
            yield change, other.middle, other.measurement.limit_se
    row = [one for one in cells if one.row == cell.row]
    mirror = row[len(row) - 1 - row.index(cell)]
    if mirror is not cell:
        yield f"{REVERSED}, {cell.apart(mirror)}", mirror.middle, mirror.measurement.limit_se


def _differs_by_method(cell: _Cell, other: _Cell) -> bool:
    """Whether rows differ in their last name alone, which is that of the method."""
    return (
        len(cell.row) > 2
        and cell.row[:-2] == other.row[:-2]
        and cell.row[-1] == other.row[-1]
        and cell.row != other.row
    )


def _shares(rows: list[tuple[str, str, str, str]]) -> pd.DataFrame:
    changed = pd.DataFrame(rows, columns=["what", "change", "of", "verdict"])
    changes = [*(f"times {factor:g}" for factor in FACTORS), DEALT]
    changes += [f"{c}, {d}" for c in (ANOTHER_METHOD, REVERSED) for d in DISTANCES.values()]
    changed["what"] = pd.Categorical(changed["what"], changed["what"].unique())
    changed["change"] = pd.Categorical(changed["change"], changes)
    records = []
    for key, part in changed.groupby(["what", "of", "change"], observed=True):
        kept = part["verdict"][part["verdict"].isin([REPRODUCED, UNDECIDED, CONTRADICTED])]
        shares = [float((kept == name).mean()) for name in (REPRODUCED, UNDECIDED, CONTRADICTED)]
        records.append((*key, len(kept), *shares))
    return pd.DataFrame(records, columns=list(COLUMNS))
