"""Metrics of chains, one table row per run: distance from the exact posterior, and mixing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpmc.diagnostics import autocorrelation
from dpmc.diagnostics.convergence import bulk_ess, split_rhat
from dpmc.diagnostics.mmd import Reference, collapse, discrepancies
from dpmc.fits import Fit
from dpmc.rng import stream
from dpmc.types import Array, DpmcError, swapped
from dpmc_papers.config import grids
from dpmc_papers.config.setups import ChainSetup

COLUMNS = {
    "experiment": "str",
    "problem": "str",
    "label": "str",
    "algorithm": "str",
    "method": "str",
    "variant": "str",
    "point": "str",
    "epsilon": "float64",
    "delta": "float64",
    "accountant": "str",
    "clip_bound": "float64",
    "gradient_clip_bound": "float64",
    "replicate": "int64",
    "num_chains": "int64",
    "num_iterations": "int64",
    "num_draws": "int64",
    "dim": "int64",
    "mmd": "float64",
    "mmd_u": "float64",
    "mmd_fixed": "float64",
    "mmd_white": "float64",
    "mean_error": "float64",
    "mean_norm": "float64",
    "tail_fraction": "float64",
    "variance_ratio": "float64",
    "ratio_clip_fraction": "float64",
    "gradient_clip_fraction": "float64",
    "acceptance_rate": "float64",
    "divergences": "int64",
    "rhat": "float64",
    "ess_bulk": "float64",
    "iac": "float64",
    "iac_components": "str",
    "guarantee_epsilon": "float64",
    "guarantee_delta": "float64",
    "guarantee_accountant": "str",
    "outside": "str",
    "status": "str",
    "noise_multipliers": "str",
}


def evaluate(
    runs: Iterable[tuple[ChainSetup, str, int, Fit]],
    reference: Array,
    seed: int | None,
    *,
    experiment: str,
    label: str,
) -> pd.DataFrame:
    """One row of metrics per run.

    Parameters
    ----------
    runs : iterable of (ChainSetup, point, replicate, Fit)
        Each with the name of its point.
    reference : ndarray of shape (M, d) or (1 + baselines, M, d)
        Exact posterior draws; the first sample of a stack.
    seed : int or None
        Root of the stream that draws the pairs of the kernel width.
    experiment, label : str
        Names of the experiment and of the method within it.

    Returns
    -------
    pandas.DataFrame
        Columns and types of ``COLUMNS``. `algorithm` is the label up to its first hyphen;
        `iac` is the largest integrated autocorrelation time of all chains and components, NaN
        if one of them stands still, and `iac_components` has each of them. What a method does
        not have, or a run of one draw cannot tell, is NaN.
    """
    prepared = Reference.of(reference if reference.ndim == 2 else reference[0])
    rows = []
    for setup, point, replicate, fit in runs:
        names = {"experiment": experiment, "label": label, "point": point}
        row = {**names, "algorithm": grids.algorithm(label), **_describe(setup, replicate, fit)}
        key = (setup.problem.name, setup.method, point, replicate)
        rng = stream(seed, "kernel width", *key)
        rows.append(row | _measure(fit, prepared, rng))
    return _table(rows)


def baselines(reference: Array, seed: int | None = 0, problem: str = "") -> pd.DataFrame:
    """Metrics of exact samples against the reference: what a perfect run reaches.

    `reference`, shape (1 + baselines, M, d), has the reference sample first; `seed` is the root of
    the stream that draws the pairs of the kernel width. Columns are as of `evaluate`, label
    ``"reference"``, replicate = number of the baseline.
    """
    prepared = Reference.of(reference[0])
    rows = []
    for index, draws in enumerate(reference[1:]):
        rng = stream(seed, "kernel width", "baseline", problem, index)
        row = discrepancies(draws, np.ones(len(draws)), prepared, rng)
        label = {"label": "reference", "algorithm": "reference"}
        names = {"experiment": "baseline", "problem": problem, **label}
        sizes = {"num_chains": 1, "num_draws": len(draws), "dim": draws.shape[1]}
        rows.append({**names, **row, **sizes, "replicate": index, "status": "complete"})
    return _table(rows)


def _measure(fit: Fit, reference: Reference, rng: np.random.Generator) -> dict[str, Any]:
    if fit.draws is None or fit.draws.shape[1] < 2:
        return {}
    if fit.draws.shape[2] != reference.draws.shape[1]:
        raise DpmcError(
            f"`draws` must have dimension {reference.draws.shape[1]}, as the reference, "
            f"got {fit.draws.shape[2]}"
        )
    kept = swapped(fit.kept())
    points, weights = collapse(kept)
    times = dict(zip(("iac", "iac_components"), autocorrelation.in_words(kept), strict=True))
    chains = {"rhat": split_rhat(kept), "ess_bulk": bulk_ess(kept), **times}
    return {**discrepancies(points, weights, reference, rng), **chains}


def _describe(setup: ChainSetup, replicate: int, fit: Fit) -> dict[str, Any]:
    budget, params = setup.budget, setup.params
    bounds = [params.get("ratio_clip_bound"), params.get("gradient_clip_bound")]
    draws_shape = (0, 0, 0) if fit.draws is None else fit.kept().shape
    iterations = np.atleast_1d(fit.totals.get("num_iterations", [draws_shape[1]]))
    return {
        "problem": setup.problem.name,
        "method": setup.method,
        "variant": setup.variant,
        "epsilon": budget.epsilon if budget else None,
        "delta": budget.delta if budget else None,
        "accountant": budget.accountant if budget else "",
        "clip_bound": bounds[0],
        "gradient_clip_bound": bounds[1],
        "replicate": replicate,
        "num_chains": setup.num_chains,
        "num_iterations": int(np.min(iterations)),
        "num_draws": draws_shape[0] * draws_shape[1],
        "dim": draws_shape[2],
        "ratio_clip_fraction": fit.fraction("ratio_clipped", "ratio_rows"),
        "gradient_clip_fraction": fit.fraction("gradient_clipped", "gradient_rows"),
        "acceptance_rate": fit.fraction("accepted", "num_iterations"),
        "divergences": int(np.sum(fit.totals.get("diverged", 0))),
        "guarantee_epsilon": fit.guarantee.epsilon,
        "guarantee_delta": fit.guarantee.delta,
        "guarantee_accountant": fit.guarantee.accountant,
        "outside": "; ".join(fit.guarantee.outside),
        "status": fit.status,
        "noise_multipliers": _noise_multipliers(fit),
    }


def _noise_multipliers(fit: Fit) -> str:
    events = " ".join(event for event, _ in fit.ledger)
    found = re.findall(r"gaussian\(([0-9.eE+-]+)", events)
    return ", ".join(f"{value:.6g}" for value in sorted({float(text) for text in found}))


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for name, kind in COLUMNS.items():
        empty: Any = {"str": "", "int64": 0, "float64": math.nan}[kind]
        column = table[name].astype(object)
        table[name] = column.where(column.notna(), empty)
    return table.astype(COLUMNS)
