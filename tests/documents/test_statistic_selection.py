"""What alparslan2023thesis prints in chapters 2 to 6 and what is right, by exact computation.

The samplers are those of chapter 2 and 5 on spaces of a few points, where their transition
matrices can be written down: no Monte Carlo error, so that a kernel either leaves the posterior
invariant to rounding or does not.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

# Prior of theta in {0, 1}, law of a latent variable t in {0, 1, 2} given theta, and what the
# release says of t.
PRIOR = np.array([0.3, 0.7])
LATENT = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
RELEASE = np.array([0.2, 1.0, 0.7])
EVIDENCE = LATENT @ RELEASE
POSTERIOR = PRIOR * EVIDENCE / (PRIOR @ EVIDENCE)


def stationary(kernel):
    """Return the one law that a transition matrix keeps."""
    size = len(kernel)
    assert kernel.sum(axis=1) == pytest.approx(np.ones(size))
    system = np.vstack([kernel.T - np.eye(size), np.ones(size)])
    found, *_ = np.linalg.lstsq(system, np.r_[np.zeros(size), 1.0], rcond=None)
    return found


# ------------------------------------------------------------- Algorithms 2 and 10
PROPOSAL = np.array([[0.4, 0.4, 0.2], [0.3, 0.2, 0.5]])  # q_theta(t)


def estimates(weights_at, drawn_at, normalised=False):
    """Return the values and probabilities of an estimate from two particles."""
    for pair in itertools.product(range(3), repeat=2):
        t = list(pair)
        weights = LATENT[weights_at, t] / PROPOSAL[drawn_at, t]
        total = weights.sum() if normalised else 2
        yield float(weights @ RELEASE[t]) / total, float(np.prod(PROPOSAL[drawn_at, t]))


def pseudo_marginal(old_weights=False, normalised=False):
    """Return the law of theta under a pseudo-marginal chain with two particles."""
    origins = (0, 1)
    states = sorted(
        {
            (theta, round(value, 12))
            for theta in (0, 1)
            for origin in origins
            for value, _ in estimates(origin if old_weights else theta, theta, normalised)
        }
    )
    place = {state: k for k, state in enumerate(states)}
    kernel = np.zeros((len(states), len(states)))
    for (theta, value), row in place.items():
        for new in (0, 1):
            for proposed, chance in estimates(theta if old_weights else new, new, normalised):
                accept = min(1.0, PRIOR[new] * proposed / (PRIOR[theta] * value))
                column = place[new, round(proposed, 12)]
                kernel[row, column] += 0.5 * chance * accept
                kernel[row, row] += 0.5 * chance * (1 - accept)
    law = stationary(kernel)
    return np.array([sum(law[k] for (t, _), k in place.items() if t == theta) for theta in (0, 1)])


def test_pseudo_marginal_weights_belong_to_the_proposed_value():
    assert pseudo_marginal() == pytest.approx(POSTERIOR, abs=1e-10)
    assert abs(pseudo_marginal(old_weights=True) - POSTERIOR).max() > 0.02


def test_self_normalised_estimates_break_the_pseudo_marginal_chain():
    for theta in (0, 1):
        plain = sum(value * chance for value, chance in estimates(theta, theta))
        assert plain == pytest.approx(EVIDENCE[theta], rel=1e-12)
        biased = sum(value * chance for value, chance in estimates(theta, theta, normalised=True))
        assert abs(biased / EVIDENCE[theta] - 1) > 0.005
    assert abs(pseudo_marginal(normalised=True) - POSTERIOR).max() > 0.002


# ------------------------------------------------------------- Algorithms 4, 11, 12
MIDDLE = np.array([0.35, 0.3, 0.35])  # q_{theta, theta'}(t), symmetric in both


def averaged(inverted=False, keep=False, rejected_at="theta", index_at="new", proposal=MIDDLE,
             joint=LATENT * RELEASE):  # fmt: skip
    """Return the law of (theta, t) under one averaged-ratio chain with three particles.

    Parameters are deviations: the printed ratio of equation 2.7, keeping t on rejection,
    drawing the index on rejection with the weights of theta' and on acceptance with those of
    theta.
    """
    states = list(itertools.product((0, 1), range(3)))
    place = {state: k for k, state in enumerate(states)}
    kernel = np.zeros((6, 6))
    for (theta, first), row in place.items():
        for new in (0, 1):
            for others in itertools.product(range(3), repeat=2):
                t = [first, *others]
                chance = 0.5 * float(np.prod(proposal[list(others)]))
                weights = {at: joint[at, t] / proposal[t] for at in (theta, new)}
                ratio = weights[new].sum() / weights[theta].sum()
                ratio = 1 / ratio if inverted else ratio
                accept = min(1.0, PRIOR[new] / PRIOR[theta] * ratio)
                chosen = weights[new if index_at == "new" else theta]
                back = weights[theta if rejected_at == "theta" else new]
                for k in range(3):
                    kernel[row, place[new, t[k]]] += chance * accept * chosen[k] / chosen.sum()
                    share = float(k == 0) if keep else back[k] / back.sum()
                    kernel[row, place[theta, t[k]]] += chance * (1 - accept) * share
    return stationary(kernel).reshape(2, 3)


TARGET = PRIOR[:, None] * LATENT * RELEASE
TARGET = TARGET / TARGET.sum()


@pytest.mark.parametrize("keep", [False, True])
def test_averaged_ratios_keep_the_posterior_with_or_without_a_new_latent_on_rejection(keep):
    assert averaged(keep=keep) == pytest.approx(TARGET, abs=1e-10)


def test_printed_ratio_2_7_is_inverted():
    assert abs(averaged(inverted=True).sum(axis=1) - POSTERIOR).max() > 0.05


def test_an_index_from_the_weights_of_the_other_value_breaks_the_chain():
    assert abs(averaged(rejected_at="new") - TARGET).max() > 0.002
    assert abs(averaged(index_at="old") - TARGET).max() > 0.002


def test_algorithm_12_needs_the_index_of_the_proposed_value_and_no_subset_size():
    """Latents do not depend on theta there: weights are densities of the release alone."""
    base = np.array([0.5, 0.3, 0.2])
    density = np.array([[0.9, 0.3, 0.1], [0.2, 0.5, 1.0]])  # h(y | z, theta)
    joint = base * density
    target = PRIOR[:, None] * joint / (PRIOR[:, None] * joint).sum()
    settings = {"proposal": base, "joint": joint}
    for keep in (True, False):
        assert averaged(keep=keep, **settings) == pytest.approx(target, abs=1e-10)
    assert abs(averaged(keep=True, index_at="old", **settings) - target).max() > 0.005


# ------------------------------------------------------------- sensitivity and noise
def test_local_sensitivity_of_a_maximum_looks_up_to_the_bound():
    rows, bound = np.array([0.0, 0.0, 0.0, 0.2]), 1.0
    most = 0.0
    for k in range(4):
        for value in np.linspace(0, bound, 101):
            changed = rows.copy()
            changed[k] = value
            most = max(most, abs(changed.max() - rows.max()))
    assert most == pytest.approx(max(bound - 0.2, 0.2 - 0.0))  # 0.8
    printed = max(0.2, 0.2 - 0.0)
    assert printed == 0.2


def test_a_density_of_data_dependent_scale_needs_its_normaliser():
    """Algorithm 7: without 1/Delta the weights favour data sets with much noise."""
    scales, prior, y = np.array([0.2, 2.0]), np.array([0.5, 0.5]), 1.0
    right = prior * np.exp(-abs(y) / scales) / (2 * scales)
    without = prior * np.exp(-abs(y) / scales)
    assert right[1] / right.sum() == pytest.approx(0.9, abs=0.01)
    assert without[1] / without.sum() == pytest.approx(0.989, abs=0.001)


# ------------------------------------------------------------- information
def of_normal(mean, variance, theta, step=1e-4):
    """Return the Fisher information of N(mean, variance) in one number, by quadrature."""
    sd = math.sqrt(variance(theta))

    y = np.linspace(mean(theta) - 12 * sd, mean(theta) + 12 * sd, 4001)
    ends = (theta + step, theta - step)
    up, down = (stats.norm.logpdf(y, mean(t), math.sqrt(variance(t))) for t in ends)
    score = (up - down) / (2 * step)
    return float(np.trapezoid(stats.norm.pdf(y, mean(theta), sd) * score**2, y))


def test_second_term_of_the_noisy_mean_of_bits_lacks_one_half():
    theta, epsilon, n = 0.1, 0.5, 100
    w = theta * (1 - theta) + 1 / (n * epsilon**2)
    exact = of_normal(lambda t: t, lambda t: (t * (1 - t) + 1 / (n * epsilon**2)) / n, theta)
    right = n / w + (1 - 2 * theta) ** 2 / (2 * w**2)
    printed = (n * w + (1 - 2 * theta) ** 2) / w**2
    assert exact == pytest.approx(right, rel=1e-5) == pytest.approx(788.166, abs=0.001)
    assert printed == pytest.approx(807.101, abs=0.001)
    # Without the normal approximation: a mixture over the number of ones.
    ones = np.arange(n + 1)
    sd = 1 / (n * epsilon)
    y = np.linspace(-8 * sd, 1 + 8 * sd, 6001)
    kernels = stats.norm.pdf(y[:, None], ones / n, sd)
    chances = stats.binom.pmf(ones, n, theta)
    slopes = chances * (ones - n * theta) / (theta * (1 - theta))
    found = np.trapezoid((kernels @ slopes) ** 2 / (kernels @ chances), y)
    assert found == pytest.approx(771.08, abs=0.01)


def test_gaussian_privacy_of_one_is_no_pure_privacy_of_one():
    delta = stats.norm.cdf(-1 + 0.5) - math.e * stats.norm.cdf(-1 - 0.5)
    assert delta == pytest.approx(0.127, abs=0.0005)


# ------------------------------------------------------------- prior
@pytest.mark.parametrize("power", [1, 2])
def test_flat_prior_on_the_half_line_has_no_posterior(power):
    """The likelihood falls like theta^(-power/2), whose integral diverges for power <= 2."""
    n, y = 100, 1.15 if power == 1 else 2.1
    g1 = math.gamma((power + 1) / 2) / math.sqrt(math.pi)
    g2 = math.gamma(power + 0.5) / math.sqrt(math.pi)

    def log_likelihood(theta):
        mean, variance = (2 * theta) ** (power / 2) * g1, (2 * theta) ** power * (g2 - g1**2)
        return stats.norm.logpdf(y, mean, math.sqrt(variance / n + (10**power / (n * 5)) ** 2))

    slope = (log_likelihood(1e14) - log_likelihood(1e12)) / math.log(100)
    assert slope == pytest.approx(-power / 2, abs=1e-3)
    assert slope >= -1.001
