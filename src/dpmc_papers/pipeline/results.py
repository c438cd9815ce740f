"""Stored results that a figure or table is made from, and the runs that a document keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.fits import Fit
from dpmc.types import Array, Dataset, DpmcError
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.pipeline import store

RUNS = "runs.parquet"
# The experiment that exact samples are in.
BASELINE = "baseline"
# What a study says of each run in many words, and no claim is about.
LEFT_OUT = ("diagnostics", "iac_components", "selected_counts", "noise_multipliers", "outside")


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
        """Runs of one experiment."""
        rows = self.metrics[self.metrics["experiment"] == name]
        if rows.empty:
            known = ", ".join(sorted(set(self.metrics["experiment"]))) or "none"
            raise DpmcError(f"`metrics` must have runs of one of {known}, got {name!r}")
        return rows.reset_index(drop=True)

    def problems(self, rows: pd.DataFrame) -> list[str]:
        """Problems of `rows` in the order of the configuration."""
        present = set(rows["problem"])
        known = [name for name in self.config.get("problems", {}) if name in present]
        return known + sorted(present - set(known))

    def problem_label(self, name: str) -> str:
        """Printed name of a problem."""
        entry = self.config.get("problems", {}).get(name, {})
        return str(entry.get("label", name))

    def problem_setup(self, name: str) -> ProblemSetup:
        """What determines the rows, the model and the start points of a problem."""
        return ProblemSetup.read(name, self.config["problems"][name])

    def exact(self, problem: str, metric: str) -> list[float]:
        """Return `metric` of every exact sample of `problem`."""
        if self.baselines.empty:
            return []
        rows = self.baselines[self.baselines["problem"] == problem]
        return [float(value) for value in rows[metric].dropna()]

    def reference(self, problem: str) -> Array:
        """Exact sample of `problem`, shape (M, d)."""
        sample: Array = _given("references", "sample of", problem, self.references)
        return sample if sample.ndim == 2 else sample[0]

    def dataset(self, problem: str) -> Dataset:
        """Rows of `problem`."""
        rows: Dataset = _given("datasets", "rows of", problem, self.datasets)
        return rows

    def curve(self, name: str) -> pd.DataFrame:
        """Iterations that accountants allow, of one section of ``accounting``."""
        table: pd.DataFrame = _given("curves", "curves of", name, self.curves)
        return table


def _given(field_name: str, what: str, key: str, values: Mapping[str, Any]) -> Any:
    if key not in values:
        known = ", ".join(sorted(values)) or "none"
        raise DpmcError(f"`{field_name}` must have the {what} {key!r}, got {known}")
    return values[key]


def read(config: Mapping[str, Any], files: Mapping[str, Sequence[str]]) -> Context:
    """Read what an output is made from, and the settings that it may read.

    `files` has paths: ``metrics``, ``baselines``, ``curves``, and where an output asks for them
    ``chains``, ``references`` and ``datasets``.
    """
    fits: dict[tuple[str, str], list[tuple[int, Fit]]] = {}
    for path in files.get("chains", ()):
        *_, problem, label, _, _ = Path(path).parts
        fits.setdefault((problem, label), []).extend(store.read_fits(path)[1])
    metrics, baselines = files.get("metrics", ()), files.get("baselines", ())
    return Context(
        config=config,
        metrics=_in_order(metrics) if metrics else pd.DataFrame({"experiment": []}),
        baselines=store.read_tables(baselines) if baselines else pd.DataFrame(),
        fits=fits,
        references=_by_name(files.get("references", ()), store.read_array),
        datasets=_by_name(files.get("datasets", ()), store.read_dataset),
        curves=_by_name(files.get("curves", ()), lambda path: store.read_tables([path])),
    )


def _by_name(paths: Iterable[str], read: Callable[[str], Any]) -> dict[str, Any]:
    return {Path(path).stem: read(path) for path in paths}


def _in_order(paths: Sequence[str]) -> pd.DataFrame:
    """Tables below each other, of which the batches of a study are joined point by point.

    The order of its runs is then the same however they are divided.
    """
    of: dict[str, list[str]] = {}
    for path in paths:
        batch = Path(path).name.startswith("seeds=")
        of.setdefault(str(Path(path).parent) if batch else path, []).append(path)
    tables = []
    for same in of.values():
        table = store.read_tables(same)
        if len(same) > 1:
            # A batch may lack points whose replicates are fewer, and the first has all.
            places = table.groupby(["label", "point"], sort=False).ngroup()
            table = table.iloc[places.argsort(kind="stable")]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def write_runs(path: str | Path, context: Context, made: Mapping[str, Any] = store.NOTHING) -> None:
    """Write the runs, the settings and the curves of a context, from which anybody can judge again.

    It is all that verdicts are made from but the claims, without long texts that no claim reads.
    """
    rows = context.metrics
    if not context.baselines.empty:
        rows = pd.concat([rows, context.baselines], ignore_index=True)
    head = {
        "config": context.config,
        "curves": {name: curve.to_dict("list") for name, curve in context.curves.items()},
    }
    kept = rows.drop(columns=[name for name in LEFT_OUT if name in rows])
    store.write_table(path, kept, made, head)


def read_runs(path: str | Path) -> Context:
    """Read what :func:`write_runs` wrote."""
    head, rows = store.read_head(path), store.read_tables([path])
    exact = rows["experiment"] == BASELINE
    return Context(
        config=head["config"],
        metrics=rows[~exact].reset_index(drop=True),
        baselines=rows[exact].reset_index(drop=True),
        curves={name: pd.DataFrame(curve) for name, curve in head["curves"].items()},
    )
