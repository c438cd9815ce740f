"""Evidence that rules are evaluated on, and the selection of the runs of a setting."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from dpmc.types import UNAVAILABLE, Array, DpmcError
from dpmc_papers.verdicts.bootstrap import Measurement, measured, replicates_of, resample
from dpmc_papers.verdicts.medians import Box, Of, Sample
from dpmc_papers.verdicts.scales import PLAIN, Scale

Rule = Mapping[str, Any]
AS_PUBLISHED = "as_published"
# Columns by which runs lie apart.
APART = ("experiment", "problem")


class Parts:
    """Runs of a document in a form that is quick to pick from, once for all verdicts.

    The runs of each experiment and problem lie apart: most rules read those of one. Words are
    Python's own, since pandas takes a while to compare its strings.

    Parameters
    ----------
    runs : pandas.DataFrame
        One row per run.
    """

    def __init__(self, runs: pd.DataFrame) -> None:
        words = [name for name in runs if isinstance(runs[name].dtype, pd.StringDtype)]
        # A copy's columns of a type lie together in memory.
        self.whole = runs.astype(dict.fromkeys(words, object)).copy()
        self.whole.columns = runs.columns.astype(object)
        self._apart: dict[tuple[str, ...], dict[tuple[str, ...], pd.DataFrame]] = {}

    def of(self, filters: Mapping[str, Any]) -> pd.DataFrame:
        """Runs of the experiment and the problem that filters ask for, in order."""
        asked = {name: filters[name] for name in APART if isinstance(filters.get(name), str)}
        by = tuple(name for name in asked if name in self.whole)
        if not by:
            return self.whole
        if by not in self._apart:
            # Keys of a list of columns are tuples, of one column too.
            groups = self.whole.groupby(list(by), sort=False)
            self._apart[by] = {cast("tuple[str, ...]", key): part for key, part in groups}
        return self._apart[by].get(tuple(asked[name] for name in by), self.whole.iloc[:0])


@dataclass(frozen=True)
class Evidence:
    """Runs and settings that rules are evaluated on.

    Parameters
    ----------
    metrics : pandas.DataFrame
        One row per run.
    config : mapping
        The resolved configuration of the document.
    rng : numpy.random.Generator
        Resamples replicates.
    resamples : int
        Bootstrap resamples.
    curves : mapping of str to pandas.DataFrame
        Iterations that a budget affords: columns ``label``, ``accountant``, ``epsilon`` and
        ``num_iterations``.
    used : list of pandas.DataFrame
        Runs that were measured so far.
    parts : Parts, optional
        The runs in parts, for a judge of many rules.
    """

    metrics: pd.DataFrame
    config: Mapping[str, Any]
    rng: np.random.Generator
    resamples: int
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    used: list[pd.DataFrame] = field(default_factory=list)
    parts: Parts | None = None

    def select(self, filters: Mapping[str, Any]) -> pd.DataFrame:
        """Runs that :func:`select` finds."""
        return select(self.metrics if self.parts is None else self.parts.of(filters), filters)

    def resample(self, groups: Sequence[pd.DataFrame], metric: str, statistic: str) -> list[Array]:
        """What :func:`dpmc_papers.verdicts.bootstrap.resample` does.

        The runs are kept in `used`: they are those that a verdict rests on.
        """
        self.used.extend(groups)
        return resample(groups, metric, statistic, self.rng, self.resamples)

    def measure(
        self,
        name: str,
        groups: Sequence[pd.DataFrame],
        metric: str,
        statistic: str,
        scale: Scale = PLAIN,
        of: Of = operator.itemgetter(0),
    ) -> Measurement:
        """Measure what `of` makes of a statistic of each group, at the setting `name`.

        Intervals of medians are those of :class:`dpmc_papers.verdicts.medians.Box`.
        """
        copies = of(self.resample(groups, metric, statistic))
        valued = [group[group[metric].notna()] for group in groups]
        found = measured(name, copies, min(valued, key=replicates_of), scale)
        if statistic != "median":
            return found
        samples = [Sample.of(group, metric) for group in groups]
        return replace(found, bounds=Box(samples, of, scale))


class NotRunError(Exception):
    """The run lacks what a rule needs; the message says what."""


def select(rows: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Filter by equality, list, ``{at_least, below}`` or ``{largest: k}`` of the grid."""
    # Rows are taken once: that takes longer than finding them.
    keep = np.ones(len(rows), dtype=bool)
    for column, wanted in filters.items():
        if column not in rows:
            known = ", ".join(sorted(rows.columns))
            raise DpmcError(f"a rule must filter by a known column ({known}), got {column!r}")
        if isinstance(wanted, Mapping) and "largest" in wanted:
            rows = rows[keep]
            keep = np.zeros(len(rows), dtype=bool)
            for _, part in rows.groupby("problem"):
                bounds = np.sort(part[column].dropna().unique())[-wanted["largest"] :]
                of_problem = rows["problem"] == part["problem"].iloc[0]
                keep |= (of_problem & rows[column].isin(bounds)).to_numpy(bool)
        elif isinstance(wanted, Mapping):
            low, high = wanted.get("at_least", -math.inf), wanted.get("below", math.inf)
            keep &= ((rows[column] >= low) & (rows[column] < high)).to_numpy(bool)
        elif isinstance(wanted, str) and rows[column].dtype == object:
            keep &= rows[column].to_numpy() == wanted
        else:
            listed = wanted if isinstance(wanted, list) else [wanted]
            keep &= rows[column].isin(listed).to_numpy(bool)
    return rows if keep.all() else rows.take(np.flatnonzero(keep))


def of_variant(rows: pd.DataFrame, variant: str, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Runs of `variant`, unless `filters` name a variant themselves."""
    return rows if "variant" in filters else select(rows, {"variant": variant})


def with_fallback(rows: pd.DataFrame, variant: str, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Runs of `variant`, or as published where a method has no such variant."""
    runs = of_variant(rows, variant, filters)
    return runs if not runs.empty else of_variant(rows, AS_PUBLISHED, filters)


def grid(rows: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Values of the columns `by` and the runs that have them."""
    if rows.empty:
        return
    if not by:
        yield (), rows
        return
    for values, group in rows.groupby(by, sort=True):
        yield values if isinstance(values, tuple) else (values,), group


def name_of(filters: Mapping[str, Any], by: list[str], values: tuple[Any, ...]) -> str:
    """Setting in words."""
    return words({**filters, **dict(zip(by, values, strict=True))}) if filters or by else "all"


def words(filters: Mapping[str, Any]) -> str:
    """Filters in words."""
    from dpmc_papers.plots.style import method_label  # with Matplotlib

    parts = []
    for column, value in filters.items():
        if column in ("method", "algorithm") and isinstance(value, str):
            parts.append(method_label(value))
        elif isinstance(value, Mapping):
            parts.append(f"{column} " + " ".join(f"{k} {v}" for k, v in value.items()))
        elif isinstance(value, float):
            parts.append(f"{column} {value:g}")
        else:
            parts.append(f"{value}" if column in ("problem", "variant") else f"{column} {value}")
    return ", ".join(parts) or "any run"


def unavailable(rule: Rule, evidence: Evidence) -> str | None:
    """In a plain sentence that the data of a rule are unavailable, or None.

    The status of a run also says what the attempt to download them raised. That is for whoever
    runs it, and no part of the sentence.
    """
    if "where" not in rule or "status" not in evidence.metrics:
        return None
    filters = {k: v for k, v in rule["where"].items() if k in evidence.metrics}
    runs = evidence.select(filters)
    if runs.empty or not runs["status"].astype(str).str.startswith(UNAVAILABLE).all():
        return None
    names = ", ".join(dict.fromkeys(runs["problem"].astype(str)))
    return (
        f"{UNAVAILABLE}: the raw file of {names} was not on the machine of this run, and could "
        "not be downloaded"
    )


def or_not_run(
    measurements: list[Measurement], lacking: list[str], rule: Rule
) -> list[Measurement]:
    """Measurements that have a value.

    Raises
    ------
    NotRunError
        If none has; it names what is `lacking`.
    """
    usable = [entry for entry in measurements if not math.isnan(entry.estimate)]
    if not usable:
        where = words(rule.get("where", {}))
        missing = "; ".join(dict.fromkeys(lacking)) or rule.get("metric")
        raise NotRunError(f"not in this run: {missing} ({where})")
    return usable
