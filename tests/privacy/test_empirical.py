"""What `dpmc.audit` finds in mechanisms whose privacy is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.privacy import empirical
from dpmc.privacy.outcomes import Raised, encode
from dpmc.types import Guarantee


def gaussian(data, size, rng):
    return data + rng.standard_normal(size)


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


def response(data, size, rng):
    return np.where(rng.random(size) < 1 / (1 + math.exp(-1)), data, 1 - data)


def quiet_laplace(data, size, rng):
    return data + 0.5 * rng.laplace(size=size)


def one_by_one(data, rng):
    return data + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        (gaussian, {"mu": 1.0, "delta": 1e-5}),
        (laplace, {"claim": 1.0}),
        (response, {"claim": 1.0}),
    ],
)
def test_the_bound_reaches_nine_tenths_of_a_claim_and_does_not_exceed_it(mechanism, given):
    """Medians of five audits of 20,000 runs, at a fixed seed each.

    A median exceeds the claim if three bounds of five do, of a probability of 0.05 each: 1.2e-3.
    """
    results = [dpmc.audit(mechanism, 0, 1, seed=seed, **given) for seed in range(5)]
    lower = np.median([result.mu_lower or result.epsilon_lower for result in results])
    assert 0.9 <= lower <= 1


@pytest.mark.parametrize("given", [{"claim": 1.0}, {"claim": 0.93, "delta": 0.02}])
def test_a_correct_mechanism_is_found_guilty_no_more_often_than_is_said(given):
    """At a confidence of 0.9; a correct audit fails this with a probability of at most 1e-4.

    Laplace noise of scale 1 has delta = 1 - exp(-(1 - epsilon) / 2) for an epsilon below 1.
    """
    given = given | {"confidence": 0.9, "num_runs": 400}
    if "delta" in given:
        given["claim"] = 1 + 2 * math.log1p(-given["delta"])
    guilty = sum(dpmc.audit(laplace, 0, 1, seed=k, **given).violates_claim for k in range(150))
    assert guilty <= stats.binom.ppf(1 - 1e-4, 150, 0.1)
    found = sum(dpmc.audit(quiet_laplace, 0, 1, seed=k, **given).violates_claim for k in range(150))
    assert found > stats.binom.ppf(1 - 1e-4, 150, 0.1)


def test_a_rule_judged_on_the_runs_that_it_was_learnt_on_would_find_the_innocent_guilty():
    """Many outcomes that say nothing: what the first part of the runs makes of them is chance."""

    def names(data, size, rng):
        return [str(k) for k in rng.integers(20, size=size)]

    results = [
        dpmc.audit(names, 0, 1, claim=0.0, confidence=0.9, num_runs=4000, seed=k) for k in range(40)
    ]
    assert sum(r.violates_claim for r in results) <= stats.binom.ppf(1 - 1e-4, 40, 0.1)
    guilty = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        outcomes = empirical.Outcomes(names(0, 1000, rng))
        labels = rng.random(1000) < 0.5
        guess = empirical.Score.learn(outcomes, labels)(outcomes) >= 0
        right = int(np.sum(guess == labels))
        guilty += empirical.epsilon_by_counts(right, 1000, 1000, 0.0, 0.9) > 0
    assert guilty > stats.binom.ppf(1 - 1e-4, 40, 0.1)


def test_one_sided_events_spend_half_of_delta():
    """A mechanism that gives itself away with probability delta is (0, delta)-DP."""

    def tells(data, size, rng):
        return np.where(rng.random(size) < 0.1, "told" if data else "hidden", "hidden")

    exact = dpmc.audit(tells, 0, 1, delta=0.1, claim=0.0, seed=1, confidence=0.999)
    assert not exact.violates_claim
    assert dpmc.audit(tells, 0, 1, delta=0.05, claim=1.0, seed=1, confidence=0.999).violates_claim


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (lambda hit: "yes" if hit else "no", "output is 'yes'"),
        (lambda hit: math.nan if hit else 0.0, "output is nan"),
        (lambda hit: {"a": [1, math.inf if hit else 2.0]}, "output is {'a': [1, inf]}"),
        (lambda hit: np.array([1.0, hit]), "output is array([1., 1.])"),
        (lambda hit: None if hit else 3, "output is None"),
        (lambda hit: 1 / (not hit), "an exception ZeroDivisionError"),
    ],
)
def test_any_outcome_is_one(outcome, words):
    """An outcome of probability 0.3 or 0.7: epsilon is ln(7 / 3) = 0.847."""

    def mechanism(data, rng):
        return outcome(bool(rng.random() < data))

    result = dpmc.audit(mechanism, 0.3, 0.7, num_runs=4000, seed=1, confidence=0.999)
    assert 0.6 < result.epsilon_lower < 0.848
    assert words in result.event


def test_numbers_of_several_columns_and_a_statistic_of_them_are_found():
    def vectors(data, size, rng):
        return np.outer(np.full(size, data), [0.6, -0.8, 0.0]) + rng.standard_normal((size, 3))

    given = {"mu": 2.0, "delta": 1e-5, "num_runs": 6000, "seed": 2}
    learnt = dpmc.audit(vectors, 0.0, 2.0, **given)
    told = dpmc.audit(vectors, 0.0, 2.0, statistic=lambda y: 0.6 * y[0] - 0.8 * y[1], **given)
    for result in (learnt, told):
        assert 1.8 < result.mu_lower < 2
    assert "statistic >=" in told.event


def test_a_change_of_the_spread_alone_is_found():
    def spread(data, size, rng):
        return data * rng.standard_normal(size)

    assert dpmc.audit(spread, 1.0, 4.0, num_runs=4000, seed=1).epsilon_lower > 1


def test_processes_give_what_one_gives():
    given = {"num_runs": 4500, "seed": 3}
    one = dpmc.audit(one_by_one, 0, 1, **given)
    assert dpmc.audit(one_by_one, 0, 1, workers=2, **given) == one
    assert one != dpmc.audit(one_by_one, 0, 1, num_runs=4500, seed=4)


def test_an_exception_is_known_by_its_text_where_it_is_frequent():
    assert encode(Raised("KeyError", "a"))[0] != encode(Raised("KeyError", "b"))[0]
    assert encode(math.inf)[0] != encode(math.nan)[0] != encode(1.0)[0]
    assert encode((1.0, "a"))[0] != encode((1.0, "b"))[0] == encode((2.0, "b"))[0]


def test_a_result_says_in_one_line_what_was_found():
    result = dpmc.audit(laplace, 0, 1, claim=Guarantee(0.5, 1e-6), num_runs=2000, seed=1)
    assert result.delta == 1e-6
    assert result.violates_claim
    assert repr(result).startswith("AuditResult(epsilon >= ")
    assert repr(result).endswith("claim 0.5 violated)")
    assert sum(result.counts[part] for part in ("learning", "judging")) == 2000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 1.0}, r"`delta` must be in \[0, 1\), got 1.0"),
        ({"confidence": 0.4}, r"`confidence` must be in \(0.5, 1\), got 0.4"),
        ({"num_runs": 10}, "`num_runs` must be an integer of at least 200, got 10"),
        ({"workers": 0}, "`workers` must be an integer of at least 1, got 0"),
        ({"claim": -1.0}, "`claim` must be a number of at least 0 or a Guarantee, got -1.0"),
        ({"mu": 1.0}, "`delta` must be positive with `mu`, got 0"),
        ({"mu": -1.0, "delta": 0.1}, "`mu` must be positive, got -1.0"),
        ({"claim": Guarantee(1.0, 0.1), "delta": 0.2}, "`delta` must be that of the claim, 0.1"),
    ],
)
def test_arguments_out_of_range_are_refused_before_any_run(given, message):
    def never(data):
        raise AssertionError

    with pytest.raises(dpmc.DpmcError, match=message):
        dpmc.audit(never, 0, 1, **given)


def test_processes_that_would_share_a_generator_are_refused():
    with pytest.raises(dpmc.DpmcError, match="`workers` must be 1 for a mechanism without"):
        dpmc.audit(lambda data: data, 0, 1, workers=2)


def test_a_batch_of_another_size_is_refused():
    with pytest.raises(dpmc.DpmcError, match=r"`mechanism` must return .* outcomes, got 1"):
        dpmc.audit(lambda data, size: [data], 0, 1)
