"""Rows that are not finite: refused by column, or without effect under invalid_rows="zero"."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmc.ep import invalid_rows as ep_invalid_rows
from dpmc.ep.mixture import dp_sep as mixture_dp_sep
from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture import methods as mixture_methods
from dpmc.ep.mixture import model as mixture_model
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.network import dp_sep
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import methods as network_methods
from dpmc.ep.network.task import Task
from dpmc.ep.network.variants import private
from dpmc.rng import stream
from dpmc.types import Budget, DpmcError
from tests.support import networks
from tests.support.ep_settings import mixture_settings, network_settings

SPECIAL = (math.nan, math.inf, -math.inf)
MODEL = MixtureModel.isotropic(0.7, [[1.0, 0.0], [-1.0, 0.5]], 0.1)
BUDGET = Budget(1.0, 1e-5, "rdp")
TASK = Task("rows", 6, (6.0, 3.0))
# Of two runs that differ in rows alone: their order and noise are those of one stream.
SEED = 12


def mixture_rows(num_rows=30):
    return stream(1, "rows of a mixture").standard_normal((num_rows, 2))


def mixture_theta(rows, settings, invalid_rows="zero"):
    """Return theta and the counters after a run."""
    fit = mixture_engine.fit(
        rows, MODEL, settings, stream(SEED, "mixture"), invalid_rows=invalid_rows
    )
    return np.append(fit.h, fit.precision), fit.counters


def network_theta(x, y, settings):
    """Return the natural parameters of all weights and of the noise after a run."""
    fit = network_engine.fit(x, y, settings, stream(SEED, "network"), invalid_rows="zero")
    precisions = [1 / layer for layer in fit.variances]
    shifts = [m * p for m, p in zip(fit.means, precisions, strict=True)]
    return np.concatenate([*(v.ravel() for v in (*shifts, *precisions)), fit.noise_gamma or ()])


# --- refusals


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("name", ["ep", "sep", "dp_sep"])
def test_methods_on_a_mixture_refuse_by_column(name, value):
    module = mixture_methods.TABLE[name]
    rows = mixture_rows()
    rows[17, 1] = value
    with pytest.raises(DpmcError) as refused:
        module.fit(rows, MODEL, module.Params(num_passes=1), BUDGET, stream(2, "refuse"))
    wanted = "column 1 of `rows` must hold finite numbers only, unless invalid_rows='zero'"
    assert str(refused.value) == wanted


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("name", ["adf", "ep", "sep", "clipped_sep", "dp_sep"])
def test_methods_on_a_network_refuse_by_column(name, value):
    module = network_methods.TABLE[name]
    x, y = networks.rows(20, 3)
    params, end = module.Params(num_passes=1), "must hold finite numbers only, unless "
    far = y.copy()
    far[11] = value
    with pytest.raises(DpmcError) as refused:
        module.fit(x, far, TASK, params, BUDGET, stream(2, "refuse"))
    assert str(refused.value) == f"`y` {end}invalid_rows='zero'"
    x[11, 2] = value
    with pytest.raises(DpmcError) as refused:
        module.fit(x, y, TASK, params, BUDGET, stream(2, "refuse"))
    assert str(refused.value) == f"column 2 of `x` {end}invalid_rows='zero'"


# --- invalid rows contribute nothing


@pytest.mark.parametrize("value", SPECIAL)
def test_an_invalid_row_leaves_adf_and_ep_on_a_mixture_as_they_are_without_it(value):
    rows = mixture_rows()
    more = np.insert(rows, 13, [value, 0.3], axis=0)
    for method in ("adf", "ep"):
        settings = mixture_settings(method, 2, 0.5, order="cyclic")
        with_row, without = (mixture_theta(values, settings)[0] for values in (more, rows))
        np.testing.assert_array_equal(with_row, without)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("method", ["adf", "ep"])
def test_an_invalid_row_leaves_adf_and_ep_on_a_network_as_they_are_without_it(method, value):
    x, y = networks.rows(20, 3)
    more_x, more_y = np.insert(x, 7, [0.1, value, 0.2], axis=0), np.insert(y, 7, 0.3)
    far_x, far_y = np.insert(x, 7, 0.1, axis=0), np.insert(y, 7, value)
    settings = network_settings(method, 6, 2, order="cyclic")
    wanted = network_theta(x, y, settings)
    np.testing.assert_array_equal(network_theta(more_x, more_y, settings), wanted)
    np.testing.assert_array_equal(network_theta(far_x, far_y, settings), wanted)


def test_an_invalid_row_leaves_shared_sites_of_a_network_at_the_state_before_it():
    """One pass of which the last step is invalid: up to rounding it is the pass without it."""
    x, y = networks.rows(20, 3)
    settings = network_settings("sep", 6, 1, order="cyclic", step=0.5)
    x[-1] = math.inf
    first = network_theta(x, y, settings)
    assert np.isfinite(first).all()
    x[-1] = [0.2, math.nan, 0.0]
    np.testing.assert_array_equal(network_theta(x, y, settings), first)
    x[-1] = 0.3
    assert np.abs(network_theta(x, y, settings) - first).max() > 1e-4


def test_rows_of_zeros_in_place_of_invalid_ones_are_found_out(monkeypatch):
    """The checks above can fail: a broken variant takes zero for an entry that is not finite."""

    def zeros(invalid_rows, **parts):
        return tuple(np.nan_to_num(part, posinf=0.0, neginf=0.0) for part in parts.values())

    rows = np.insert(mixture_rows(), 13, [math.nan, 0.3], axis=0)
    x, y = networks.rows(20, 3)
    x[7, 1] = math.nan
    mixture = mixture_settings("adf", 2, 0.5, order="cyclic")
    network = network_settings("adf", 6, 2, order="cyclic")
    right = mixture_theta(rows, mixture)[0], network_theta(x, y, network)
    monkeypatch.setattr(mixture_model, "without_invalid", zeros)
    monkeypatch.setattr(network_engine, "without_invalid", zeros)
    broken = mixture_theta(rows, mixture)[0], network_theta(x, y, network)
    assert all(np.abs(a - b).max() > 1e-3 for a, b in zip(right, broken, strict=True))


# --- within the sensitivity


BOUND = 2.0
VALID = ([0.3, -0.2], [1e17, 0.0], [-1e150, 1e150])
MIXTURE = mixture_settings("dp_sep", 1, 0.5, "joint", BOUND, 1e-12)
NETWORK = replace(private(6, 1, BOUND, 1e-12, None, step=0.5), precision_floor="none")


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("valid", VALID)
def test_an_invalid_row_moves_a_step_by_at_most_the_sensitivity(value, valid):
    """The noise is 1e-12 of the sensitivity, the same in both runs; repairs only bring closer."""
    pair = np.array([[value, 0.1]]), np.array([valid])
    a, b = (mixture_theta(rows, MIXTURE)[0] for rows in pair)
    assert np.linalg.norm(a - b) <= MIXTURE.sensitivity * (1 + 1e-6)
    a, b = (network_theta(rows, np.ones(1), NETWORK) for rows in pair)
    assert np.linalg.norm(a - b) <= NETWORK.sensitivity * (1 + 1e-6)


def test_a_step_without_a_clip_fails_the_same_check():
    pair = np.array([[math.nan, 0.1]]), np.array([[1e6, 0.0]])
    a, b = (mixture_theta(rows, mixture_settings("sep", 1, 0.5))[0] for rows in pair)
    assert np.linalg.norm(a - b) > 1e3 * MIXTURE.sensitivity


def test_a_private_run_with_invalid_rows_keeps_its_guarantee_and_releases():
    x, y = networks.rows(40, 3)
    params = dp_sep.Params(num_passes=2)
    plain = dp_sep.fit(x, y, TASK, params, BUDGET, stream(3, "private"))
    x[5] = math.nan
    other = dp_sep.fit(x, y, TASK, params, BUDGET, stream(3, "private"), invalid_rows="zero")
    assert other.guarantee == plain.guarantee
    assert other.predictor.releases == plain.predictor.releases
    assert other.predictor.status == "complete"
    rows = mixture_rows()
    params = mixture_dp_sep.Params(num_passes=2)
    plain = mixture_dp_sep.fit(rows, MODEL, params, BUDGET, stream(3, "private"))
    rows[5, 0] = -math.inf
    other = mixture_dp_sep.fit(
        rows, MODEL, params, BUDGET, stream(3, "private"), invalid_rows="zero"
    )
    assert other[1] == plain[1]
    assert other[0].releases == plain[0].releases
    assert np.isfinite(other[0].means).all()


def test_other_choices_and_masked_arrays_are_refused():
    rows = mixture_rows()
    with pytest.raises(DpmcError, match=r"invalid_rows.*'drop'"):
        mixture_theta(rows, mixture_settings("sep", 1, 1.0), "drop")
    with pytest.raises(DpmcError, match="`rows` must be an ordinary array"):
        mixture_theta(np.ma.masked_invalid(rows), mixture_settings("sep", 1, 1.0))
    x, y = networks.rows(5, 2)
    with pytest.raises(DpmcError, match="`y` must be an ordinary array"):
        network_theta(x, np.ma.masked_greater(y, 0), network_settings("sep", 3, 1))


def test_invalid_rows_become_nan_in_copies():
    x, y = np.ones((4, 2)), np.ones(4)
    assert ep_invalid_rows.without_invalid("zero", x=x, y=y)[0] is x
    x[1, 0], y[2] = math.inf, math.nan
    new_x, new_y = ep_invalid_rows.without_invalid("zero", x=x, y=y)
    for values in (new_x, new_y):
        assert np.isnan(values[1:3]).all()
        assert (values[[0, 3]] == 1).all()
    assert x[1, 1] == y[1] == x[2, 0] == 1


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("method", ["adf", "ep", "sep"])
def test_a_mixture_of_invalid_rows_alone_stays_at_its_prior(method, value):
    rows = np.full((6, 2), 0.5)
    rows[:, 1] = value
    theta, counters = mixture_theta(rows, mixture_settings(method, 2, 0.5, order="cyclic"))
    np.testing.assert_array_equal(theta, np.append(MODEL.prior_h(), MODEL.prior_precision))
    assert counters["invalid"] == 12
