"""The ways in alike: one signature, one vocabulary, and the right name for an argument."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dpmc
from dpmc import statsel
from dpmc.ep.mixture.model import MixtureModel
from dpmc.fitting import ELSEWHERE
from tests.support.methods import ALL
from tests.support.posteriors import gaussian_model

# Every way in that takes private rows, and the order of what they share.
WAYS = {
    "fit": dpmc.fit,
    "compare": dpmc.compare,
    "regression": dpmc.regression,
    "linear_regression": dpmc.linear_regression,
    "mixture": dpmc.mixture,
    "network": dpmc.network,
    "select_statistic": dpmc.select_statistic,
}
SHARED = [
    "epsilon", "delta", "method", "num_chains", "num_draws", "start", "seed", "noise", "progress",
    "invalid_rows", "names",
]  # fmt: skip
# Defaults that differ: some need no delta; `method` and `num_draws` may be decided by others.
OWN = {"epsilon", "delta", "method", "num_draws"}
X = np.zeros((30, 2))
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("name", WAYS)
def test_ways_in_share_keywords_their_order_and_defaults(name):
    own = inspect.signature(WAYS[name]).parameters
    given = [key for key in own if key in SHARED]
    assert given == [key for key in SHARED if key in given]
    assert {"epsilon", "delta", "num_chains", "num_draws", "seed", "progress"} <= set(given)
    of_fit = inspect.signature(dpmc.fit).parameters
    for key in set(given) - OWN:
        assert own[key].default == of_fit[key].default, key
    assert own["num_draws"].default in (None, 2000)
    kinds = {own[key].kind for key in given}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


def call(name, **wrong):
    y = np.zeros(30)
    model = MixtureModel.isotropic(1.0, [[-1.0, 0.0], [1.0, 0.0]], precision=0.1)
    arguments = {
        "fit": (gaussian_model(), X),
        "compare": (gaussian_model(), X, ["auto"]),
        "regression": (X, y),
        "linear_regression": (X, y),
        "mixture": (X, model),
        "network": (X, y),
        "select_statistic": (
            np.ones(30),
            statsel.population("normal_variance", bound=10.0),
            [statsel.statistic("abs_1")],
            statsel.mechanism("laplace"),
        ),
    }
    needed = {
        "linear_regression": {"x_bound": 1.0, "y_bound": 1.0},
        "network": {"x_range": (-1, 1), "y_range": (-1, 1)},
        "select_statistic": {"theta": 2.0, "prior": (0.0, 10.0), "delta": None},
    }
    return WAYS[name](*arguments[name], **{**BUDGET, **needed.get(name, {}), **wrong})


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("num_samples", "num_draws"), ("random_state", "seed"), ("num_chain", "num_chains")],
)
def test_an_argument_of_another_library_is_answered_with_the_right_one(name, wrong, meant):
    with pytest.raises(dpmc.DpmcError, match=rf"`{wrong}` must be .* \(did you mean {meant}\?\)"):
        call(name, **{wrong: 1})


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("regression", {"family": "poisson"}, "did you mean likelihood?"),
        ("regression", {"fit_intercept": False}, "did you mean intercept?"),
        ("fit", {"family": "poisson"}, "`likelihood`"),
        ("fit", {"fit_intercept": True}, "`intercept`"),
        ("fit", {"n_jobs": 2}, "`num_threads`"),
        ("fit", {"num_warmup": 100}, "`Fit.kept`"),
        ("fit", {"method": "dp_penalty", "n_jobs": 2}, "did you mean num_threads?"),
        ("fit", {"method": "dp_penalty", "noise_multiplier": 2}, "did you mean ratio_noise_mult"),
        ("fit", {"method": "dp_sgld", "ratio_clip_bound": 2.0}, "did you mean gradient_clip_bou"),
        ("fit", {"method": "dp_sgld", "gradient_clip_bound": "1"}, "`gradient_clip_bound` must"),
        ("network", {"clip_bond": 2.0}, "did you mean clip_bound?"),
        ("network", {"names": ["a"]}, "`names` must be "),
        ("mixture", {"num_pases": 2}, "did you mean num_passes?"),
        ("linear_regression", {"prior_scale": 2.0}, "must be "),
    ],
)
def test_an_argument_that_is_not_known_is_answered_by_its_function(name, wrong, message):
    with pytest.raises(dpmc.DpmcError) as caught:
        call(name, **wrong)
    assert message in str(caught.value)
    assert next(iter(set(wrong) - {"method"})) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_other_libraries_are_none_of_ours():
    """Else the table would send a right name elsewhere."""
    ours = {key for way in WAYS.values() for key in inspect.signature(way).parameters}
    # Some ways in have the first, and others say where it is.
    assert ours & set(ELSEWHERE) == {"unit"}


@pytest.mark.parametrize("method", ALL)
def test_bounds_and_multipliers_say_of_what_in_every_method(method):
    for name in ALL[method].Params.__dataclass_fields__:
        if name.endswith(("clip_bound", "noise_multiplier")):
            assert name.startswith(("ratio_", "gradient_"))


def test_methods_are_listed_with_a_line_each():
    listed = dpmc.methods()
    assert set(listed) >= {"auto", *ALL}
    assert all(line and "\n" not in line for line in listed.values())
