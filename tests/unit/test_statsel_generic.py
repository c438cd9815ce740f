"""Algorithms 1 to 5 for functions of one's own: they have the target that they claim.

The model: theta ~ N(0, 1), t | theta ~ N(theta, 1), y | t ~ N(t, 1), so that
y | theta ~ N(theta, 2) and theta | y ~ N(y / 3, 2 / 3). Means and mean squares of every chain
are compared with these within 4.5 standard errors: an error rate of 7e-6 for each of about
fifteen comparisons. Broken chains have to be beyond.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.rng import stream
from dpmc.statsel import generic
from dpmc.statsel.autocorrelation import standard_error
from dpmc.types import DpmcError

ERRORS = 4.5
Y = 1.8
MEAN, VARIANCE = Y / 3, 2 / 3


def log_normal(x, mean, variance):
    return -0.5 * ((x - mean) ** 2 / variance + math.log(2 * math.pi * variance))


def log_prior(theta):
    return log_normal(theta, 0.0, 1.0)


def log_joint(t, theta):
    return log_normal(t, theta, 1.0) + log_normal(Y, t, 1.0)


def away(theta, mean=MEAN, variance=VARIANCE) -> float:
    """Return the largest distance of two moments from the truth, in standard errors."""
    x = theta[len(theta) // 20 :] - mean
    first = abs(x.mean()) / standard_error(x, warn=False)
    square = x**2 - variance
    return max(first, abs(square.mean()) / standard_error(square, warn=False))


def run(algorithm, *args, **kwargs):
    return algorithm(*args, rng=stream(3, "tests", algorithm.__name__), **kwargs)


WALK = generic.random_walk(1.5)


def test_metropolis_hastings():
    chain = run(
        generic.metropolis_hastings,
        lambda theta: log_prior(theta) + log_normal(Y, theta, 2.0),
        WALK, 0.0, 20_000,
    )  # fmt: skip
    assert away(chain.theta) < ERRORS
    assert 0.3 < chain.acceptance_rate < 0.7


def log_walk(theta, rng):
    return theta * math.exp(0.8 * rng.standard_normal())


def gamma_target(theta):
    return 2 * math.log(theta) - theta if theta > 0 else -math.inf


def test_an_asymmetric_proposal_needs_its_ratio():
    """Gamma(3, 1) by a walk on log theta: log q(theta | theta') - log q(theta' | theta)."""
    proposal = generic.Proposal(log_walk, lambda old, new: math.log(new) - math.log(old))
    right = run(generic.metropolis_hastings, gamma_target, proposal, 3.0, 20_000)
    assert away(right.theta, 3.0, 3.0) < ERRORS
    wrong = run(generic.metropolis_hastings, gamma_target, generic.Proposal(log_walk), 3.0, 20_000)
    assert away(wrong.theta, 3.0, 3.0) > 2 * ERRORS


def test_several_dimensions():
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    precision = np.linalg.inv(covariance)
    chain = run(
        generic.metropolis_hastings,
        lambda theta: -0.5 * theta @ precision @ theta,
        generic.random_walk([1.5, 2.0]), np.zeros(2), 20_000,
    )  # fmt: skip
    assert chain.theta.shape == (20_000, 2)
    product = chain.theta[:, 0] * chain.theta[:, 1] - 0.6
    assert abs(product.mean()) < ERRORS * standard_error(product)


def estimate(num, self_normalised=False, at_old=None):
    def log_proposal(t, theta):
        return log_normal(t, theta, 1.5)

    plain = generic.importance_sampling(
        lambda theta, size, rng: theta + math.sqrt(1.5) * rng.standard_normal(size),
        log_proposal,
        log_joint,
        num,
    )
    if not self_normalised:
        return plain

    def normalised(theta, rng):
        t = theta + math.sqrt(1.5) * rng.standard_normal(num)
        prior = log_normal(t, theta, 1.0) - log_proposal(t, theta)
        return generic.log_mean(prior + log_normal(Y, t, 1.0)) - generic.log_mean(prior)

    return normalised


def test_importance_sampling_is_unbiased():
    """20,000 estimates from three particles each; the mean within 4.5 standard errors."""
    rng, one = stream(4, "tests", "importance"), estimate(3)
    found = np.exp([one(0.4, rng) for _ in range(20_000)])
    error = found.std() / math.sqrt(found.size)
    truth = math.exp(log_normal(Y, 0.4, 2.0))
    assert abs(found.mean() - truth) < ERRORS * error


def test_pseudo_marginal():
    chain = run(generic.pseudo_marginal, log_prior, estimate(5), WALK, 0.0, 20_000)
    assert away(chain.theta) < ERRORS


def test_an_estimate_of_another_theta_has_another_target():
    """As printed, Algorithm 2 weighs at theta: here an estimate that lags by one proposal."""
    last, one = [0.0], estimate(5)

    def lagging(theta, rng):
        before, last[0] = last[0], theta
        return one(before, rng)

    chain = run(generic.pseudo_marginal, log_prior, lagging, WALK, 0.0, 20_000)
    assert away(chain.theta) > ERRORS


@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_correlated_pseudo_marginal(correlation):
    def log_estimate(theta, normals):
        return generic.log_mean(log_normal(Y, theta + normals, 1.0))

    chain = run(
        generic.correlated_pseudo_marginal,
        log_prior, log_estimate, 4, correlation, WALK, 0.0, 20_000,
    )  # fmt: skip
    assert away(chain.theta) < ERRORS


def averaged(log_density=None, num_particles=3, num=15_000, joint=log_joint):
    def draw(theta, other, size, rng):
        return (theta + other) / 2 + rng.standard_normal(size)

    def density(t, theta, other):
        return log_normal(t, (theta + other) / 2, 1.0)

    return run(
        generic.averaged_ratio,
        log_prior, joint, draw, log_density or density, num_particles, WALK, 0.0, 1.0, num,
    )  # fmt: skip


def test_averaged_ratio():
    assert away(averaged().theta) < ERRORS
    # Draws whose density is another than claimed.
    wrong = averaged(lambda t, theta, other: log_normal(t, (theta + other) / 2, 4.0))
    assert away(wrong.theta) > ERRORS


def test_gibbs():
    def first(theta, rng):
        return 0.5 * theta[1] + math.sqrt(0.5) * rng.standard_normal()

    def second(theta, rng):
        return (theta[0] + Y) / 2 + math.sqrt(0.5) * rng.standard_normal()

    chain = run(generic.gibbs, (first, second), [0.0, 0.0], 20_000)
    assert away(chain.theta[:, 0]) < ERRORS
    assert away(chain.theta[:, 1], 2 * Y / 3, 2 / 3) < ERRORS

    def wrong(theta, rng):
        return (theta[0] + Y) / 2 + rng.standard_normal()

    assert away(run(generic.gibbs, (first, wrong), [0.0, 0.0], 20_000).theta[:, 0]) > ERRORS


def test_progress_is_told_to_the_end():
    told = []
    run(
        generic.metropolis_hastings,
        log_prior, WALK, 0.0, 1200, progress=lambda *args: told.append(args[:2]),
    )  # fmt: skip
    assert told == [(500, 1200), (1000, 1200), (1200, 1200)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaged(num_particles=1), "num_particles: 1, allowed an integer >= 2"),
        (lambda: averaged(lambda t, a, b: log_normal(t, a, 1.0), num=50), "not symmetric"),
        (lambda: generic.random_walk(0.0), "scale: 0.0"),
        (
            lambda: run(generic.metropolis_hastings, lambda t: -math.inf, WALK, 0.0, 5),
            r"log_target\(start\): -inf",
        ),
        (
            lambda: run(generic.metropolis_hastings, log_prior, WALK, 0.0, 0),
            "num_iterations: 0",
        ),
        (
            lambda: run(
                generic.metropolis_hastings, lambda t: 0.0 if t == 0 else math.nan, WALK, 0.0, 5
            ),
            "log_target: nan",
        ),
        (
            lambda: run(
                generic.correlated_pseudo_marginal,
                log_prior, lambda t, u: 0.0, 2, 1.0, WALK, 0.0, 5,
            ),
            "correlation: 1.0",
        ),
        (lambda: run(generic.gibbs, (), [0.0], 5), "start: shape"),
        (lambda: estimate(0), "num_particles: 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(DpmcError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
