"""DP-SEP with a clip bound that is found: what is released, and what is counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.ep.mixture.factor import factor
from dpmc.ep.mixture.model import MixtureModel
from dpmc.privacy import events
from dpmc.privacy.clipped import row_count
from dpmc.types import Budget, DpmcError
from dpmc_league import gate, sep_clips
from dpmc_league.clips import fixed, found

ROWS = 240
BUDGET = Budget(5.0, 1e-5, "rdp")
MEANS = np.array([[2.0, 0.0], [-2.0, 1.0]])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    return MEANS[rng.integers(2, size=ROWS)] + 0.5 * rng.standard_normal((ROWS, 2))


@pytest.fixture(scope="module")
def model():
    return MixtureModel.isotropic(0.5, np.array([[1.0, 0.0], [-1.0, 0.0]]), 0.1)


def spent(run) -> float:
    return gate.ledger(run.ledger.records(), BUDGET.delta, BUDGET.epsilon).epsilon


@pytest.mark.parametrize(("method", "counts"), [(fixed, 0), (found, 8)])
def test_all_releases_are_in_the_ledger_and_come_to_the_budget(rows, model, method, counts):
    params = method.Params(num_passes=10)
    _, run = method.fit(rows, model, params, BUDGET, np.random.default_rng(1))
    assert 0.99 * BUDGET.epsilon < spent(run) <= BUDGET.epsilon * 1.001
    told = events.parse(run.ledger.records())
    assert told.pop(events.sampled_gaussian(run.noise_multiplier, 1, ROWS)) == 10 * ROWS
    assert sum(told.values()) == counts


def test_a_run_without_the_noise_that_its_counts_cost_is_beyond_the_budget(rows, model) -> None:
    """The noise of a fixed bound with a search on top: the gate refuses it."""
    _, run = found.fit(rows, model, found.Params(10), BUDGET, np.random.default_rng(1))
    whole = sep_clips.begin(ROWS, 10, 0, BUDGET).noise_multiplier
    assert whole < run.noise_multiplier
    counts = events.gaussian(run.count_multiplier)
    more = [(events.text(events.sampled_gaussian(whole, 1, ROWS)), 10 * ROWS)]
    assert gate.ledger(more, BUDGET.delta, BUDGET.epsilon).epsilon > 0
    more.append((events.text(counts), 20))
    with pytest.raises(DpmcError, match="`ledger` must come to epsilon 5 at most"):
        gate.ledger(more, BUDGET.delta, BUDGET.epsilon)


def test_releases_that_are_not_planned_are_refused(rows, model) -> None:
    run = sep_clips.begin(ROWS, 3, 1, BUDGET)
    rng = np.random.default_rng(1)
    sep_clips.passes(rows, model, run, 3, 4.0, rng)
    with pytest.raises(DpmcError):
        sep_clips.passes(rows, model, run, 1, 4.0, rng)
    sep_clips.search(lambda length: row_count(3), 10, run, rng)
    with pytest.raises(DpmcError):
        sep_clips.search(lambda length: row_count(3), 10, run, rng)


def test_counts_are_those_of_factors_one_by_one_and_a_row_moves_them_by_one(rows, model) -> None:
    run = sep_clips.begin(ROWS, 10, 0, BUDGET)
    place = sep_clips.passes(rows, model, run, 10, 4.0, np.random.default_rng(2))
    share = 1 - 1 / ROWS
    h, precision = model.prior_h(), model.prior_precision
    cavity = h + share * (place.h - h), precision + share * (place.precision - precision)
    lengths = []
    for row in rows:
        one = factor(row, model, *cavity)
        assert one is not None
        lengths.append(math.sqrt(np.sum(one[0].h ** 2) + np.sum(one[0].precision ** 2)))
    for level in np.quantile(lengths, [0.1, 0.5, 0.9]):
        number = sep_clips.longer(rows, model, place, float(level)).value
        assert number == int(np.sum(np.array(lengths) > level))
        changed = rows.copy()
        changed[3] = 1e6
        assert abs(sep_clips.longer(changed, model, place, float(level)).value - number) <= 1


@pytest.mark.slow
def test_bisection_ends_at_the_quantile_where_counts_say_so() -> None:
    """With noise of 8 of 10,000 counts, in steps of 2^(1 / 16)."""
    lengths = np.exp(np.random.default_rng(3).standard_normal(10_000))
    run = sep_clips.begin(10_000, 3, 8, Budget(5.0, 1e-5, "rdp"))
    rng = np.random.default_rng(5)
    bound = sep_clips.search(lambda length: row_count(np.sum(lengths > length)), 5000, run, rng)
    assert bound == pytest.approx(1.0, rel=0.08)
