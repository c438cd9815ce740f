"""Regressions on synthetic data: rules of Rubin, what one row moves, and laws of most entropy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clipped, row_histogram
from dpmc.privacy.ledger import Ledger
from dpmc.types import Budget, DpmcError
from dpmc_league import cells as cells_module
from dpmc_league import contest, synthetic
from dpmc_league.cells import Cells, rubin
from dpmc_league.regressions import aim, mst, napsu_mq
from dpmc_papers.data import league_regression

LOOSE = Budget(1e4, 1e-6, "gaussian")
MU = 0.7
PAIRS = [(0, 7), (0, 1), (0, 2), (0, 4)]  # cells: in the first no column keeps its level


def table(seed: int = 0, **params: Any) -> contest.Table:
    given = {"family": "logistic", "effects": [0.5, -0.4], "levels": [2, 3], "num_rows": 5000}
    chosen = league_regression.Params(**{**given, **params})
    rows = league_regression.generate(chosen, np.random.default_rng(seed))
    return league_regression.table(chosen, rows)


def test_rules_of_rubin_by_hand() -> None:
    """Three sets: B = 1 and U = 0.2 give T = 17 / 15; B = 0.01 and U = 1 give T < 0."""
    estimates = np.array([[1.0, 1.9], [2.0, 2.0], [3.0, 2.1]])
    mean, sd = rubin(estimates, np.array([[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]]))
    np.testing.assert_allclose(mean, [2.0, 2.0])
    # The 95 % quantile of a t law with 2 x 0.85^2 = 1.445 degrees of freedom, by its density.
    freedom, grid = 1.445, np.linspace(0, 4.0, 400_001)
    constant = (
        math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    )
    density = constant * (1 + grid**2 / freedom) ** (-(freedom + 1) / 2)
    quantile = float(np.interp(0.45, np.cumsum(density) * (grid[1] - grid[0]), grid))
    assert sd[0] == pytest.approx(math.sqrt(17 / 15) * quantile / 1.6448536, rel=1e-3)
    assert sd[1] == pytest.approx(1.0)


def test_rules_of_rubin_cover_where_laws_are_drawn_from_their_posterior() -> None:
    """A mean of n rows, 4000 times: 0.90 has a standard deviation of 0.005; five of them, 6e-7.

    One data set that is taken for real, of the law at the estimate, has twice the variance that
    its regression tells: 0.755.
    """
    rng = np.random.default_rng(3)
    runs, sets, n = 4000, 50, 100
    found = rng.standard_normal(runs) / math.sqrt(n)
    laws = found + rng.standard_normal((sets, runs)) / math.sqrt(n)
    made = laws + rng.standard_normal((sets, runs)) / math.sqrt(n)
    real = found + rng.standard_normal(runs) / math.sqrt(n)
    variances = np.full((sets, runs), 1 / n)

    def covered(mean: Any, sd: Any) -> float:
        return float(np.mean(np.abs(mean) <= contest.NINETY * sd))

    assert covered(*rubin(made, variances)) == pytest.approx(0.90, abs=0.025)
    assert covered(real, np.sqrt(variances[0])) == pytest.approx(0.755, abs=0.035)


def test_cells_hold_all_rows_and_regressions_of_cells_are_those_of_rows() -> None:
    made = table(levels=[2, 3], correlation=0.5)
    cells = Cells.of(made)
    assert cells.sizes == (2, 3, 2)
    numbers = cells.numbers(made)
    assert numbers.sum() == 5000
    slopes, variances = cells.regress(numbers[None])
    exact = contest.exact(made)
    np.testing.assert_allclose(slopes[0], exact.slopes, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(variances[0]), exact.sd, rtol=1e-6)
    for columns in ((0,), (0, 2), (1, 2)):
        np.testing.assert_array_equal(cells.margin(columns).sum(axis=1), 1)
    first = np.unique(made.x[:, 0], return_counts=True)[1]
    np.testing.assert_array_equal(numbers @ cells.margin((0,)), first)


def test_cells_are_refused_without_levels_and_where_they_are_many(monkeypatch) -> None:
    with pytest.raises(DpmcError, match="`table` must be of a logistic regression"):
        Cells.of(table(levels=None))
    with pytest.raises(DpmcError, match="`table` must be of a logistic regression"):
        Cells.of(table(family="linear"))
    monkeypatch.setattr(cells_module, "MOST_CELLS", 11)
    with pytest.raises(DpmcError, match="`levels` must give at most 11 cells, got 12"):
        Cells.of(table())


class Replay:
    """A run on one data set whose outputs are given out again on a neighbouring one."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.spent: list[float] = []
        self.losses: list[float] = []
        self.again: list[Any] | None = None

    def answer(self, value: Any, output: Any) -> Any:
        if self.again is None:
            self.outputs.append((value, output))
            return output
        return self.again.pop(0)

    def patch(self, monkeypatch) -> None:
        release, choose = Ledger.release, synthetic.Desk.choose
        replay = self

        def released(ledger: Ledger, clipped: Any, multiplier: float, rng: Any) -> Any:
            noisy = release(ledger, clipped, multiplier, rng)
            found = replay.answer(clipped.value, noisy)
            if replay.again is None:
                return found
            value, output = found
            scale = multiplier * clipped.sensitivity
            replay.spent.append(float(np.sum((clipped.value - value) ** 2)) / scale**2)
            return output

        def chosen(desk: Any, scores: Any, mu: float, weight: float = 1.0) -> Any:
            """Loss of the most telling choice, over what a choice of this mu may tell."""
            epsilon = special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2)
            sharp = epsilon / (2 * synthetic.REACH * weight)
            found = replay.answer(sharp * scores, choose(desk, scores, mu, weight))
            if replay.again is None:
                return found
            before, output = found
            change = special.log_softmax(before) - special.log_softmax(sharp * scores)
            replay.losses.append(float(np.abs(change).max() / epsilon))
            replay.spent.append(mu**2)
            return output

        monkeypatch.setattr(Ledger, "release", released)
        monkeypatch.setattr(synthetic.Desk, "choose", chosen)


def moved(monkeypatch, method: Any, row: int, to: int) -> tuple[float, float]:
    """Share of mu^2 that a substituted row takes, and the loss of a choice over its epsilon."""
    made = table(levels=[2, 2], num_rows=100)
    cells, replay = Cells.of(made), Replay()
    numbers = cells.numbers(made)
    other = numbers.copy()
    other[row] -= 1
    other[to] += 1
    with monkeypatch.context() as patch:
        replay.patch(patch)
        for data in (numbers, other):
            ledger, rng = Ledger(GaussianBudget(MU)), np.random.default_rng(1)
            if method is napsu_mq:
                napsu_mq.released(cells, data, MU, ledger, rng)
            else:
                desk = synthetic.Desk(cells, data, ledger, rng)
                method.release(desk, MU * (1 - 1e-9))
            assert 0.99 < ledger.spent / MU**2 <= 1  # choices are recorded as well
            replay.again = list(replay.outputs)
    return sum(replay.spent) / MU**2, max(replay.losses, default=0.0)


@pytest.mark.parametrize("method", [mst, aim, napsu_mq])
def test_a_substituted_row_moves_what_is_released_by_all_of_the_budget_at_most(
    monkeypatch, method
) -> None:
    found = [moved(monkeypatch, method, row, to) for row, to in PAIRS]
    assert max(spent for spent, _ in found) <= 1 + 1e-9
    assert max(spent for spent, _ in found) > 0.99  # the noise is not more than it has to be
    assert max(loss for _, loss in found) <= 1 + 1e-9


@pytest.mark.parametrize("method", [mst, aim, napsu_mq])
def test_noise_for_rows_that_are_added_is_found_out(monkeypatch, method) -> None:
    """A margin changes in two bins where a row is substituted, not in one."""

    def too_small(numbers: Any) -> Clipped[Any]:
        return Clipped(row_histogram(numbers).value, 1.0)

    module = napsu_mq if method is napsu_mq else synthetic
    monkeypatch.setattr(module, "row_histogram", too_small)
    assert moved(monkeypatch, method, 0, 7)[0] > 1.5


def test_a_choice_that_is_too_sharp_is_found_out(monkeypatch) -> None:
    monkeypatch.setattr(synthetic, "REACH", 0.5)
    assert max(moved(monkeypatch, mst, row, to)[1] for row, to in PAIRS) > 1.2


def test_a_distance_of_margins_moves_by_no_more_than_its_reach() -> None:
    made = table(levels=[2, 2], num_rows=100)
    cells = Cells.of(made)
    numbers, law = cells.numbers(made), np.full(8, 1 / 8)
    reach = 0.0
    for a, b in np.ndindex(8, 8):
        if numbers[a] and a != b:
            other = numbers + np.eye(8)[b] - np.eye(8)[a]
            both = [
                synthetic.Desk(cells, one, Ledger(GaussianBudget(MU)), np.random.default_rng())
                for one in (numbers, other)
            ]
            found = [one.distances(cells.pairs(), law) for one in both]
            reach = max(reach, np.abs(found[0] - found[1]).max())
    assert reach == pytest.approx(synthetic.REACH)


def test_the_law_of_most_entropy_has_the_margins_that_were_measured() -> None:
    """A tree of pairs gives p(a, c) p(b, c) / p(c), whatever the rows are."""
    made = table(correlation=0.6)
    cells = Cells.of(made)
    numbers = cells.numbers(made)
    margins = [
        synthetic.Margin(cells.margin(pair), numbers @ cells.margin(pair), 1.0)
        for pair in ((0, 2), (1, 2))
    ]
    law = synthetic.most_entropy(margins, 5000).chances.reshape(cells.sizes)
    given = (numbers / 5000).reshape(cells.sizes)
    first, second = given.sum(axis=1), given.sum(axis=0)
    expected = first[:, None, :] * second[None] / given.sum(axis=(0, 1))
    np.testing.assert_allclose(law, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "params"),
    [(napsu_mq, {}), (mst, {"sets": 20}), (aim, {"sets": 20}), (aim, {"releases": 3})],
)
def test_without_need_of_privacy_each_method_is_near_the_posterior(module, params) -> None:
    """One feature beside the response: here a tree holds all there is, and one more column."""
    made = table(effects=[0.6, 0.0], levels=[3, 2])
    (found,) = module.fit([made], module.Params(**params), LOOSE, [1])
    (again,) = module.fit([made], module.Params(**params), LOOSE, [1])
    scored = contest.score(found, exact := contest.exact(made), exact.slopes)
    assert scored.slope_error < (1.5 if "releases" in params else 0.7)
    assert scored.against_nothing < 0.15
    np.testing.assert_array_equal(found.slopes, again.slopes)
    assert str(found.guarantee).startswith("(1e+04, 1e-06)-DP, substitution of one row")


def test_the_energy_of_a_noise_aware_posterior_has_the_gradient_that_it_says() -> None:
    made = table()
    cells = Cells.of(made)
    rng = np.random.default_rng(2)
    ledger = Ledger(GaussianBudget(MU))
    features, noisy, noise = napsu_mq.released(cells, cells.numbers(made), MU, ledger, rng)
    law = napsu_mq.LogLinear(features, noisy, 5000, noise)
    at = 0.3 * rng.standard_normal(len(noisy))
    numerical = optimize.approx_fprime(at, lambda one: law.energy(one)[0], 1e-6)
    np.testing.assert_allclose(law.energy(at)[1], numerical, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("told", "runs", "low", "high"), [(1.0, 24, 0.1, 1.0), (0.1, 4, 2.0, math.inf)]
)
def test_a_noise_aware_posterior_is_calibrated_and_one_that_is_not_is_wrong(
    told: float, runs: int, low: float, high: float
) -> None:
    """Weights from their prior, 24 times: the median of squares of 6 standard scores is 0.455.

    Its standard deviation is 0.09 if all are independent, and 0.22 if those of a table are the
    same: from 0.1 to 1 (the seed is fixed). With a tenth of the noise told they are far out.
    """
    rng = np.random.default_rng(8)
    cells = Cells.of(table(levels=[2, 2]))
    squares = []
    for _ in range(runs):
        ledger = Ledger(GaussianBudget(MU))
        features, _, noise = napsu_mq.released(cells, np.full(8, 375.0), MU, ledger, rng)
        weights = napsu_mq.PRIOR_SD * rng.standard_normal(features.shape[1])
        numbers = rng.multinomial(3000, special.softmax(features @ weights))
        noisy = numbers @ features + 3 * noise * rng.standard_normal(len(weights))
        draws = napsu_mq.LogLinear(features, noisy, 3000, told * 3 * noise).draws(rng)
        squares.append(((weights - draws.mean(axis=0)) / draws.std(axis=0, ddof=1)) ** 2)
    assert low < np.median(squares) < high
