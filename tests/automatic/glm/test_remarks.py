"""Remarks of regressions name what is wrong, and are silent where nothing is; seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.glm.searches import LIKELIHOODS, fitted, rows_of


def with_column(rows, column):
    return np.column_stack([column, rows])


def told(rows, likelihood, **options):
    return " ".join(fitted(rows, likelihood, **{"epsilon": 4.0, "seed": 1, **options})[0].remarks)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_nothing_is_said_where_nothing_is_wrong(likelihood):
    rows = rows_of(likelihood, 20_000)
    for seed in range(3):
        assert not fitted(rows, likelihood, epsilon=4.0, seed=seed)[0].remarks


def test_a_constant_column_is_named():
    rows = with_column(rows_of("logistic", 20_000), np.full(20_000, 7.0))
    assert "'x1' differs between too few rows" in told(rows, "logistic")


def test_columns_that_are_collinear_are_named():
    rows = rows_of("linear", 20_000)
    rows = with_column(rows, 3.0 * rows[:, 0] + 1.0)
    text = told(rows, "linear")
    assert "collinear" in text
    assert "'x1', 'x2'" in text


def test_too_few_events_are_counted():
    rows = rows_of("logistic", 5000, rate=0.01)
    assert "of the rarer response" in told(rows, "logistic", epsilon=0.5)


def test_heavy_tails_of_a_normal_model_are_told():
    rows = rows_of("student_t", 20_000)
    rows[:, -1] = np.where(np.abs(rows[:, -1] - 1) > 1.2, 10 * rows[:, -1], rows[:, -1])
    assert "likelihood='student_t'" in told(rows, "linear")


def test_too_few_rows_for_units_are_told():
    rows = rows_of("linear", 100)
    text = told(rows, "linear", epsilon=0.5)
    assert "does not show in which units the columns are" in text


@pytest.mark.parametrize("likelihood", ["linear", "student_t"])
@pytest.mark.parametrize("varied", [0.0, 1.0])
def test_rows_without_residuals_end_in_a_fit(likelihood, varied):
    x = 1.0 + varied * rows_of("linear", 2000)[:, :1]
    for seed in range(3):
        rows = np.column_stack([x, 2.0 * x])
        fit, mean, _ = fitted(rows, likelihood, epsilon=50.0, seed=seed)
        assert np.isfinite(fit.draws).all()
        assert mean[0] + mean[1] == pytest.approx(2.0, abs=0.1)
        assert "residual" in str(fit.check())


@pytest.mark.parametrize(
    ("column", "factor", "shift"),
    [(0, 1e13, 0.0), (0, 1e-11, 0.0), (0, 1.0, 1e10), (1, 1e12, 0.0), (1, 1.0, -1e11)],
)
def test_units_that_are_too_far_to_be_found_are_named(column, factor, shift):
    rows = rows_of("linear", 4000)[:, [0, -1]]
    rows[:, column] = rows[:, column] * factor + shift
    fit, mean, _ = fitted(rows, "linear", epsilon=4.0, seed=1)
    (remark,) = fit.remarks
    assert remark.startswith("The scale of " + ("'x1'", "the response")[column])
    assert np.isfinite(mean).all()


def test_a_prior_for_each_coefficient():
    rows = rows_of("linear", 20_000)
    fit, mean, _ = fitted(rows, "linear", epsilon=4.0, seed=1, prior_sd=[10.0, 1e-6, 10.0])
    assert abs(mean[1]) < 1e-4
    assert mean[2] == pytest.approx(-0.4, abs=0.05)
    assert np.diag(fit.plan.prior["precision"])[:3] == pytest.approx([1e-2, 1e12, 1e-2])
    for wrong in ([1.0, 1.0], [1.0, -1.0, 1.0], "wide"):
        with pytest.raises(DpmcError, match="`prior_sd` must be"):
            fitted(rows, "linear", prior_sd=wrong)


def test_a_start_and_discrete_noise_and_no_intercept():
    rows = rows_of("logistic", 20_000)
    _, mean, sd = fitted(
        rows, "logistic", seed=1, start=[-0.8, 0.6, -0.4], noise="discrete", intercept=True
    )
    assert (np.abs(mean[1:] - [0.6, -0.4]) < 5 * sd[1:]).all()
    rng = stream(0, "regressions", "origin")
    x = rng.normal(size=(20_000, 2))
    y = x @ [0.6, -0.4] + 0.5 * rng.normal(size=20_000)
    fit, mean, sd = fitted(np.column_stack([x, y]), "linear", seed=1, intercept=False)
    assert fit.names == ("x1", "x2", "log_sigma")
    assert (np.abs(mean - [0.6, -0.4, np.log(0.5)]) < 5 * sd).all()
