"""What correlated and hidden noise are worth: closed forms, and chains that follow them."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.types import DpmcError
from dpmc_league import noises
from dpmc_papers.config.setups import ProblemSetup, StudySetup
from dpmc_papers.studies import league_noise

WORTH = 20.0


def worth(name: str, batches: int, correlation: float, runs: int = 1) -> list[noises.Worth]:
    entry, params = noises.TABLE[name], noises.Params(batches, correlation)
    return [entry.run(params, WORTH, np.random.default_rng(50 + k)) for k in range(runs)]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99])
def test_all_rows_at_once_are_worth_k_for_every_covariance(correlation: float) -> None:
    assert worth("released", 1, correlation)[0].share == pytest.approx(1.0)


def test_independent_noise_on_batches_is_worth_k_over_their_number() -> None:
    assert worth("released", 8, 0.0)[0].share == pytest.approx(1 / 8)


@pytest.mark.parametrize("name", ["released", "hidden"])
@pytest.mark.parametrize("batches", [2, 5])
def test_correlated_or_hidden_noise_on_batches_is_worth_more_and_never_more_than_k(
    name: str, batches: int
) -> None:
    share = worth(name, batches, 0.9 if name == "released" else 0.0)[0].share
    assert 2 / batches * 0.7 < share <= 1 + 1e-3
    assert share > 1.3 / batches


@pytest.mark.parametrize(
    ("name", "batches", "correlation"),
    [("released", 1, 0.9), ("released", 5, 0.0), ("released", 5, 0.9), ("hidden", 5, 0.0)],
)
def test_chains_have_the_error_of_the_theory(name, batches, correlation) -> None:
    """30 runs of 10 squares: a relative standard deviation of 0.082, of which 0.42 are 5."""
    found = worth(name, batches, correlation, 30)
    cost = WORTH * np.mean([one.square_error for one in found])
    assert cost * found[0].share == pytest.approx(1.0, abs=0.42)


def test_a_study_has_a_row_for_each_run_and_refuses_correlated_hidden_noise() -> None:
    data = {"name": "gaussian_rows", "params": {"num_rows": 1, "mean": [0], "covariance": [[1]]}}
    given = StudySetup(
        paper="league", study="league_noise", experiment="noise",
        problem=ProblemSetup.read("normal", {"label": "Normal", "data": data}),
        label="released", method="released", variant="as_published", params={"worth": 5.0},
        outside=[], seed=1, points=[{"batches": 2, "correlation": 0.5}],
    )  # fmt: skip
    found = league_noise.run(given, None, [0, 1])
    assert list(found.columns) == list(league_noise.COLUMNS)
    assert found["cost"].nunique() == 2
    assert (found["theory_share"] > 0.5).all()
    with pytest.raises(DpmcError, match="must be 0 for hidden noise"):
        league_noise.check(StudySetup(**{**_fields(given), "method": "hidden"}).each()[0])


def _fields(setup: StudySetup) -> dict[str, object]:
    return {name: getattr(setup, name) for name in setup.__struct_fields__}
