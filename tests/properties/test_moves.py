"""Laws of the moves: reversibility, volume, masses, proposals, acceptance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmc.mcmc import moves
from dpmc.rng import stream

MATRIX = [[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]]


def force(theta: np.ndarray) -> np.ndarray:
    """Return the gradient of a log-density that is neither Gaussian nor separable."""
    return -(theta**3) - 0.5 * theta + 0.3 * np.roll(np.sin(theta), 1)


def flow(theta, momentum, mass, eta=0.1, steps=7):
    return moves.leapfrog(theta, momentum, force(theta), force, eta, steps, mass)


vectors = st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3).map(np.array)


@pytest.mark.parametrize("mass", [1.0, [0.5, 1.0, 3.0], MATRIX])
@settings(max_examples=25, deadline=None)
@given(theta=vectors, momentum=vectors)
def test_leapfrog_is_reversible(mass, theta, momentum):
    mass = moves.Mass(mass, 3)
    end = flow(theta, momentum, mass)
    back = flow(end.theta, -end.momentum, mass)
    np.testing.assert_allclose(back.theta, theta, atol=1e-10)
    np.testing.assert_allclose(back.momentum, -momentum, atol=1e-10)


@pytest.mark.parametrize("mass", [1.0, [0.5, 1.0, 3.0], MATRIX])
def test_leapfrog_preserves_volume(mass):
    mass, rng, h = moves.Mass(mass, 3), stream(0, "volume"), 1e-6
    for _ in range(5):
        point = rng.standard_normal(6)

        def image(z):
            end = flow(z[:3], z[3:], mass)
            return np.concatenate([end.theta, end.momentum])

        jacobian = [(image(point + h * e) - image(point - h * e)) / (2 * h) for e in np.eye(6)]
        assert abs(np.linalg.det(np.array(jacobian))) == pytest.approx(1, abs=1e-6)


def test_a_step_that_misses_half_the_kick_is_not_reversible():
    """The law has teeth: using the gradient of the start only breaks it."""
    theta, momentum = np.array([0.3, -0.5, 1.0]), np.array([1.0, 0.2, -0.4])

    def lazy(theta, momentum):
        kick = momentum + 0.1 * force(theta)
        return theta + 0.1 * kick, kick

    end = lazy(theta, momentum)
    back = lazy(end[0], -end[1])
    assert np.abs(back[0] - theta).max() > 1e-3


def test_leapfrog_changes_nothing_that_it_is_given():
    theta, momentum, gradient = np.ones(3), np.ones(3), np.ones(3)
    moves.leapfrog(theta, momentum, gradient, force, 0.1, 3, moves.Mass(1.0, 3))
    for array in (theta, momentum, gradient):
        np.testing.assert_array_equal(array, np.ones(3))


def test_a_trajectory_that_diverges_ends_and_says_so():
    end = moves.leapfrog(
        np.ones(1), np.ones(1), np.ones(1), lambda t: t**3 * 1e200, 1e3, 50, moves.Mass(1.0, 1)
    )
    assert not end.finite


@pytest.mark.parametrize("mass", [2.0, [0.5, 1.0, 3.0], MATRIX])
def test_momenta_have_the_mass_as_covariance(mass):
    """Error rate 1e-6 by the chi-square law of the kinetic energy."""
    value, rng = moves.Mass(mass, 3), stream(1, "momentum")
    energies = np.array([2 * value.kinetic(value.momentum(rng)) for _ in range(4000)])
    assert stats.kstest(energies, stats.chi2(3).cdf).pvalue > 1e-6
    dense = np.asarray(mass) if np.ndim(mass) == 2 else np.diag(np.broadcast_to(mass, 3))
    p = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(dense @ value.velocity(p), p)


@settings(max_examples=60, deadline=None)
@given(delta=st.floats(-6, 6), s=st.floats(0.05, 4))
def test_penalised_acceptance_satisfies_detailed_balance(delta, s):
    """a(D) / a(-D) = exp(D), by quadrature over the noise; without the penalty it is not.

    The closed form is Phi(D/s - s/2) + exp(D) Phi(-D/s - s/2).
    """
    z = np.linspace(-12, 12, 40001)
    density = stats.norm.pdf(z)

    def acceptance(true, correction):
        return np.trapezoid(density * np.minimum(1, np.exp(true + s * z - correction)), z)

    half = moves.penalty(s)
    forward, backward = acceptance(delta, half), acceptance(-delta, half)
    assert math.log(forward / backward) == pytest.approx(delta, abs=2e-4)
    closed = stats.norm.cdf(delta / s - s / 2) + math.exp(delta) * stats.norm.cdf(
        -delta / s - s / 2
    )
    assert forward == pytest.approx(closed, abs=1e-6)
    if s > 1 and abs(delta) > 0.5:
        wrong = math.log(acceptance(delta, 0.0) / acceptance(-delta, 0.0))
        assert abs(wrong - delta) > 1e-2


@pytest.mark.parametrize(
    ("delta", "s", "expected"),
    [(0.5, 1.0, 0.7615782918651), (-1.0, 3.0, 0.0781373205736), (4.0, 2.0, 0.9150466813289)],
)
def test_acceptance_rate_under_noise(delta, s, expected):
    """Error rate 1e-6: a binomial count of accepted noisy tests."""
    rng, trials = stream(2, "acceptance", delta, s), 40_000
    accepted = sum(
        moves.accept(delta + s * rng.standard_normal() - moves.penalty(s), rng)
        for _ in range(trials)
    )
    assert stats.binomtest(accepted, trials, expected).pvalue > 1e-6


def test_nan_is_a_rejection():
    assert not moves.accept(math.nan, stream(0, "nan"))
    assert moves.accept(math.inf, stream(0, "inf"))
    assert not moves.accept(-math.inf, stream(0, "minus"))


@pytest.mark.parametrize("one_component", [False, True])
def test_guided_walk_turns_round_only_what_moved(one_component):
    rng, theta = stream(3, "guided"), np.zeros(4)
    direction, sd = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    for _ in range(50):
        proposal, flipped = moves.guided_walk(theta, direction, sd, rng, one_component)
        moved = proposal != theta
        assert moved.sum() == (1 if one_component else 4)
        assert (np.sign(proposal[moved]) == direction[moved]).all()
        np.testing.assert_array_equal(flipped[moved], -direction[moved])
        np.testing.assert_array_equal(flipped[~moved], direction[~moved])


@pytest.mark.parametrize("one_component", [False, True])
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("dim", [1, 4])
def test_a_walk_makes_the_proposals_of_its_kind(one_component, guided, dim):
    sd, theta = np.linspace(0.5, 2.0, dim), np.zeros(dim)
    walk = moves.Walk(sd, one_component, guided)
    direction = walk.direction(stream(6, "walk"))
    assert (np.abs(direction) == 1).all()
    assert guided or (direction == 1).all()
    a, b = stream(7, "walk"), stream(7, "walk")
    for _ in range(20):
        proposal, flipped = walk.propose(theta, direction, a)
        if guided:
            expected, other = moves.guided_walk(theta, direction, sd, b, one_component)
        else:
            expected, other = moves.random_walk(theta, sd, b, one_component), direction
        np.testing.assert_array_equal(proposal, expected)
        np.testing.assert_array_equal(flipped, other)
        assert (proposal != theta).sum() == (1 if one_component else dim)


@pytest.mark.parametrize("mass", [1.0, [0.5, 1.0, 3.0], MATRIX])
@settings(max_examples=25, deadline=None)
@given(theta=vectors, momentum=vectors)
def test_langevin_is_one_leapfrog_step_and_reversible(mass, theta, momentum):
    mass = moves.Mass(mass, 3)
    end = moves.langevin(theta, momentum, force(theta), force, 0.3, mass)
    leap = moves.leapfrog(theta, momentum, force(theta), force, 0.3, 1, mass)
    np.testing.assert_allclose(end.theta, leap.theta, atol=1e-12)
    np.testing.assert_allclose(end.momentum, leap.momentum, atol=1e-12)
    np.testing.assert_array_equal(end.gradient, force(end.theta))
    back = moves.langevin(end.theta, -end.momentum, end.gradient, force, 0.3, mass)
    np.testing.assert_allclose(back.theta, theta, atol=1e-12)
    np.testing.assert_allclose(back.momentum, -momentum, atol=1e-12)


def test_langevin_weighs_a_move_by_the_densities_of_both_proposals():
    """The kinetic energies differ by ln q(theta | theta') - ln q(theta' | theta)."""
    rng, eta, mass = stream(8, "langevin"), 0.4, moves.Mass(MATRIX, 3)
    inverse = np.linalg.inv(MATRIX)
    for _ in range(10):
        theta, momentum = rng.standard_normal(3), mass.momentum(rng)
        end = moves.langevin(theta, momentum, force(theta), force, eta, mass)

        def log_density(new, old, eta=eta, inverse=inverse):
            mean = old + eta**2 / 2 * inverse @ force(old)
            return stats.multivariate_normal(mean, eta**2 * inverse).logpdf(new)

        expected = log_density(theta, end.theta) - log_density(end.theta, theta)
        found = mass.kinetic(momentum) - mass.kinetic(end.momentum)
        assert found == pytest.approx(expected, abs=1e-9)


def test_jittered_step_sizes_fill_the_interval_evenly():
    sizes = moves.step_sizes(0.5, "halton", 1024, stream(4, "halton"))
    assert ((sizes >= 0) & (sizes < 0.5)).all()
    # A base-2 sequence of 1024 points has one in each of 1024 cells.
    assert len(set(np.floor(sizes / 0.5 * 1024).astype(int))) == 1024
    np.testing.assert_array_equal(moves.step_sizes(0.5, "none", 3, stream(4, "h")), [0.5] * 3)
    other = moves.step_sizes(0.5, "halton", 1024, stream(5, "halton"))
    assert (other != sizes).any()
