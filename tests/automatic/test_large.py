"""Searches in up to 1e8 rows, emulated by rows that stand several times each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc.automatic import purse as purses
from dpmc.automatic.centre import locate
from dpmc.automatic.prior import Prior
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import logistic
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import Dataset

BASE, DIM, SEARCHES = 5000, 4, 10


class Repeated:
    """Rows that stand several times each: sums and counts of them, times that number."""

    def __init__(self, rows: WhitenedRows, times: int) -> None:
        self._rows, self._times = rows, times
        self.dim, self.tempering = rows.dim, rows.tempering
        self.num_rows = times * rows.num_rows

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._rows, name)
        return lambda *given: self._multiplied(method(*given))

    def _multiplied(self, found: Any) -> Any:
        if isinstance(found, Clipped):
            return Clipped(self._times * found.value, found.sensitivity)
        if isinstance(found, dict):
            return {key: self._multiplied(value) for key, value in found.items()}
        return tuple(map(self._multiplied, found))


def errors(size: int) -> np.ndarray:
    """Return errors of the mode in deviations of the noise that is believed, independent ones."""
    own = []
    for seed in range(SEARCHES):
        rng = stream(0, "large", size, seed)
        x = np.column_stack([np.ones(BASE), rng.standard_normal((BASE, DIM - 1))])
        y = rng.random(BASE) < 1 / (1 + np.exp(-x[:, 1:].sum(axis=1) / 3))
        mode = np.zeros(DIM)
        for _ in range(20):
            chance = 1 / (1 + np.exp(-x @ mode))
            precision = (x.T * (chance * (1 - chance))) @ x
            mode = mode + np.linalg.solve(precision, x.T @ (y - chance))
        model = logistic.build(logistic.Params(DIM - 1))
        rows = WhitenedRows(model, Dataset.of("rows", np.column_stack([x[:, 1:], y])))
        ledger = Ledger(GaussianBudget.of(1.0, 1e-6))
        purse = Purse(ledger, stream(0, "large", "noise", size, seed))
        found = locate(Repeated(rows, size // BASE), Prior.of(model), purse, np.zeros(DIM))
        precision, weighted = found.estimate.precision, found.estimate.weighted
        step = np.linalg.solve(found.basis, found.theta - mode)
        step += np.linalg.solve(precision, weighted)
        own.append(np.linalg.cholesky(precision).T @ step)
    return np.array(own)


def too_large(found: np.ndarray) -> bool:
    """Return whether errors are too large for normal ones: of exact ones with a chance of 1e-4."""
    return bool(np.sum(found**2) > stats.chi2.isf(1e-4, found.size))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000_000, 100_000_000])
def test_errors_of_many_rows_are_as_large_as_the_noise(size, monkeypatch):
    found = errors(size)
    assert not too_large(found)
    # Errors that are believed to be twice of what they are would not be worth the rows.
    assert np.sqrt(np.mean(found**2)) > 0.5
    if size == 1_000_000:
        return
    # Noise that is believed to be half of what it is.
    original = purses.Purse.total

    def halved(self, value, cost):
        released, noise = original(self, value, cost)
        return released, noise / 2

    monkeypatch.setattr(purses.Purse, "total", halved)
    assert too_large(errors(size))
