"""Algorithms of the thesis as printed against what leaves the posterior invariant.

docs/errata.md refers to these tests.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from dpmc.mcmc import barker_correction
from dpmc.models import logistic
from dpmc.rng import stream


def log_odds(acceptance) -> float:
    """Return ln a(2) / a(-2), which detailed balance wants to be 2."""
    return math.log(acceptance(2.0) / acceptance(-2.0))


def expected_acceptance(delta: float, s: float, correction: npt.ArrayLike) -> float:
    """Return E min(1, exp(delta + s z - correction)) over z standard normal and corrections."""
    m = delta - np.asarray(correction)
    tail = special.log_ndtr(-m / s - s)
    return float(np.mean(special.ndtr(m / s) + np.exp(np.minimum(m + s * s / 2 + tail, 0.0))))


def test_the_penalty_belongs_to_the_noisy_ratio():
    """Section 3.1 prints the exact one: log-odds 4 at a ratio of 2, noise 2; without penalty 1.06.

    With the noisy ratio and the penalty they are 2.
    """
    s = 2.0
    assert log_odds(lambda x: min(1.0, math.exp(x - s * s / 2))) == pytest.approx(4)
    assert log_odds(lambda x: expected_acceptance(x, s, 0.0)) == pytest.approx(1.06, abs=0.01)
    assert log_odds(lambda x: expected_acceptance(x, s, s * s / 2)) == pytest.approx(2)


def test_tempering_scales_the_noise_with_the_ratio():
    """T = 0.1, noise 20 on the untempered ratio: the exponent has noise 2, the penalty is 2.

    The printed penalty, without T, is 200: nothing is accepted. Noise that is not
    tempered leaves no more: its test accepts 1e-23 of the moves where 32 % are right.
    """
    tempering, s = 0.1, 20.0
    assert expected_acceptance(0.0, tempering * s, (tempering * s) ** 2 / 2) == pytest.approx(
        0.3173, abs=1e-4
    )
    assert log_odds(
        lambda x: expected_acceptance(x, tempering * s, (tempering * s) ** 2 / 2)
    ) == pytest.approx(2)
    assert expected_acceptance(0.0, tempering * s, s * s / 2) < 1e-80
    assert expected_acceptance(0.0, s, s * s / 2) < 1e-22


@pytest.mark.parametrize(("n", "b"), [(8, 3), (12, 4), (14, 2)])
def test_the_variance_of_a_batch_has_n_squared_and_a_finite_population(n, b):
    """By every batch: (n T)^2 / b times var_0 of all rows, times (n - b) / (n - 1).

    Algorithm 3 prints the variance of the row ratios, section 3.3 has n in place of n^2.
    """
    tempering, ratios = 0.3, stats.norm.ppf((np.arange(n) + 0.5) / n) + 0.2
    sums = [n * tempering / b * ratios[list(batch)].sum() for batch in combinations(range(n), b)]
    exact, variance = np.var(sums), ratios.var()
    assert exact == pytest.approx((n * tempering) ** 2 / b * variance * (n - b) / (n - 1))
    assert n * tempering**2 / b * variance == pytest.approx(exact * (n - 1) / (n * (n - b)))


def estimated_acceptance(delta: float, variance: float, b: int) -> float:
    """Return the acceptance when the penalty is half of the variance in a batch of normal rows.

    The batch sum is normal and independent of its estimated variance, which is chi-square.
    """
    levels = (np.arange(4000) + 0.5) / 4000
    estimates = variance / b * stats.chi2(b - 1).ppf(levels)
    return expected_acceptance(delta, math.sqrt(variance), estimates / 2)


@pytest.mark.parametrize(
    ("variance", "excess", "odds"),
    [(1, 0.00075, 1.999), (10, 0.0298, 1.992), (65, 1.044, 1.943), (200, 8.93, 1.838)],
)
def test_an_estimated_variance_corrects_in_part(variance, excess, odds):
    """b = 1000 rows: ln E exp(ratio - estimate / 2) is not 0, nor are the log-odds of 2 quite 2."""
    b = 1000
    exact = variance / 2 - (b - 1) / 2 * math.log1p(variance / b)
    assert exact == pytest.approx(excess, rel=1e-2)
    assert exact == pytest.approx(variance / (2 * b) + variance**2 / (4 * b), rel=0.15)
    found = log_odds(lambda x: estimated_acceptance(x, variance, b))
    assert found == pytest.approx(odds, abs=1e-3)


@pytest.mark.parametrize(
    ("noise_variance", "beyond", "floor"), [(1.0, 4.88, 6.5e-7), (2.0, 1.79, 2.96e-3)]
)
def test_no_correction_makes_the_sum_logistic(noise_variance, beyond, floor):
    """Its characteristic function would exceed 1; the total variation has a floor.

    |phi_F - phi_G| is at most twice the total variation of F and G, and that of N(0, C) + V is
    at most exp(-C t^2 / 2) whatever V is.
    """
    t = np.linspace(1e-3, 20, 200_001)
    logistic = np.exp(np.log(2 * np.pi * t) - np.pi * t - np.log1p(-np.exp(-2 * np.pi * t)))
    normal = np.exp(-noise_variance * t * t / 2)
    assert t[np.argmax(logistic > normal)] == pytest.approx(beyond, abs=0.01)
    assert np.max(logistic - normal) / 2 == pytest.approx(floor, rel=0.01)
    x = np.linspace(-25, 25, 20_001)
    density = -np.gradient(barker_correction.correction(noise_variance).tail(x), x)
    distance = np.trapezoid(abs(density - stats.logistic.pdf(x)), x) / 2
    assert floor < distance < 0.02


def momentum_variance(friction: float, shared: bool) -> float:
    """Return the stationary variance of momenta under the noise of gradients and friction.

    Step 0.02, gradient variance 9, unit mass, no force; a noisy gradient serves both half
    steps that meet at a point, or each of them has one of its own.
    """
    eta, variance = 0.02, 9.0
    kicks = eta**2 * variance if shared else eta**2 * variance / 2
    return kicks / (1 - (1 - eta * friction) ** 2)


def test_the_friction_that_balances_the_noise_depends_on_the_step():
    """Section 4.2 has sigma_g^2 / 2 = 4.5; eta sigma_g^2 / 2 = 0.09, or half of it, is right."""
    assert momentum_variance(0.09, shared=True) == pytest.approx(1, abs=2e-3)
    assert momentum_variance(0.045, shared=False) == pytest.approx(1, abs=2e-3)
    assert momentum_variance(4.5, shared=True) == pytest.approx(0.021, abs=1e-3)


def algorithm_4(position_has_eta: bool, uniform_has_logarithm: bool) -> tuple[float, float]:
    """Return acceptance rate and spread over that of the target N(0, 0.05^2), many chains.

    Without noise; 10 steps of 0.02.
    """
    rng, sd, eta = stream(1, "algorithm 4"), 0.05, 0.02
    theta, accepted = sd * rng.standard_normal(2000), 0.0
    for _ in range(4):
        momentum = start = rng.standard_normal(2000)
        proposal = theta
        for _ in range(10):
            momentum = momentum - 0.5 * eta * proposal / sd**2
            proposal = proposal + (eta if position_has_eta else 1.0) * momentum
            momentum = momentum - 0.5 * eta * proposal / sd**2
        change = (theta**2 - proposal**2) / (2 * sd**2) + (start**2 - momentum**2) / 2
        uniform = rng.random(2000)
        accept = (np.log(uniform) if uniform_has_logarithm else uniform) < change
        theta, accepted = np.where(accept, proposal, theta), accepted + accept.mean() / 4
    return float(accepted), float(theta.std() / sd)


def test_algorithm_4_needs_the_step_size_and_the_logarithm():
    """Printed are neither: acceptance 0.98 falls to nothing, or to 0.02 of zero energy error."""
    rate, spread = algorithm_4(position_has_eta=True, uniform_has_logarithm=True)
    assert rate > 0.95
    assert spread == pytest.approx(1, abs=0.1)
    assert algorithm_4(position_has_eta=False, uniform_has_logarithm=True)[0] == 0
    assert algorithm_4(position_has_eta=True, uniform_has_logarithm=False)[0] < 0.03


def quartic(theta):
    return -(theta**4) / 4


def clipped_hmc(theta, rng, gradient_bound, ratio_bound):
    """Make five HMC iterations of every chain on exp(-theta^4 / 4), clipped, without noise."""

    def gradient(at):
        return np.clip(-(at**3), -gradient_bound, gradient_bound)

    for _ in range(5):
        momentum = start = rng.standard_normal(theta.size)
        proposal = theta
        for _ in range(4):
            momentum = momentum + 0.15 * gradient(proposal)
            proposal = proposal + 0.3 * momentum
            momentum = momentum + 0.15 * gradient(proposal)
        length = abs(proposal - theta)
        ratio = np.clip(
            quartic(proposal) - quartic(theta), -ratio_bound * length, ratio_bound * length
        )
        accept = np.log(rng.random(theta.size)) < ratio + (start**2 - momentum**2) / 2
        theta = np.where(accept, proposal, theta)
    return theta


def test_clipped_gradients_leave_the_target_invariant_and_clipped_ratios_do_not():
    """Section 4.2 cites section 6.2 for gradients, which clips ratios: another matter.

    Exact draws stay exact draws under gradients clipped at 0.5, where half of them are
    clipped; error rate 1e-6 by a Kolmogorov-Smirnov test. With ratios clipped at 0.5 it fails.
    """
    rng, size = stream(2, "quartic"), 20_000
    # theta^4 / 4 has a gamma law with shape 1/4.
    exact = (4 * rng.gamma(0.25, size=size)) ** 0.25 * rng.choice([-1.0, 1.0], size)

    def cdf(x):
        return 0.5 * (1 + np.sign(x) * special.gammainc(0.25, np.asarray(x) ** 4 / 4))

    assert 0.3 < np.mean(abs(exact) ** 3 > 0.5) < 0.7
    kept = clipped_hmc(exact, rng, 0.5, np.inf)
    assert np.mean(kept != exact) > 0.8
    assert stats.kstest(kept, cdf).pvalue > 1e-6
    assert stats.kstest(clipped_hmc(exact, rng, np.inf, 0.5), cdf).pvalue < 1e-6


def stationary(x: np.ndarray, bound: float) -> dict[str, float]:
    """Return clip fraction, error of the mean, spread and total variation of a clipped chain.

    Random-walk Metropolis-Hastings of a mean of rows of unit variance, on a grid, by
    solving for the law that its transition matrix keeps. A ratio is the length of the move
    times the row less the midpoint of the move, so clipping depends on the midpoint alone.
    """
    root = math.sqrt(x.size)
    grid = np.linspace(-7, 7, 241) / root + x.mean()
    middles = np.linspace(grid[0], grid[-1], 2 * grid.size - 1)
    slopes = np.clip(x - middles[:, None], -bound, bound).sum(1)
    clipped = (abs(x - middles[:, None]) > bound).mean(1)
    middle = np.add.outer(np.arange(grid.size), np.arange(grid.size))
    move = grid - grid[:, None]
    proposal = stats.norm.pdf(move, 0, 2 / root) * (grid[1] - grid[0])
    chain = proposal * np.exp(np.minimum(move * slopes[middle], 0))
    np.fill_diagonal(chain, 0)
    np.fill_diagonal(chain, 1 - chain.sum(1))
    system = np.vstack([(chain.T - np.eye(grid.size))[:-1], np.ones(grid.size)])
    law = np.linalg.solve(system, np.append(np.zeros(grid.size - 1), 1.0))
    posterior = stats.norm.pdf(grid, x.mean(), 1 / root)
    visits = law[:, None] * proposal
    mean = law @ grid
    return {
        "clipped": float((visits * clipped[middle]).sum() / visits.sum()),
        "shift": float((mean - x.mean()) * root),
        "spread": math.sqrt(law @ (grid - mean) ** 2) * root,
        "distance": float(abs(law - posterior / posterior.sum()).sum() / 2),
    }


@pytest.mark.parametrize(
    ("rows", "bound", "expected"),
    [
        ("skewed", np.inf, (0, 0, 1, 0)),
        ("skewed", 4.0, (0.007, -0.12, 1.00, 0.05)),
        ("skewed", 3.0, (0.019, -0.36, 1.01, 0.14)),
        ("skewed", 1.5, (0.090, -1.78, 1.05, 0.62)),
        ("symmetric", 1.7, (0.090, 0, 1.05, 0.02)),
        ("symmetric", 1.3, (0.195, 0, 1.11, 0.05)),
    ],
)
def test_the_bias_of_clipping_is_one_of_skewness(rows, bound, expected):
    """400 rows at the quantiles of an exponential or normal law, exact stationary laws.

    Nine per cent clipped: 1.8 posterior standard deviations off, or none at all.
    """
    levels = (np.arange(400) + 0.5) / 400
    x = -np.log1p(-levels) - 1 if rows == "skewed" else stats.norm.ppf(levels)
    found = stationary(x, bound)
    assert found["clipped"] == pytest.approx(expected[0], abs=1e-3)
    assert found["shift"] == pytest.approx(expected[1], abs=0.01)
    assert found["spread"] == pytest.approx(expected[2], abs=0.01)
    assert found["distance"] == pytest.approx(expected[3], abs=0.01)


def test_ratios_of_logistic_regression_are_bounded_by_the_distance_moved():
    """|r(theta, theta')| <= L |theta - theta'| with L the largest feature; the limit is met."""
    model = logistic.build(logistic.Params(3, row_norm=2.0))
    rng = stream(6, "bound")
    rows = rng.standard_normal((200, 3))
    rows *= 2 / np.linalg.norm(rows, axis=1, keepdims=True)
    first = 5 * rng.standard_normal((200, 3))
    first[0] = -20 * rows[0]  # where the gradient is the row
    second = first + 0.1 * rng.standard_normal((200, 3))
    second[0] = first[0] + 0.1 * rows[0]
    ratios = np.array(
        [
            model.log_likelihood(tuple(after), tuple(row))
            - model.log_likelihood(tuple(before), tuple(row))
            for before, after, row in zip(first, second, rows, strict=True)
        ]
    )
    share = np.abs(ratios) / (model.lipschitz * np.linalg.norm(second - first, axis=1))
    assert (share < 1 + 1e-9).all()
    assert share[0] == pytest.approx(1)
