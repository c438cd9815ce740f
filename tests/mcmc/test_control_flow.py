"""No error, status or shape of a private method depends on rows but through released numbers."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numba
import numpy as np
import pytest

import dpmc
from dpmc.mcmc import batch_ratios
from dpmc.mcmc.methods import dp_barker
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.clipped import BarkerRatio
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from dpmc.rows import row_functions, sums
from dpmc.types import Dataset, DpmcError, Model
from dpmc_papers.pipeline import store
from tests.mcmc.test_clip_shares import METHODS
from tests.support.posteriors import gaussian_model


def make_rows(n=500):
    return np.random.default_rng(11).standard_normal((n, 2))


def fit(method, x, model=None, **changes):
    given = {"epsilon": 4.0, "delta": 1e-5, "seed": 3, "progress": False, "num_chains": 2}
    given |= {"max_iterations": 20, **METHODS[method], **changes}
    return dpmc.fit(model or gaussian_model(), x, method=method, **given)


# --- rows that are refused -------------------------------------------------------------------


def test_finite_rows_with_a_sum_that_overflows_are_rows():
    x = np.full((2, 1), 1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(Dataset("large", x).x, x)


# --- rows that count nothing -----------------------------------------------------------------


def test_invalid_rows_become_nan_in_a_copy():
    x = make_rows(6)
    x[2, 1], x[4, 0] = math.nan, math.inf
    before = x.copy()
    dataset = Dataset("x", x, invalid_rows="zero")
    np.testing.assert_array_equal(x, before)
    assert np.isnan(dataset.x[[2, 4]]).all()
    np.testing.assert_array_equal(dataset.x[[0, 1, 3, 5]], x[[0, 1, 3, 5]])
    valid = make_rows(6)
    assert Dataset("x", valid, invalid_rows="zero").x is valid
    with pytest.raises(DpmcError, match="`invalid_rows` must be 'refuse' or 'zero', got 'drop'"):
        Dataset("x", valid, invalid_rows="drop")


def test_invalid_rows_are_stored_and_read(tmp_path):
    x = make_rows(6)
    x[2, 1] = math.nan
    store.write_dataset(tmp_path / "x.parquet", Dataset("x", x, invalid_rows="zero"))
    back = store.read_dataset(tmp_path / "x.parquet")
    assert back.invalid_rows == "zero"
    assert np.isnan(back.x[2]).all()
    assert np.isfinite(np.delete(back.x, 2, axis=0)).all()


@pytest.mark.parametrize("order", ["features", "rows"])
def test_features_of_an_invalid_row_are_nan_whatever_the_model_makes_of_it(order):
    model = replace(gaussian_model(), features=lambda x: np.nan_to_num(x.T))
    x = make_rows(6)
    x[2, 1] = math.nan
    features = sums.feature_rows(model, Dataset("x", x, invalid_rows="zero"), order)
    by_row = features.T if order == "features" else features
    assert np.isnan(by_row[2]).all()
    np.testing.assert_array_equal(np.delete(by_row, 2, axis=0), np.delete(x, 2, axis=0))


# --- errors of a model -----------------------------------------------------------------------


def picky(x):
    """Features that fail on a large row, and with it on the chunk that it is in."""
    if np.abs(x).max() > 1e6:
        raise ValueError(f"row {np.abs(x).max()}")
    return x.T


@pytest.mark.parametrize("order", ["features", "rows"])
def test_features_that_fail_make_a_row_nan_and_no_error(order):
    x = make_rows(40)
    x[7] = 1e7
    with pytest.raises(ValueError, match="row 1"):
        picky(x)
    model = replace(gaussian_model(), features=picky)
    features = sums.feature_rows(model, Dataset("x", x), order)
    by_row = features.T if order == "features" else features
    assert np.isnan(by_row[7]).all()
    np.testing.assert_array_equal(np.delete(by_row, 7, axis=0), np.delete(x, 7, axis=0))


@numba.njit
def inverse(value):
    return 1.0 / value


@numba.njit
def inverse_log_likelihood(theta, x):
    return theta[0] * inverse(x[0])


@numba.njit
def inverse_gradient(theta, x):
    return (inverse(x[0]),)


INVERSE = Model(
    "inverse",
    1,
    inverse_log_likelihood,
    inverse_gradient,
    lambda theta: -0.5 * np.sum(theta**2),
    lambda theta: -theta,
)


def test_functions_that_were_compiled_alone_raise_nothing_from_a_loop():
    """Numba keeps code that raises for the next caller; functions made anew have none."""
    inverse_log_likelihood((1.0,), (1.0,))
    inverse_gradient((1.0,), (1.0,))
    dataset = Dataset("x", np.array([[1.0], [0.0], [2.0]]))
    old, new = np.zeros(1), np.ones(1)
    with pytest.raises(ZeroDivisionError):
        Posterior(INVERSE, dataset).sums.ratio(old, new, 0.75)
    total, clipped = Posterior(row_functions.without_errors(INVERSE), dataset).sums.ratio(
        old, new, 0.75
    )
    assert (total, clipped) == (0.75 + 0.75 + 0.5, 2)


def test_a_zero_in_the_first_row_is_no_error_of_fit():
    """In plain Python it would be: that is where no private row goes."""
    x = np.linspace(0.0, 2.0, 200)[:, None]
    with pytest.raises(ZeroDivisionError):
        inverse_log_likelihood.py_func((1.0,), (0.0,))
    assert fit("dp_penalty", x, INVERSE).status == "complete"


def test_the_variance_of_a_batch_beyond_its_bound_by_rounding_is_no_error(monkeypatch):
    params = dp_barker.Params(**METHODS["dp_barker"])
    estimate = batch_ratios.Estimate(0.1, params.clip_scale**2 * (1 + 1e-6), 3)
    monkeypatch.setattr(batch_ratios.BatchRatios, "estimate", lambda *arguments: estimate)
    sampler = dp_barker.sampler(Posterior(gaussian_model(), Dataset("x", make_rows())), params)
    run = sampler(np.zeros((1, 2)), 5, [Streams.of(1, "barker")], Ledger())
    assert run.status == "complete"
    event = dp_barker.releases(params, 500).per_iteration[0][0]
    with pytest.raises(DpmcError, match="batch_variance"):
        Ledger().release_barker(
            BarkerRatio(0.1, estimate.variance, event), np.random.default_rng(1)
        )


# --- what a fit says of itself ---------------------------------------------------------------


def outline(result):
    """Return all of a fit but its numbers."""
    return (
        result.status,
        result.draws.shape,
        {name: values.shape for name, values in result.info.items()},
        {name: values.shape for name, values in result.totals.items()},
        {*result.diagnostics},
        result.ledger,
        str(result.guarantee),
        result.plan,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extreme", [0.0, 1e8, -1e8])
def test_neighbours_give_fits_of_one_outline(method, extreme):
    x = make_rows()
    other = x.copy()
    other[0] = extreme
    assert outline(fit(method, x)) == outline(fit(method, other))


# --- once what is not a number counts as zero in every sum -----------------------------------


def poisson_log_likelihood(theta, x):
    rate = theta[0] + theta[1] * x[0]
    return x[1] * rate - math.exp(rate)


def poisson_gradient(theta, x):
    residual = x[1] - math.exp(theta[0] + theta[1] * x[0])
    return residual, residual * x[0]


POISSON = Model(
    "poisson",
    2,
    poisson_log_likelihood,
    poisson_gradient,
    lambda theta: -0.5 * np.sum(theta**2),
    lambda theta: -theta,
)


@pytest.mark.parametrize("method", ["dp_sgld", "dp_sgnht"])
def test_a_row_whose_likelihood_is_no_number_changes_no_status(method):
    x = make_rows()
    x[:, 1] = np.random.default_rng(2).poisson(1.0, len(x))
    other = x.copy()
    other[:] = 1e300, 1.0  # in every batch, whichever rows it has
    assert outline(fit(method, x, POISSON)) == outline(fit(method, other, POISSON))


@pytest.mark.parametrize("model", [gaussian_model(), POISSON], ids=["affine", "not affine"])
@pytest.mark.parametrize("bound", [0.2, 1e3])
def test_invalid_rows_contribute_nothing_to_a_sum(model, bound):
    x = make_rows(60)
    x[:, 1] = np.abs(x[:, 1])
    with_invalid = x.copy()
    with_invalid[5, 0], with_invalid[44, 1] = math.nan, math.inf
    sums = Posterior(model, Dataset("x", with_invalid, invalid_rows="zero")).sums
    fewer = Posterior(model, Dataset("x", np.delete(x, [5, 44], axis=0))).sums
    old, new = np.array([0.1, 0.2]), np.array([-0.3, 0.4])
    for one, other in (
        (sums.ratio(old, new, bound), fewer.ratio(old, new, bound)),
        (sums.gradient(old, bound), fewer.gradient(old, bound)),
    ):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
        assert one[1] == other[1] + 2  # among the clipped ones


@pytest.mark.parametrize("method", ["dp_sgld", "minibatch_penalty", "dp_barker"])
def test_a_batch_of_invalid_rows_alone_is_one_of_rows_without_a_gradient(method):
    """Half of the rows: chains go on, and nothing but finite numbers comes out."""
    x = make_rows()
    x[::2] = math.nan
    result = fit(method, Dataset("x", x, invalid_rows="zero"), max_iterations=200)
    assert np.isfinite(result.draws).all()
    assert result.status == "complete"
    assert len(np.unique(result.draws[0, :, 0])) > 1
