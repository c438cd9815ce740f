"""Detailed balance of the tests that see a batch, between two points with a known log-ratio.

The acceptance probabilities a and a' of the move and of the move back obey ln a / a' =
lambda, the log-ratio of the posterior. Both are measured from the kernel itself, with the
proposal held fixed: a difference beyond 5.5 standard errors of the logarithm (an error
rate of 4e-8 for each comparison), and beyond the stated error of the method, is a failure.
Every broken variant has to fail by the same rule.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import stats

from dpmc.mcmc import barker_correction, moves
from dpmc.mcmc.batch_ratios import BatchRatios
from dpmc.mcmc.methods import dp_barker, minibatch_penalty
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Dataset
from tests.support import posteriors
from tests.support.barker_errors import odds_error

pytestmark = pytest.mark.slow

gaussian_model = functools.cache(posteriors.gaussian_model)
TRIALS = 25_000
ERRORS = 5.5
N = 20_000

# Rows of -1 and 1 with mean 0.15: batches whose ratios are all as large as clipping allows.
COIN = np.where(np.arange(N) % 200 < 115, 1.0, -1.0)[:, None]
# The quantiles of a normal distribution: batch sums as nearly normal as rows can make them.
NORMAL = stats.norm.ppf((np.arange(N) + 0.5) / N)[:, None]


def log_odds(method, x, tempering, params, start, move) -> tuple[float, float, float]:
    """Return ln a / a' as measured, its standard error, and the log-ratio of the posterior."""
    model = gaussian_model(1, tempering)
    posterior = Posterior(model, Dataset("balance", x))
    counts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "chain_sampler", lambda kernel: kernel)
        kernel = method.sampler(posterior, params)
        for theta, step in ((start, move), (start + move, -move)):
            patch.setattr(moves, "random_walk", lambda *args, end=theta + step: np.array([end]))
            streams, ledger = Streams.of(31, method.__name__, theta), Ledger()
            state = kernel.init(np.array([theta]), TRIALS, ledger, streams)
            accepted = (kernel.step(state, ledger, streams)[1].accepted for _ in range(TRIALS))
            counts.append(sum(accepted))
    assert min(counts) > 50
    assert max(counts) < TRIALS - 50
    error = math.sqrt(sum(1 / count - 1 / TRIALS for count in counts))
    return math.log(counts[0] / counts[1]), error, exact_ratio(x, tempering, start, move)


def exact_ratio(x, tempering, start, move) -> float:
    """Return the log-ratio of the posterior in closed form; rows and prior as in conftest."""
    end = start + move
    likelihood = move * (x.sum() - len(x) * (start + end) / 2)
    return float(tempering * likelihood - ((end - 0.3) ** 2 - (start - 0.3) ** 2) / 8)


# Allowed beside chance and correction: batches are not quite normal, nor independent draws.
BATCH_ERROR = 0.01


def barker_odds() -> tuple[float, float, float]:
    """Return the odds of DP-Barker where the variance of a batch is about 0.9, of C = 2."""
    b, tempering = 100, 0.005
    params = dp_barker.Params(1.0, b)
    move = 0.95 * math.sqrt(b) / (N * tempering)
    return log_odds(dp_barker, COIN, tempering, params, -move / 2, move)


def test_barker_obeys_detailed_balance_up_to_its_correction():
    found, error, exact = barker_odds()
    assert exact > 1
    assert (
        abs(found - exact)
        < ERRORS * error + odds_error(barker_correction.correction(2.0)) + BATCH_ERROR
    )


@pytest.mark.parametrize("broken", ["variance unscaled", "no correction", "whole logistic"])
def test_broken_barker_does_not(monkeypatch, broken):
    """Unscaled is the variance that Algorithm 3 prints; nearly all of the noise comes on top."""
    if broken == "variance unscaled":
        estimate = BatchRatios.estimate

        def unscaled(self, *args):
            found = estimate(self, *args)
            return found._replace(variance=found.variance / (self.scale**2 * self._batch_size))

        monkeypatch.setattr(BatchRatios, "estimate", unscaled)
    elif broken == "no correction":
        monkeypatch.setattr(barker_correction.Correction, "draw", lambda self, rng: 0.0)
    else:
        monkeypatch.setattr(barker_correction.Correction, "draw", lambda self, rng: rng.logistic())
    found, error, exact = barker_odds()
    allowed = ERRORS * error + odds_error(barker_correction.correction(2.0)) + BATCH_ERROR
    assert abs(found - exact) > allowed


def penalty_odds(batch_size: int, start: float, move: float) -> tuple[float, float, float]:
    """Return the odds of the minibatch penalty for a move in a posterior of sd 0.2 about 0.

    The clip bound is above all row ratios and the privacy noise below 0.01.
    """
    params = minibatch_penalty.Params(1.0, batch_size, 1e-4, 5.0)
    return log_odds(minibatch_penalty, NORMAL, 25 / N, params, start, move)


def batch_variance(batch_size: int, move: float) -> float:
    return 25**2 / batch_size * move**2


def test_minibatch_penalty_obeys_detailed_balance_where_its_variance_is_small():
    """A batch variance of 1 from 100 rows: allowed beside chance is the bias, below 0.01."""
    b, move = 100, 0.4
    found, error, exact = penalty_odds(b, -0.3, move)
    assert batch_variance(b, move) == pytest.approx(1)
    assert exact > 1
    assert abs(predicted_odds(exact, batch_variance(b, move), b) - exact) < 0.01
    assert abs(found - exact) < ERRORS * error + 0.01


def test_without_the_penalty_for_the_batch_it_does_not(monkeypatch):
    estimate = BatchRatios.estimate
    monkeypatch.setattr(
        BatchRatios, "estimate", lambda *args: estimate(*args)._replace(variance=0.0)
    )
    found, error, exact = penalty_odds(100, -0.3, 0.4)
    assert abs(found - exact) > ERRORS * error + 0.01


def predicted_odds(exact: float, variance: float, batch_size: int) -> float:
    """Return ln a / a' by quadrature, for normal batch sums and the variance estimated of them.

    The estimate is variance * chi^2_{b-1} / b, independent of the sum; given a value 2 m
    of it, a = Phi((l - m) / s) + exp(l - m + s^2 / 2) Phi((m - l) / s - s).
    """
    s = math.sqrt(variance)
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    m = variance * stats.chi2(batch_size - 1).ppf(quantiles) / batch_size / 2

    def acceptance(log_ratio: float) -> float:
        z = (log_ratio - m) / s
        tail = np.exp(log_ratio - m + s * s / 2 + stats.norm.logcdf(-z - s))
        return float(np.mean(stats.norm.cdf(z) + tail))

    return math.log(acceptance(exact) / acceptance(-exact))


def test_minibatch_penalty_is_biased_where_its_variance_is_large_for_its_batch():
    """Eight rows and a batch variance of 12: as far off as the estimated variance says.

    The prediction takes batch sums for normal, which sums of a finite number of rows are
    within the 0.02 allowed.
    """
    b, move = 8, 0.39
    found, error, exact = penalty_odds(b, -0.5, move)
    predicted = predicted_odds(exact, batch_variance(b, move), b)
    assert abs(found - exact) > ERRORS * error + 0.1
    assert abs(found - predicted) < ERRORS * error + 0.02
