"""One row moves no sum by more than its clip allows, whatever float the row is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import dpmc
from dpmc.models import circle
from dpmc.numerics import compiled
from dpmc.rng import stream
from dpmc.rows import kernels, tuples
from dpmc.rows.clipping import check_bound, clip_vector
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, DpmcError, Model
from tests.support.posteriors import banana_model, gaussian_model
from tests.support.posteriors import rows as make_rows

SLACK = 1 + 1e-9
SIZES = (0.0, 5e-324, 1e-300, 1e-17, 1.0, 50.0, 1e8, 1e16, 1e17, 1e20, 1e30, 1e154, 1e200, 1.7e308)
EXTREMES = [sign * size for size in SIZES for sign in (1.0, -1.0)]


def zero(theta):
    return 0.0


def zeros(theta):
    return 0.0 * theta


def logistic(c, x):
    """A log-likelihood that overflows: its ratio is not a number where both are infinite."""
    return -math.log(1.0 + math.exp(-tuples.dot(c, x)))


def logistic_gradient(c, x):
    return tuples.scale(math.exp(-tuples.dot(c, x)) / (1.0 + math.exp(-tuples.dot(c, x))), x)


def quadratic(c, x):
    return -0.5 * tuples.dot(tuples.subtract(x, c), tuples.subtract(x, c))


def quadratic_gradient(c, x):
    return tuples.subtract(x, c)


@compiled.compile_once
def nowhere(c, x):
    """No number for large rows, and infinities of both signs for the largest."""
    total = tuples.dot(c, x)
    if abs(total) < 1e10:
        return total
    return math.nan if abs(total) < 1e100 else total * 1e300


@compiled.compile_once
def nowhere_gradient(c, x):
    return tuples.scale(nowhere(c, x), x)


def plain_model(name: str, log_likelihood, gradient, dim: int) -> Model:
    return Model(name, dim, log_likelihood, gradient, zero, zeros)


# Each kind of sum: prefix sums, skipped rows, both orders of the loops, wide and narrow ones.
MODELS: dict[str, Callable[[], Model]] = {
    "gaussian_mean of one": lambda: gaussian_model(1),
    "gaussian_mean": lambda: gaussian_model(4),
    "gaussian_mean of two": lambda: gaussian_model(2),
    "banana": lambda: banana_model(4),
    "circle": lambda: circle.build(circle.Params(0.04)),
    "logistic": lambda: plain_model("logistic", logistic, logistic_gradient, 3),
    "quadratic": lambda: plain_model("quadratic", quadratic, quadratic_gradient, 2),
    "quadratic, wide": lambda: plain_model("wide", quadratic, quadratic_gradient, 14),
    "nowhere": lambda: plain_model("nowhere", nowhere, nowhere_gradient, 2),
    "nowhere, wide": lambda: plain_model("nowhere", nowhere, nowhere_gradient, 14),
}
NUM_ROWS = 700


def data_of(name: str) -> np.ndarray:
    width = 1 if name == "circle" else MODELS[name]().dim
    return make_rows("hostile", NUM_ROWS, width).x


def raw(model: Model, x: np.ndarray) -> RowSums:
    return RowSums(model, Dataset("hostile", x))


def moves(dim: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a move of all components, and one of a single one."""
    rng = stream(0, "hostile moves", seed)
    theta = rng.standard_normal(dim)
    away = theta + 0.3 * rng.standard_normal(dim)
    alone = theta.copy()
    alone[seed % dim] += 0.2
    return [(theta, away), (theta, alone)]


class Change:
    """How far each sum moves, in units of its sensitivity."""

    def __init__(self, name: str, base: np.ndarray, seed: int = 0) -> None:
        self.model = MODELS[name]()
        self.moves = moves(self.model.dim, seed)
        self.before = self.sums(base)

    def sums(self, x: np.ndarray) -> list[tuple[float, np.ndarray]]:
        sums, results = raw(self.model, x), []
        for theta, new in self.moves:
            for bound in (1e-3, 0.5, 40.0):
                ratios = [f(theta, new, bound)[0] for f in (sums.ratio, sums.plain_ratio)]
                ratios.append(self.batch(sums, theta, new, bound))
                gradients = [f(new, bound)[0] for f in (sums.gradient, sums.plain_gradient)]
                results += [(bound, np.atleast_1d(value)) for value in (*ratios, *gradients)]
        return results

    @staticmethod
    def batch(sums: RowSums, theta: np.ndarray, new: np.ndarray, bound: float) -> float:
        """Return the sum of a batch that holds every row."""
        old, at = sums.coefficients(theta), sums.coefficients(new)
        shape = len(at), len(sums.features)
        kernel = kernels.batch_ratio_kernel(sums.model.log_likelihood, *shape)
        everyone = np.arange(sums.num_rows, dtype=np.uint64)
        return float(kernel(np.ascontiguousarray(sums.features.T), everyone, old, at, bound)[0])

    def largest(self, x: np.ndarray) -> float:
        worst = 0.0
        for (bound, before), (_, after) in zip(self.before, self.sums(x), strict=True):
            change = float(np.linalg.norm(after - before)) / (2 * bound)
            worst = math.inf if math.isnan(change) else max(worst, change)
        return worst


@pytest.mark.parametrize("name", MODELS)
def test_no_row_moves_a_sum_by_more_than_its_sensitivity(name):
    base = data_of(name)
    change, rng, worst = Change(name, base), stream(1, "hostile", name), 0.0
    patterns = [np.full(base.shape[1], value) for value in EXTREMES]
    patterns += [rng.choice(EXTREMES, base.shape[1]) for _ in range(20)]
    for pattern in patterns:
        x = base.copy()
        x[rng.integers(NUM_ROWS)] = pattern
        worst = max(worst, change.largest(x))
    assert worst <= SLACK
    assert worst > 0.4  # the bound is nearly reached: the check has something to find


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_neither_does_one_among_rows_that_are_all_hostile(data):
    """Data sets of any rows at all, on the models whose sums are not plain passes."""
    name = data.draw(st.sampled_from(["gaussian_mean of one", "gaussian_mean", "banana", "circle"]))
    width = 1 if name == "circle" else MODELS[name]().dim
    entry = st.one_of(
        st.sampled_from(EXTREMES),
        st.floats(-5, 5),
        st.floats(allow_nan=False, allow_infinity=False),
    )
    few = data.draw(
        st.lists(st.lists(entry, min_size=width, max_size=width), min_size=2, max_size=5)
    )
    copies = data.draw(st.sampled_from([1, 40, 300]))
    offset = data.draw(st.sampled_from([0.0, 1e6, -1e13]))
    base = np.concatenate([np.array(few), np.repeat(few[:1], copies, axis=0) + offset])
    assume(np.isfinite(base).all())
    other = base.copy()
    other[0] = few[1]
    assert Change(name, base, copies).largest(other) <= SLACK


def broken_kernel(text: str, by: str) -> Callable[..., object]:
    """Return the maker of kernels with one piece of the text replaced."""
    original = kernels.compile_source

    def compile_source(source: str, *arguments: object, **names: object) -> object:
        return original(source.replace(text, by), *arguments, **names)

    return compile_source


@pytest.mark.parametrize(
    ("name", "text", "by"),
    [
        ("nowhere", "total != total", "total == 0.5"),
        ("nowhere", "odd += not length < math.inf", "odd += 0"),
        ("nowhere, wide", "odd += not length < math.inf", "odd += 0"),
    ],
)
def test_a_loop_that_lets_them_through_is_told_apart(name, text, by, monkeypatch):
    model = MODELS[name]()

    def renew(function):  # kernels are cached by the function that they are made from
        return lambda c, x: function(c, x)

    monkeypatch.setattr(kernels, "compile_source", broken_kernel(text, by))
    monkeypatch.setitem(
        MODELS,
        name,
        lambda: Model(
            name,
            model.dim,
            compiled.compile_once(renew(compiled.compile_once(model.log_likelihood))),
            compiled.compile_once(renew(compiled.compile_once(model.gradient))),
            zero,
            zeros,
        ),
    )
    base = data_of(name)
    change, worst = Change(name, base), 0.0
    for value in (1e17, 1e160, 1.7e308):
        x = base.copy()
        x[3] = value
        worst = max(worst, change.largest(x))
    assert worst > SLACK


def test_prefix_sums_with_half_the_digits_are_told_apart(monkeypatch):
    """Sums from the first row on, of one number each: what made one row swamp the others."""
    from dpmc.rows import sorted as sorted_sums

    def naive(feature: np.ndarray) -> sorted_sums.Column:
        values = np.sort(feature)
        blocks = np.add.reduceat(values, np.arange(0, values.size, sorted_sums.BLOCK))
        before = np.zeros((blocks.size + 1, 2))
        before[1:, 0] = np.cumsum(blocks)
        return sorted_sums.Column(values, values[:: sorted_sums.BLOCK].copy(), before)

    monkeypatch.setattr(sorted_sums.Column, "of", staticmethod(naive))
    monkeypatch.setattr(sorted_sums.Column, "middle", 0)
    monkeypatch.setattr(sorted_sums, "TOLERANCE", math.inf)
    base = make_rows("swamped", 2000, 1).x
    other = base.copy()
    other[5] = -1e17
    assert Change("gaussian_mean of one", base).largest(other) > SLACK


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.floats(), min_size=1, max_size=6),
    bound=st.floats(1e-100, 1e100),
)
@example(values=[math.inf, 1.0], bound=2.0)
@example(values=[math.inf, -math.inf], bound=2.0)
@example(values=[math.nan, math.inf], bound=2.0)
@example(values=[5e-324, 5e-324], bound=1.0)
def test_a_vector_is_clipped_whatever_it_holds(values, bound):
    vector = np.array(values)
    changed = clip_vector(vector, bound)
    size = math.hypot(*vector)
    assert size <= bound * (1 + 1e-12)
    if np.isnan(values).any():
        assert (vector == 0).all()
    elif np.isinf(values).any() or math.hypot(*values) > bound * (1 + 1e-12):
        assert size == pytest.approx(bound, rel=1e-12)
        assert changed
        assert (np.sign(vector) * np.sign(values) >= 0).all()
    elif not changed:
        np.testing.assert_array_equal(vector, values)


@pytest.mark.parametrize("bound", [0.0, 1e-101, -1.0, 1e101, math.nan])
def test_a_bound_whose_square_vanishes_or_overflows_is_refused(bound):
    with pytest.raises(DpmcError, match=r"`clip_bound` must be between 1e-100 and 1e\+100, got"):
        check_bound("clip_bound", bound)
    check_bound("clip_bound", 1.0)
    check_bound("clip_bound", math.inf)


def bilinear(dim: int) -> Model:
    """A model whose ratios and gradients depend on no row where all of theta is zero."""
    ones = (1.0,) * dim
    return Model(
        f"bilinear {dim}",
        2,
        lambda c, x: c[0] * tuples.dot(ones, x),
        lambda c, x: (c[2] * tuples.dot(ones, x), c[1] * tuples.dot(ones, x)),
        zero,
        zeros,
        coefficients=lambda t: np.array([t[0] * t[1], t[0], t[1]]),
        linear=True,
        affine=True,
    )


@pytest.mark.parametrize("dim", [1, 4])
@pytest.mark.parametrize("bound", [1e-3, 1.0])
def test_rows_whose_sum_overflows_count_as_nothing_where_slopes_are_zero(dim, bound):
    """All rows are finite, and so is their sum: those of a part of them are not."""
    x = np.zeros((128 if dim == 1 else 3000, dim))
    if dim == 1:
        x[[0, 16], 0], x[8, 0] = 1.7e308, -1.7e308
    else:  # rows far out are added in this order, and all of them in pairs
        x[[0, 1500], 0], x[1508, 0] = 1.7e308, -1.7e308
    assert np.isfinite(x.T.copy().sum())
    sums = raw(bilinear(dim), x)
    origin = np.zeros(2)
    for theta, away in ((origin, np.array([0.3, 0.0])), (origin, np.array([0.0, 0.3]))):
        assert sums.ratio(theta, away, bound)[0] == 0.0
        assert sums.ratio(theta, away, bound)[0] == sums.plain_ratio(theta, away, bound)[0]
    for theta in (origin, np.array([1e-320, 0.0])):
        fast, plain = sums.gradient(theta, bound)[0], sums.plain_gradient(theta, bound)[0]
        assert np.isfinite(fast).all()
        assert fast == pytest.approx(plain, abs=1e-9 * bound)


def test_a_row_far_out_does_not_stop_a_chain():
    """As before: a chain whose sums are not numbers never moves, and one row decides whether."""
    x = np.zeros((128, 1))
    x[[0, 16], 0], x[8, 0] = 1.7e308, -1.7e308
    model = dataclasses.replace(
        bilinear(1),
        log_prior=lambda t: -0.5 * (t[0] ** 2 + t[1] ** 2),
        log_prior_gradient=lambda t: -t,
    )
    given = {"ratio_noise_multiplier": 100.0, "ratio_clip_bound": 1e-3, "proposal_sd": 0.3}
    fit = dpmc.fit(
        model,
        x,
        method="dp_penalty",
        epsilon=1,
        delta=1e-6,
        num_chains=1,
        max_iterations=50,
        one_component=True,
        diagnostics="none",
        seed=1,
        progress=False,
        **given,
    )
    assert fit.totals["accepted"][0] > 20
