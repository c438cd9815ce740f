"""What a plan expects against what fits turn out to be."""

from __future__ import annotations

import numpy as np
import pytest

import dpmc
from dpmc.models import logistic
from dpmc.rng import stream
from dpmc.types import DpmcError


@pytest.fixture(scope="module")
def model():
    return logistic.build(logistic.Params(2, prior_sd=3.0))


@pytest.mark.parametrize(("num_rows", "epsilon"), [(5000, 1.0), (50_000, 1.0), (20_000, 4.0)])
def test_what_is_bought_is_within_a_factor_of_two_of_the_plan(model, num_rows, epsilon):
    rng = stream(0, "expectation", num_rows)
    x = rng.uniform(-1, 1, (num_rows, 2))
    y = rng.random(num_rows) < 1 / (1 + np.exp(0.3 - x @ [1.0, -0.5]))
    expected = dpmc.plan(model, (num_rows, 3), epsilon=epsilon, delta=1e-6)
    found = []
    for seed in range(5):
        fit = dpmc.fit(
            model, np.column_stack([x, y]), epsilon=epsilon, delta=1e-6, num_chains=1, seed=seed
        )
        found.append(np.sqrt(np.mean(np.square(fit.plan.widening)) - 1))
    assert 0.5 < np.median(found) / expected.displacement < 2


def test_a_budget_that_is_too_small_is_told_what_would_do(model):
    expected = dpmc.plan(model, (200, 3), epsilon=0.1, delta=1e-6)
    assert expected.widening > 2
    assert "or" in str(expected)
    assert not expected.uses_rows
    assert str(expected).startswith("No row would be used")
    enough = dpmc.plan(model, (200, 3), epsilon=expected.enough_epsilon, delta=1e-6)
    assert enough.widening == pytest.approx(2, rel=0.01)
    assert enough.uses_rows
    assert "No row" not in str(enough)
    more = dpmc.plan(model, (expected.enough_rows, 3), epsilon=0.1, delta=1e-6)
    assert more.widening == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (0, 3)}, "`shape\\[0\\]` must be"),
        ({"shape": (10, 3), "epsilon": -1}, "`epsilon` must be"),
        ({"shape": (10, 3), "delta": 2}, "`delta` must be"),
    ],
)
def test_bad_arguments_are_refused(model, arguments, message):
    shape = arguments.pop("shape")
    with pytest.raises(DpmcError, match=message):
        dpmc.plan(model, shape, **({"epsilon": 1, "delta": 1e-6} | arguments))
    with pytest.raises(DpmcError, match="`model` must be"):
        dpmc.plan("logistic", shape, epsilon=1, delta=1e-6)
