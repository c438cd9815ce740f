"""Steps of private SEP have the sensitivity and the noise that they claim; broken ones do not.

Sensitivity: the exact bound, on random and adversarial rows, no error rate.

Noise: a law is rejected at level 1e-7 by Kolmogorov-Smirnov tests, and where a mean, a moment or
a correlation is 6.5 standard errors off, which a right one is with probability 8e-11. There are
fewer than 20,000 such comparisons: an error rate below 3e-6 for the file.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.scores import scores
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.variants import private
from dpmc.privacy import compiled_noise
from dpmc.rng import stream
from dpmc_papers.data import uci, uci_network
from tests.support.ep_settings import network_settings
from tests.support.networks import Chain

pytestmark = pytest.mark.slow

LEVEL = 1e-7
ERRORS = 6.5
HIDDEN, INPUTS, ROWS = 8, 3, 40
SIZE = 1 << 18
CLIP = 0.5


def records(seed):
    """Return random rows and such as pull weights as far as they can, in pairs of neighbours."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((12, INPUTS)) * np.repeat([1.0, 0.0, 100.0], [8, 2, 2])[:, None]
    y = rng.standard_normal(12)
    y[2:6] = 30.0, -30.0, 1e4, -1e4
    x[3], x[5] = x[2], x[4]
    return x, y


def neighbour_distances(params, seed, unusual=False):
    """Return how far apart the states are after a step from one row or its neighbour, over 2 s C.

    States are random; in unusual ones some cavities are no laws, and their factors not valid.
    """
    x, y = records(seed)
    states = []
    for n in range(len(y)):
        chain = Chain(params, INPUTS, ROWS, seed=seed)
        if unusual:
            chain.arrays.precision[chain.layout.places()[::7]] = -8.0
        states.append(chain.move(x, y, [n]).state())
        invalid, broken = chain.arrays.counts[[1, 4]]
        assert invalid + broken > 0 or not unusual
    distances = [np.linalg.norm(a - b) for a, b in zip(states[::2], states[1::2], strict=True)]
    return np.array(distances) / (2 * params.step * CLIP)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("unusual", [True, False])
def test_a_substituted_row_moves_a_step_no_farther_than_the_sensitivity(learned, unusual):
    law = {} if learned else {"noise_variance": 0.2}
    joint = network_settings(
        *("dp_sep", HIDDEN), step=0.3, clip="joint", clip_bound=CLIP, precision_floor="none", **law
    )
    blocks = replace(joint, clip="per_block")
    loose = replace(joint, clip="none", clip_bound=None)
    found = {
        name: np.concatenate([neighbour_distances(params, seed, unusual) for seed in range(12)])
        for name, params in (("joint", joint), ("blocks", blocks), ("loose", loose))
    }
    assert 0.9 < found["joint"].max() <= 1 + 1e-12
    # The bound of one block for four or five of them, and a step without a clip, are found out.
    assert 1.2 < found["blocks"].max() <= math.sqrt(4 + learned) * (1 + 1e-12)
    assert found["loose"].max() > 5


def noise_of_steps(params, num_steps=400, repeated=False):
    """Return the noise of steps that start at one state, over the standard deviation claimed."""
    x, y = records(3)
    chain = Chain(params, INPUTS, ROWS, seed=3)
    start = chain.state()
    plain = Chain(replace(params, noise_multiplier=0.0), INPUTS, ROWS, seed=3)
    expected = plain.move(x, y, [0]).state()
    noise = []
    for _ in range(num_steps):
        chain.set_state(start)
        if repeated and noise:
            chain.arrays.position[0] = 0
        noise.append(chain.move(x, y, [0]).state() - expected)
    return np.array(noise)[:, :-2] / (params.sensitivity * params.noise_multiplier)


def faults(noise):
    """Return what is wrong with numbers that are to be independent standard normal ones."""
    num_steps, width = noise.shape
    found = []
    if stats.kstest(noise.ravel(), "norm").pvalue < LEVEL:
        found.append("law")
    if np.abs(noise.mean(axis=0)).max() * math.sqrt(num_steps) > ERRORS:
        found.append("means")
    # Squares of normal numbers are skewed: their means are compared by the gamma law.
    tails = stats.chi2.sf(np.sum(noise**2, axis=0), num_steps)
    if min(tails.min(), 1 - tails.max()) < LEVEL / width:
        found.append("variances")
    products = noise.T @ noise * (1 - np.eye(width))
    if np.abs(products).max() / math.sqrt(num_steps) > ERRORS:
        found.append("coordinates")
    lagged = np.mean(noise[1:] * noise[:-1]) * math.sqrt((num_steps - 1) * width)
    if abs(lagged) > ERRORS:
        found.append("steps")
    return found


@pytest.mark.parametrize("clip", ["joint", "per_block"])
def test_every_coordinate_of_every_step_has_noise_of_its_own(clip):
    params = network_settings(
        *("dp_sep", HIDDEN),
        step=0.3,
        clip=clip,
        clip_bound=CLIP,
        noise_multiplier=1.7,
        precision_floor="none",
        noise_variance=0.2,
    )
    noise = noise_of_steps(params)
    assert faults(noise) == []
    assert noise.shape[1] == 2 * (HIDDEN * (INPUTS + 1) + HIDDEN + 1)
    # Noise that is used again, the noise of the public code, and noise a tenth too small.
    assert "steps" in faults(noise_of_steps(params, repeated=True))
    assert "law" in faults(noise_of_steps(replace(params, noise_rule="published")))
    assert "variances" in faults(0.5 * noise)
    assert "law" in faults(0.9 * noise)


def test_the_law_of_the_noise_precision_has_noise_as_well():
    """One-sided, since it keeps at least what the prior has: the median is that of the noise."""
    params = private(HIDDEN, 10, CLIP, 1.7, None)
    x, y = records(3)
    chain = Chain(params, INPUTS, ROWS, seed=3)
    start = chain.state()
    found = []
    for _ in range(400):
        chain.set_state(start)
        found.append(chain.move(x, y, [0]).arrays.gamma.copy())
    sd = params.noise_sd(ROWS)
    noise = (np.array(found) - 6.0) / sd
    assert (noise >= 0).all()
    raised = np.sum(noise > 1.0, axis=0)
    low, high = stats.binom.ppf([LEVEL, 1 - LEVEL], 400, stats.norm.sf(1.0))
    slack = 400 * CLIP * params.step / sd  # of the factor itself
    assert (raised >= low - slack).all()
    assert (raised <= high + slack).all()
    assert abs(np.corrcoef(noise.T)[0, 1]) * 20 < ERRORS


def quality(numbers):
    """Return what is wrong with a long sequence of numbers."""
    n = len(numbers)
    found = []
    if stats.kstest(numbers, "norm").pvalue < LEVEL:
        found.append("law")
    # Standard errors of powers 1 to 4 and 6 of a normal number.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        error = (np.mean(numbers**power) - mean) / math.sqrt(variance / n)
        if abs(error) > ERRORS:
            found.append(f"power {power}")
    squares = numbers**2 - 1
    for lag in range(1, 34):
        for series, variance in ((numbers, 1.0), (squares, 4.0)):
            error = np.mean(series[lag:] * series[:-lag]) / math.sqrt(variance / (n - lag))
            if abs(error) > ERRORS:
                found.append(f"lag {lag}")
    for bound in (3.0, 4.0, 4.5):
        count = int(np.sum(np.abs(numbers) > bound))
        chance = 2 * stats.norm.sf(bound)
        if min(stats.binom.cdf(count, n, chance), stats.binom.sf(count - 1, n, chance)) < LEVEL:
            found.append(f"beyond {bound}")
    return found


def test_the_source_of_normal_numbers_is_good_and_broken_ones_are_found_out():
    rng = np.random.default_rng(12)
    state, numbers = compiled_noise.source(rng), np.empty(SIZE)
    compiled_noise.fill(state, numbers)
    assert quality(numbers) == []
    again = np.empty(SIZE)
    compiled_noise.fill(state, again)
    assert quality(again) == []
    assert abs(np.mean(numbers * again)) * math.sqrt(len(again)) < ERRORS
    # Two lanes with one state; sums of twelve uniform numbers; another scale.
    shared = compiled_noise.source(rng).reshape(4, 8)
    shared[:, 1] = shared[:, 0]
    compiled_noise.fill(shared.ravel(), again)
    assert "lag 1" in quality(again)
    assert "power 6" in quality(rng.uniform(size=(12, SIZE)).sum(axis=0) - 6)
    assert "power 2" in quality(1.02 * numbers)


def test_sources_from_one_generator_are_different():
    rng = np.random.default_rng(1)
    numbers = np.empty((2, 4096))
    for row in numbers:
        compiled_noise.fill(compiled_noise.source(rng), row)
    assert abs(np.mean(numbers[0] * numbers[1])) * 64 < ERRORS


def test_sep_on_wine_is_as_good_as_published():
    """[vinaroz2022dpsep, Table 2] has 0.623 with standard deviation 0.0436 over splits."""
    if uci.find("wine") is None:
        pytest.skip(f"{uci.FOLDER_VARIABLE} names no folder with wine")
    errors, shapes = [], []
    for seed in (1, 2, 3, 4):
        rows = uci_network.Params("wine", seed, "authors")
        parts = uci_network.split(uci_network.generate(rows, stream(0, "unused")))
        fit = network_engine.fit(
            parts.x,
            parts.y,
            NetworkSettings(hidden=50, num_passes=40, refine_prior=True),
            np.random.default_rng(seed),
        )
        assert fit.status == "complete"
        y_test = parts.y_shift + parts.y_scale * parts.y_test
        mean, variance = fit.predict(parts.x_test)
        units = parts.y_shift, parts.y_scale
        errors.append(scores(mean, variance, fit.noise_variance, y_test, *units).rmse)
        shapes.append(fit.noise_gamma[0] / len(parts.y))
    # Four splits of standard deviation 0.044: five standard errors.
    assert abs(np.mean(errors) - 0.623) < 5 * 0.044 / 2
    assert all(0.37 < shape < 0.40 for shape in shapes)
