"""Plans of methods against the fits that they are about, and calls that no plan answers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import dpmc
from dpmc import tuning
from dpmc.mcmc.methods import dp_penalty
from dpmc.models import logistic
from dpmc.privacy import compose
from dpmc.rng import stream
from tests.support.methods import TUNED

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

N = 4000
MODEL = logistic.build(logistic.Params(2))
BUDGET = {"epsilon": 4.0, "delta": 1e-6, "num_chains": 2}
WALK = {"proposal_sd": 0.05, "ratio_noise_multiplier": 40.0, "ratio_clip_bound": 2.0}
BATCH = {"batch_size": 400, "gradient_clip_bound": 1.0, "step_size": 0.05}
GIVEN = {
    "dp_penalty": WALK,
    "dp_mala": {
        "step_size": 0.05,
        "ratio_noise_multiplier": 40.0,
        "gradient_noise_multiplier": 40.0,
        "gradient_clip_bound": 1.0,
        "ratio_clip_bound": 2.0,
    },
    "minibatch_penalty": {**WALK, "batch_size": 400},
    "dp_barker": {"proposal_sd": 0.05, "batch_size": 100},
    "dp_sgld": BATCH,
}


@pytest.fixture(scope="module")
def rows():
    rng = stream(0, "planning")
    x = rng.uniform(-1, 1, (N, 2))
    y = rng.random(N) < 1 / (1 + np.exp(0.3 - x @ [1.0, -0.5]))
    return np.column_stack([x, y])


@pytest.mark.parametrize("method", GIVEN)
@pytest.mark.parametrize("diagnostics", ["private", "none"])
def test_a_plan_of_given_parameters_is_that_of_the_fit(rows, method, diagnostics):
    given = {**BUDGET, "epsilon": 1.0, "diagnostics": diagnostics, **GIVEN[method]}
    planned = dpmc.plan(MODEL, rows.shape, method=method, **given)
    fit = dpmc.fit(MODEL, rows, method=method, progress=False, **given)
    assert planned.num_iterations == fit.plan.num_iterations
    assert planned.releases == fit.plan.releases
    assert (planned.epsilon, planned.delta) == (fit.guarantee.epsilon, fit.guarantee.delta)
    assert planned.chosen == ()
    assert math.isnan(planned.displacement)
    assert {name: planned.params[name] for name in GIVEN[method]} == GIVEN[method]


@pytest.mark.parametrize("method", TUNED)
def test_a_plan_of_chosen_parameters_is_near_that_of_the_fit(rows, method):
    """A clip bound that is k times the expected one moves iterations by k^2 at most."""
    planned = dpmc.plan(MODEL, rows.shape, method=method, **BUDGET)
    fit = dpmc.fit(MODEL, rows, method=method, progress=False, seed=1, **BUDGET)
    assert 1 / 4 < fit.plan.num_iterations / planned.num_iterations < 4
    assert planned.epsilon <= 4.0
    assert compose([tuple(planned.releases.items())], 1e-6).epsilon <= 4.0 * (1 + 1e-6)
    needed = {"step_size", "batch_size", "proposal_sd"} & set(planned.params)
    assert needed <= set(planned.chosen)
    assert 0 < planned.displacement < 2
    assert math.isfinite(planned.seconds)


def test_what_is_given_stays_and_the_search_is_paid_for():
    planned = dpmc.plan(MODEL, (N, 3), method="dp_penalty", **BUDGET, proposal_sd=0.3)
    assert planned.params["proposal_sd"] == 0.3
    assert planned.chosen == ("ratio_noise_multiplier", "ratio_clip_bound")
    whole = {**WALK, "ratio_noise_multiplier": planned.params["ratio_noise_multiplier"]}
    without = dpmc.plan(MODEL, (N, 3), method="dp_penalty", **BUDGET, **whole)
    share = planned.num_iterations / without.num_iterations
    assert share == pytest.approx(1 - tuning.SHARE, abs=0.02)


def test_a_method_of_ones_own_is_planned():
    mine = SimpleNamespace(
        name="mine",
        Params=dp_penalty.Params,
        releases=dp_penalty.releases,
        sampler=dp_penalty.sampler,
    )
    own = {"proposal_sd": 0.05, "ratio_noise_multiplier": 40.0, "ratio_clip_bound": 2.0}
    planned = dpmc.plan(MODEL, (N, 3), method=mine, **BUDGET, **own)
    named = dpmc.plan(MODEL, (N, 3), method="dp_penalty", **BUDGET, **WALK)
    assert planned.num_iterations == named.num_iterations
    assert planned.params["ratio_noise_multiplier"] == 40.0
    assert planned.method == "mine"


def test_a_plan_is_read_and_shown():
    planned = dpmc.plan(MODEL, (N, 3), method="dp_penalty", **BUDGET, max_iterations=20)
    text = str(planned)
    assert text.startswith("20 iterations of each of 2 chains of dp_penalty, in about ")
    assert "too few for any sampler" in text
    assert "ratio_clip_bound" in text
    assert planned._repr_html_().count("<p>") == len(text.splitlines())


SHAPE = "`shape` must be a number of rows and one of columns, as `rows.shape` is, got "
REFUSED = {
    "shape a number": ({"shape": 500}, SHAPE + "500"),
    "shape None": ({"shape": None}, SHAPE + "NoneType"),
    "shape of one": ({"shape": (500,)}, SHAPE + "(500,)"),
    "shape the rows": ({"shape": np.zeros((5, 3))}, SHAPE + "ndarray"),
    "shape of floats": ({"shape": (5.0, 3)}, "`shape[0]` must be an integer of at least 1"),
    "columns that do not fit": (
        {"shape": (N, 7)},
        "`shape[1]` must be 3, the columns of model 'logistic', got 7",
    ),
    "model a name": ({"model": "logit"}, "`model` must be a dpmc.Model or one of linear, "),
    "model the rows": ({"model": np.zeros((5, 3))}, "ordinal, got ndarray"),
    "a likelihood beside a method": (
        {"model": "logistic", "method": "dp_sgld"},
        "`model` must be a dpmc.Model beside a `method`, got 'logistic'",
    ),
    "no features": (
        {"model": "linear", "shape": (N, 1)},
        "`shape[1]` must be an integer of at least 2",
    ),
    "rows beside a method": (
        {"rows": np.zeros((5, 3)), "method": "dp_sgld"},
        "`rows` must be left out beside a `method`",
    ),
    "rows of other columns": (
        {"model": "linear", "rows": np.zeros((5, 4))},
        "`rows` must have 3 or 2 columns, and rows, got shape (5, 4)",
    ),
    "rows of a model without the response": (
        {"rows": np.zeros((5, 2))},
        "`rows` must have 3 columns, and rows, got shape (5, 2)",
    ),
    "rows with other responses": (
        {"model": "logistic", "rows": np.full((5, 3), 2.0)},
        "`rows` must have a last column of responses, 0 or 1, got others",
    ),
    "rows that are not so many": (
        {"rows": lambda rng, n: rng.random((n + 1, 3))},
        "`rows` must simulate an array of shape (4000, 3), got shape (4001, 3)",
    ),
    "rate of a model": ({"rate": 0.1}, "`rate` must be left out where no shares"),
    "rate of responses with a scale": (
        {"model": "linear", "rate": 0.1},
        "`rate` must be left out where no shares",
    ),
    "rate of rows that have responses": (
        {"model": "logistic", "rows": np.ones((5, 3)), "rate": 0.1},
        "`rate` must be left out where no shares",
    ),
    "rate of all": ({"model": "logistic", "rate": 1}, "`rate` must be between 0 and 1, got 1"),
    "rate a text": ({"model": "poisson", "rate": "1"}, "`rate` must be between 0 and 1e+06, got"),
    "option of a regression": ({"prior_sd": 1.0}, "`prior_sd`"),
    "prior of another length": (
        {"model": "logistic", "prior_sd": [1.0, 2.0]},
        "`prior_sd` must be one number, or 3",
    ),
    "epsilon text": ({"epsilon": "1"}, "`epsilon` must be positive and finite, got '1'"),
    "delta None": ({"delta": None}, "`delta` must be in (0, 1), got None"),
    "parameter of no method": (
        {"proposal_sd": 1},
        "`proposal_sd` must be left out for the automatic",
    ),
    "most iterations of no method": ({"max_iterations": 5}, "`max_iterations` must be left out"),
    "method typo": ({"method": "dp_penality"}, "(did you mean dp_penalty?)"),
    "method without privacy": (
        {"method": "hmc", "step_size": 0.1, "num_leapfrog_steps": 3},
        "`epsilon` must be None for hmc, which has no privacy guarantee, got 4.0",
    ),
    "parameter typo": (
        {"method": "dp_penalty", "proposal_std": 1},
        "(did you mean proposal_sd?)",
    ),
    "bound text": (
        {"method": "dp_penalty", "ratio_clip_bound": "1"},
        "`ratio_clip_bound` must be a number",
    ),
    "chains 0": ({"method": "dp_hmc", "num_chains": 0}, "`num_chains` must be an integer"),
    "accountant typo": ({"method": "dp_hmc", "accountant": "x"}, "`accountant` must be one of"),
    "diagnostics typo": ({"method": "dp_hmc", "diagnostics": "x"}, "`diagnostics` must be one of"),
    "a budget that buys nothing": (
        {"method": "dp_penalty", **WALK, "ratio_noise_multiplier": 0.1},
        "`epsilon` must be at least",
    ),
}


@pytest.mark.parametrize("label", REFUSED)
def test_a_call_is_refused_in_one_line(label):
    changes, message = REFUSED[label]
    given = {"model": MODEL, "shape": (N, 3), **BUDGET, **changes}
    with pytest.raises(dpmc.DpmcError) as caught:
        dpmc.plan(given.pop("model"), given.pop("shape"), **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
