"""What a kernel says one row can move a release by is what the worst row moves it by.

A ledger whose answers do not depend on the rows makes a run on D and one on a neighbour
take the same path, on which everything that is released can be compared. Rows far out on
opposite sides attain the bound of each release: a sensitivity that is stated too small is
exceeded, and one that is too large is not attained.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc import registry
from dpmc.mcmc import barker_correction, moves
from dpmc.mcmc.methods import dp_barker, dp_sgld, dp_sgnht
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.types import Dataset
from tests.support.posteriors import gaussian_model, rows

ROWS = 12
NOISE = {"ratio_noise_multiplier": 0.4, "gradient_noise_multiplier": 0.3}
CASES = {
    "dp_penalty": {"proposal_sd": 0.3, "ratio_noise_multiplier": 0.2, "ratio_clip_bound": 1.5},
    "dp_hmc": {
        "step_size": 0.2,
        "num_leapfrog_steps": 2,
        "gradient_clip_bound": 0.8,
        "ratio_clip_bound": 1.5,
        **NOISE,
    },
    "dp_mala": {"step_size": 0.2, "gradient_clip_bound": 0.8, "ratio_clip_bound": 1.5, **NOISE},
    "minibatch_penalty": {
        "proposal_sd": 0.3,
        "batch_size": ROWS,
        "ratio_noise_multiplier": 0.2,
        "ratio_clip_bound": 1.5,
    },
}
# A third of the rows, whose sum is scaled to all of them.
CASES["minibatch_penalty of few"] = CASES["minibatch_penalty"] | {"batch_size": ROWS // 3}
STEPS = 60
# Opposite directions that differ, so that a move along any of them meets far rows of both signs.
FAR = 1e4 * np.array([[1.0, 0.3], [-1.0, -0.3], [0.4, -1.0], [-0.4, 1.0]])


class Blind(Ledger):
    """A ledger that records what it is given and answers with noise alone."""

    def __init__(self, claimed: float = 1.0) -> None:
        super().__init__()
        self.given: list[tuple[np.ndarray, float, float, np.random.Generator]] = []
        self.claimed = claimed

    def release(self, clipped, noise_multiplier, rng, batch=None):
        value, sensitivity = np.array(clipped.value), clipped.sensitivity * self.claimed
        self.given.append((value, sensitivity, noise_multiplier, rng))
        blank = np.zeros(value.shape) if value.ndim else 0.0
        return super().release(clipped._replace(value=blank), noise_multiplier, rng, batch)


def releases(method: str, x: np.ndarray, claimed: float = 1.0, tempering: float = 1.0):
    """Return what a run hands to its ledger, and its streams."""
    module = registry.load("method", method.partition(" ")[0])
    params = registry.parameters(module, CASES[method])
    posterior = Posterior(gaussian_model(2, tempering), Dataset("far", x))
    ledger, streams = Blind(claimed), Streams.of(3, "sensitivity", method)
    module.sampler(posterior, params)(np.zeros((1, 2)), STEPS, [streams], ledger)
    return ledger.given, streams


def largest_shares(method: str, claimed: float = 1.0) -> dict[str, float]:
    """Return the largest change over the stated sensitivity, of ratios and of gradients."""
    shares: dict[str, float] = {"ratio": 0.0, "gradient": 0.0}
    near = 0.1 * rows("sensitivity", ROWS - 1, 2).x
    variants = [releases(method, np.vstack([near, far]), claimed)[0] for far in FAR]
    for first in variants:
        for second in variants:
            for (a, s, _, _), (b, t, _, _) in zip(first, second, strict=True):
                assert s == t, "a sensitivity that depends on the rows"
                kind = "gradient" if a.ndim else "ratio"
                shares[kind] = max(shares[kind], float(np.linalg.norm(a - b)) / s)
    return shares


@pytest.mark.parametrize("method", CASES)
def test_no_row_moves_a_release_by_more_than_its_sensitivity_and_some_do_by_as_much(method):
    shares = largest_shares(method)
    for kind, share in shares.items():
        if kind == "gradient" and "gradient_clip_bound" not in CASES[method]:
            continue
        assert share <= 1 + 1e-9
        # The variance of a batch and its mean are not moved most by the same row.
        assert share > (0.5 if method.startswith("minibatch") else 0.999)


@pytest.mark.parametrize("method", CASES)
def test_half_of_a_sensitivity_is_exceeded(method):
    assert max(largest_shares(method, 0.5).values()) > 1 + 1e-9


@pytest.mark.parametrize("method", CASES)
def test_noise_comes_from_its_own_stream(method):
    given, streams = releases(method, rows("sensitivity", ROWS, 2).x)
    assert len(given) >= STEPS
    assert all(rng is streams.noise for _, _, _, rng in given)
    assert streams.noise is not streams.chain


@pytest.mark.parametrize("tempering", [1.0, 0.3])
@pytest.mark.parametrize("method", CASES)
def test_the_penalty_is_that_of_the_noise_that_was_released(method, tempering, monkeypatch):
    """Half the variance of the noise on the tempered log-ratio, for every proposal."""
    penalties = []
    penalty = moves.penalty

    def recording(noise_std):
        penalties.append(noise_std)
        return penalty(noise_std)

    monkeypatch.setattr(moves, "penalty", recording)
    given, _ = releases(method, rows("sensitivity", ROWS, 2).x, tempering=tempering)
    ratios = [(s, z) for value, s, z, _ in given if value.ndim == 0]
    # The sum of a batch is tempered before it is released.
    power = 1.0 if method.startswith("minibatch") else tempering
    expected = [power * s * z for s, z in ratios]
    np.testing.assert_allclose(penalties, expected, rtol=1e-12)
    assert len(penalties) == STEPS
    assert penalty(3.0) == pytest.approx(4.5)


class Silent(Ledger):
    """A ledger without noise that records what is said of a block of releases."""

    def noise_block(self, num_releases, dim, clip, noise_multiplier, rng, *batch):
        noise = super().noise_block(num_releases, dim, clip, noise_multiplier, rng, *batch)
        self.told = clip.sensitivity, noise_multiplier, rng, noise.std()
        return 0.0 * noise


@pytest.mark.parametrize("module", [dp_sgld, dp_sgnht])
def test_one_row_moves_a_step_of_a_stochastic_gradient_by_its_sensitivity(module):
    """All rows in the batch, one of them replaced by its opposite, both far beyond the bound.

    The first component that a release enters is the position of SGLD, and the momentum of
    SGNHT, which moves its position one step later.
    """
    more = {"friction": 2.0} if module is dp_sgnht else {}
    params = module.Params(batch_size=ROWS, gradient_clip_bound=0.8, step_size=0.1, **more)
    steps = 2 if module is dp_sgnht else 1
    near = 0.1 * rows("sensitivity", ROWS - 1, 2).x
    ends = []
    for far in FAR[:2]:
        posterior = Posterior(gaussian_model(2), Dataset("far", np.vstack([near, far])))
        ledger, streams = Silent(), Streams.of(4, "sensitivity")
        run = module.sampler(posterior, params)(np.zeros((1, 2)), steps, [streams], ledger)
        ends.append(run.draws[-1, 0])
        assert ledger.told[2] is streams.noise
    moved = float(np.linalg.norm(ends[0] - ends[1]))
    moved /= module.batches(params, ROWS).step if module is dp_sgnht else 1.0
    sensitivity, noise_multiplier, _, _ = ledger.told
    assert moved == pytest.approx(sensitivity, rel=1e-9)
    ((event, _),) = module.releases(params, ROWS).per_iteration
    # Half of it would be accounted as twice the noise.
    assert event.event.noise_multiplier == pytest.approx(noise_multiplier)
    added = math.sqrt(params.noise_scale if module is dp_sgld else 2 * params.friction)
    added *= math.sqrt(module.batches(params, ROWS).step)
    assert noise_multiplier * moved == pytest.approx(added)


def test_the_correction_of_barker_is_that_of_the_noise_that_is_added(monkeypatch):
    """Both together are logistic only where they were made for the same variance."""
    made, added = [], []
    correction = barker_correction.correction

    def recording(noise_variance, *rest):
        made.append(noise_variance)
        return correction(noise_variance, *rest)

    class Recording(Ledger):
        def release_barker(self, ratio, rng):
            added.append(ratio.event.noise_variance)
            assert rng is streams.noise
            return super().release_barker(ratio, rng)

    monkeypatch.setattr(barker_correction, "correction", recording)
    posterior, streams = Posterior(gaussian_model(2), rows("barker", 60, 2)), Streams.of(5, "b")
    params = dp_barker.Params(0.05, 20, noise_variance=1.7, clip_scale=0.7)
    dp_barker.sampler(posterior, params)(np.zeros((1, 2)), 5, [streams], Recording())
    assert made == [1.7]
    assert added == [1.7] * 5


@pytest.mark.parametrize("tempering", [1.0, 0.3])
def test_one_row_moves_the_ratio_of_barker_as_far_as_its_event_says(tempering):
    """The mean of a batch of all rows, of which one is replaced by its opposite."""
    event = dp_barker.releases(dp_barker.Params(0.3, ROWS), ROWS).per_iteration[0][0]

    class Same(Ledger):
        def release_barker(self, ratio, rng):
            values.append(ratio.value)
            return 0.0

    runs = []
    for far in FAR:
        values: list[float] = []
        x = np.vstack([0.01 * rows("sensitivity", ROWS - 1, 2).x, far])
        posterior = Posterior(gaussian_model(2, tempering), Dataset("far", x))
        sampler = dp_barker.sampler(posterior, dp_barker.Params(0.3, ROWS))
        sampler(np.zeros((1, 2)), 20, [Streams.of(8, "barker")], Same())
        runs.append(values)
    assert np.ptp(runs, axis=0).max() == pytest.approx(event.mean_change, rel=1e-9)


def log_posterior(x: np.ndarray, theta: np.ndarray, tempering: float) -> float:
    """Return the tempered log-density of the Gaussian model, written with dense algebra."""
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)
    away = x - theta
    likelihood = -0.5 * np.einsum("ni,ik,nk->", away, precision, away)
    return float(tempering * likelihood - 0.5 * np.sum((theta - 0.3) ** 2) / 4.0)


QUIET = {
    "rwmh": {"proposal_sd": 0.2},
    "dp_penalty": {"proposal_sd": 0.2, "ratio_noise_multiplier": 1e-13, "ratio_clip_bound": 50.0},
    "hmc": {"step_size": 0.3, "num_leapfrog_steps": 3},
    "dp_hmc": {
        "step_size": 0.3,
        "num_leapfrog_steps": 3,
        "ratio_noise_multiplier": 1e-13,
        "gradient_noise_multiplier": 1e-13,
        "gradient_clip_bound": 50.0,
        "ratio_clip_bound": 50.0,
    },
    "minibatch_penalty": {
        "proposal_sd": 0.05,
        "batch_size": ROWS,
        "ratio_noise_multiplier": 1e-13,
        "ratio_clip_bound": 50.0,
        "finite_population": True,
    },
}


@pytest.mark.parametrize("tempering", [1.0, 0.3])
@pytest.mark.parametrize("method", QUIET)
def test_without_noise_and_clipping_the_target_is_the_tempered_posterior(
    method, tempering, monkeypatch
):
    """The log-ratio of every test, against dense algebra; energies of HMC with their sign."""
    ratios, ends = [], []
    accept, leapfrog = moves.accept, moves.leapfrog

    def accepting(log_ratio, rng):
        ratios.append(log_ratio)
        return accept(log_ratio, rng)

    def stepping(theta, momentum, *rest):
        end = leapfrog(theta, momentum, *rest)
        ends.append((theta, momentum, end.theta, end.momentum))
        return end

    monkeypatch.setattr(moves, "accept", accepting)
    monkeypatch.setattr(moves, "leapfrog", stepping)
    proposals = []
    walk = moves.random_walk

    def proposing(theta, *rest):
        proposals.append((theta, walk(theta, *rest)))
        return proposals[-1][1]

    monkeypatch.setattr(moves, "random_walk", proposing)
    dataset = rows("target", ROWS, 2)
    module = registry.load("method", method)
    params = registry.parameters(module, QUIET[method])
    sampler = module.sampler(Posterior(gaussian_model(2, tempering), dataset), params)
    sampler(np.zeros((1, 2)), 40, [Streams.of(6, "target")], Ledger())
    if ends:
        expected = [
            log_posterior(dataset.x, new, tempering)
            - log_posterior(dataset.x, old, tempering)
            + 0.5 * (before @ before - after @ after)
            for old, before, new, after in ends
        ]
    else:
        expected = [
            log_posterior(dataset.x, new, tempering) - log_posterior(dataset.x, old, tempering)
            for old, new in proposals
        ]
    assert len(ratios) == len(expected) == 40
    np.testing.assert_allclose(ratios, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("tempering", [1.0, 0.3])
@pytest.mark.parametrize("method", ["hmc", "dp_hmc"])
def test_short_steps_keep_the_energy(method, tempering, monkeypatch):
    """Gradient and log-density belong together: their error falls with the square of the step."""
    errors = []
    for step_size in (0.04, 0.01):
        ratios = []
        with monkeypatch.context() as patch:
            patch.setattr(moves, "accept", lambda r, rng, ratios=ratios: ratios.append(r) is None)
            module = registry.load("method", method)
            values = QUIET[method] | {"step_size": step_size, "jitter": "none"}
            params = registry.parameters(module, values)
            posterior = Posterior(gaussian_model(2, tempering), rows("target", ROWS, 2))
            sampler = module.sampler(posterior, params)
            sampler(np.ones((1, 2)), 10, [Streams.of(7, "energy")], Ledger())
        errors.append(np.abs(ratios).max())
    assert errors[1] < errors[0] / 8
    assert errors[1] < 1e-3


def test_a_gradient_that_misses_a_factor_does_not_keep_the_energy(monkeypatch):
    """The broken variant: twice the gradient, as if the tempering were left out of it."""
    leapfrog = moves.leapfrog

    def doubled(theta, momentum, gradient, log_density_gradient, *rest):
        return leapfrog(theta, momentum, 2 * gradient, lambda t: 2 * log_density_gradient(t), *rest)

    monkeypatch.setattr(moves, "leapfrog", doubled)
    with pytest.raises(AssertionError):
        test_short_steps_keep_the_energy("dp_hmc", 1.0, monkeypatch)
