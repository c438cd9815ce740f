"""Noise-aware synthetic data: NAPSU-MQ [Räisä, Jälkö, Kaski and Honkela 2023].

The margins of all pairs of columns are released with Gaussian noise. The law of the rows is taken
to be that of most entropy with such margins, p(cell) ~ exp(weights . features). Margins of n rows
are nearly normal, with the covariance of the cells, so that with noise on them they are normal,
too: this gives a posterior of the weights that knows of the noise. Each of its draws makes a data
set, and the rules of Rubin join what regressions say of these.

The authors draw by NUTS, here moves are Hamiltonian of a fixed length, whitened by the curvature at
the mode. Features are an orthonormal basis of the margins, in which noise is even; what is left out
is constant, as n is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize, special

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_histogram
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import Array, Budget, NoParams
from dpmc_league.cells import Cells, rubin
from dpmc_league.contest import SEEDED, Estimate, Table

Params = NoParams
# Of each weight, so that log-chances have 3: the best of 1, 3 and 10 on eight tables. With 10 cells
# may be all but empty, and chains stand still with 2,000 rows at epsilon 0.5.
PRIOR_SD = 1.0
LEAST = 1e-9  # of a singular value of the features, over the largest
WARM_UP, SETS, THIN = 50, 50, 2
LEAPFROGS, STEP = 4, 0.4  # a quarter of a turn of a whitened normal law


def fit(
    tables: Sequence[Table], params: NoParams, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit each table."""
    return [_fit(table, budget, seed) for table, seed in zip(tables, seeds, strict=True)]


def _fit(table: Table, budget: Budget, seed: int) -> Estimate:
    cells, given = Cells.of(table), GaussianBudget.of(budget.epsilon, budget.delta)
    ledger, rng = Ledger(given), stream(seed, "league", "napsu mq")
    features, noisy, noise = released(cells, cells.numbers(table), given.mu, ledger, rng)
    law = LogLinear(features, noisy, len(table.y), noise)
    made = [rng.multinomial(law.total, law.chances(one)) for one in law.draws(rng)]
    mean, sd = rubin(*cells.regress(np.array(made, dtype=np.float64)))
    return Estimate(mean, replace(given.guarantee(budget.delta), outside=(SEEDED,)), sd)


def released(
    cells: Cells, numbers: Array, mu: float, ledger: Ledger, rng: np.random.Generator
) -> tuple[Array, Array, float]:
    """Features of the cells, their noisy sums over all rows, and the deviation of the noise.

    Parameters
    ----------
    cells : Cells
    numbers : ndarray of shape (C,)
        Rows in each cell.
    mu : float
        What is spent.
    ledger : Ledger
    rng : numpy.random.Generator

    Returns
    -------
    features : ndarray of shape (C, q)
    noisy : ndarray of shape (q,)
    noise : float
    """
    margins = [cells.margin(pair) for pair in cells.pairs()]
    multiplier = math.sqrt(len(margins)) / mu * (1 + 1e-12)
    histograms = [row_histogram(numbers @ margin) for margin in margins]
    noisy = np.concatenate([ledger.release(one, multiplier, rng) for one in histograms])
    every = np.hstack(margins)
    middle = every.mean(axis=0)
    _, singular, rows = np.linalg.svd(every - middle, full_matrices=False)
    basis = rows[singular > LEAST * singular[0]].T
    noise = multiplier * histograms[0].sensitivity
    return (every - middle) @ basis, (noisy - numbers.sum() * middle) @ basis, noise


class LogLinear:
    """Posterior of the weights of a log-linear law, given noisy sums of its features.

    Parameters
    ----------
    features : ndarray of shape (C, q)
    noisy : ndarray of shape (q,)
    total : int
        Number of rows.
    noise : float
        Standard deviation of the noise of each sum.
    """

    def __init__(self, features: Array, noisy: Array, total: int, noise: float) -> None:
        self.features, self.noisy, self.total, self.noise = features, noisy, total, noise

    def chances(self, weights: Array) -> Array:
        """Chance of each cell, shape (C,)."""
        found: Array = special.softmax(self.features @ weights)
        return found

    def energy(self, weights: Array) -> tuple[float, Array]:
        """Minus the log-posterior without its constant, and its gradient."""
        chances = self.chances(weights)
        middle = chances @ self.features
        precision = np.linalg.inv(self._spread(chances, middle))
        pull = precision @ (self.noisy - self.total * middle)
        value = 0.5 * pull @ (self.noisy - self.total * middle)
        value -= 0.5 * np.linalg.slogdet(precision)[1]
        value += 0.5 * np.sum(np.square(weights / PRIOR_SD))
        bent = self.features @ (precision - np.outer(pull, pull))
        each = 0.5 * np.einsum("cq,cq->c", bent, self.features) - bent @ middle
        each = self.total * chances * (each - self.features @ pull)
        gradient = each @ self.features - each.sum() * middle + weights / PRIOR_SD**2
        return float(value), gradient

    def draws(self, rng: np.random.Generator) -> Array:
        """Draws of the weights, shape (50, q), by Hamiltonian moves from the mode."""
        dim = len(self.noisy)
        mode = optimize.minimize(self.energy, np.zeros(dim), jac=True, method="L-BFGS-B").x
        chances = self.chances(mode)
        middle = chances @ self.features
        slope = self.total * ((chances[:, None] * self.features).T @ self.features)
        slope -= self.total * np.outer(middle, middle)
        curvature = slope @ np.linalg.solve(self._spread(chances, middle), slope)
        curvature += np.eye(dim) / PRIOR_SD**2
        root = np.linalg.inv(np.linalg.cholesky(curvature)).T  # weights = mode + root @ z

        def energy(z: Array) -> tuple[float, Array]:
            value, gradient = self.energy(mode + root @ z)
            return value, gradient @ root

        z, kept = rng.standard_normal(dim), []
        value, gradient = energy(z)
        for number in range(WARM_UP + SETS * THIN):
            momentum = rng.standard_normal(dim)
            new, new_value, new_gradient = z, value, gradient
            pushed = momentum
            for _ in range(LEAPFROGS):
                pushed = pushed - STEP / 2 * new_gradient
                new = new + STEP * pushed
                new_value, new_gradient = energy(new)
                pushed = pushed - STEP / 2 * new_gradient
            change = value - new_value + 0.5 * (momentum @ momentum - pushed @ pushed)
            if math.log1p(-rng.random()) < change:
                z, value, gradient = new, new_value, new_gradient
            if number >= WARM_UP and (number - WARM_UP) % THIN == 0:
                kept.append(mode + root @ z)
        return np.array(kept)

    def _spread(self, chances: Array, middle: Array) -> Array:
        """Covariance of the noisy sums, shape (q, q)."""
        second = (chances[:, None] * self.features).T @ self.features
        spread: Array = self.total * (second - np.outer(middle, middle))
        spread[np.diag_indices_from(spread)] += self.noise**2
        return spread
