"""Regressions by the automatic method for any model, in units of the columns.

Units are released first, as those of the regressions that have a search of their own; the rest of
the budget is for the automatic method. Draws are then those of coefficients in the users' units;
what remarks and the plan say of widths is of scaled coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.automatic import run
from dpmc.automatic.counted import Counted
from dpmc.automatic.glm.prior import INTERCEPT
from dpmc.automatic.glm.run import rows_counted
from dpmc.automatic.glm.till import Till
from dpmc.automatic.glm.units import find
from dpmc.automatic.purse import Purse
from dpmc.families import shares
from dpmc.families.intercepts import Intercepts
from dpmc.families.likelihoods import ALL, FIRST_CUT, LOG_GAP, LOG_SHAPE, PRIOR, model_of
from dpmc.fits import Fit
from dpmc.fits.check import Check
from dpmc.fits.predictive import LINEAR, MULTINOMIAL, ORDINAL, STUDENT_T
from dpmc.modelling import ParametricModel
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.privacy.spending import telling, told
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows.persons import Persons
from dpmc.types import Array, Dataset, Guarantee, Neighbours

# Scaled numbers beyond this are this: sums of their squares are finite.
LARGEST = 1e100


@dataclass(frozen=True)
class Columns:
    """What stands in the rows of a regression, and what is asked of it.

    Parameters
    ----------
    likelihood : str
        One of `ALL`.
    num_features : int
    intercept : bool
    classes : int
        Of responses; 0 where these are numbers.
    freedom : float
        Degrees of freedom of a Student-t distribution.
    groups : int
        How many groups have an intercept of their own; 0 where there are none.
    weighted : bool
        Whether rows have a weight.
    """

    likelihood: str
    num_features: int
    intercept: bool
    classes: int = 0
    freedom: float = 4.0
    groups: int = 0
    weighted: bool = False

    @property
    def behind(self) -> int:
        """Place of the first column behind features, group and weight."""
        return self.num_features + bool(self.groups) + self.weighted

    @property
    def has_scale(self) -> bool:
        """Whether responses have a unit."""
        return self.likelihood in (LINEAR, STUDENT_T)

    @property
    def constant(self) -> bool:
        """Whether a constant is among the features: where groups have some it is their mean."""
        return self.intercept and not self.groups

    def model(self, mean_sd: float = 0.0, prior_sd: float = PRIOR) -> ParametricModel:
        """Model of rows, with the prior that a search has, or chains of a method."""
        return model_of(
            self.likelihood,
            self.num_features + self.constant,
            self.classes,
            groups=(self.groups, mean_sd),
            weighted=self.weighted,
            freedom=self.freedom,
            prior_sd=prior_sd,
        )

    def in_units(self) -> Scaled:
        """Columns and coefficients as users have them, which no row has a say in."""
        ones = np.ones(self.num_features)
        return Scaled(0 * ones, ones, float(self.intercept))

    def ends(self, theta: Array, rows: Array) -> tuple[Array, Array]:
        """Probabilities of responses below those of rows of a model, and of those up to them."""
        width = self.num_features + self.constant
        blocks = self.classes - 1 if self.likelihood == MULTINOMIAL else 1
        shape = theta[width * blocks :]
        with np.errstate(all="ignore"):  # a warning would tell of a row
            eta = rows[:, :width] @ theta[: width * blocks].reshape(blocks, width).T
            eta = eta if blocks > 1 else eta[:, 0]
            if self.groups:
                eta, shape = eta + shape[rows[:, width].astype(int)], shape[self.groups :]
                if self.likelihood == ORDINAL:
                    shape = np.append(0.0, shape)
            if ALL[self.likelihood].offset:
                eta = eta + rows[:, width + bool(self.groups) + self.weighted]
            return shares.LAWS[self.likelihood](eta, rows, shape, self.freedom)


@dataclass(frozen=True)
class Scaled:
    """Columns in units, and coefficients in those of users: ``matrix @ beta``.

    Parameters
    ----------
    location, scale : ndarray of shape (p,)
    constant : float
        Value of the constant before the features; 0 without one.
    middle : float
        Public number that the predictor is larger by.
    unit : float
        Of the predictor, and of responses that have one.
    mean : ndarray of shape (p,) or (1 + p,), optional
        Prior mean of the coefficients of a user, by default 0, and the middle of the intercept.
    """

    location: Array
    scale: Array
    constant: float
    middle: float = 0.0
    unit: float = 1.0
    mean: Array | None = None

    @property
    def matrix(self) -> Array:
        """From coefficients of scaled features to those of a user."""
        constant = int(self.constant > 0)
        matrix = np.diag(np.append(np.full(constant, self.constant), 1 / self.scale))
        if constant:
            matrix[0, 1:] = -self.location / self.scale
        return matrix * self.unit

    @property
    def moved(self) -> Array:
        """Coefficients of a user where those of scaled features are 0."""
        dim = len(self.scale) + int(self.constant > 0)
        moved = np.zeros(dim) if self.mean is None else self.mean.copy()
        moved[: int(self.constant > 0)] += self.middle
        return moved

    def units(self) -> dict[str, list[float]]:
        """Location and scale, for a plan."""
        return {"location": self.location.tolist(), "scale": self.scale.tolist()}

    def prior(self) -> dict[str, list[Any]]:
        """Mean and precision of the coefficients of a predictor, for a plan."""
        back = np.linalg.inv(self.matrix)
        return {"mean": self.moved.tolist(), "precision": (back.T @ back / PRIOR**2).tolist()}

    def rows(self, x: Array, columns: Columns) -> Array:
        """Rows of a model: scaled features, and the rest with its offset and response in units."""
        features, behind = x[:, : len(self.scale)], x[:, len(self.scale) :].copy()
        first = columns.behind - len(self.scale)
        with np.errstate(all="ignore"):
            scaled = np.clip((features - self.location) / self.scale, -LARGEST, LARGEST)
            if columns.constant:
                ones = np.where(np.isnan(behind[:, -1:]), np.nan, self.constant)
                scaled = np.concatenate([ones, scaled], axis=1)
            if self.mean is not None:
                constant = int(self.constant > 0)
                known = features @ self.mean[constant:] + self.mean[:constant].sum()
                behind[:, first] = np.clip(behind[:, first] + known, -LARGEST, LARGEST)
            if columns.has_scale:
                behind[:, first] /= self.unit
                response = (behind[:, -1] - self.middle) / self.unit
                behind[:, -1] = np.clip(response, -LARGEST, LARGEST)
            elif ALL[columns.likelihood].offset:
                behind[:, first] += self.middle
        return np.concatenate([scaled, behind], axis=1)

    def back(self, columns: Columns, draws: Array) -> Array:
        """Draws of a model as those of a user.

        Thresholds take in the location of features, and gaps between them their logarithms.
        """
        dim = len(self.matrix)
        blocks = draws.shape[-1] // dim if columns.likelihood == MULTINOMIAL else 1
        parts = [draws[..., k * dim : (k + 1) * dim] @ self.matrix.T for k in range(blocks)]
        rest = draws[..., blocks * dim :].copy()
        if columns.likelihood == ORDINAL:
            cuts = rest[..., 1 - columns.classes :]
            cuts[..., 0] += parts[0] @ self.location
            cuts[..., 1:] = cuts[..., :1] + np.exp(cuts[..., 1:]).cumsum(axis=-1)
        parts[0] += self.moved
        if columns.groups:
            rest[..., : columns.groups] *= self.unit
            rest[..., columns.groups] += math.log(self.unit)
        if columns.has_scale:
            rest[..., -1] += math.log(self.unit)
        return np.concatenate([*parts, rest], axis=-1)

    def forth(self, columns: Columns, start: Array) -> Array:
        """Point of a user as one of a model, but for thresholds and groups."""
        dim = len(self.matrix)
        blocks = len(start) // dim if columns.likelihood == MULTINOMIAL else 1
        away = start[: blocks * dim].reshape(blocks, dim) - np.outer(np.eye(blocks)[0], self.moved)
        rest = start[blocks * dim :] - (math.log(self.unit) if columns.has_scale else 0.0)
        return np.append(np.linalg.solve(self.matrix, away.T).T.ravel(), rest)


@telling
def fit(
    dataset: Dataset | Persons,
    columns: Columns,
    epsilon: float,
    delta: float,
    *,
    prior_sd: Array | None,
    prior_mean: Array | None,
    start: Array | None,
    num_chains: int,
    num_draws: int,
    seed: int | None,
    noise: Noise | None,
    names: tuple[str, ...],
    neighbours: Neighbours = "replace",
    progress: Progress = silent,
    robust: bool = False,
) -> Fit:
    """Draws from the posterior of a regression of `ALL`.

    Parameters
    ----------
    dataset : Dataset or Persons
        Private: features, the place of a group, a weight, an offset where the likelihood takes one,
        further columns, responses. Units of columns are those of one row of each person.
    columns : Columns
    epsilon, delta : float
        The budget: all of it is spent.
    prior_sd : ndarray of shape (d,), optional
        Of the coefficients of a predictor, and behind them the scale of the deviation of groups; by
        default the prior is in units of the columns.
    prior_mean : ndarray of shape (d,), optional
        Of the coefficients of a predictor.
    start : ndarray, optional
        A public point, in the components of the fit.
    num_chains, num_draws, seed, noise, names, neighbours, progress, robust
        As of `dpmc.automatic.run.fit`.
    """
    kind = noise_of(noise, published=seed is not None)
    ledger = Ledger(GaussianBudget.of(epsilon, delta), kind, neighbours)
    streams = Streams.of(seed, "units", 0)
    till = Till(ledger, streams.noise)
    with told(Guarantee(epsilon, delta, neighbours, "gaussian"), ledger.records):
        persons = dataset if isinstance(dataset, Persons) else None
        whole = dataset.rows if isinstance(dataset, Persons) else dataset
        x = whole.x if persons is None else persons.one_each()
        counted = Counted(float(dataset.num_rows))
        if neighbours == "add_remove":
            x, counted, _ = rows_counted(till, dataset, streams.batches)
        scaled, spread = _scaled(till, counted, x, columns, prior_sd, prior_mean)
    mean_sd = FIRST_CUT if columns.likelihood == ORDINAL else scaled.constant * PRIOR
    x = scaled.rows(whole.x, columns)
    rows = replace(whole, x=x) if persons is None else persons.with_rows(x)
    more: dict[str, Any] = {}
    if columns.groups:
        others = np.full(columns.num_features, PRIOR)
        shape = [LOG_SHAPE] if ALL[columns.likelihood].shape else []
        if columns.likelihood == ORDINAL:
            shape = [LOG_GAP] * (columns.classes - 2)
        groups = Intercepts(len(others), columns.groups, spread, mean_sd, np.append(others, shape))
        more["draws_of"] = groups.draws
    if columns.weighted and persons is None:  # persons vary as their rows together do
        more["varied"] = replace(whole, x=_as_copies(x, columns))

    def look(purse: Purse, theta: Array, displaced: float) -> list[Check]:
        whose = rows.x if isinstance(rows, Dataset) else rows.one_each()
        whose = whose[np.isfinite(whose).all(axis=1)]
        counts = shares.counted(*columns.ends(theta, whose), neighbours)
        return shares.checked(counts, purse, displaced, counted.number)

    found = run.fit(
        columns.model(mean_sd),
        rows,
        epsilon,
        delta,
        num_chains=num_chains,
        num_draws=num_draws,
        start=None if start is None else scaled.forth(columns, start),
        seed=seed,
        noise=noise,
        names=_searched(names, columns),
        neighbours=neighbours,
        progress=progress,
        ledger=ledger,
        num_rows=int(counted.number),
        robust=robust,
        look=look,
        **more,
    )
    draws = found.draws
    assert draws is not None
    if columns.groups:
        draws = _in_order(draws, columns, scaled.constant)
    plan = replace(
        found.plan,
        stages=(*till.stages, *found.plan.stages),
        prior=scaled.prior(),
        details={**found.plan.details, "units": scaled.units()},
    )
    return replace(found, draws=scaled.back(columns, draws), plan=plan, names=names)


def _searched(names: tuple[str, ...], columns: Columns) -> tuple[str, ...]:
    """Names of the components of a search."""
    if not columns.groups:
        return names
    first = int(columns.intercept)
    spread = first + columns.num_features + columns.groups
    ordinal = columns.likelihood == ORDINAL  # whose first threshold is in the intercepts
    return (*names[first:spread], *names[spread + 1 + ordinal :])


def _in_order(draws: Array, columns: Columns, constant: float) -> Array:
    """Draws with groups as those of a fit: intercept, slopes, groups around it, their spread.

    Of classes in order the first threshold is the intercept, with the opposite sign.
    """
    last = columns.num_features + columns.groups
    slopes, levels = draws[..., : columns.num_features], draws[..., columns.num_features : last]
    spread, mean = draws[..., -2:-1], draws[..., -1:]
    first = [mean / constant] if columns.intercept else []
    cut = [-mean] if columns.likelihood == ORDINAL else []
    parts = [*first, slopes, levels - mean, spread, *cut, draws[..., last:-2]]
    return np.concatenate(parts, axis=-1)


def _as_copies(rows: Array, columns: Columns) -> Array:
    """Rows whose squared gradients are those of as many copies of a row as its weight says."""
    x, place = rows.copy(), columns.behind - 1 + columns.constant
    with np.errstate(all="ignore"):
        x[:, place] = np.sqrt(x[:, place])
    return x


def _scaled(
    till: Till,
    counted: Counted,
    x: Array,
    columns: Columns,
    prior_sd: Array | None,
    prior_mean: Array | None,
) -> tuple[Scaled, float]:
    """Units of columns, and about the size of responses: released, or those of a prior.

    Behind them is the scale of the prior of the deviation of groups.
    """
    count, intercept = columns.num_features, columns.intercept
    if prior_sd is not None:
        unit = 1.0
        if columns.has_scale:
            unit = float(find(till, counted, x[:, -1:], intercept).scale[0])
        sds = prior_sd[int(intercept) : int(intercept) + count]
        constant = float(prior_sd[0]) / PRIOR / unit if intercept else 0.0
        given = Scaled(np.zeros(count), PRIOR * unit / sds, constant, 0.0, unit, prior_mean)
        return given, float(prior_sd[-1]) / unit
    places: Sequence[int] = [*range(count), *([-1] if columns.has_scale else [])]
    units = find(till, counted, x[:, places], intercept or columns.likelihood == ORDINAL)
    scaled = Scaled(
        units.location[:count], units.scale[:count], INTERCEPT / PRIOR if intercept else 0.0
    )
    if columns.has_scale:
        middle, unit = float(units.location[-1]), float(units.scale[-1])
        return replace(scaled, middle=middle, unit=unit), PRIOR
    size = ALL[columns.likelihood].size
    if size is None or not intercept:
        return scaled, PRIOR
    with np.errstate(all="ignore"):
        sizes = size(x[:, -1:], x[:, -2:-1]) - x[:, columns.behind : columns.behind + 1]
    return replace(scaled, middle=float(find(till, counted, sizes, True).location[0])), PRIOR
