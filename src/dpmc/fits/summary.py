"""A fit for its reader: a table of the components, what it cost, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.diagnostics.convergence import bulk_ess, split_rhat
from dpmc.types import ROW, Array, swapped

if TYPE_CHECKING:
    from dpmc.fits.fit import Fit

# Ends of the central intervals of 50 and 90 %.
QUANTILES = (0.05, 0.25, 0.75, 0.95)
COLUMNS = ("mean", "sd", "5%", "25%", "75%", "95%", "ess", "rhat")


@dataclass(frozen=True)
class Summary:
    """Summary of a fit, to be printed.

    Parameters
    ----------
    names : tuple of str
        One for each component of theta.
    values : ndarray of shape (d, 8)
        Columns as in `COLUMNS`: mean, standard deviation, ends of the central intervals of 90
        and 50 %, effective sample size and R-hat.
    facts : tuple of str
        The guarantee, and what the budget bought.
    remarks : tuple of str
        What is wrong with the draws and what would help.

    Examples
    --------
    >>> values = np.array([[0.5, 0.1, 0.3, 0.4, 0.6, 0.7, 900.0, 1.001]])
    >>> print(Summary(("a",), values, ("Privacy: ...",), ()).to_dataframe().loc["a", "rhat"])
    1.001
    """

    names: tuple[str, ...]
    values: Array
    facts: tuple[str, ...]
    remarks: tuple[str, ...]

    def to_dataframe(self) -> Any:
        """Table as a ``pandas.DataFrame``, one row for each component."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.names), columns=list(COLUMNS))

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [" " * width + "".join(f"{name:>11}" for name in COLUMNS)]
        lines += [
            name.ljust(width) + "".join(f"{cell:>11}" for cell in _cells(row))
            for name, row in zip(self.names, self.values, strict=True)
        ]
        lines += ["", *self.facts]
        lines += [f"Note: {remark}" for remark in self.remarks]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("", *COLUMNS))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(f"<td>{cell}</td>" for cell in _cells(row))
            + "</tr>"
            for name, row in zip(self.names, self.values, strict=True)
        )
        told = "".join(f"<p>{escape(fact)}</p>" for fact in self.facts)
        noted = "".join(f"<p><strong>Note:</strong> {escape(one)}</p>" for one in self.remarks)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{told}{noted}"


def summarise(fit: Fit) -> Summary:
    """Summary of a fit."""
    kept = swapped(fit.kept())
    dim = kept.shape[2]
    flat = kept.reshape(-1, dim)
    spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(dim, math.nan)
    columns = [flat.mean(axis=0), spread, *np.quantile(flat, QUANTILES, axis=0)]
    parts = [kept[:, :, [k]] for k in range(dim)]
    columns += [np.array([bulk_ess(part) for part in parts])]
    columns += [np.array([split_rhat(part) for part in parts])]
    names = fit.names or tuple(f"theta[{k}]" for k in range(dim))
    return Summary(names, np.stack(columns, axis=1), tuple(_facts(fit)), fit.remarks)


def _facts(fit: Fit) -> Iterator[str]:
    plan, guarantee, unit = fit.plan, fit.guarantee, fit.guarantee.unit
    yield f"Privacy: {guarantee}."
    if guarantee.neighbours == "add_remove" and guarantee.accountant == "gaussian" and plan.mu:
        from dpmc.types.gaussian_curve import epsilon_of_loss  # takes long

        # Another row in the place of one is a removal and an addition: twice mu at most.
        epsilon = epsilon_of_loss((2 * plan.mu) ** 2 / 2, guarantee.delta)
        other = replace(guarantee, epsilon=epsilon, neighbours="replace", outside=())
        yield f"The same noise is {other}."
    if "formula" in plan.likelihood:
        from dpmc.formulas.design import Design  # takes long: only where there is one

        yield from Design.of(**plan.likelihood["formula"]).sentences()
    for stage in plan.stages:
        if "count" in stage:
            count, error = stage["count"], stage["standard_error"]
            what = "Rows" if unit == ROW else "Persons"
            yield f"{what} that count: about {count:.0f} (standard error {error:.2g}, with noise)."
    if guarantee.noise:
        yield f"Noise: {guarantee.noise}."
    if plan.statement:
        yield plan.statement
    elif plan.num_iterations is not None:
        yield f"{plan.num_iterations} iterations of each of {plan.num_chains} chains."
    if "accepted" in fit.totals:
        share = fit.fraction("accepted", "num_iterations")
        yield f"Share of moves accepted: {share:.3g}."
    elif plan.acceptance is not None:
        yield f"Share of proposals accepted: {plan.acceptance:.3g}."
    if plan.clipped_share is not None:
        yield (
            f"Share of {'rows' if unit == ROW else 'persons'} that the last clip bound clips: "
            f"about {plan.clipped_share:.2g} "
            "(from counts released with noise)."
        )
    for name, one in fit.diagnostics.items():
        yield (
            f"Share of rows with {name.replace('_', ' ')}: {one.value:.3g} "
            f"(standard error {one.standard_error:.2g}, released with noise)."
        )
    if fit.status != "complete":
        yield f"Status: {fit.status}."


def _cells(row: Array) -> list[str]:
    *numbers, ess, rhat = row.tolist()
    cells = [f"{number:.4g}" for number in numbers]
    cells.append("-" if math.isnan(ess) else f"{ess:.0f}")
    cells.append("-" if math.isnan(rhat) else f"{rhat:.3f}")
    return cells
