"""Error rates of medians of runs and of their ratios, on laws like those of private chains."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from dpmc_papers.verdicts import evidence
from dpmc_papers.verdicts.agreement import compare
from dpmc_papers.verdicts.bootstrap import Measurement, student
from dpmc_papers.verdicts.comparisons import first_over_second
from dpmc_papers.verdicts.medians import Box, Sample
from dpmc_papers.verdicts.printed import quartiles, together
from dpmc_papers.verdicts.scales import LOG
from tests.support.printed import runs

REPEATS = 2000
# Were a rate 0.05, more of 2,000 repeats would go wrong with probability below 1e-6.
MOST = 150
LEVEL = 0.05


def humps(rng, size, share=0.45):
    """Return runs of which some are stuck."""
    return np.where(rng.random(size) < share, 0.5, 0.1) * np.exp(0.1 * rng.normal(size=size))


def one_sided(rng, size):
    """Return runs with a median of 1, close to it on one side and far on the other."""
    near, far = np.exp(-0.02 * rng.random(size)), np.exp(2 * rng.random(size))
    return np.where(rng.random(size) < 0.5, near, far)


# Two groups whose medians are the same.
PAIRS = {
    "lognormal": lambda rng, n: [np.exp(0.35 * rng.normal(size=n)) for _ in range(2)],
    "heavy": lambda rng, n: [np.exp(1.2 * rng.normal(size=n)) for _ in range(2)],
    "humps": lambda rng, n: [humps(rng, n) for _ in range(2)],
    "even_humps": lambda rng, n: [humps(rng, n, 0.5) for _ in range(2)],
    "opposite": lambda rng, n: (lambda x: [x, 1 / x])(np.exp(np.where(rng.random(n) < 0.5, 1, -1))),
    "one_sided": lambda rng, n: [one_sided(rng, n), 1 / one_sided(rng, n)],
}


def box(groups):
    return Box([Sample(np.sort(x), len(x)) for x in groups], first_over_second, LOG)


@pytest.mark.parametrize("size", [4, 6, 10, 20])
@pytest.mark.parametrize("law", PAIRS)
def test_error_rates_of_a_ratio_of_medians(law, size):
    """The ratio is 1: each end of its interval is beyond that in 5 % of repeats at most."""
    rng = np.random.default_rng(size)
    ends = np.array([box(PAIRS[law](rng, size))(LEVEL) for _ in range(REPEATS)])
    assert np.sum(ends[:, 0] > 0) <= MOST
    assert np.sum(ends[:, 1] < 0) <= MOST
    # Four runs tell nothing of a median at this level, six do.
    assert np.isfinite(ends).all() == (size >= 6)


def adding_squares(groups):
    """Return the ends by a broken rule, which adds the squares of the distances of both ends."""
    values = [np.log(np.sort(x)) for x in groups]
    middle = [float(np.median(x)) for x in values]
    ends = [np.log(Sample(np.sort(x), len(x)).interval(LEVEL)) for x in groups]
    ratio = middle[0] - middle[1]
    below = math.hypot(middle[0] - ends[0][0], ends[1][1] - middle[1])
    above = math.hypot(ends[0][1] - middle[0], middle[1] - ends[1][0])
    return ratio - below, ratio + above


def of_student(groups):
    """Return the ends by a broken rule, Student's quantile of a bootstrapped standard error."""
    rows = [runs(x) for x in groups]
    given = evidence.Evidence(pd.concat(rows), {}, np.random.default_rng(1), 50)
    found = given.measure("here", rows, "mmd", "median", LOG, first_over_second)
    value = LOG.of(found.estimate)
    slack = student(found.runs, LEVEL) * found.se
    return value - slack, value + slack


@pytest.mark.parametrize(("rule", "law"), [(adding_squares, "one_sided"), (of_student, "humps")])
def test_rules_that_do_not_keep_the_error_rates(rule, law):
    """Of 300 repeats at 0.05 each, 60 on both sides are exceeded with probability 1e-7."""
    rng = np.random.default_rng(1)
    ends = np.array([rule(PAIRS[law](rng, 20)) for _ in range(300)])
    wrong = np.sum(ends[:, 0] > 0) + np.sum(ends[:, 1] < 0)
    assert binom.sf(wrong - 1, 300, 0.1) < 1e-4


@pytest.mark.parametrize("size", [1, 4, 5, 10, 21])
@pytest.mark.parametrize("level", [0.2, 0.05, 0.001])
def test_the_interval_is_as_short_as_coins_allow(size, level):
    values = np.arange(size, dtype=float)
    low, high = Sample(values, size).interval(level)
    ranks = [k for k in range(1, size + 1) if binom.cdf(k - 1, size, 0.5) <= level]
    assert low == (ranks[-1] - 1 if ranks else -math.inf)
    assert high == (size - ranks[-1] if ranks else math.inf)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_runs_without_a_value_are_none(statistic):
    rng = np.random.default_rng(1)
    few = np.where(np.arange(20) < 17, np.nan, rng.lognormal(size=20))
    rows = [runs(few), runs(rng.lognormal(size=20))]
    given = evidence.Evidence(pd.concat(rows), {}, rng, 200)
    assert given.measure("here", rows, "mmd", statistic, LOG, first_over_second).runs == 3


def test_runs_of_one_replicate_count_as_one():
    """Forty runs that are twenty, each given twice, have the interval of the twenty."""
    values = np.random.default_rng(1).normal(size=20)
    twice = pd.concat([runs(values), runs(values)])
    for group in (runs(values), twice):
        sample = Sample.of(group, "mmd")
        assert sample.interval(LEVEL) == Sample(np.sort(values), 20).interval(LEVEL)
    assert Sample.of(runs([1.0, math.nan, 2.0]), "mmd").values.tolist() == [1.0, 2.0]  # noqa: PD011


@pytest.mark.parametrize("cells", [1, 4])
def test_error_rates_against_printed_boxes_with_two_humps(cells):
    """Twenty runs and twenty printed ones of one law; a row of boxes is judged by its mean.

    Nominal 0.05 on each side: of 200 repeats more than 45 go wrong with probability 1e-7. By
    Student's quantile of a bootstrapped error 0.32 and 0.23 of them do.
    """
    rng, wrong = np.random.default_rng(cells), 0
    for _ in range(200):
        rows = pd.concat(runs(humps(rng, 20), epsilon=k) for k in range(cells))
        given = evidence.Evidence(rows, {}, rng, 50)
        entries = []
        for k in range(cells):
            printed = np.quantile(humps(rng, 20), [0.25, 0.5, 0.75]).tolist()
            rule = {"kind": "quartiles", "metric": "mmd", "where": {"epsilon": k}, "count": 20}
            entries.append(
                {"rule": {**rule, "printed": printed}, "low": printed[1], "high": printed[1]}
            )
        if cells == 1:
            (found,) = quartiles(entries[0]["rule"], given, "as_published")
            limit = entries[0]["low"]
        else:
            (found,) = together(entries, quartiles, given, "as_published")
            limit = 1.0
        wrong += compare(found, limit, limit, 2 * LEVEL).verdict == "contradicted"
    assert wrong <= 45


def test_a_limit_is_held_against_the_end_on_its_side():
    """A ratio that may be infinite is at least 1 for sure all the same."""
    entry = Measurement("here", 2.0, math.nan, 20, LOG, bounds=lambda level: (0.1, math.inf))
    assert entry.slack(LEVEL) == (pytest.approx(math.log(2) - 0.1), math.inf)
