"""What a fit says of its model: nothing of one that is right, and what is wrong with another.

A check of a model that is right is beyond four standard errors in 6e-5 of all cases; of 40 here.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpmc
from dpmc.fits.check import CLEAR
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.glm.searches import LIKELIHOODS, fitted, rows_of


def wrong(fit):
    return {one.what.split(",")[0] for one in fit.check().checks if abs(one.away) > CLEAR}


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_nothing_is_said_of_a_model_that_is_right(likelihood, tmp_path):
    fit, *_ = fitted(rows_of(likelihood, 20_000), likelihood, seed=1)
    assert not wrong(fit)
    found = fit.check().to_dataframe()
    assert len(found) == (12 if likelihood in ("linear", "student_t") else 2)
    fit.save(tmp_path / "fit.parquet")
    assert str(dpmc.Fit.load(tmp_path / "fit.parquet").check()) == str(fit.check())


def test_residuals_of_another_law_are_seen_on_both_sides():
    rng = stream(0, "checks")
    x = rng.normal(size=(20_000, 2))
    rows = np.column_stack([x, x @ [1.0, 2.0] + rng.exponential(size=20_000)])
    found = wrong(fitted(rows, "linear", seed=1)[0])
    assert {"residuals above 0", "residuals below 0"} <= found


def test_a_variance_that_the_model_does_not_have_is_seen():
    rng = stream(1, "checks")
    x = rng.normal(size=(20_000, 2))
    rates = np.exp(0.5 * x[:, 0]) * rng.exponential(size=20_000)
    rows = np.column_stack([x, rng.poisson(3 * rates)])
    assert wrong(fitted(rows, "poisson", seed=1)[0]) == {"variance over that of the model"}


def test_fits_without_a_check_say_so():
    fit = dpmc.Fit(np.zeros((1, 2, 1)), {}, {}, "complete", (), dpmc.types.Guarantee(1.0, 1e-6))
    with pytest.raises(DpmcError, match=r"`check` must have a fit of dpmc\.regression"):
        fit.check()
