"""Budgets whose noise is as large as the rows: what is unknown is left to the prior."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import dpmc
from dpmc.automatic import bounds
from dpmc.automatic.bounds import Bounds
from dpmc.automatic.curvature import Curvature
from dpmc.automatic.noise_aware import inverse_of_sum
from dpmc.automatic.purse import WIDEST, Purse, search
from dpmc.models import gaussian_mean
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import row_count
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from tests.automatic.test_search import counted

DELTA = 1e-6
ROWS, EPSILONS, SEEDS = (5, 100, 1000, 10_000), (0.01, 0.1, 1.0, 4.0), range(6)
# Of the exact deviation: those of draws are known to 1.1 %, the curvature to a few percent.
NARROW = 0.93


def model(dim: int = 2, variance: float = 4.0) -> dpmc.Model:
    return gaussian_mean.build(gaussian_mean.Params(dim, np.eye(dim).tolist(), variance))


def fitted(num_rows: int, epsilon: float, seed: int, **settings) -> tuple[dpmc.Fit, np.ndarray]:
    """Return a fit of rows around a mean from the prior, and the mean."""
    rng = stream(0, "small", num_rows, epsilon, seed)
    theta = 2.0 * rng.standard_normal(2)
    rows = theta + rng.standard_normal((num_rows, 2))
    settings = {"num_chains": 1, "num_draws": 4000, "seed": seed, "progress": False} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        return dpmc.fit(model(), rows, epsilon=epsilon, delta=DELTA, **settings), theta


def of_all_budgets(sizes: tuple[int, ...] = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Return deviations over the exact ones, and shares of draws below the mean; of all fits."""
    widths, ranks = [], []
    for num_rows, epsilon, seed in itertools.product(sizes, EPSILONS, SEEDS):
        fit, theta = fitted(num_rows, epsilon, seed)
        draws = fit.draws[0]
        widths.append(draws.std(axis=0) * math.sqrt(num_rows + 1 / 4))
        ranks.append((draws < theta).mean(axis=0))
    return np.array(widths), np.array(ranks)


@pytest.mark.slow
def test_no_interval_is_narrower_than_without_privacy_and_all_hold_their_share(monkeypatch):
    """Shares of 192 intervals: beyond the limits with a probability of 1e-4 for exact ones."""
    widths, ranks = of_all_budgets()
    assert widths.min() > NARROW
    for level in (0.5, 0.9):
        inside = np.mean(np.abs(ranks - 0.5) < level / 2)
        assert abs(inside - level) < 4 * math.sqrt(level * (1 - level) / ranks.size)
    # Bounds that counts of noise chose are of any size, and so is the curvature that is believed.
    monkeypatch.setattr(bounds, "fewest_rows", lambda mu, spread=1.0: 0.0)
    assert of_all_budgets(ROWS[:2])[0].min() < NARROW / 2


def test_what_cannot_be_known_is_the_prior_and_is_said(tmp_path):
    fit, _ = fitted(100, 0.1, 0, num_draws=20_000)
    assert fit.ledger == ()
    assert fit.plan.method == "prior"
    assert fit.plan.audit.epsilon == 0
    (remark,) = fit.remarks
    assert "does not carry this posterior: the noise of a count hides the number of rows" in remark
    assert "No row was used" in str(fit.summary())
    draws = fit.draws[0]
    # Standard errors are 0.7 % of a deviation for means, and 0.5 % for deviations.
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=2 * 0.035)
    np.testing.assert_allclose(draws.std(axis=0), 2, rtol=0.025)
    other, _ = fitted(100, 0.1, 0, num_draws=20_000)
    np.testing.assert_array_equal(fit.draws, other.draws)
    fit.save(tmp_path / "prior.parquet")
    assert dpmc.Fit.load(tmp_path / "prior.parquet").plan.widening == (math.inf,) * 2


def wrong_bounds(num_rows: float) -> float:
    """Return the share of first searches that miss the norm of all rows by a factor of four."""
    wrong = 0
    for seed in range(600):
        purse = Purse(Ledger(GaussianBudget(1.0)), stream(0, "first", seed))
        cost, count = bounds.MOST_FIRST / 2, round(num_rows)
        noise = math.sqrt(bounds.FIRST_BISECTIONS / cost)
        target = bounds._target(SizedRows(count), noise, None, None, 2.0)
        norm = 2.0 ** stream(1, "first", seed).uniform(-90, 90)
        counts = counted(np.full(count, norm))
        bound = search(purse, counts, target, -WIDEST, WIDEST, bounds.FIRST_BISECTIONS, cost)
        wrong += not norm <= bound <= 4 * norm
    return wrong / 600


class SizedRows:
    """Rows of which no more is known than how many there are."""

    dim = 2

    def __init__(self, num_rows: int) -> None:
        self.num_rows = num_rows

    def gradients_beyond(self, theta, basis, lengths):
        return dict.fromkeys(lengths, row_count(0))

    curvatures_beyond = gradients_beyond


def test_the_first_search_finds_the_scale_of_as_few_rows_as_it_is_asked_for():
    """Seven counts with errors of 2.3e-4: 3 of 600 are expected at most, 12 are one in 10,000."""
    fewest = bounds.fewest_rows(1.0)
    assert wrong_bounds(fewest) < 12 / 600
    assert wrong_bounds(fewest / 2) > 0.1


def later_bounds(mu: float) -> tuple[Bounds, float]:
    ledger = Ledger(GaussianBudget(mu))
    purse = Purse(ledger, stream(0, "later"))
    place = (np.zeros(2), np.eye(2))
    found, _ = bounds.find(SizedRows(1000), purse, place, Bounds(3.0, -2.0), mu**2 / 20, None)
    return found, 1 - ledger.remaining / mu**2


def test_a_count_that_is_noise_decides_nothing_and_is_not_paid_for(monkeypatch):
    found, spent = later_bounds(1.0)
    assert found.gradient < 3.0
    assert spent == pytest.approx(1 / 20)
    found, spent = later_bounds(0.005)
    assert found == Bounds(3.0, -2.0)
    assert spent == pytest.approx(0, abs=1e-9)
    monkeypatch.setattr(bounds, "DECIDES", math.inf)
    assert later_bounds(0.005)[0] != Bounds(3.0, -2.0)


def test_no_curvature_is_believed_to_be_larger_than_it_is_seen():
    rng = stream(0, "curvature")
    for dim in (1, 2, 7):
        values = np.sort(rng.standard_normal(dim) * 10.0 ** rng.uniform(-3, 3))
        believed = Curvature(values, np.eye(dim), 1.0).for_inference()
        assert (np.diag(believed) <= np.maximum(values, 0)).all()
        clear = Curvature(values + 1e4, np.eye(dim), 1.0).for_inference()
        np.testing.assert_allclose(np.diag(clear), values + 1e4, rtol=1e-6)


@pytest.mark.parametrize("dim", [1, 3, 10])
def test_noise_alone_is_hardly_believed(dim):
    """Noise has deviation 1 on the diagonal: true curvatures worth a stage are several times that.

    Of 400 the mean of the largest believed eigenvalue, whose standard error is below 0.05 reaches.
    """
    rng, largest = stream(0, "noise", dim), []
    for _ in range(400):
        upper = np.triu(rng.standard_normal((dim, dim)), 1) / math.sqrt(2)
        values, vectors = np.linalg.eigh(upper + upper.T + np.diag(rng.standard_normal(dim)))
        curvature = Curvature(values, vectors, 1.0)
        largest.append(np.linalg.eigvalsh(curvature.for_inference())[-1] / curvature.reach)
    assert np.mean(largest) < 0.25
    assert np.mean(np.array(largest) > 1) < 0.05


def test_a_direction_of_which_nothing_is_known_is_the_priors():
    """Beside one that is known far better: rounding used to take it for exactly known."""
    basis, eye = np.diag([1e-9, 1e-5, 1.0]), np.eye(3)
    seen = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.0]])
    precision = basis @ seen @ basis
    covariance = basis @ inverse_of_sum(precision, 0.25 * eye, basis) @ basis
    np.testing.assert_allclose(covariance, np.linalg.inv(seen + 0.25 * eye), rtol=1e-6)
    both = precision + basis @ (0.25 * eye) @ basis
    cut = basis @ np.linalg.pinv(both, rcond=1e-12, hermitian=True) @ basis
    assert cut[0, 0] < 1e-6


def test_the_remark_names_a_budget_that_would_tell_something():
    fit, _ = fitted(100, 0.1, 0)
    epsilon = float(fit.remarks[0].split("about epsilon ")[1].split(",")[0])
    assert fitted(100, 1.05 * epsilon, 0)[0].ledger
    assert not fitted(100, 0.95 * epsilon, 0)[0].ledger
