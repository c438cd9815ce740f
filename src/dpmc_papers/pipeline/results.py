"""Stored results that a figure or table is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dpmc.fits import Fit
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.config.setups import ProblemSetup


@dataclass(frozen=True)
class Context:
    """Everything that an output may read; it computes nothing else.

    Parameters
    ----------
    config : mapping
        The resolved configuration of the document.
    metrics : pandas.DataFrame
        One row per run of every experiment that the output names.
    baselines : pandas.DataFrame
        One row per exact sample and problem.
    fits : mapping of (problem, label) to sequence of (replicate, Fit)
        The chains of one grid point, where the output asks for chains.
    references : mapping of str to ndarray of shape (M, d)
        The exact sample of each problem, or a stack of which it is the first.
    published : mapping
        Claims and numbers of the document.
    datasets : mapping of str to Dataset
        The rows of each problem, where the output asks for rows.
    curves : mapping of str to pandas.DataFrame
        Iterations by accountant and epsilon, as
        :func:`dpmc_papers.pipeline.accounting_curves.curve` returns them.
    """

    config: Mapping[str, Any]
    metrics: pd.DataFrame
    baselines: pd.DataFrame = field(default_factory=pd.DataFrame)
    fits: Mapping[tuple[str, str], Sequence[tuple[int, Fit]]] = field(default_factory=dict)
    references: Mapping[str, Array] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def experiment(self, name: str) -> pd.DataFrame:
        """Return the runs of one experiment.

        Raises
        ------
        DpmcError
            If there is none.
        """
        rows = self.metrics[self.metrics["experiment"] == name]
        if rows.empty:
            known = ", ".join(sorted(set(self.metrics["experiment"]))) or "none"
            raise DpmcError(f"`metrics` must have runs of one of {known}, got {name!r}")
        return rows.reset_index(drop=True)

    def problems(self, rows: pd.DataFrame) -> list[str]:
        """Return the problems of `rows` in the order of the configuration."""
        present = set(rows["problem"])
        known = [name for name in self.config.get("problems", {}) if name in present]
        return known + sorted(present - set(known))

    def problem_label(self, name: str) -> str:
        """Return the printed name of a problem."""
        entry = self.config.get("problems", {}).get(name, {})
        return str(entry.get("label", name))

    def problem_setup(self, name: str) -> ProblemSetup:
        """Return what determines the rows, the model and the start points of a problem."""
        return ProblemSetup.read(name, self.config["problems"][name])

    def exact(self, problem: str, metric: str) -> list[float]:
        """Return `metric` of every exact sample of `problem`."""
        if self.baselines.empty:
            return []
        rows = self.baselines[self.baselines["problem"] == problem]
        return [float(value) for value in rows[metric].dropna()]

    def reference(self, problem: str) -> Array:
        """Return the exact sample of `problem`, shape (M, d).

        Raises
        ------
        DpmcError
            If the output was given none.
        """
        sample: Array = _given("references", "sample of", problem, self.references)
        return sample if sample.ndim == 2 else sample[0]

    def dataset(self, problem: str) -> Dataset:
        """Return the rows of `problem`.

        Raises
        ------
        DpmcError
            If the output was given none.
        """
        rows: Dataset = _given("datasets", "rows of", problem, self.datasets)
        return rows

    def curve(self, name: str) -> pd.DataFrame:
        """Return the iterations that accountants allow, of one section of ``accounting``.

        Raises
        ------
        DpmcError
            If the output was given none.
        """
        table: pd.DataFrame = _given("curves", "curves of", name, self.curves)
        return table


def _given(field_name: str, what: str, key: str, values: Mapping[str, Any]) -> Any:
    if key not in values:
        known = ", ".join(sorted(values)) or "none"
        raise DpmcError(f"`{field_name}` must have the {what} {key!r}, got {known}")
    return values[key]
