"""Traced gradients against differences in high precision, other libraries and hand-written ones."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc import priors
from dpmc.autodiff import source
from dpmc.autodiff.expression import Tape, gradient
from dpmc.autodiff.tracing import OPERATIONS, symbolic, where
from dpmc.models import dot, linear, logistic, poisson
from dpmc.rng import stream
from dpmc.types import DpmcError


def value_and_slope(function, *numbers):
    tape = Tape()
    inputs = [tape.input("x", k) for k in range(len(numbers))]
    value = tape.of(symbolic(function)(*inputs))
    nodes = [value, *gradient(value, inputs)]
    first, *slopes = source.values(nodes, {"x": [np.float64(x) for x in numbers]})
    return float(first), [float(slope) for slope in slopes]


IN_MPMATH = {"atan": mpmath.atan, "lgamma": mpmath.loggamma, "abs": abs}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("x", [0.3, 1.7])
def test_slopes_of_functions(name, x):
    exact = IN_MPMATH.get(name) or getattr(mpmath, name)
    value, (slope,) = value_and_slope(OPERATIONS[name], x)
    with mpmath.workdps(40):
        assert value == pytest.approx(float(exact(mpmath.mpf(x))), rel=1e-13)
        assert slope == pytest.approx(float(mpmath.diff(exact, mpmath.mpf(x))), rel=1e-12)


def shared(a, b):
    product = a * b
    return math.exp(product) / (1.0 + product) + product**3 - b / a + a**b + 2.0**a - b**0.5


def branches(a, b):
    return max(a, b) * min(a, 2.0) + abs(b - a) + where(a < b, a * a, b) + np.maximum(a, 0.1)


def loops(a, b):
    total = 0.0
    for k in range(1, 4):
        total += math.sin(k * a) * b**k
    return total + sum(x * x for x in (a, b)) + helper(a)


def helper(a):
    return math.log1p(a) if True else a


@pytest.mark.parametrize("function", [shared, branches, loops])
@pytest.mark.parametrize("point", [(0.7, 1.3), (1.9, 0.4)])
def test_slopes_of_expressions_are_those_of_differences(function, point):
    """Central differences with a step of 1e-6 are exact to about 1e-9 here."""
    value, slopes = value_and_slope(function, *point)
    assert value == pytest.approx(float(function(*point)), rel=1e-14)
    for k, slope in enumerate(slopes):
        h = np.eye(2)[k] * 1e-6
        difference = (function(*(point + h)) - function(*(point - h))) / 2e-6
        assert slope == pytest.approx(float(difference), rel=1e-7, abs=1e-8)


def test_what_is_not_chosen_makes_no_nan():
    value, (slope,) = value_and_slope(lambda x: where(x > 0.0, math.log(x), x), 0.0)
    assert value == 0.0
    assert slope == 1.0


# --- models ----------------------------------------------------------------------------------


def traced_logistic(p, row):
    *x, y = row
    margin = (2.0 * y - 1.0) * (p.a + dot(p.b, x))
    return min(margin, 0.0) - math.log1p(math.exp(-abs(margin)))


def traced_poisson(p, row):
    *x, y = row
    predictor = p.a + dot(p.b, x)
    return y * predictor - math.exp(predictor) - math.lgamma(y + 1.0)


def traced_linear(p, row):
    *x, y = row
    scaled = (y - p.a - dot(p.b, x)) * math.exp(-p.log_sigma)
    return -p.log_sigma - 0.5 * scaled**2


COEFFICIENTS = {"a": priors.normal(0, 10), "b": priors.normal(0, 10, size=2)}
PAIRS = {
    "logistic": (traced_logistic, COEFFICIENTS, logistic),
    "poisson": (traced_poisson, COEFFICIENTS, poisson),
    "linear": (traced_linear, {**COEFFICIENTS, "log_sigma": priors.normal(0, 3)}, linear),
}


def evaluated(model, theta, rows):
    """Return log-likelihoods and gradients of rows."""
    coefficients = theta if model.coefficients is None else model.coefficients(theta)
    features = rows.T if model.features is None else model.features(rows)
    c = tuple(coefficients.tolist())
    columns = [tuple(column) for column in features.T.tolist()]
    return (
        np.array([model.log_likelihood(c, x) for x in columns]),
        np.array([model.gradient(c, x) for x in columns]),
    )


@pytest.mark.parametrize("name", PAIRS)
def test_traced_models_are_the_hand_written_ones(name):
    function, given, module = PAIRS[name]
    mine = dpmc.model(function, given, num_columns=3)
    theirs = module.build(module.Params(2))
    rng = stream(0, "autodiff", name)
    rows = np.column_stack([rng.standard_normal((50, 2)), rng.integers(0, 2, 50)])
    for _ in range(5):
        theta, other = rng.standard_normal((2, mine.dim))
        first, first_slopes = evaluated(mine, theta, rows)
        second, second_slopes = evaluated(theirs, theta, rows)
        assert np.allclose(first_slopes, second_slopes, rtol=1e-12, atol=1e-12)
        # Log-likelihoods may differ by what does not depend on theta.
        ours = first - evaluated(mine, other, rows)[0]
        assert np.allclose(ours, second - evaluated(theirs, other, rows)[0], rtol=1e-10, atol=1e-10)
        assert mine.log_prior(theta) - mine.log_prior(other) == pytest.approx(
            theirs.log_prior(theta) - theirs.log_prior(other)
        )
        assert np.allclose(mine.log_prior_gradient(theta), theirs.log_prior_gradient(theta))


def test_a_wrong_slope_would_be_seen():
    def wrong(p, row):
        return traced_poisson(p, row) + 1e-6 * p.a

    rows = np.array([[0.5, 0.5, 1.0]])
    theta = np.array([0.1, 0.2, 0.3])
    right = dpmc.model(traced_poisson, COEFFICIENTS, num_columns=3)
    other = dpmc.model(wrong, COEFFICIENTS, num_columns=3)
    first, second = evaluated(right, theta, rows)[1], evaluated(other, theta, rows)[1]
    assert not np.allclose(first, second, rtol=1e-12, atol=1e-12)


def test_what_depends_on_parameters_alone_is_computed_once():
    def line(p, row):
        x, y = row
        return -math.log(p.sigma) - 0.5 * ((y - p.a * x) / p.sigma) ** 2 + math.lgamma(y * y)

    model = dpmc.model(line, {"a": priors.normal(), "sigma": priors.half_normal()}, num_columns=2)
    text = model.log_likelihood.py_func.__code__.co_names
    assert "exp" not in text
    assert "log" not in text
    assert "lgamma" not in text  # of the row alone


# --- priors ----------------------------------------------------------------------------------

SCALAR = {
    "normal": (priors.normal(1.0, 2.0), stats.norm(1.0, 2.0)),
    "student_t": (priors.student_t(3.0, 1.0, 2.0), stats.t(3.0, 1.0, 2.0)),
    "cauchy": (priors.cauchy(0.0, 2.0), stats.cauchy(0.0, 2.0)),
    "half_normal": (priors.half_normal(2.0), stats.halfnorm(scale=2.0)),
    "half_cauchy": (priors.half_cauchy(2.0), stats.halfcauchy(scale=2.0)),
    "exponential": (priors.exponential(3.0), stats.expon(scale=1 / 3)),
    "gamma": (priors.gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3)),
    "inverse_gamma": (priors.inverse_gamma(2.5, 3.0), stats.invgamma(2.5, scale=3.0)),
    "log_normal": (priors.log_normal(0.5, 0.7), stats.lognorm(0.7, scale=math.exp(0.5))),
    "uniform": (priors.uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "beta": (priors.beta(2.0, 3.5), stats.beta(2.0, 3.5)),
}


@pytest.mark.parametrize("name", SCALAR)
def test_priors_are_those_of_scipy_on_the_unbounded_scale(name):
    prior, exact = SCALAR[name]
    u = np.array([-1.5, -0.2, 0.0, 0.4, 2.0])
    step = 1e-6
    found, expected = [], []
    for one in u.tolist():
        value, log_density = prior.of([one])
        low, high = prior.of([one - step])[0], prior.of([one + step])[0]
        found.append(log_density)
        expected.append(exact.logpdf(value) + math.log((high - low) / (2 * step)))
    found, expected = np.array(found), np.array(expected)
    assert np.allclose(found - found[0], expected - expected[0], atol=1e-7)


def log_volume(function, u, step=1e-6):
    """Return the logarithm of the determinant of the derivative, by differences."""
    eye = step * np.eye(len(u))
    columns = [(function(u + h) - function(u - h)) / (2 * step) for h in eye]
    return float(np.linalg.slogdet(np.column_stack(columns))[1])


def test_shares_of_a_simplex():
    prior = priors.dirichlet([2.0, 3.0, 0.7, 1.0])

    def free(u):
        return np.array(prior.of(u.tolist())[0])[:-1]

    differences = []
    for u in stream(0, "autodiff", "simplex").standard_normal((4, 3)):
        shares, log_density = prior.of(u.tolist())
        assert sum(shares) == pytest.approx(1.0)
        exact = stats.dirichlet([2.0, 3.0, 0.7, 1.0]).logpdf(np.array(shares))
        differences.append(log_density - exact - log_volume(free, u))
    assert np.ptp(differences) < 1e-6
    assert np.allclose(prior.of([0.0] * 3)[0], 0.25)


@pytest.mark.parametrize("concentration", [1.0, 2.5])
def test_correlations(concentration):
    prior = priors.lkj(3, concentration)

    def entries(u):
        return np.array(prior.shown(prior.of(u.tolist())[0]))

    differences = []
    for u in 0.7 * stream(0, "autodiff", "lkj").standard_normal((4, 3)):
        matrix = np.array(prior.of(u.tolist())[0])
        assert np.allclose(np.diag(matrix), 1.0)
        assert np.linalg.eigvalsh(matrix)[0] > 0
        exact = (concentration - 1) * np.linalg.slogdet(matrix)[1] + log_volume(entries, u)
        differences.append(prior.of(u.tolist())[1] - exact)
    assert np.ptp(differences) < 1e-6


def test_draws_are_shown_on_the_scale_of_the_parameters():
    def trinomial(p, row):
        return math.log(row[0] * p.share[0] + row[1] * p.share[1] + row[2] * p.share[2])

    model = dpmc.model(
        trinomial,
        {"share": priors.dirichlet([1.0, 1.0, 1.0])},
        num_columns=3,
        example_rows=np.eye(3),
    )
    assert model.dim == 2
    assert model.names == ("share[0]", "share[1]", "share[2]")
    counts = (20_000, 12_000, 8_000)
    rows = np.repeat(np.eye(3), counts, axis=0)
    fit = dpmc.fit(model, rows, epsilon=2, delta=1e-6, num_draws=500, seed=1)
    assert fit.names == model.names
    assert np.allclose(fit.draws.sum(axis=2), 1.0)
    exact = (np.array(counts) + 1.0) / (sum(counts) + 3.0)
    sd = np.sqrt(exact * (1 - exact) / sum(counts))
    # Four posterior deviations, with one of privacy: fails once in 10,000.
    assert (np.abs(fit.kept().mean(axis=(0, 1)) - exact) < 6 * sd).all()


def counts(p, row, scale=1.0):
    return scale * (row[0] * p.a - math.exp(p.a))


class Counts:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, p, row):
        return self.scale * (row[0] * p.a - math.exp(p.a))

    def method(self, p, row):
        return counts(p, row, self.scale)

    @staticmethod
    def alone(p, row):
        return counts(p, row, 2.0)

    @classmethod
    def of_class(cls, p, row):
        return counts(p, row, 2.0)

    def helped(self, p, row):
        return self.scale * (row[0] * p.a - self.rate(p))

    def rate(self, p):
        return math.exp(p.a)


CALLED = functools.partial(counts, scale=2.0)


def caller(p, row):
    return CALLED(p, row)


CALLABLES = {
    "partial function": functools.partial(counts, scale=2.0),
    "partial of a method": functools.partial(Counts(2.0).method),
    "object": Counts(2.0),
    "method": Counts(2.0).method,
    "static method": Counts(2.0).alone,
    "class method": Counts.of_class,
    "function that calls a partial one": caller,
    "lambda": lambda p, row: counts(p, row, 2.0),
}


@pytest.mark.parametrize("kind", CALLABLES)
def test_what_is_called_may_be_more_than_a_function(kind):
    parameters = {"a": priors.normal(0, 2)}
    expected = dpmc.model(lambda p, row: 2.0 * counts(p, row), parameters, num_columns=1)
    model = dpmc.model(CALLABLES[kind], parameters, num_columns=1)
    theta, row = np.array([0.3]), (4.0,)
    for one in ("log_likelihood", "gradient"):
        values = [getattr(m, one)(m.coefficients(theta), row) for m in (model, expected)]
        assert values[0] == pytest.approx(values[1])


def test_a_function_that_is_not_seen_through_is_named():
    with pytest.raises(
        DpmcError, match=r"\(by a plain name, not as `self\.f`\), got one that needs"
    ):
        dpmc.model(Counts(2.0).helped, {"a": priors.normal(0, 2)}, num_columns=1)


# --- refusals --------------------------------------------------------------------------------


def branching(p, row):
    return -(p.a**2) if row[0] > 0 else p.a


def constant(p, row):
    return -(row[0] ** 2)


def short(p):
    return p.a


def vector(p, row):
    return np.array([p.a, row[0]])


ONE = {"a": priors.normal()}


@pytest.mark.parametrize(
    ("function", "given", "match"),
    [
        (branching, ONE, "must not branch on a row or parameter"),
        (constant, ONE, "must depend on the parameters"),
        (short, ONE, "`short` must be a function of the parameters and of one row"),
        (vector, ONE, "must be one number that depends on the parameters, got ndarray"),
        (lambda p, row: p.b * row[0], ONE, "has no attribute 'b'"),
        (lambda p, row: p.a * row[5], ONE, "tuple index out of range"),
        (
            lambda p, row: math.gamma(p.a),
            ONE,
            "must use functions of `math`.* of these: abs, .*tanh",
        ),
        (constant, {}, "`priors` must be a mapping of names to priors of dpmc.priors, got none"),
        (
            constant,
            {"a b": priors.normal()},
            "a parameter must have a name of Python, without an underscore in front, got 'a b'",
        ),
        (constant, {"a": 3.0}, "`a` must be of dpmc.priors, got float"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(function, given, match):
    with pytest.raises(DpmcError, match=match) as refused:
        dpmc.model(function, given, num_columns=1)
    assert "\n" not in str(refused.value)


def test_a_model_is_shown_by_its_parameters():
    def level(p, row):
        return -0.5 * ((row[0] - p.level) / p.spread) ** 2

    given = {"level": priors.normal(), "spread": priors.half_normal()}
    shown = repr(dpmc.model(level, given, num_columns=1))
    assert shown == "<model 'level': level (real), spread (positive)>"


def hurdle(x, k, rate):
    """Return a density on zero and what is above, with a logarithm that is used twice."""
    u = k * (math.log(x) - rate)
    return where(x > 0.0, u - math.exp(u), rate)


@pytest.mark.parametrize("x", [0.0, 0.5])
def test_what_is_not_chosen_may_be_infinite_and_used_twice(x):
    _, (_, by_k, by_rate) = value_and_slope(hurdle, x, 1.5, 0.3)
    u = 1.5 * (math.log(x) - 0.3) if x else 0.0
    bent = (1 - math.exp(u)) if x else 0.0
    assert by_k == pytest.approx(bent * u / 1.5)
    assert by_rate == pytest.approx(-1.5 * bent if x else 1.0)


def test_a_power_of_zero_has_no_slope_by_its_exponent():
    value, (_, slope) = value_and_slope(lambda x, h: x**h, 0.0, 1.5)
    assert (value, slope) == (0.0, 0.0)
    _, (_, slope) = value_and_slope(lambda x, h: x**h, 2.0, 1.5)
    assert slope == pytest.approx(2.0**1.5 * math.log(2.0))


def test_a_sum_may_have_any_number_of_terms():
    def terms(p, row):
        return sum(p.a * k * row[0] + math.exp(k * p.a / 1e4) for k in range(1200))

    assert dpmc.model(terms, ONE, num_columns=1).dim == 1


@pytest.mark.parametrize("u", [-45.0, 45.0, 800.0])
def test_a_share_that_rounds_to_one_keeps_its_density(u):
    model = dpmc.model(lambda p, row: -p.a * row[0], {"a": priors.beta(0.5, 2)}, num_columns=1)
    expected = 0.5 * u if u < 0 else -2.0 * u
    assert model.log_prior(np.array([u])) == pytest.approx(expected, rel=1e-9)
    assert model.log_prior_gradient(np.array([u]))[0] == pytest.approx(expected / u)
    of_three = {"a": priors.dirichlet([2, 1, 0.5])}
    model = dpmc.model(lambda p, row: -p.a[0] * row[0], of_three, num_columns=1)
    assert np.isfinite(model.log_prior(np.array([u, 0.0])))
    assert np.isfinite(model.log_prior_gradient(np.array([u, 0.0]))).all()
