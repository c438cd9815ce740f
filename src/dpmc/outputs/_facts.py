"""What captions and the report may say about a run: guarantees, settings, numbers in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpmc.plots.style import method_label

# What no guarantee of a tuned experiment covers, whatever the run records.
ALWAYS_OUTSIDE = ("tuning of the hyperparameters", "clip fractions and metrics shown here")


class Facts:
    """What captions may say about a run.

    Parameters
    ----------
    config : mapping
        The resolved configuration.
    metrics : pandas.DataFrame
        One row per run.
    """

    def __init__(self, config: Mapping[str, Any], metrics: pd.DataFrame) -> None:
        self.config = config
        self.metrics = metrics

    def guarantees(self, experiment: str, variant: str | None = None) -> list[str]:
        """Return one sentence per problem and method: the privacy that its runs really have."""
        rows = self._rows(experiment, variant)
        lines = []
        for keys, group in rows.groupby(["problem", "method", "variant"], sort=False):
            problem, method, kind = keys if isinstance(keys, tuple) else (keys, "", "")
            name = f"{self.problem(str(problem))}, {method_label(str(method), str(kind))}"
            lines.append(f"{name}: {_guarantee(group)}")
        return lines

    def guarantee_table(self, experiment: str) -> pd.DataFrame:
        """Return the epsilon that holds, one column per epsilon that was asked for."""
        rows = self._rows(experiment, None)
        keys = ["problem", "method", "variant"]
        wide = rows.pivot_table("guarantee_epsilon", keys, "epsilon", "max", sort=False)
        wide = wide[sorted(wide.columns)].set_axis(
            [f"ε {e:g}" for e in sorted(wide.columns)], axis=1
        )
        proofs = rows.groupby(keys, sort=False)[["guarantee_delta", "guarantee_accountant"]].first()
        names = wide.index.to_frame(index=False)
        labels = [
            method_label(m, v) for m, v in zip(names["method"], names["variant"], strict=True)
        ]
        first = pd.DataFrame({"problem": names["problem"].map(self.problem), "method": labels})
        proofs = proofs.loc[wide.index].reset_index(drop=True)
        proofs = proofs.set_axis(["at δ", "by accountant"], axis=1)
        return pd.concat([first, wide.reset_index(drop=True), proofs], axis=1)

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table that names problems and methods as figures do."""
        shown = table.copy()
        if "problem" in shown:
            shown["problem"] = shown["problem"].map(lambda name: self.problem(str(name)))
        if {"method", "variant"} <= set(shown.columns):
            pairs = zip(shown["method"], shown["variant"], strict=True)
            shown["method"] = [method_label(method, variant) for method, variant in pairs]
        return shown.drop(columns=["label", "variant"], errors="ignore")

    def outside(self, experiment: str, variant: str | None = None) -> str:
        """Return which uses of the data no guarantee of the experiment covers."""
        rows = self._rows(experiment, variant)
        found = [
            part for text in rows["outside"].unique() for part in str(text).split("; ") if part
        ]
        return "; ".join(dict.fromkeys([*found, *ALWAYS_OUTSIDE]))

    def private(self, experiment: str) -> bool:
        """Return whether any run of the experiment has a guarantee."""
        rows = self._rows(experiment, None)
        return bool(rows["guarantee_epsilon"].map(math.isfinite).any())

    def settings(self, experiment: str, variant: str | None = None) -> list[str]:
        """Return one line of parameters per problem and method of an experiment."""
        lines = []
        entry = self.config.get("experiments", {}).get(experiment, {})
        for problem, methods in entry.get("methods", {}).items():
            for method in methods.values():
                if variant not in (None, method["variant"]):
                    continue
                params = {**method["params"], **method.get("grid", {})}
                if "num_iterations" in method:
                    params = {"iterations per chain": method["num_iterations"], **params}
                name = (
                    f"{self.problem(problem)}, {method_label(method['method'], method['variant'])}"
                )
                lines.append(
                    f"{name}: " + ", ".join(f"{k} {value_text(v)}" for k, v in params.items())
                )
        return lines

    def problem(self, name: str) -> str:
        """Return the printed name of a problem."""
        return str(self.config.get("problems", {}).get(name, {}).get("label", name))

    def runs(self, experiment: str) -> int:
        """Return how many replicates an experiment has at most."""
        return int(self._rows(experiment, None)["replicate"].nunique())

    def grid(self, experiment: str, column: str) -> str:
        """Return the different values of a column, in order."""
        values = sorted(self._rows(experiment, None)[column].dropna().unique())
        return ", ".join(f"{value:g}" for value in values)

    def _rows(self, experiment: str, variant: str | None) -> pd.DataFrame:
        rows = self.metrics[self.metrics["experiment"] == experiment]
        return rows if variant is None else rows[rows["variant"] == variant]


def _guarantee(group: pd.DataFrame) -> str:
    real = group["guarantee_epsilon"]
    if not real.map(math.isfinite).all():
        return "no privacy guarantee (no noise was added)"
    delta = group["guarantee_delta"].max()
    accountant = ", ".join(sorted(set(group["guarantee_accountant"])))
    points = group.groupby("epsilon")["guarantee_epsilon"].max()
    proof = f"at δ = {delta:.3g}, substitution of one row, by accountant {accountant}"
    if all(
        math.isclose(float(value), float(str(asked)), rel_tol=1e-3)
        for asked, value in points.items()
    ):
        return f"ε = {', '.join(f'{asked:g}' for asked in points.index)} as asked for, {proof}"
    pairs = ", ".join(f"{value:.3g} (asked for {asked:g})" for asked, value in points.items())
    return f"ε = {pairs}, {proof}"


def value_text(value: Any) -> str:
    """Return a value as a reader wants to see it; empty for none."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(entry) for entry in value) + "]"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | str):
        return str(value)
    return number_text(float(value)) if isinstance(value, int | float) else str(value)


def number_text(value: float) -> str:
    """Return a number with three significant digits, whole numbers in full."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    whole = value == round(value) and abs(value) < 1e9
    return f"{value:.0f}" if whole else f"{value:.3g}"
