"""Studies of the league: one submission as a row, whatever becomes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc.types import DpmcError
from dpmc_league.table import ABSENT
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import ProblemSetup, StudySetup
from dpmc_papers.studies import league, league_commands, league_sep_clip

QUICK = {"max_passes": 120, "num_draws": 200}


def setup(method: str, points: list[dict[str, Any]], task: str = "gaussian_2_v1", **changes: Any):
    problem = ProblemSetup.read(
        "one", {"label": "One", "data": {"name": "league_task", "params": {"task": task}}}
    )
    values = {
        "paper": "league",
        "study": "league",
        "experiment": "table",
        "problem": problem,
        "label": method,
        "method": method,
        "variant": "as_published",
        "params": QUICK,
        "outside": [],
        "seed": 1,
        "points": points,
    }
    return StudySetup(**{**values, **changes})


def run(module: Any, given: StudySetup, replicates=(0,)):
    return module.run(given, make_data(given.problem, given.seed), replicates)


def test_a_run_is_scored_within_its_budget_and_the_same_again() -> None:
    given = setup("noisy_statistic", [{"epsilon": 1.0}, {"epsilon": 4.0}])
    table = run(league, given, [0, 1])
    assert list(table.columns) == list(league.COLUMNS)
    assert list(table["status"]) == ["complete"] * 4
    assert (table["guarantee_epsilon"] <= table["epsilon"] * (1 + 1e-6)).all()
    assert (table["guarantee_epsilon"] > table["epsilon"] * 0.999).all()
    assert set(table["outside"]) == {"a known seed"}
    assert table["sliced_wasserstein"].nunique() == 4
    assert table["square_error"].to_numpy() == pytest.approx(table["mean_error"].to_numpy() ** 2)
    one = run(league, given, [1])
    assert one.equals(table[table["replicate"] == 1].reset_index(drop=True))


def test_the_rows_that_a_run_is_given_are_those_that_are_fitted() -> None:
    given = setup("noisy_statistic", [{"epsilon": 4.0}])
    dataset = make_data(given.problem, given.seed)
    (plain,) = league.run(given, dataset, [0]).to_dict("records")
    moved = replace(dataset, x=np.nextafter(dataset.x, np.inf))
    (row,) = league.run(given, moved, [0]).to_dict("records")
    assert row["mean_error"] != plain["mean_error"]
    assert row["mean_error"] == pytest.approx(plain["mean_error"], rel=1e-9)
    with pytest.raises(DpmcError, match="but for their last digits"):
        league.run(given, replace(dataset, x=dataset.x + 1e-3), [0])


def test_dp_hmc_and_what_it_released_run_the_same_chain() -> None:
    chain, released = (run(league, setup(m, [{"epsilon": 4.0}])) for m in ("hmc", "hmc_releases"))
    for column in ("releases", "mu", "ledger_epsilon"):
        assert chain[column].equals(released[column])


def test_who_does_not_take_part_has_spent_nothing_and_who_fails_proves_nothing() -> None:
    absent = run(league, setup("noisy_statistic", [{"epsilon": 1.0}], "student_location_v1"))
    assert absent["status"][0].startswith(ABSENT)
    assert absent["guarantee_epsilon"][0] == 0
    failed = run(league_commands, commands({"command": ["/bin/sh", "-c", "exit 3"]}))
    assert failed["status"][0].startswith("failed: ")
    assert math.isinf(failed["guarantee_epsilon"][0])
    few = run(league, setup("exact_draws", [{"epsilon": 1.0}]))
    assert few["status"][0].startswith("`draws` must be at least 50")
    assert few["guarantee_epsilon"][0] <= 1 + 1e-6
    assert math.isnan(few["sliced_wasserstein"][0])


def commands(params: dict[str, Any]) -> StudySetup:
    given = {**QUICK, "folder": ".", **params}
    return setup("foreign", [{"epsilon": 1.0}], study="league_commands", params=given)


def test_a_method_is_attacked_where_that_is_asked_for() -> None:
    given = setup("langevin", [{"epsilon": 1.0}], params={**QUICK, "attack_runs": 30})
    (row,) = run(league, given).to_dict("records")
    assert row["status"] == "complete"
    assert 0 <= row["attack_epsilon"] < row["attack_claim"] <= 10.05
    (plain,) = run(league, setup("langevin", [{"epsilon": 1.0}])).to_dict("records")
    assert math.isnan(plain["attack_epsilon"])
    assert plain["sliced_wasserstein"] == row["sliced_wasserstein"]
    absent = setup("hmc", [{"epsilon": 1.0}], params={**QUICK, "attack_runs": -1})
    with pytest.raises(DpmcError, match="`attack_runs` must be"):
        league.check(absent.each()[0])


def test_the_clip_bound_of_dp_sep_is_fixed_or_found_within_the_same_budget() -> None:
    data = {"name": "mixture_rows", "params": {"num_rows": 300, "source": "paper"}}
    problem = ProblemSetup.read("mixture", {"label": "One", "data": data})
    common = {"study": "league_sep_clip", "problem": problem, "params": {"num_passes": 4}}
    points = {"fixed": {"clip_bound": 4.0}, "found": {"clipped_share": 0.5}}
    tables = {
        name: league_sep_clip.run(setup(name, [{"epsilon": 5.0, **own}], **common), None, [0, 1])
        for name, own in points.items()
    }
    for found in tables.values():
        assert (found["status"] == "complete").all()
        assert (found["guarantee_epsilon"] <= 5.0 * 1.005).all()
        assert (found["guarantee_epsilon"] > 4.9).all()
        assert (found["mean_error"] > 0).all()
        assert found["exact_sd"].nunique() == 2  # each replicate has rows of its own
    assert set(tables["fixed"]["bound"]) == {4.0}
    assert set(tables["found"]["bound"]).isdisjoint({1.0, 4.0})
    for name, own in (("fixed", {"clip_bound": -1}), ("found", {"clipped_share": 2})):
        (point,) = setup(name, [{"epsilon": 5.0, **own}], **common).each()
        with pytest.raises(DpmcError, match=f"`{next(iter(own))}` must be"):
            league_sep_clip.check(point)
