"""Contests of regressions of the league, and what their methods promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpmc.privacy.budgets import GaussianBudget
from dpmc.types import Budget, DpmcError
from dpmc_league import contest
from dpmc_league.regressions import (
    diffprivlib,
    gradient_ascent,
    noisy_statistics,
    one_sample,
    ours,
)
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import ProblemSetup, StudySetup
from dpmc_papers.data import league_regression
from dpmc_papers.studies import league_regression as study

LOOSE = Budget(1e4, 1e-6, "gaussian")


def table(seed: int = 0, **params: Any) -> tuple[contest.Table, contest.Exact]:
    given = league_regression.Params(**params)
    made = league_regression.table(
        given, league_regression.generate(given, np.random.default_rng(seed))
    )
    return made, contest.exact(made)


def setup(method: str, points: list[dict[str, Any]], params: dict[str, Any], **rows: Any):
    data = {"name": "league_regression", "params": {"num_rows": 2000, **rows}}
    return StudySetup(
        paper="league",
        study="league_regression",
        experiment="persons",
        problem=ProblemSetup.read("one", {"label": "One", "data": data}),
        label=method,
        method=method,
        variant="as_published",
        params=params,
        outside=[],
        seed=1,
        points=points,
    )


def run(given: StudySetup, replicates=(0, 1)):
    return study.run(given, make_data(given.problem, given.seed), replicates)


def test_exact_slopes_are_those_of_least_squares_in_any_units() -> None:
    made, exact = table(units=[[45, 15], [30000, 20000], [0, 1]])
    design = np.column_stack([np.ones(len(made.x)), made.x])
    theta, squares, *_ = np.linalg.lstsq(design, made.y, rcond=None)
    covariance = np.linalg.inv(design.T @ design) * squares[0] / len(made.y)
    np.testing.assert_allclose(exact.slopes, theta[1:], rtol=1e-6)
    np.testing.assert_allclose(exact.sd, np.sqrt(np.diagonal(covariance))[1:], rtol=1e-6)


def test_exact_slopes_of_a_logistic_regression_have_no_gradient() -> None:
    made, exact = table(family="logistic", constant=-3.0)
    ends = np.column_stack([np.ones(len(made.x)), made.x - made.x.mean(axis=0)])
    free = ends[:, 1:] @ exact.slopes
    constant = 0.0
    for _ in range(50):
        chance = 1 / (1 + np.exp(-constant - free))
        constant += float(np.sum(made.y - chance) / np.sum(chance * (1 - chance)))
    assert np.abs(ends.T @ (made.y - chance)).max() < 1e-3


def test_features_with_levels_have_those_that_are_public() -> None:
    """A correlation of 20,000 rows has a standard deviation below 0.007; six of them, 1e-9."""
    units = [[10, 2], [0, 1], [0, 1]]
    made, _ = table(levels=[2, 3, 50], units=units, correlation=0.5)
    assert made.levels is not None
    for column, levels in zip(made.x.T, made.levels, strict=True):
        np.testing.assert_allclose(np.unique(column), levels)
    np.testing.assert_allclose(made.levels[0], [7.5, 12.5])
    apart, _ = table(levels=[2, 3, 50], units=units)
    assert abs(np.corrcoef(apart.x.T)[0, 1]) < 0.042
    assert np.corrcoef(made.x.T)[0, 2] > 0.3
    assert table()[0].levels is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"levels": [2, 2]}, "`levels` must be 3 numbers, got 2"),
        ({"levels": [2, 2, 1]}, "`levels` must be an integer of at least 2"),
        ({"correlation": 1.0}, r"`correlation` must be in \[0, 1\), got 1.0"),
        ({"correlation": math.nan}, r"`correlation` must be in \[0, 1\), got nan"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(params: dict[str, Any], said: str) -> None:
    with pytest.raises(DpmcError, match=said):
        league_regression.Params(**params)


@pytest.mark.parametrize("family", ["linear", "logistic"])
@pytest.mark.parametrize(
    ("module", "params"),
    [
        (ours, {}),
        (ours, {"neighbours": "add_remove"}),
        (ours, {"unit": "person"}),
        (ours, {"unit": "rows"}),
        (gradient_ascent, {"num_steps": 1000, "clip_bound": 2.0}),
        (noisy_statistics, {}),
        (noisy_statistics, {"law": "laplace"}),
        (one_sample, {}),
    ],
)
def test_without_need_of_privacy_each_method_is_near_the_posterior(module, params, family) -> None:
    only = {noisy_statistics: "linear", one_sample: "logistic"}.get(module, family)
    made, exact = table(family=family, per_person=4)
    if only != family:
        with pytest.raises(DpmcError, match="`family` must be"):
            module.fit([made], module.Params(**params), LOOSE, [1])
        return
    (found,) = module.fit([made], module.Params(**params), LOOSE, [1])
    error = contest.score(found, exact, exact.slopes).slope_error
    assert error < 0.5
    assert contest.score(found, exact, exact.slopes).against_nothing < 0.1


def test_whose_data_are_protected_is_in_the_guarantee() -> None:
    made, _ = table(num_rows=1000, per_person=4)
    budget = Budget(4.0, 1e-6, "gaussian")

    def of(**params: Any) -> str:
        return str(ours.fit([made], ours.Params(**params), budget, [1])[0].guarantee)

    assert "(4, 1e-06)-DP, substitution of one row" in of()
    assert "(4, 1e-06)-DP, addition or removal of one row" in of(neighbours="add_remove")
    assert "(4, 1e-06)-DP, substitution of one person" in of(unit="person")
    assert "(4, 1e-06)-DP, substitution of one person" in of(unit="rows")


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_of_statistics_is_that_of_their_sensitivity(monkeypatch, law: str) -> None:
    """No pair of rows moves what is released by more than the noise is scaled for."""
    made, _ = table(effects=[1.0])
    asked: list[Any] = []

    class Told:
        def laplace(self, scale: float, size: int):
            asked.append(scale)
            return np.zeros(size)

        def standard_normal(self, size: int):
            return _Asked(size)

    class _Asked:
        def __init__(self, size: int) -> None:
            self.size = size

        def __rmul__(self, scale: float):
            asked.append(scale)
            return np.zeros(self.size)

    monkeypatch.setattr(noisy_statistics, "stream", lambda *key: Told())
    budget = Budget(1.0, 1e-6, "gaussian")
    noisy_statistics.fit([made], noisy_statistics.Params(law), budget, [1])
    corners = np.array([[u, v] for u in (-1.0, 0.0, 1.0) for v in (-1.0, 0.0, 1.0)])
    numbers = np.column_stack(
        [corners[:, 0], corners[:, 0] ** 2, corners[:, 1], corners[:, 0] * corners[:, 1]]
    )
    moved = numbers[:, None] - numbers[None]
    if law == "laplace":
        assert asked[0] * budget.epsilon >= np.abs(moved).sum(axis=2).max()
    else:
        mu = GaussianBudget.of(1.0, 1e-6).mu
        assert asked[0] * mu >= np.sqrt((moved**2).sum(axis=2)).max()


def test_one_draw_is_from_the_likelihood_at_a_power() -> None:
    """240 draws, whose mean square has a relative standard deviation of 0.053: 5 of them, 6e-7."""
    made, exact = table(num_rows=400, family="logistic", effects=[0.5, -0.3])
    params = one_sample.Params(radius=3.0)
    draws = one_sample.fit([made] * 240, params, Budget(20.0, 1e-6, "gaussian"), list(range(240)))
    expected = 2 * 3.0 * math.sqrt(3) / 20.0
    errors = np.array([(one.slopes - exact.slopes) / exact.sd for one in draws])
    assert np.mean(errors**2) == pytest.approx(expected, rel=0.3)


def test_a_study_has_a_row_for_each_point_and_replicate_and_is_the_same_again() -> None:
    given = setup("gradient_ascent", [{"epsilon": 1.0}, {"epsilon": 4.0, "num_steps": 30}], {})
    found = run(given)
    assert list(found.columns) == list(study.COLUMNS)
    assert list(found["status"]) == ["complete"] * 4
    assert list(found["guarantee_epsilon"]) == pytest.approx([1.0, 1.0, 4.0, 4.0], rel=1e-6)
    assert found["slope_error"].nunique() == 4
    one = run(given, [1])
    assert one.equals(found[found["replicate"] == 1].reset_index(drop=True))


def test_a_grid_of_rows_changes_the_rows() -> None:
    points = [{"epsilon": 4.0, "constant": 0.0}, {"epsilon": 4.0, "constant": -3.4}]
    found = run(setup("gradient_ascent", points, {}, family="logistic"), [0])
    assert found["num_ones"].iloc[0] > 900 > 200 > found["num_ones"].iloc[1] > 50


def test_a_command_that_cannot_start_is_a_status(monkeypatch) -> None:
    monkeypatch.setattr(diffprivlib, "COMMAND", ("no-such-command",))
    found = run(setup("diffprivlib", [{"epsilon": 1.0}], {}))
    assert set(found["status"]) == {"failed: `uv` must start, got No such file or directory"}
    assert found["slope_error"].isna().all()
    assert not np.isfinite(found["guarantee_epsilon"]).any()


@pytest.mark.parametrize(
    ("method", "point", "said"),
    [
        ("ours", {}, "`epsilon` must be given"),
        ("ours", {"epsilon": 1.0, "width": 1.0}, "`width` must be at least 2.5"),
        (
            "gradient_ascent",
            {"epsilon": 1.0, "num_steps": 1},
            "`num_steps` must be an integer of at least 2",
        ),
        ("noisy_statistics", {"epsilon": 1.0, "law": "flat"}, "`law` must be"),
    ],
)
def test_a_point_is_refused_before_it_runs(method: str, point: dict[str, Any], said: str) -> None:
    (one,) = setup(method, [point], {}).each()
    with pytest.raises(DpmcError, match=said):
        study.check(one)
