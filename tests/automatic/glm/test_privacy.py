"""Regressions as an attacker sees them: no release tells more of a row than it is charged for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.automatic.counted import Counted
from dpmc.automatic.glm import kernels, run
from dpmc.automatic.glm import search as glm_search
from dpmc.automatic.glm.rows import Rows, Sums
from dpmc.automatic.glm.till import Till
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped
from dpmc.types import Dataset
from tests.automatic.glm.searches import LIKELIHOODS, fitted, rows_of, search
from tests.automatic.replay import Recording

MU = 0.8
# Rows that a neighbour has in place of its last, and whether its response is a possible one.
HOSTILE = {
    "huge": (1e300, -1e300, 1.0),
    "largest": (1.7e308, 1.7e308, 1.7e308),
    "opposite": (-1.7e308, 1.7e308, 1.0),
    "tiny": (1e-300, 0.0, 0.0),
    "outlier": (30.0, 30.0, 1.0),
    "leverage": (30.0, 45.0, 1.0),  # with next to no residual
    "nothing": (math.nan, 1.0, 1.0),
    "infinite": (math.inf, -math.inf, 1.0),
}


def pair(likelihood, kind, num_rows=400):
    rows = rows_of(likelihood, num_rows)
    other = rows.copy()
    other[-1] = HOSTILE[kind]
    if likelihood == "logistic":
        other[-1, -1] = min(other[-1, -1], 1.0)
    return rows, other


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_release_moves_by_more_than_its_sensitivity(likelihood, kind):
    for seed, (first, second) in enumerate((pair(likelihood, kind), pair(likelihood, kind)[::-1])):
        seen = search(likelihood, first, MU, seed, None, "zero", robust=True)
        there = search(likelihood, second, MU, seed, seen.transcript, "zero", robust=True)
        exact = zip(seen.transcript.exact, there.transcript.exact, strict=True)
        moves = [float(np.linalg.norm(a - b)) for a, b in exact]
        assert seen.transcript.sensitivities == there.transcript.sensitivities  # the same questions
        for move, sensitivity in zip(moves, seen.transcript.sensitivities, strict=True):
            assert move <= sensitivity * (1 + 1e-9)
        assert 0 < seen.transcript.cost(there.transcript) <= MU**2 * (1 + 1e-9)
        assert seen.spent == pytest.approx(MU**2, rel=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_stages_that_read_some_rows_have_the_sensitivity_of_all(likelihood, monkeypatch):
    """One of the rows that follow each other is read, another in each stage: up to four."""
    monkeypatch.setattr(glm_search, "SEEN", 100)
    rows, other = rows_of(likelihood, 400), rows_of(likelihood, 400)
    other[8:12] = HOSTILE["leverage"]
    moved = 0
    for place in range(8, 12):
        there = rows.copy()
        there[place] = other[place]
        seen = search(likelihood, rows, MU, 0, None, "zero")
        beside = search(likelihood, there, MU, 0, seen.transcript, "zero")
        exact = zip(seen.transcript.exact, beside.transcript.exact, strict=True)
        moves = np.array([float(np.linalg.norm(a - b)) for a, b in exact])
        assert seen.transcript.sensitivities == beside.transcript.sensitivities
        assert np.all(moves <= np.array(seen.transcript.sensitivities) * (1 + 1e-9))
        moved += int((moves > 0).sum())
    # Every stage before the last reads one of the four.
    assert 4 < moved < 4 * len(seen.transcript.sensitivities)


def test_one_row_of_a_normal_model_is_within_the_bound_on_gradients():
    numbers = np.zeros(kernels.NUMBERS)
    numbers[[kernels.Y_INVERSE, kernels.SIGMA, kernels.CURVATURE, kernels.SCORE]] = 1.0
    numbers[[kernels.LENGTH, kernels.LONGEST, kernels.RESIDUAL]] = 5.0, 1e3, 4.0
    numbers[kernels.GRADIENT] = 6.0  # less than both factors at their bounds
    row = np.array([[100.0, 100.0, 1e6]])
    rows = Rows(row, np.zeros(2), np.ones(2), True, kernels.LINEAR, Counted(1.0))
    sums = rows.scores(np.eye(3), np.zeros(3), numbers, True)
    assert np.linalg.norm(sums.gradient.value) == pytest.approx(6.0)
    assert sums.gradient.sensitivity == 12.0


def test_what_is_found_follows_from_what_was_released():
    """Rows of another data set, and the same answers: the same is found."""
    first = rows_of("linear", 2000)
    second = rows_of("student_t", 2000, seed=1)
    second[:, -1] = np.where(second[:, -1] > 1.5, 100.0, second[:, -1])
    answers, seen = None, []
    for rows in (first, second):
        ledger = Recording(GaussianBudget(2.0), answers)
        till = Till(ledger, np.random.default_rng(0))
        dataset = Dataset.of("rows", rows, "zero")
        found, _, units, _ = run.search(till, dataset, kernels.LINEAR, True, None, 4.0, True)
        seen.append(
            (found.posterior.mean, found.sigma, found.dispersion, found.heavy, units, found.checks)
        )
        answers = ledger.transcript
    for one, other in zip(*seen, strict=True):
        assert str(one) == str(other)


def costs(likelihood="logistic"):
    """Return the largest cost of rows as unlike as two can be, over mu^2."""
    found = []
    for seed in range(3):
        rows = rows_of(likelihood, 1000, rate=0.05)
        first, second = rows.copy(), rows.copy()
        # Events of opposite features; responses far off in opposite directions.
        first[-1], second[-1] = (2.0, -2.0, 1.0), (-2.0, 2.0, 1.0)
        if likelihood == "linear":
            first[-1], second[-1] = (2.0, -2.0, 1e3), (2.0, -2.0, -1e3)
        seen = search(likelihood, first, MU, seed)
        there = search(likelihood, second, MU, seed, seen.transcript)
        found.append(seen.transcript.cost(there.transcript))
    return max(found) / MU**2


@pytest.mark.parametrize("likelihood", ["logistic", "linear"])
def test_the_worst_pair_comes_near_the_budget(likelihood):
    # Without power against opposite rows the tests above would prove little.
    assert 0.3 < costs(likelihood) <= 1 + 1e-9


def test_half_the_sensitivity_costs_more(monkeypatch):
    original = Till.release

    def halved(self, name, value, cost):
        return original(self, name, Clipped(value.value, value.sensitivity / 2), cost)

    monkeypatch.setattr(Till, "release", halved)
    assert costs() > 1.05


def without(places, monkeypatch):
    """Have rows contribute beyond some bounds, which their sums go on to state."""
    original = Rows.scores

    def unbounded(self, basis, phi, numbers, *more, **options):
        wide = numbers.copy()
        wide[places] = 1e9
        stated = original(self, basis, phi, numbers, *more, **options)
        found = original(self, basis, phi, wide, *more, **options)
        parts = zip(found, stated, strict=True)
        return Sums(*(Clipped(one.value, other.sensitivity) for one, other in parts))

    monkeypatch.setattr(Rows, "scores", unbounded)


def test_rows_without_weights_cost_more(monkeypatch):
    without([kernels.LENGTH, kernels.LONGEST], monkeypatch)
    assert costs() > 1.05


def test_residuals_without_a_bound_cost_more(monkeypatch):
    without([kernels.RESIDUAL, kernels.GRADIENT], monkeypatch)
    assert costs("linear") > 1.05


def test_every_release_has_its_name_and_all_of_the_budget_is_named():
    rows = rows_of("linear", 2000)
    fit, _, _ = fitted(rows, "linear", seed=1)
    stages = fit.plan.stages
    assert sum(stage["share"] for stage in stages) == pytest.approx(1.0, rel=1e-6)
    assert {
        "units",
        "second moments",
        "lengths",
        "residuals",
        "curvature",
        "gradient",
        "scale",
    } <= {stage["release"] for stage in stages}
    assert fit.plan.audit.epsilon == pytest.approx(1.0, rel=1e-6)
    assert run.KINDS[fit.plan.likelihood["name"]] == kernels.LINEAR
