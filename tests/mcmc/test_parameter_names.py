"""Parameters by one name in all methods, and by the names that configurations have."""

from __future__ import annotations

import warnings
from dataclasses import fields

import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc import parameter_names
from tests.support.posteriors import gaussian_model, rows

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

WALK = {"proposal_sd": 0.05, "ratio_noise_multiplier": 20.0, "ratio_clip_bound": 2.0}
OLD = {"proposal_sd": 0.05, "noise_multiplier": 20.0, "clip_bound": 2.0}
BATCH = {"batch_size": 50, "gradient_clip_bound": 1.0, "step_size": 0.05}


def fit(method="dp_penalty", **params):
    given = {"epsilon": 4, "delta": 1e-5, "seed": 1, "max_iterations": 5, "num_chains": 1}
    return dpmc.fit(
        method, gaussian_model(), rows("names", 500, 2), **given, progress=False, **params
    )


@pytest.mark.parametrize("method", registry.names("method"))
def test_bounds_and_multipliers_say_of_what_in_every_method(method):
    """A method that is added with a bare name fails here until it says which one it is."""
    shared = {field: name for name, field in parameter_names.FIELDS.get(method, {}).items()}
    known = [
        shared.get(one.name, one.name) for one in fields(registry.load("method", method).Params)
    ]
    assert len(set(known)) == len(known)
    for name in known:
        if name.endswith(("clip_bound", "noise_multiplier")):
            assert name.startswith(("ratio_", "gradient_"))


def test_fields_are_those_of_params():
    for method, names in parameter_names.FIELDS.items():
        there = {one.name for one in fields(registry.load("method", method).Params)}
        assert set(names.values()) <= there
        assert not set(names) & there


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_both_names_give_the_same_chains():
    new = fit(**WALK)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DeprecationWarning)
        old = fit(**OLD)
    assert new.draws.tobytes() == old.draws.tobytes()
    assert {one.filename for one in told} == {__file__}
    texts = {str(one.message) for one in told if one.category is DeprecationWarning}
    assert texts == {
        "`clip_bound` of dp_penalty is called `ratio_clip_bound`, as it is in other methods",
        "`noise_multiplier` of dp_penalty is called `ratio_noise_multiplier`, as it is in other "
        "methods",
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("dp_penalty", WALK | {"clip_bound": 1.0}, "`ratio_clip_bound` must be given once"),
        ("dp_penalty", WALK | {"ratio_clip_bound": -1}, "`ratio_clip_bound` must be positive"),
        ("dp_sgld", BATCH | {"gradient_clip_bound": "1"}, "`gradient_clip_bound` must be positive"),
        ("dp_sgld", BATCH | {"ratio_clip_bound": 1.0}, "`ratio_clip_bound` must be a parameter of"),
        ("dp_barker", WALK, "`ratio_noise_multiplier` must be a parameter of dp_barker"),
    ],
)
def test_refusals_have_the_names_of_all_methods(method, params, message):
    with pytest.raises(dpmc.DpmcError) as caught:
        fit(method, **params)
    assert message in str(caught.value)
