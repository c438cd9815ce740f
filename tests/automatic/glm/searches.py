"""Searches of regressions: replayed on neighbours, and fits of simulated rows."""

from __future__ import annotations

import math
import warnings

import numpy as np

import dpmc
from dpmc.automatic.glm import run
from dpmc.automatic.glm.till import Till
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.rows.persons import Persons
from dpmc.types import Dataset
from tests.automatic.replay import Recording, Transcript

LIKELIHOODS = ("linear", "student_t", "logistic", "poisson")


def search(
    likelihood: str,
    rows: np.ndarray,
    mu: float,
    seed: int,
    answers: Transcript | None = None,
    invalid_rows: str = "refuse",
    robust: bool = False,
    offset: bool = False,
    unit: np.ndarray | None = None,
) -> Recording:
    """Return the ledger of a search on rows, with its transcript."""
    ledger = Recording(GaussianBudget(mu), answers)
    till = Till(ledger, np.random.default_rng(seed))
    dataset = Dataset.of("rows", rows, invalid_rows)
    if unit is not None:
        dataset = Persons.of(dataset, unit, "person")
    run.search(till, dataset, run.KINDS[likelihood], True, None, 4.0, robust, offset=offset)
    return ledger


def rows_of(likelihood: str, num_rows: int, seed: int = 0, rate: float = 0.3) -> np.ndarray:
    """Return rows of two features and a response last."""
    rng = stream(seed, "regressions", likelihood, num_rows, rate)
    x = rng.normal(size=(num_rows, 2))
    eta = x @ [0.6, -0.4]
    if likelihood == "logistic":
        y = (rng.random(num_rows) < 1 / (1 + np.exp(-(math.log(rate / (1 - rate)) + eta)))) * 1.0
    elif likelihood == "poisson":
        y = rng.poisson(np.exp(math.log(rate) + eta)) * 1.0
    else:
        noise = rng.normal(size=num_rows) if likelihood == "linear" else rng.standard_t(4, num_rows)
        y = 1.0 + eta + 0.5 * noise
    return np.column_stack([x, y])


def fitted(rows: np.ndarray, likelihood: str, **options):
    """Return a fit, and means and standard deviations of its draws."""
    settings = {"epsilon": 1.0, "delta": 1e-6, "progress": False, "num_draws": 500, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(rows[:, :-1], rows[:, -1], likelihood=likelihood, **settings)
    draws = fit.draws.reshape(-1, fit.draws.shape[2])
    return fit, draws.mean(axis=0), draws.std(axis=0)
