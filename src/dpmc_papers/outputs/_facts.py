"""Facts about a run for captions and pages: guarantees, settings, numbers in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

import pandas as pd

from dpmc import registry
from dpmc.types import NEIGHBOURS
from dpmc_papers.config.grids import algorithm
from dpmc_papers.plots.style import METHODS, method_label
from dpmc_papers.verdicts.verdict import NO_RECORDS

# What no guarantee of a tuned experiment covers, whatever the run records.
ALWAYS_OUTSIDE = ("tuning of the hyperparameters", "clip fractions", "metrics shown here")


class Facts:
    """Facts about a run that captions may use.

    Parameters
    ----------
    config : mapping
        The resolved configuration.
    table : pandas.DataFrame
        As :func:`dpmc_papers.outputs._guarantees.summary` returns it.
    """

    def __init__(self, config: Mapping[str, Any], table: pd.DataFrame) -> None:
        self.config = config
        self.table = table

    def guarantee_table(self, experiment: str) -> pd.DataFrame:
        """Epsilon that holds, one column per epsilon that was asked for."""
        rows = self._rows(experiment, None)
        keys = ["problem", "algorithm", "variant"]
        wide = rows.pivot_table("guarantee_epsilon", keys, "epsilon", "max", sort=False)
        wide = wide[sorted(wide.columns)].set_axis(
            [f"ε {e:g}" for e in sorted(wide.columns)], axis=1
        )
        parts = ["guarantee_delta", "guarantee_neighbours", "guarantee_accountant"]
        proofs = rows.groupby(keys, sort=False)[parts].first()
        # One for each epsilon, where they are those of Gaussian differential privacy.
        deltas = rows.sort_values("epsilon").groupby(keys, sort=False)["guarantee_delta"]
        proofs["guarantee_delta"] = deltas.agg(
            lambda found: ", ".join(f"{delta:.3g}" for delta in found.dropna().unique())
        )
        names = wide.index.to_frame(index=False)
        labels = [
            method_label(a, v) for a, v in zip(names["algorithm"], names["variant"], strict=True)
        ]
        first = pd.DataFrame({"problem": names["problem"].map(self.problem), "method": labels})
        proofs = proofs.loc[wide.index].reset_index(drop=True)
        proofs = proofs.set_axis(["at δ", "under", "by accountant"], axis=1)
        proofs["under"] = proofs["under"].map(lambda name: NEIGHBOURS.get(name, ""))
        return pd.concat([first, wide.reset_index(drop=True), proofs], axis=1)

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Table that names problems and methods as figures do."""
        shown = table.copy()
        if "problem" in shown:
            shown["problem"] = shown["problem"].map(lambda name: self.problem(str(name)))
        if "settings" in shown:
            shown["method"] = [method_label(algorithm(label)) for label in shown["label"]]
        elif {"label", "method", "variant"} <= set(shown.columns):
            pairs = zip(shown["label"], shown["variant"], strict=True)
            shown["method"] = [method_label(algorithm(label), variant) for label, variant in pairs]
        left_out = ["label", "variant"]
        if "experiment" in shown and shown["experiment"].nunique() < 2:
            left_out.append("experiment")
        shown = shown.drop(columns=left_out, errors="ignore")
        # In a table with a column for each method.
        return shown.rename(
            columns={name: METHODS[name].label for name in shown if name in METHODS}
        )

    def outside(self, experiment: str, variant: str | None = None) -> str:
        """Which uses of the data no guarantee of the experiment covers."""
        rows = self._rows(experiment, variant)
        uses = [part for text in rows["outside"].unique() for part in text.split("; ") if part]
        return "; ".join(dict.fromkeys([*uses, *ALWAYS_OUTSIDE]))

    def private(self, experiment: str) -> bool:
        """Whether any run of the experiment has a guarantee."""
        rows = self._rows(experiment, None)
        return bool(rows["guarantee_epsilon"].map(math.isfinite).any())

    def has_records(self, experiment: str) -> bool:
        """Whether anything of the experiment is computed from records."""
        return not self._rows(experiment, None)["privacy"].eq(NO_RECORDS).all()

    def settings(self, experiment: str) -> list[str]:
        """One line of parameters per problem and method of an experiment."""
        lines = []
        entry = self.config.get("experiments", {}).get(experiment, {})
        for problem, methods in entry.get("methods", {}).items():
            for label, method in methods.items():
                params = {**method["params"], **method.get("grid", {})}
                if "num_iterations" in method:
                    params = {"iterations per chain": method["num_iterations"], **params}
                if "max_iterations" in method:
                    params = {"iterations at most": method["max_iterations"], **params}
                named = method_label(algorithm(label), method["variant"])
                lines.append(f"{self.problem(problem)}, {named}: {_listed(params)}")
        return lines

    def study(self, name: str) -> list[str]:
        """One line of settings per method of a study: replicates, grid and parameters.

        Parameters are those that the study or the method has, with the defaults of the method.
        """
        entry = self.config["studies"][name]
        study: Any = registry.load("study", entry["study"])
        lines = []
        for method in entry["methods"].values():
            module: Any = registry.load(entry["study"], method["method"])
            defaults = {field.name: field.default for field in fields(module.Params)}
            known = {
                *defaults,
                *(field.name for field in fields(getattr(study, "Params", module.Params))),
            }
            settings = {**entry.get("params", {}), **method.get("params", {})}
            params = {
                "replicates": method.get("replicates", entry["replicates"]),
                **{**entry["grid"], **method.get("grid", {})},
                **{key: value for key, value in settings.items() if key in known},
            }
            for key, value in defaults.items():
                if value is not None and value is not MISSING:
                    params.setdefault(key, value)
            named = method_label(method["method"], method["variant"])
            lines.append(f"{named}: {_listed({k: _spanned(v) for k, v in params.items()})}")
        return list(dict.fromkeys(lines))

    def curves(self, name: str) -> list[str]:
        """One line of parameters per setting of which accounting curves are drawn."""
        settings = self.config["accounting"][name]["settings"]
        return [
            f"{method_label(algorithm(label))} ({label}): {_listed(entry['params'])}"
            for label, entry in settings.items()
        ]

    def problem(self, name: str) -> str:
        """Printed name of a problem."""
        return str(self.config.get("problems", {}).get(name, {}).get("label", name))

    def runs(self, experiment: str, method: str | None = None) -> int:
        """How many replicates an experiment, or one method of it, has at most."""
        rows = self._rows(experiment, None)
        rows = rows if method is None else rows[rows["method"] == method]
        return int(rows["runs"].max()) if len(rows) else 0

    def counts(
        self,
        experiment: str,
        variant: str | None = None,
        problems: Sequence[str] = (),
        algorithms: Sequence[str] = (),
    ) -> str:
        """How many runs each result has: the usual number, then those with another.

        Of all variants, or one; of problems whose name starts with one of `problems`, if there are
        any; and of `algorithms` alone, if there are any.
        """
        rows = self._chosen(experiment, variant, problems, algorithms)
        if rows.empty:
            return "0 runs"
        usual = int(rows["runs"].mode().iloc[0])
        named: dict[int, list[str]] = {}
        for keys, group in rows.groupby(["algorithm", "variant"], sort=False):
            name, kind = keys if isinstance(keys, tuple) else (keys, "")
            by_problem = group.groupby("problem", sort=False)["runs"].first()
            for count in sorted(set(by_problem) - {usual}):
                places = [self.problem(str(key)) for key in by_problem.index[by_problem == count]]
                where = "" if len(places) == len(by_problem) else f" on {' and '.join(places)}"
                entry = f"{method_label(str(name), str(kind))}{where}"
                named.setdefault(int(count), []).append(entry)
        others = "; ".join(f"{count} of {'; '.join(names)}" for count, names in named.items())
        return f"{usual} runs" + (f" ({others})" if others else "")

    def capped(self, experiment: str) -> str:
        """Which methods are cut off before their budget is spent, and where."""
        entry = self.config.get("experiments", {}).get(experiment, {})
        found: dict[str, int] = {}
        for methods in entry.get("methods", {}).values():
            for label, method in methods.items():
                if "max_iterations" in method:
                    named = method_label(algorithm(label), method["variant"])
                    found[named] = max(found.get(named, 0), int(method["max_iterations"]))
        return "; ".join(f"{name} at {most:,} iterations" for name, most in found.items())

    def grid(self, experiment: str) -> str:
        """Different values of epsilon that were asked for, in order."""
        values = sorted(self._rows(experiment, None)["epsilon"].dropna().unique())
        return ", ".join(f"{value:g}" for value in values)

    def _chosen(
        self,
        experiment: str,
        variant: str | None,
        problems: Sequence[str],
        algorithms: Sequence[str],
    ) -> pd.DataFrame:
        rows = self._rows(experiment, variant)
        chosen = [_starts(name, problems) for name in rows["problem"]]
        rows = rows[pd.Series(chosen, index=rows.index, dtype=bool)]
        return rows[rows["algorithm"].isin(algorithms)] if algorithms else rows

    def _rows(self, experiment: str, variant: str | None) -> pd.DataFrame:
        rows = self.table[self.table["experiment"] == experiment]
        return rows if variant is None else rows[rows["variant"] == variant]


def _starts(name: str, prefixes: Sequence[str]) -> bool:
    return not prefixes or name.startswith(tuple(prefixes))


def _spanned(value: Any) -> Any:
    """Long list of numbers as its ends and length."""
    if isinstance(value, list) and len(value) > 12 and not isinstance(value[0], str):
        return f"{value_text(value[0])} to {value_text(value[-1])} ({len(value)} values)"
    return value


def _listed(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value_text(value)}" for key, value in params.items())


def value_text(value: Any) -> str:
    """Value as a reader wants to see it; empty for none."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(entry) for entry in value) + "]"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | str):
        return str(value)
    return number_text(float(value)) if isinstance(value, int | float) else str(value)


def number_text(value: float) -> str:
    """Number with three significant digits, whole numbers in full; a dash for none."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    whole = value == round(value) and abs(value) < 1e9
    return f"{value:.0f}" if whole else f"{value:.3g}"
