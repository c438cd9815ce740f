"""Guarantees: the whole curve of each, and the JSON that a registry of releases keeps."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from dpmc.privacy import GaussianBudget, Ledger, compose
from dpmc.privacy.accountants import gaussian
from dpmc.types import NO_GUARANTEE, SEED, DpmcError, Guarantee
from dpmc.types.registered import made_with

GAUSSIAN = Guarantee(1.0, 1e-6, accountant="gaussian")
OTHER = Guarantee(1.0, 1e-6, accountant="pld")


def exact_delta(mu, epsilon):
    """Divergence of N(mu, 1) from N(0, 1), with 50 digits."""
    with mpmath.workdps(50):
        return float(
            mpmath.ncdf(mu / 2 - epsilon / mu)
            - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (20.0, 1e-3)])
def test_the_curve_of_a_gaussian_guarantee_is_that_of_its_mu(epsilon, delta):
    guarantee = Guarantee(epsilon, delta, accountant="gaussian")
    budget = GaussianBudget.of(epsilon, delta).mu
    assert budget <= guarantee.mu <= budget * (1 + 1e-8)
    for at in (0.0, 0.5 * epsilon, 0.999 * epsilon, 1.5 * epsilon):
        assert guarantee.delta_at(at) == pytest.approx(exact_delta(guarantee.mu, at), rel=1e-8)
    assert guarantee.delta_at(epsilon) <= delta
    assert guarantee.epsilon_at(delta) <= epsilon
    for at in (1e-12, 1e-7, 0.01):
        assert exact_delta(guarantee.mu, guarantee.epsilon_at(at)) <= at * (1 + 1e-9)
        joint = compose([guarantee], at).epsilon
        assert guarantee.epsilon_at(at) == pytest.approx(joint, rel=1e-6)


def test_a_guarantee_of_two_numbers_alone_is_the_least_private_one_that_has_them():
    """Randomised response that tells all with probability delta attains it."""
    kept = 1 / (1 + math.exp(-OTHER.epsilon))
    yes = np.array([OTHER.delta, 0.0, (1 - OTHER.delta) * kept, (1 - OTHER.delta) * (1 - kept)])
    no = yes[[1, 0, 3, 2]]
    for epsilon in (0.0, 0.3, 0.9, 1.0, 7.0):
        attained = np.maximum(yes - math.exp(epsilon) * no, 0).sum()
        assert OTHER.delta_at(epsilon) == pytest.approx(attained, rel=1e-12)
    assert OTHER.mu is None
    assert OTHER.epsilon_at(9e-7) == math.inf
    assert OTHER.epsilon_at(1e-6) == 1.0
    assert OTHER.epsilon_at(OTHER.delta_at(0.25)) == pytest.approx(0.25)
    assert OTHER.epsilon_at(0.5) == 0.0


def test_without_a_guarantee_there_is_no_curve():
    assert (NO_GUARANTEE.mu, NO_GUARANTEE.delta_at(50.0)) == (None, 1.0)
    assert NO_GUARANTEE.epsilon_at(0.9) == math.inf
    assert "no privacy guarantee" in str(NO_GUARANTEE)
    assert str(Guarantee(math.inf, 1e-6)).startswith("no finite epsilon at delta = 1e-06")


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "1"])
def test_a_curve_is_asked_for_at_numbers(wrong):
    with pytest.raises(DpmcError, match="`epsilon` must be at least 0 and finite"):
        GAUSSIAN.delta_at(wrong)
    with pytest.raises(DpmcError, match=r"`delta` must be in \(0, 1\)"):
        GAUSSIAN.epsilon_at(wrong)


def test_a_ledger_never_comes_to_more_than_the_curve():
    ledger = Ledger(GaussianBudget.of(1.0, 1e-6))
    counts = ledger.committed
    for epsilon in (0.1, 1.0, 2.0):
        assert gaussian.delta(counts, epsilon) <= GAUSSIAN.delta_at(epsilon) * (1 + 1e-9)


def test_json_has_the_fields_of_the_registry():
    guarantee = replace(GAUSSIAN, unit="patient", outside=(SEED,), noise="discrete")
    found = json.loads(guarantee.to_json())
    assert (found["mu"], found["noise"]) == (guarantee.mu, "discrete")
    assert found["deployment"]["implementation"]["mechanisms"].startswith("discrete noise on")
    loss = found["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "patient"
    assert "substitution of one patient" in loss["privacy_unit_details"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    variant = found["deployment"]["dp_variant"]
    assert variant == {"variant_name": "Approximate DP", "unprotected_quantities": SEED}
    pure = json.loads(Guarantee(1.0, 0.0, accountant="laplace").to_json())["deployment"]
    assert pure["dp_variant"]["variant_name"] == "Pure DP"
    assert pure["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    without = json.loads(NO_GUARANTEE.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert without["epsilon"] is None
    assert "deployment" not in without


def test_the_digest_is_of_all_that_is_stated_and_of_all_releases():
    def digest(guarantee=GAUSSIAN, releases=(("gaussian(2.0)", 1), ("gaussian(3.0)", 2))):
        return json.loads(guarantee.to_json(releases))["digest"]

    changed = [
        digest(replace(GAUSSIAN, **{name: value}))
        for name, value in {
            "epsilon": 0.9, "delta": 1e-7, "neighbours": "add_remove", "unit": "patient",
            "accountant": "pld", "outside": (SEED,), "noise": "discrete",
        }.items()
    ]  # fmt: skip
    changed += [digest(releases=(("gaussian(2.0)", 1),))]
    changed += [digest(releases=(("gaussian(2.0)", 1), ("gaussian(3.0)", 1)))]
    assert len({digest(), *changed}) == 1 + len(changed)
    assert digest(releases=[["gaussian(3.0)", 2], ["gaussian(2.0)", 1]]) == digest()
    assert "digest" not in json.loads(GAUSSIAN.to_json())


def test_the_code_has_a_digest():
    assert made_with()["code"].startswith("sha256:")
    assert made_with()["dpmc"]
