"""Methods on one model are compiled once a process, whatever their settings and rows are."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba.core.event import install_recorder
from numba.core.registry import CPUDispatcher

from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams, stream
from dpmc.types import Dataset, Model
from tests.support.methods import ALL, example, other


def log_likelihood(c, x):
    return -0.5 * (x[0] - c[0] - c[1] * x[1]) ** 2


def gradient(c, x):
    error = x[0] - c[0] - c[1] * x[1]
    return error, error * x[1]


def log_prior(theta):
    return -0.5 * (theta[0] ** 2 + theta[1] ** 2)


def log_prior_gradient(theta):
    return -theta


def user_model():
    return Model("a user's", 2, log_likelihood, gradient, log_prior, log_prior_gradient)


def run(method, num_rows, given=example):
    module = ALL[method]
    settings = registry.parameters(module, given(method))
    rows = stream(num_rows, "rows").standard_normal((num_rows, 2))
    sampler = module.sampler(Posterior(user_model(), Dataset("rows", rows)), settings)
    return sampler(np.zeros((1, 2)), 5, [Streams.of(1, method)], Ledger())


@pytest.fixture
def made(monkeypatch):
    """Count functions that are handed to Numba."""
    names, before = [], CPUDispatcher.__init__

    def counted(self, py_func, *args, **kwargs):
        names.append(py_func.__qualname__)
        before(self, py_func, *args, **kwargs)

    monkeypatch.setattr(CPUDispatcher, "__init__", counted)
    return names


@pytest.mark.parametrize("method", ALL)
def test_a_second_run_on_a_model_compiles_nothing(method, made):
    """Other settings, other rows of as many columns, and a model of the same functions."""
    run(method, 60)
    made.clear()
    with install_recorder("numba:compile") as recorded:
        again = run(method, 80, other)
    assert again.draws is not None
    assert made == []
    assert recorded.buffer == []


def test_a_loop_made_for_each_run_fails_the_same_check(made):
    for size in (0.1, 0.2):
        made.clear()

        @numba.njit
        def update(state, size=size):
            return state * size

        with install_recorder("numba:compile") as recorded:
            assert math.isfinite(update(1.0))
    assert len(made) == 1
    assert recorded.buffer != []
