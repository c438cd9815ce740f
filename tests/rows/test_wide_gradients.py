"""Gradients by a loop over the features against unrolled ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import logistic, poisson
from dpmc.rng import stream
from dpmc.rows import model_checks
from dpmc.rows.compiled_gradients import RowGradients
from dpmc.rows.wide_gradients import WIDE
from dpmc.types import Dataset, DpmcError
from tests.support.clipped import values

MODELS = {"logistic": (logistic, 2), "poisson": (poisson, 6)}


def regression(name: str, num_features: int, num_rows: int = 700):
    module, most = MODELS[name]
    rng = stream(0, "wide", name, num_features)
    x = rng.normal(scale=0.2, size=(num_rows, num_features))
    return module.build(module.Params(num_features)), np.column_stack(
        [x, rng.integers(0, most, num_rows)]
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_features", [WIDE, WIDE + 20])
def test_a_loop_gives_the_gradients_of_unrolled_code(name, num_features):
    model, x = regression(name, num_features)
    x[3, 0], x[4, -1], x[5] = np.inf, np.nan, np.nan
    theta = stream(0, "wide", "theta").normal(scale=0.3, size=model.dim)
    found = []
    for one in (model, replace(model, slope=None)):
        gradients = RowGradients(one, x.shape[1])
        features = gradients.features(x, nan_rows=True)
        found.append(gradients(features, theta, 1, 650))
    loop, unrolled = found
    finite = np.isfinite(unrolled).all(axis=1)
    assert finite.sum() >= 646
    np.testing.assert_allclose(loop[finite], unrolled[finite], rtol=1e-11, atol=1e-13)
    assert not np.isfinite(loop[~finite]).all(axis=1).any()


def test_a_row_of_any_floats_moves_a_sum_by_at_most_twice_the_bound():
    model, x = regression("poisson", WIDE + 1)
    theta, basis = np.full(model.dim, 0.1), np.eye(model.dim)
    sums = []
    for row in (x[0], np.full(x.shape[1], 1e300), np.full(x.shape[1], np.inf)):
        y = np.concatenate([[row], x[1:]])
        rows = WhitenedRows(model, Dataset.of("rows", y, "zero"))
        sums.append(values(rows.gradient_sum(theta, basis, 0.5)))
    assert max(np.linalg.norm(one - sums[0]) for one in sums) <= 1.0 + 1e-9


def test_a_slope_that_is_another_one_is_refused():
    model, x = regression("logistic", 3)
    model_checks.check(model, x.shape[1], {})
    wrong = replace(model, slope=lambda inner, before: 1.0 / (1.0 + np.exp(-inner)))
    with pytest.raises(DpmcError, match="`slope` times the last 4 features must be `gradient`"):
        model_checks.check(wrong, x.shape[1], {})
    few = replace(model, dim=9)
    with pytest.raises(DpmcError):
        model_checks.check(few, x.shape[1], {})
