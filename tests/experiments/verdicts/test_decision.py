"""What decides on a verdict: rounding, levels and shares, number by number."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from dpmc.experiments.pipeline.results import Context
from dpmc.experiments.verdicts import judge as judge_claims
from dpmc.experiments.verdicts import printed
from dpmc.experiments.verdicts.bootstrap import Measurement
from dpmc.experiments.verdicts.decision import decide
from dpmc.experiments.verdicts.evidence import Evidence
from tests.support.printed import judge, runs


def measured(estimate: float, se: float = 0.1, runs: int = 20, **changes) -> Measurement:
    return Measurement("here", estimate, se, runs, **{"log": False, **changes})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (0.3, "reproduced"),
        (0.1 + 0.2, "reproduced"),
        (0.3 * (1 + 1e-10), "reproduced"),
        (0.3 * (1 + 1e-8), "not_reproduced"),
        (0.3 * (1 - 1e-8), "not_reproduced"),
    ],
)
def test_exact_numbers_are_equal_but_for_rounding(value, verdict):
    """0.1 + 0.2 is above 0.3 by one unit in the last place."""
    assert decide([measured(value, 0.0, 0)], 0.3, 0.3, 0.05, 0.5).verdict == verdict


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("limit_se", [0.0, 0.2])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_number_is_beyond_a_limit_by_the_quantile_of_its_share_of_the_level(
    count, limit_se, side
):
    """A one-sided Student quantile at the level over the number of settings."""
    slack = student.ppf(1 - 0.05 / count, 19) * math.hypot(0.1, limit_se)
    inside = [measured(0.0)] * (count - 1)
    limits = (-1.0, 1.0)
    for away, verdict in ((0.999, "not_comparable"), (1.001, "not_reproduced")):
        entry = measured(side * (1 + away * slack), limit_se=limit_se)
        assert decide([entry, *inside], *limits, 0.05, 1.0).verdict == verdict


def test_an_infinite_limit_bounds_nothing():
    assert decide([measured(5.0)], 1.0, math.inf, 0.05, 1.0).verdict == "reproduced"
    assert decide([measured(5.0)], -math.inf, 1.0, 0.05, 1.0).verdict == "not_reproduced"


@pytest.mark.parametrize(
    ("holding", "share", "verdict"),
    [(3, 0.75, "reproduced"), (2, 0.75, "not_comparable"), (1, 0.0, "reproduced")],
)
def test_a_claim_holds_where_the_share_of_settings_that_is_asked_for_does(holding, share, verdict):
    """The others lie beyond the limit, by less than their error."""
    entries = [measured(0.9)] * holding + [measured(1.01)] * (4 - holding)
    assert decide(entries, 0.0, 1.0, 0.05, share).verdict == verdict


@pytest.mark.parametrize(
    ("beyond", "exceptions", "verdict"),
    [(1, 0.0, "not_reproduced"), (1, 0.25, "reproduced"), (2, 0.25, "not_reproduced")],
)
def test_contradictions_are_allowed_up_to_the_exceptions_alone(beyond, exceptions, verdict):
    entries = [measured(9.0)] * beyond + [measured(0.5)] * (4 - beyond)
    assert decide(entries, 0.0, 1.0, 0.05, 0.5, exceptions).verdict == verdict


def test_a_ratio_is_judged_by_its_logarithm():
    """Twice and half are as far from one: an error of 0.4 in the logarithm covers neither."""
    for value in (2.0, 0.5):
        entry = measured(value, 0.3, log=True)
        assert decide([entry], 0.99, 1.01, 0.05, 1.0).verdict == "not_reproduced"
        wide = measured(value, 0.5, log=True)
        assert decide([wide], 0.99, 1.01, 0.05, 1.0).verdict == "not_comparable"


def test_the_error_rate_is_that_of_a_whole_series(monkeypatch):
    """Each of n cells is judged at the error rate over n, an entry at the whole of it."""
    rates = []

    def recording(measured, low, high, error_rate, *rest):
        rates.append(error_rate)
        return decide(measured, low, high, error_rate, *rest)

    monkeypatch.setattr(judge_claims, "decide", recording)
    rows = pd.concat(runs(np.linspace(0.4, 0.6, 20), problem="a", epsilon=e) for e in (1, 2))
    rule = {"kind": "quartiles", "metric": "mmd", "count": 20, "where": {"experiment": "e"}}
    series = {
        "id": "B",
        "where": "here",
        "output": "none",
        "rule": rule,
        "margin": 0.1,
        "columns": ["problem"],
    }
    cells = {"axis": {"epsilon": [1, 2]}, "cells": {"a": [0.5, 0.5]}}
    entry = {"rule": {"kind": "level", "metric": "mmd"}, "low": 0}
    judge(Context({}, rows), [entry], [{**series, **cells}])
    assert rates == [pytest.approx(0.05)] + [pytest.approx(0.025)] * 2


def judged(rule: dict, rows: pd.DataFrame, **changes) -> float:
    """Return what is compared with the limits of an entry."""
    return judge(Context({}, rows), [{"rule": rule, "low": 0}], metrics=rows, **changes)["ours"][0]


def groups(first: float, second: float, **named) -> pd.DataFrame:
    """Return runs of algorithms a and b at these levels, equal but for little noise."""
    noise = 1e-3 * np.linspace(-1, 1, 5)
    return pd.concat(
        runs(level + noise, algorithm=name, **named)
        for name, level in (("a", first), ("b", second))
    )


def test_an_order_divides_each_group_by_what_should_exceed_it():
    """Tiers ascend: the ratio is that of the first over the second."""
    rule = {"kind": "order", "metric": "mmd"}
    tiers = [[{"algorithm": "a"}], [{"algorithm": "b"}]]
    assert judged({**rule, "tiers": tiers}, groups(1.0, 4.0)) == pytest.approx(0.25, rel=1e-2)
    assert judged({**rule, "tiers": tiers[::-1]}, groups(1.0, 4.0)) == pytest.approx(4.0, rel=1e-2)


def test_a_ratio_divides_numerators_by_denominators():
    sides = {"numerators": [{"algorithm": "a"}], "denominators": [{"algorithm": "b"}]}
    rule = {"kind": "ratio", "metric": "mmd", **sides}
    assert judged(rule, groups(1.0, 4.0)) == pytest.approx(0.25, rel=1e-2)


def test_a_difference_is_what_the_larger_value_has_more():
    rows = pd.concat(groups(v, v, epsilon=e) for e, v in ((1, 2.0), (2, 5.0)))
    rule = {"kind": "difference", "metric": "mmd", "between": "epsilon", "by": ["algorithm"]}
    assert judged(rule, rows) == pytest.approx(3.0, rel=1e-2)


@pytest.mark.parametrize(("leader", "wanted"), [("a", 0.25), ("b", 4.0)])
def test_the_group_that_leads_is_divided_by_the_other(leader, wanted):
    rows = groups(1.0, 4.0, epsilon=1)
    rows["speed"] = np.where(rows["algorithm"] == leader, 9.0, 1.0)
    sides = {"groups": [{"algorithm": "a"}, {"algorithm": "b"}], "guide": {"metric": "speed"}}
    rule = {"kind": "follows", "metric": "mmd", "by": ["epsilon"], **sides}
    assert judged(rule, rows, paper="alparslan2023thesis") == pytest.approx(wanted, rel=1e-2)


def test_a_gain_divides_the_accountant_that_allows_more_by_the_other():
    curve = pd.DataFrame(
        {"label": "x", "epsilon": 1.0, "accountant": ["tight", "loose"], "num_iterations": [60, 20]}
    )
    rule = {"kind": "gain", "curve": "c", "accountants": {"as_published": ["tight", "loose"]}}
    found = judge(Context({}, groups(1.0, 1.0)), [{"rule": rule, "low": 1}], curves={"c": curve})
    assert found["ours"][0] == pytest.approx(3.0)


def test_variants_are_not_mixed():
    rows = pd.concat([groups(1.0, 1.0), groups(9.0, 9.0, variant="corrected")])
    rule = {"kind": "level", "metric": "mmd"}
    entry = {"rule": rule, "low": 0, "variants": ["as_published", "corrected"]}
    found = judge(Context({}, rows), [entry], metrics=rows)
    assert found["ours"].tolist() == [pytest.approx(1.0), pytest.approx(9.0)]


@pytest.mark.parametrize(("wanted", "verdict"), [(20, "reproduced"), (30, "not_comparable")])
def test_runs_with_other_sizes_than_the_document_are_not_judged(wanted, verdict):
    rows = groups(1.0, 1.0)
    rule = {"kind": "level", "metric": "mmd", "where": {"experiment": "e"}}
    found = judge(
        Context({"size": 20}, rows), [{"rule": rule, "low": 0}], needs={"e": {"size": wanted}}
    )
    assert found["verdict"][0] == verdict


def test_the_error_of_a_printed_mean_is_its_deviation_over_the_root_of_its_runs():
    rows = runs(np.linspace(0.4, 0.6, 20), epsilon=1)
    rule = {"metric": "mmd", "where": {"epsilon": 1}, "printed": [0.5, 0.3], "count": 9}
    given = Evidence(rows, {}, np.random.default_rng(1), 50)
    assert printed.spread(rule, given, "as_published")[0].limit_se == pytest.approx(0.1)
