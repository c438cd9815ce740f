"""What the methods that see a batch compute, release and refuse."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import dpmc
from dpmc import registry
from dpmc.mcmc import barker_correction, batch_ratios, moves
from dpmc.mcmc.batch_ratios import BatchRatios
from dpmc.mcmc.methods import dp_barker, dp_penalty, minibatch_penalty, rwmh
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams, stream
from dpmc.rows.batches import Draws, draw_distinct
from dpmc.types import Dataset, DpmcError, Model
from tests.support.barker_errors import cdf_error
from tests.support.posteriors import rows
from tests.support.running import (
    PARAMS,
    START,
    START_3,
    banana_model,
    cauchy_model,
    gaussian_model,
    half_line_model,
    run_method,
)

METHODS = ["dp_barker", "minibatch_penalty"]


def drawn(num_rows: int, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the batch that the compiled call draws from the same stream."""
    draws = Draws(num_rows, batch_size)
    mask, candidates, batch = draws.scratch()
    words = rng.integers(0, 2**64, size=draws.words_per_batch, dtype=np.uint64)
    assert draw_distinct(words, draws.bits, num_rows, mask, candidates, batch)
    return batch.astype(np.int64)


def row_ratios(model: Model, dataset: Dataset, theta, theta_new) -> np.ndarray:
    """Return the log-likelihood ratio of every row, row by row in plain Python."""
    features = dataset.x.T if model.features is None else model.features(dataset.x)
    coefficients = model.coefficients or (lambda value: value)
    old, new = tuple(coefficients(theta)), tuple(coefficients(theta_new))
    row = getattr(model.log_likelihood, "py_func", model.log_likelihood)
    return np.array([row(new, tuple(y)) - row(old, tuple(y)) for y in features.T])


@pytest.mark.parametrize("which", ["gaussian", "banana", "cauchy"])
def test_estimates_are_those_of_the_clipped_ratios_of_the_batch(which):
    """Sum, sum of squares, clip count and the variance (n T)^2 / b var(r), to rounding."""
    model = {
        "gaussian": gaussian_model(2, 0.5),
        "banana": banana_model(),
        "cauchy": cauchy_model(),
    }[which]
    n, b, bound = 90, 25, 0.15
    dataset = rows("estimates", n, model.dim)
    ratios = BatchRatios(Posterior(model, dataset), b)
    theta, theta_new = np.full(model.dim, 0.1), np.linspace(0.2, 0.3, model.dim)
    every = row_ratios(model, dataset, theta, theta_new)
    one, two, three = (stream(4, "estimates", which) for _ in range(3))
    counts = set()
    for _ in range(20):
        batch = drawn(n, b, one)
        clipped = np.clip(every[batch], -bound, bound)
        count = int(np.sum(np.abs(every[batch]) > bound))
        total, squares, found = ratios.sums(theta, theta_new, bound, two)
        np.testing.assert_allclose([total, squares], [clipped.sum(), (clipped**2).sum()])
        estimate = ratios.estimate(theta, theta_new, bound, three)
        scale = n * model.tempering / b
        assert estimate.log_ratio == pytest.approx(scale * clipped.sum())
        exact = (n * model.tempering) ** 2 / b * clipped.var()
        assert estimate.variance == pytest.approx(exact, rel=1e-9)
        assert found == estimate.clipped == count
        counts.add(count)
    assert len(counts) > 1
    assert max(counts) < b


def test_a_batch_that_falls_short_of_words_is_drawn_anew(monkeypatch):
    """With 24 numbers for 20 of 60 rows about every other draw falls short."""
    monkeypatch.setattr(Draws, "words_per_batch", property(lambda self: 6))
    dataset = Dataset("ones", np.ones((60, 2)))
    ratios = BatchRatios(Posterior(gaussian_model(), dataset), 20)
    theta, rng, plain = np.zeros(2), stream(5, "words"), stream(5, "words")
    every = row_ratios(gaussian_model(), dataset, theta, theta + 0.1)
    for _ in range(50):
        assert ratios.sums(theta, theta + 0.1, 1.0, rng)[0] == pytest.approx(20 * every[0])
    plain.integers(0, 2**64, 50 * 6, dtype=np.uint64)
    assert rng.bit_generator.state != plain.bit_generator.state


@pytest.mark.parametrize("method", METHODS)
def test_a_move_that_the_prior_forbids_is_a_rejection_that_costs_its_release(method):
    dataset = rows("methods", 60, 1)
    changes = {"proposal_sd": 3.0, "ratio_clip_bound": 1e-3} if "penalty" in method else {}
    run, ledger = run_method(
        method, half_line_model(), dataset, [[0.3]], 200, **({"proposal_sd": 3.0} | changes)
    )
    assert np.isfinite(run.draws).all()
    assert (run.draws > 0).all()
    assert 0 < run.totals["accepted"][0] < 200
    assert [count for _, count in ledger.records()] == [200]


@pytest.mark.parametrize("clip_scale", [0.5, 1.0, 1.4])
def test_no_rows_give_barker_a_batch_variance_above_its_bound(clip_scale):
    """Rows at either extreme attain kappa^2; none exceed it, so the chain never stops."""
    n = b = 64
    extremes = np.where(np.arange(n) % 2, 1e9, -1e9)[:, None] * np.ones((1, 2))
    mixed = stream(6, "adversarial").choice([-1e9, -1.0, 0.0, 1e-3, 1e9], size=(n, 2))
    bound = clip_scale * math.sqrt(b) / n
    largest = []
    for x in (extremes, mixed):
        dataset = Dataset("adversarial", x)
        ratios = BatchRatios(Posterior(gaussian_model(), dataset), b)
        rng = stream(6, "moves")
        variances = [
            ratios.estimate(np.zeros(2), rng.standard_normal(2), bound, rng).variance
            for _ in range(40)
        ]
        largest.append(max(variances))
        changes = {"batch_size": b, "clip_scale": clip_scale}
        run, ledger = run_method("dp_barker", None, dataset, k=40, **changes)
        assert np.isfinite(run.draws).all()
        assert [count for _, count in ledger.records()] == [40]
    assert max(largest) <= clip_scale**2 * (1 + 1e-9)
    assert largest[0] == pytest.approx(clip_scale**2)


def neighbours_at_the_extremes(batch_size: int) -> tuple[Dataset, Dataset]:
    """Return rows all at one extreme, and the same with one of them at the other."""
    x = np.full((batch_size, 1), -1e6)
    y = x.copy()
    y[0] = 1e6
    return Dataset("one side", x), Dataset("both sides", y)


class Recording(Ledger):
    """A ledger that keeps what is released and how far it is said to move."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []
        self.sensitivities: list[float] = []

    def release(self, clipped, noise_multiplier, rng, batch=None):
        self.values.append(clipped.value)
        self.sensitivities.append(clipped.sensitivity)
        return super().release(clipped, noise_multiplier, rng, batch)


@pytest.mark.parametrize("batch_size", [2, 3, 5])
@pytest.mark.parametrize(("variance_factor", "excess"), [(2, 0.0), (3, 1.0)])
def test_the_sensitivity_of_the_released_ratio_is_attained(batch_size, variance_factor, excess):
    """Two data sets, one move: the exact bound is met, the published one is not."""
    released = []
    for dataset in neighbours_at_the_extremes(batch_size):
        ledger = Recording()
        changes = {"batch_size": batch_size, "variance_factor": variance_factor}
        changes |= {"ratio_noise_multiplier": 1e-9, "proposal_sd": 0.1}
        run_method("minibatch_penalty", gaussian_model(1), dataset, [[0.0]], 1, ledger, **changes)
        released.append(ledger)
    change = abs(released[0].values[0] - released[1].values[0])
    promised = released[0].sensitivities[0]
    assert promised == released[1].sensitivities[0] > 0
    spread = 2.0 * abs(moves.random_walk(np.zeros(1), np.array([0.1]), first_stream())[0])
    surplus = excess * (1 - 1 / batch_size) * spread**2
    assert promised - change == pytest.approx(surplus, rel=1e-6, abs=1e-9)


def first_stream() -> np.random.Generator:
    return Streams.of(1, "minibatch_penalty", 0).chain


@pytest.mark.parametrize("batch_size", [2, 3, 5])
@pytest.mark.parametrize("population", [1.0, 0.7])
def test_no_substitution_moves_the_penalised_ratio_further(batch_size, population):
    """All rows at a grid of values: the largest change is the formula, and 3 for 2 is too much."""
    largest, grid = 0.8, np.linspace(-1, 1, 5)

    def penalised(r: np.ndarray) -> np.ndarray:
        squares = (r**2).sum(-1) - r.sum(-1) ** 2 / batch_size
        return r.sum(-1) - 0.5 * population * squares

    others = largest * np.array(list(product(grid, repeat=batch_size - 1)))
    values = np.stack(
        [
            penalised(np.concatenate([np.full((len(others), 1), largest * v), others], axis=1))
            for v in grid
        ]
    )
    found = np.ptp(values, axis=0).max()
    exact = batch_ratios.penalised_sensitivity(largest, batch_size, 2.0, population)
    assert found == pytest.approx(exact)
    published = batch_ratios.penalised_sensitivity(largest, batch_size, 3.0, population)
    assert (published - 2 * largest) / (exact - 2 * largest) == pytest.approx(1.5)


def test_the_finite_population_factor_leaves_no_variance_to_the_whole_data():
    params = minibatch_penalty.Params(0.1, 60, 1.0, 1.0, finite_population=True)
    assert minibatch_penalty.population_factor(params, 60) == 0
    assert minibatch_penalty.population_factor(params, 119) == pytest.approx(59 / 118)
    one = minibatch_penalty.Params(0.1, 1, 1.0, 1.0, finite_population=True)
    assert minibatch_penalty.population_factor(one, 1) == 1


class OtherStream(BatchRatios):
    """Batches drawn from a stream of their own, so that chains of two methods align."""

    def sums(self, theta, theta_new, bound, rng):
        self.own = getattr(self, "own", None) or stream(7, "batches")
        return super().sums(theta, theta_new, bound, self.own)


@pytest.mark.parametrize("one_component", [False, True])
@pytest.mark.parametrize("guided", [False, True])
def test_a_batch_of_all_rows_is_the_penalty_method(monkeypatch, one_component, guided):
    """The same noise and decisions as DP-penalty, with tempering and clipping."""
    monkeypatch.setattr(minibatch_penalty, "BatchRatios", OtherStream)
    model, dataset, k = gaussian_model(2, 0.5), rows("methods", 60, 2), 300
    walk = {"one_component": one_component, "guided": guided}
    whole = minibatch_penalty.Params(0.3, 60, 0.05, 1.5, finite_population=True, **walk)
    plain = dp_penalty.Params(0.3, 0.05, 1.5, **walk)
    runs = [
        module.sampler(Posterior(model, dataset), params)(
            START, k, [Streams.of(8, "whole")], Ledger()
        )
        for module, params in ((minibatch_penalty, whole), (dp_penalty, plain))
    ]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    assert runs[0].totals["ratio_clipped"].tolist() == runs[1].totals["ratio_clipped"].tolist()
    assert runs[0].totals["ratio_clipped"][0] > 0
    assert 0.2 < runs[0].totals["accepted"][0] / k < 0.95


def test_a_batch_of_all_rows_without_noise_is_metropolis_hastings(monkeypatch):
    monkeypatch.setattr(minibatch_penalty, "BatchRatios", OtherStream)
    model, dataset, k = banana_model(), rows("methods", 60, 3), 300
    params = minibatch_penalty.Params(0.3, 60, 1e-13, 0.8, finite_population=True)
    runs = [
        module.sampler(Posterior(model, dataset), settings)(
            START_3, k, [Streams.of(9, "whole")], Ledger()
        )
        for module, settings in ((minibatch_penalty, params), (rwmh, rwmh.Params(0.3, 0.8)))
    ]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    assert 0.1 < runs[0].totals["accepted"][0] / k < 0.9


@pytest.mark.parametrize("guided", [False, True])
def test_with_one_dimension_one_component_is_all_of_them(guided):
    run, ledger = run_method(
        "minibatch_penalty",
        gaussian_model(1),
        rows("methods", 60, 1),
        [[0.0]],
        100,
        one_component=True,
        guided=guided,
        ratio_noise_multiplier=0.02,
    )
    assert run.draws.shape == (100, 1, 1)
    assert 0 < run.totals["accepted"][0] < 100
    assert [count for _, count in ledger.records()] == [100]


def forbidden(x):
    raise AssertionError("rows are used")


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_larger_than_the_data_is_refused_before_any_work(method):
    model = gaussian_model()
    untouchable = Model(
        "untouchable",
        2,
        model.log_likelihood,
        model.gradient,
        model.log_prior,
        model.log_prior_gradient,
        features=forbidden,
    )
    dataset = rows("methods", 60, 2)
    values = PARAMS[method] | {"batch_size": 61}
    with pytest.raises(
        DpmcError, match="`batch_size` must be from 1 to num_rows = 60, got"
    ) as caught:
        dpmc.fit(untouchable, dataset, method=method, epsilon=1.0, delta=1e-5, **values)
    assert "\n" not in str(caught.value)
    module = registry.load("method", method)
    with pytest.raises(DpmcError, match=r"`batch_size` must be .* 60.*, got 61"):
        module.sampler(Posterior(untouchable, dataset), module.Params(**values))


def test_barker_without_batch_variance_accepts_as_its_correction_says():
    """Equal rows: the exact acceptance probability of the known log-ratio, from 20,000 trials.

    By a binomial test of the kernel's own acceptance at error rate 1e-6 in each of three;
    the logistic function is within the error of the correction of it.
    """
    n, k = 50, 20_000
    dataset = Dataset("equal", np.full((n, 1), 0.4))
    correction = barker_correction.correction(2.0)
    rate = []
    for index, move in enumerate((0.05, 0.1, -0.1)):
        model = gaussian_model(1)
        kernel = barker_kernel(model, dataset, n, move)
        ratio = row_ratios(model, dataset, np.zeros(1), np.array([move])).sum()
        ratio += model.log_prior(np.array([move])) - model.log_prior(np.zeros(1))
        streams, ledger = Streams.of(11, "equal", index), Ledger()
        state = kernel.init(np.zeros(1), k, ledger, streams)
        count = sum(kernel.step(state, ledger, streams)[1].accepted for _ in range(k))
        exact = float(correction.tail(-ratio))
        assert stats.binomtest(count, k, exact).pvalue > 1e-6
        assert abs(exact - expit(ratio)) <= cdf_error(correction)
        rate.append(count / k)
    assert min(rate) < 0.4
    assert max(rate) > 0.6


def barker_kernel(model, dataset, batch_size, move):
    """Return the kernel of DP-Barker with all of its proposals one move away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_barker, "chain_sampler", lambda kernel: kernel)
        kernel = dp_barker.sampler(
            Posterior(model, dataset), dp_barker.Params(1.0, batch_size, clip_scale=1.4)
        )

    def step(state, ledger, streams):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moves, "random_walk", lambda theta, sd, rng: theta + move)
            return kernel.step(state, ledger, streams)

    return kernel._replace(step=step)
