"""What a model declares is checked on public probes, and each broken variant is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numba
import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.models import circle, dot, scale
from dpmc.models import logistic as logistic_regression
from dpmc.numerics import compiled
from dpmc.numerics.compiled import compile_once
from dpmc.rows import model_checks, probes, row_functions
from dpmc.rows.sums import RowSums
from dpmc.types import Dataset, DpmcError, Model
from tests.support.posteriors import gaussian_model


def flat(theta):
    return 0.0


def flat_gradient(theta):
    return np.zeros_like(theta)


def log_likelihood(theta, x):
    margin = dot(theta, x)
    return min(margin, 0.0) - math.log1p(math.exp(-abs(margin)))


def gradient(theta, x):
    return scale(1.0 / (1.0 + math.exp(dot(theta, x))), x)


def logistic(dim=2, **changes):
    model = Model("logistic", dim, log_likelihood, gradient, flat, flat_gradient)
    return replace(model, **changes)


MODELS = {
    "wide gaussian_mean": (gaussian_model(30), 30),
    "narrow circle": (circle.build(circle.Params(1e-5)), 1),
    "bounded logistic": (
        logistic_regression.build(logistic_regression.Params(3, row_norm=1.2)),
        4,
    ),
    "own logistic": (logistic(), 2),
    "wide logistic": (logistic(40), 40),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_keep_their_promises_pass(name):
    model, columns = MODELS[name]
    model_checks.check(model, columns, {"row_norm": 3.0}, nan_rows=True)


@pytest.mark.parametrize("name", registry.names("model"))
def test_models_of_the_package_keep_their_promises(name):
    module = registry.load("model", name)
    rows = np.array(module.EXAMPLE_ROWS)
    model = module.build(module.EXAMPLE)
    bounds = {"row_norm": float(np.linalg.norm(rows, axis=1).max())}
    model_checks.check(model, rows.shape[1], bounds, nan_rows=True)
    wrong = replace(model, gradient=doubled(model.gradient), slope=None)
    with pytest.raises(DpmcError, match="another derivative in component"):
        model_checks.check(wrong, rows.shape[1], bounds)


def doubled(function):
    """Return a gradient that is twice as long, compiled with the one that it calls."""
    compiled = compile_once(function)

    def gradient(c, x):
        return scale(2.0, compiled(c, x))

    return gradient


# --- affine and linear -----------------------------------------------------------------------


def linear_model(function, slope, **changes):
    model = Model("m", 1, function, slope, flat, flat_gradient, linear=True, affine=True)
    return replace(model, **changes)


@pytest.mark.parametrize("kink", [0.0, -3.0, 1.5, 40.0, 500.0])
def test_a_hinge_is_not_affine_wherever_it_bends(kink):
    def hinge(c, x):
        return c[0] * max(x[0] - kink, 0.0)

    def slope(c, x):
        return (max(x[0] - kink, 0.0),)

    with pytest.raises(
        DpmcError, match="`affine` must be False, got True: hinge is not affine in the"
    ):
        model_checks.check_rows(linear_model(hinge, slope), 1)
    model_checks.check_rows(linear_model(hinge, slope, affine=False), 1)


def test_a_hinge_that_is_straight_at_the_first_row_is_refused_with_the_data():
    """On rows from -1 to 1 the bend at 2 shows nowhere; one substituted row would reach it."""

    def hinge(c, x):
        return c[0] * max(x[0] - 2.0, 0.0)

    def slope(c, x):
        return (max(x[0] - 2.0, 0.0),)

    dataset = Dataset("straight", np.linspace(-1.0, 1.0, 50)[:, None])
    with pytest.raises(DpmcError, match="not affine"):
        RowSums(linear_model(hinge, slope), dataset)


def test_a_bent_gradient_of_a_straight_likelihood_is_refused():
    def line(c, x):
        return c[0] * x[0]

    def bent(c, x):
        return (abs(x[0]),)

    with pytest.raises(DpmcError, match="bent is not affine"):
        model_checks.check_rows(linear_model(line, bent), 1)


def test_a_likelihood_that_is_not_linear_in_the_coefficients_is_refused():
    def square(c, x):
        return c[0] * c[0] * x[0]

    def slope(c, x):
        return (2.0 * c[0] * x[0],)

    with pytest.raises(
        DpmcError, match="`linear` must be False, got True: square is not linear in the"
    ):
        model_checks.check_rows(linear_model(square, slope, affine=False), 1)
    model_checks.check_rows(linear_model(square, slope, affine=False, linear=False), 1)


# --- features --------------------------------------------------------------------------------


def standardised(x):
    return ((x - x.mean(axis=0)) / x.std(axis=0)).T


def centred(x):
    return (x - x.mean(axis=0)).T


def ranked(x):
    return np.sort(x, axis=0).T


def scaled_by_the_largest(x):
    return (x / np.abs(x).max()).T


def from_the_row_before(x):
    return (x - np.roll(x, 1, axis=0)).T


@pytest.mark.parametrize(
    "features", [standardised, centred, ranked, scaled_by_the_largest, from_the_row_before]
)
def test_features_that_depend_on_other_rows_are_refused(features):
    model = logistic(features=features)
    with pytest.raises(DpmcError, match=r"function of each row by itself|is finite on no probe"):
        model_checks.check_rows(model, 2)


def rotated(x):
    return np.array([[1.0, 2.0], [-0.5, 1e3]]) @ x.T


@pytest.mark.parametrize("function", [np.tanh, np.sqrt, np.square, np.negative])
def test_features_of_each_row_by_itself_pass(function):
    model_checks.check_rows(logistic(features=lambda x: function(x.T)), 2)
    model_checks.check_rows(logistic(features=rotated), 2)


# --- gradient --------------------------------------------------------------------------------


def wrong_sign(theta, x):
    return scale(-1.0 / (1.0 + math.exp(dot(theta, x))), x)


def wrong_factor(theta, x):
    return scale(2.0 / (1.0 + math.exp(dot(theta, x))), x)


def wrong_last(theta, x):
    g = gradient(theta, x)
    return g[:-1] + (1.05 * g[len(x) - 1],)  # noqa: RUF005 (Numba has no unpacking)


@pytest.mark.parametrize("dim", [1, 3, 40])
@pytest.mark.parametrize(
    ("wrong", "component"), [(wrong_sign, 0), (wrong_factor, 0), (wrong_last, -1)]
)
def test_a_wrong_gradient_is_refused_and_its_component_named(dim, wrong, component):
    with pytest.raises(DpmcError, match=rf"another derivative in component {component % dim} at"):
        model_checks.check(logistic(dim, gradient=wrong), dim, {})


def test_a_gradient_that_is_not_finite_where_the_likelihood_is_is_refused():
    """Each row would be left out of every sum without a word."""

    def mostly(theta, x):
        return gradient(theta, x) if x[0] > 0.5 else scale(math.nan, x)

    def seldom(theta, x):
        return scale(math.nan, x) if x[0] > 3.0 else gradient(theta, x)

    with pytest.raises(DpmcError, match="component 0 at most probes, or none that is finite"):
        model_checks.check(logistic(3, gradient=mostly), 3, {})
    model_checks.check(logistic(3, gradient=seldom), 3, {})


def test_a_kink_is_no_error():
    def laplace(theta, x):
        return -abs(x[0] - theta[0])

    def slope(theta, x):
        return (1.0 if x[0] > theta[0] else -1.0,)

    model_checks.check(Model("laplace", 1, laplace, slope, flat, flat_gradient), 1, {})


# --- Lipschitz constant ----------------------------------------------------------------------


@pytest.mark.parametrize("declared", [1e-3, 1.0, 1e3])
def test_a_wrong_lipschitz_constant_costs_no_privacy(declared):
    """Sums are clipped at the bound that it gives, whatever the gradients are."""
    model = logistic(lipschitz=declared)
    x = np.random.default_rng(1).standard_normal((30, 2))
    other = x.copy()
    other[7] = 1e4
    old, new = np.zeros(2), np.array([0.3, -0.2])
    posteriors = [Posterior(model, Dataset("d", rows)) for rows in (x, other)]
    bound = posteriors[0].clip_bound(None) * math.dist(old, new)
    a, b = (posterior.sums.ratio(old, new, bound)[0] for posterior in posteriors)
    assert abs(a - b) <= 2 * bound * (1 + 1e-9)


# --- rows outside of the domain --------------------------------------------------------------


def test_a_model_for_positive_rows_and_parameters_needs_no_examples():
    def gamma(theta, x):
        return theta[0] * math.log(theta[0] * x[0]) - theta[0] * x[0] - math.lgamma(theta[0])

    def slope(theta, x):
        h = 1e-6
        return ((gamma((theta[0] + h,), x) - gamma((theta[0] - h,), x)) / (2 * h),)

    model_checks.check(Model("gamma", 1, gamma, slope, flat, flat_gradient), 1, {})


# --- errors and rows of NaN ------------------------------------------------------------------


@numba.njit
def strict_log(value):
    if value <= 0:
        raise ValueError("not positive")
    return math.log(value)


def raising(theta, x):
    if x[0] > 100.0:
        raise ValueError("a large row")
    return theta[0] * x[0]


def asserting(theta, x):
    assert x[0] < 100.0
    return theta[0] * x[0]


def calling(theta, x):
    return theta[0] * strict_log(x[0])


def first(theta, x):
    return (x[0],)


@pytest.mark.parametrize("function", [raising, asserting, calling])
def test_row_functions_that_can_raise_are_refused(function):
    model = Model("loud", 1, function, first, flat, flat_gradient)
    with pytest.raises(DpmcError, match=rf"`{function.__name__}` must .* can raise an error"):
        model_checks.check_rows(model, 1)


def test_row_functions_that_hide_a_row_of_nan_are_refused_where_it_is_to_count_nothing():
    @compiled.compile_once
    def hiding(theta, x):
        return theta[0] if math.isnan(x[0]) else theta[0] * x[0]

    @compiled.compile_once
    def slope(theta, x):
        return (1.0 if math.isnan(x[0]) else x[0],)

    model = Model("hiding", 1, hiding, slope, flat, flat_gradient)
    model_checks.check(model, 1, {})
    with pytest.raises(DpmcError, match="`log_likelihood` of a row of NaN must be NaN"):
        model_checks.check(model, 1, {}, nan_rows=True)


# --- publicity -------------------------------------------------------------------------------


def test_row_functions_run_in_plain_python_on_probes_alone(monkeypatch):
    """Every point that they see there is a feature of a probe, a mixture of two, or made up."""
    seen = []
    call = probes.RowFunction.__call__
    monkeypatch.setattr(
        probes.RowFunction, "__call__", lambda self, c, x: seen.append(x) or call(self, c, x)
    )
    model_checks._checked_rows.cache_clear()
    rows = np.full((50, 2), 0.12345) + 1e-6 * np.arange(100.0).reshape(50, 2)
    model = replace(gaussian_model(2), features=np.transpose)

    def points(x):
        seen.clear()
        model_checks._checked_rows.cache_clear()
        Posterior(model, Dataset("d", x)).sums.ratio(np.zeros(2), np.ones(2), 1.0)
        return list(seen)

    one, other = points(rows), points(5.0 - rows)
    assert one == other
    assert len(one) > 100
    private = {tuple(row) for row in rows.tolist()}
    assert not private & set(one)


def test_a_norm_below_the_constant_is_refused():
    with pytest.raises(DpmcError, match="`row_norm` must be at least 1"):
        logistic_regression.Params(3, row_norm=0.9)


def test_features_of_the_wrong_shape_are_refused():
    model = logistic(features=lambda x: x.T[:, : min(x.shape[0], 5)])
    with pytest.raises(DpmcError, match=r"`features` of .* must have shape .*, got \(2, 5\)"):
        model_checks.check_rows(model, 2)


def test_a_wrong_gradient_is_an_error_of_fit():
    rows = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises(DpmcError, match="another derivative in component 0"):
        dpmc.fit(
            logistic(gradient=wrong_sign),
            rows,
            method="dp_penalty",
            epsilon=4.0,
            delta=1e-5,
            proposal_sd=0.1,
            ratio_noise_multiplier=8.0,
            ratio_clip_bound=1.0,
        )


def test_a_lipschitz_constant_that_is_too_small_is_refused_where_rows_are_bounded():
    model = logistic(lipschitz=1.5)
    model_checks.check(model, 2, {"row_norm": 1.5})
    with pytest.raises(DpmcError, match="`lipschitz` must be at least 3, the length of a gradient"):
        model_checks.check(model, 2, {"row_norm": 3.0})
    model_checks.check(model, 2, {})  # no row is known to be admissible
    short = replace(model, example_rows=np.array([[1.0, 0.5], [0.1, -1.0]]))
    model_checks.check(short, 2, {"row_norm": 3.0})
    with pytest.raises(DpmcError, match="lipschitz"):
        model_checks.check(replace(short, example_rows=np.full((2, 2), 5.0)), 2, {})


def far_log_likelihood(theta, x):
    return theta[0] * math.log(x[0] - 1e6)


def far_gradient(theta, x):
    return (math.log(x[0] - 1e6),)


def test_a_model_that_is_finite_on_no_probe_asks_for_example_rows():
    model = Model("far", 1, far_log_likelihood, far_gradient, flat, flat_gradient)
    with pytest.raises(DpmcError, match=r"far_log_likelihood is finite on no probe .*example_rows"):
        model_checks.check(model, 1, {})
    examples = 1e6 + np.arange(1.0, 9.0)[:, None]
    model_checks.check(replace(model, example_rows=examples), 1, {})

    def wrong(theta, x):
        return (-math.log(x[0] - 1e6),)

    with pytest.raises(DpmcError, match="component 0"):
        model_checks.check(replace(model, example_rows=examples, gradient=wrong), 1, {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"example_rows": np.ones((3, 5))}, "`example_rows` must have 2 columns, got 5"),
        ({"example_thetas": np.ones((3, 5))}, "`example_thetas` must have 2 components, got 5"),
    ],
)
def test_examples_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(DpmcError, match=message):
        model_checks.check(logistic(**changes), 2, {})


@pytest.mark.parametrize("examples", [np.ones(3), np.array([[math.nan]]), np.ones((0, 2))])
def test_examples_that_are_no_rows_are_refused(examples):
    with pytest.raises(DpmcError, match="`example_rows` must hold"):
        logistic(example_rows=examples)


def test_checks_are_made_once_for_a_model():
    model = logistic(3)
    assert model_checks.check_rows(model, 3) is model_checks.check_rows(model, 3)


def test_functions_made_anew_are_made_once():
    model = logistic()
    again = row_functions.without_errors(model)
    assert again.gradient is row_functions.without_errors(model).gradient
    assert row_functions.without_errors(gaussian_model()).gradient is gaussian_model().gradient
