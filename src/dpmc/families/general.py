"""Regressions by the automatic method for any model, in units of the columns.

Units are released first, as those of the regressions that have a search of their own; the rest of
the budget is for the automatic method. Draws are then those of coefficients in the users' units;
what remarks and the plan say of widths is of scaled coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.automatic import run
from dpmc.automatic.glm.prior import INTERCEPT
from dpmc.automatic.glm.till import Till
from dpmc.automatic.glm.units import find
from dpmc.families.likelihoods import LIKELIHOODS, PRIOR, model_of
from dpmc.fits import Fit
from dpmc.fits.predictive import MULTINOMIAL, ORDINAL
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.privacy.spending import told
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.rows.persons import Persons
from dpmc.types import Array, Dataset, Guarantee

# Scaled numbers beyond this are this: sums of their squares are finite.
LARGEST = 1e100


@dataclass(frozen=True)
class Scaled:
    """Columns in units, and coefficients in those of users: ``matrix @ beta``.

    Parameters
    ----------
    location, scale : ndarray of shape (p,)
    constant : float
        Value of the constant before the features; 0 without one.
    middle : float
        Public number that the offset is larger by.
    """

    location: Array
    scale: Array
    constant: float
    middle: float = 0.0

    @classmethod
    def given(cls, prior_sd: Array, intercept: bool) -> Scaled:
        """Units in which the coefficients have the prior standard deviations of a user."""
        sds = prior_sd[int(intercept) :]
        constant = float(prior_sd[0]) / PRIOR if intercept else 0.0
        return cls(np.zeros(len(sds)), PRIOR / sds, constant)

    @property
    def matrix(self) -> Array:
        """From coefficients of scaled features to those of a user."""
        constant = int(self.constant > 0)
        matrix = np.diag(np.append(np.full(constant, self.constant), 1 / self.scale))
        if constant:
            matrix[0, 1:] = -self.location / self.scale
        return matrix

    def units(self) -> dict[str, list[float]]:
        """Location and scale, for a plan."""
        return {"location": self.location.tolist(), "scale": self.scale.tolist()}

    def prior(self) -> dict[str, list[Any]]:
        """Mean and precision of the coefficients of a predictor, for a plan."""
        mean = np.zeros(len(self.matrix))
        mean[: int(self.constant > 0)] = self.middle
        back = np.linalg.inv(self.matrix)
        return {"mean": mean.tolist(), "precision": (back.T @ back / PRIOR**2).tolist()}

    def rows(self, x: Array, shifted: bool) -> Array:
        """Rows of a model: scaled features, an offset if there may be one, and the rest."""
        features, behind = x[:, : len(self.scale)], x[:, len(self.scale) :].copy()
        with np.errstate(all="ignore"):
            scaled = np.clip((features - self.location) / self.scale, -LARGEST, LARGEST)
        if self.constant:
            ones = np.where(np.isnan(behind[:, -1:]), np.nan, self.constant)
            scaled = np.concatenate([ones, scaled], axis=1)
        if shifted:
            behind[:, 0] += self.middle
        return np.concatenate([scaled, behind], axis=1)

    def back(self, name: str, draws: Array) -> Array:
        """Draws of a model as those of a user.

        Thresholds take in the location of features, and gaps between them their logarithms.
        """
        dim = len(self.matrix)
        blocks = draws.shape[-1] // dim if name == MULTINOMIAL else 1
        parts = [draws[..., k * dim : (k + 1) * dim] @ self.matrix.T for k in range(blocks)]
        rest = draws[..., blocks * dim :].copy()
        if name == ORDINAL:
            rest[..., 0] += parts[0] @ self.location
            rest[..., 1:] = rest[..., :1] + np.exp(rest[..., 1:]).cumsum(axis=-1)
        elif self.constant:
            parts[0][..., 0] += self.middle
        return np.concatenate([*parts, rest], axis=-1)


def fit(
    dataset: Dataset | Persons,
    name: str,
    num_features: int,
    epsilon: float,
    delta: float,
    *,
    intercept: bool,
    classes: int,
    prior_sd: Array | None,
    num_chains: int,
    num_draws: int,
    seed: int | None,
    noise: Noise | None,
    names: tuple[str, ...],
    progress: Progress = silent,
) -> Fit:
    """Draws from the posterior of a regression of `LIKELIHOODS`.

    Parameters
    ----------
    dataset : Dataset or Persons
        Private: features, an offset where the likelihood takes one, further columns, responses.
        Units of columns are those of one row of each person.
    name : str
    num_features : int
    epsilon, delta : float
        The budget under substitution of one row, or person: all of it is spent.
    intercept : bool
    classes : int
        Of responses; 0 where these are numbers.
    prior_sd : ndarray of shape (d,), optional
        Of the coefficients of a predictor; by default the prior is in units of the columns.
    num_chains, num_draws, seed, noise, names, progress
        As of `dpmc.automatic.run.fit`.
    """
    kind = noise_of(noise, published=seed is not None)
    ledger = Ledger(GaussianBudget.of(epsilon, delta), kind)
    till = Till(ledger, Streams.of(seed, "units", 0).noise)
    persons = dataset if isinstance(dataset, Persons) else None
    whole = dataset.rows if isinstance(dataset, Persons) else dataset
    with told(Guarantee(epsilon, delta, accountant="gaussian"), ledger.records):
        some = whole.x if persons is None else persons.one_each()
        scaled = _scaled(till, some, name, num_features, intercept, prior_sd)
    model = model_of(name, len(scaled.matrix), classes)
    x = scaled.rows(whole.x, LIKELIHOODS[name].size is not None)
    found = run.fit(
        model,
        replace(whole, x=x) if persons is None else persons.with_rows(x),
        epsilon,
        delta,
        num_chains=num_chains,
        num_draws=num_draws,
        seed=seed,
        noise=noise,
        names=names,
        progress=progress,
        ledger=ledger,
    )
    assert found.draws is not None
    plan = replace(
        found.plan,
        stages=(*till.stages, *found.plan.stages),
        prior=scaled.prior(),
        details={**found.plan.details, "units": scaled.units()},
    )
    return replace(found, draws=scaled.back(name, found.draws), plan=plan)


def _scaled(
    till: Till,
    x: Array,
    name: str,
    num_features: int,
    intercept: bool,
    prior_sd: Array | None,
) -> Scaled:
    """Units of columns, and about the size of responses: released, or those of a prior."""
    if prior_sd is not None:
        return Scaled.given(prior_sd, intercept)
    units = find(till, x[:, :num_features], intercept or name == ORDINAL)
    scaled = Scaled(units.location, units.scale, INTERCEPT / PRIOR if intercept else 0.0)
    size = LIKELIHOODS[name].size
    if size is None or not intercept:
        return scaled
    with np.errstate(all="ignore"):
        sizes = size(x[:, -1:], x[:, -2:-1]) - x[:, num_features : num_features + 1]
    return replace(scaled, middle=float(find(till, sizes, True).location[0]))
