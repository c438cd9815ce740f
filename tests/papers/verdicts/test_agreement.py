"""Agreement with printed numbers: error rates on both sides, resolution and scales."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student

from dpmc_papers.verdicts.agreement import TOLERANCE, compare
from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.scales import LOG

RUNS = 20
REPEATS = 4000
# More of 4,000 repeats than this go one way with probability below 1e-6, were the rate 0.05.
MOST = 266


def of(estimate, se, limit_se=0.0, runs=RUNS, scale=LOG):
    return Measurement("here", estimate, se, runs, scale, limit_se)


def repeats(rng, ratio: float, spread: float, family: int = 1):
    """Yield verdicts on print and runs of lognormal laws whose medians have a ratio."""
    for _ in range(REPEATS):
        ours, theirs = (rng.normal(size=RUNS) * spread for _ in range(2))
        errors = [values.std(ddof=1) / math.sqrt(RUNS) for values in (ours, theirs)]
        printed = math.exp(theirs.mean())
        found = compare(of(ratio * math.exp(ours.mean()), *errors), printed, printed, 0.05, family)
        yield found.verdict


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.25, 0.35, 0.5, 2.0])
def test_a_number_that_is_wrong_by_the_tolerance_is_seldom_reproduced(spread):
    """Nominal error rate 0.05. Of 4,000 repeats at most 266: more have probability 1e-6.

    The broken rule, that what is not contradicted is reproduced, fails wherever the error is not
    small.
    """
    verdicts = list(repeats(np.random.default_rng(1), math.exp(TOLERANCE), spread))
    assert verdicts.count("reproduced") <= MOST
    if spread >= 0.25:
        assert REPEATS - verdicts.count("contradicted") > MOST


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.25, 0.35, 0.5, 2.0])
def test_a_number_that_is_right_is_seldom_contradicted(spread):
    """As above; with nine equals beside it in a tenth of the repeats only."""
    verdicts = list(repeats(np.random.default_rng(2), 1.0, spread))
    assert verdicts.count("contradicted") <= MOST
    if spread <= 0.1:  # certain enough for nine in ten to be reproduced
        assert verdicts.count("reproduced") > 0.87 * REPEATS
    if spread == 2.0:
        assert verdicts.count("reproduced") == 0
    alone = list(repeats(np.random.default_rng(3), 1.0, spread, family=10))
    assert alone.count("contradicted") <= 45


def test_the_resolution_of_a_number_is_what_it_notices():
    """A true value further away than the resolution is called reproduced in 5 % of repeats."""
    rng = np.random.default_rng(4)
    error = 0.03
    resolution = compare(of(1.0, error, error), 1.0, 1.0, 0.05).resolution
    assert resolution == pytest.approx(
        math.exp(2 * student.ppf(0.95, RUNS - 1) * math.hypot(error, error))
    )
    for factor, most in ((resolution, MOST), (math.sqrt(resolution), REPEATS)):
        away = math.log(factor) + math.hypot(error, error) * rng.normal(size=REPEATS)
        verdicts = [compare(of(math.exp(v), error, error), 1.0, 1.0, 0.05).verdict for v in away]
        assert verdicts.count("reproduced") <= most
    assert verdicts.count("reproduced") > MOST
    wide = compare(of(1.0, 0.3), 1.0, 1.0, 0.05)
    assert (wide.verdict, wide.resolution > 1.3) == ("undecided", True)


def test_what_is_printed_the_same_is_not_away():
    """Only what is beyond rounding counts; without any error nothing else does."""
    for value, verdict in ((0.56, "reproduced"), (0.5649, "reproduced"), (0.5652, "contradicted")):
        found = compare(of(value, 0.0), 0.555, 0.565, 0.05)
        assert found.verdict == verdict
    assert compare(of(0.565, 0.0, runs=0), 0.565, 0.565, 0.05).verdict == "reproduced"
    assert compare(of(0.5651, 0.0, runs=0), 0.565, 0.565, 0.05).verdict == "contradicted"


def test_the_runs_that_would_decide_do():
    near, far = of(1.02, 0.15, 0.01), of(1.3, 0.12, 0.04)
    for entry in (near, far):
        found = compare(entry, 1.0, 1.0, 0.05, 10)
        assert found.verdict == "undecided"
        runs = int(found.runs_needed)
        assert runs > RUNS
        for more, decided in ((runs, True), (runs - 1, False)):
            error = entry.se * math.sqrt(RUNS / more)
            again = of(entry.estimate, error, entry.limit_se, runs=more)
            assert (compare(again, 1.0, 1.0, 0.05, 10).verdict != "undecided") == decided
    hopeless = compare(of(1.1, 0.01, 0.3), 1.0, 1.0, 0.05)
    assert hopeless.runs_needed == math.inf
    assert (
        "print is too uncertain for a factor of 1.3: no number of runs decides" in hopeless.reason
    )
    single = compare(of(1.0, math.nan, runs=1), 1.0, 1.0, 0.05)
    assert (single.verdict, "single run" in single.reason) == ("undecided", True)
