"""Studies of DP-SEP: what their tables hold, and the privacy that they state."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from msgspec.structs import replace

from dpmc import registry
from dpmc.privacy.schedules import COUNTERS, STANDARDISATION
from dpmc.types import UNAVAILABLE, DpmcError, UnavailableError
from dpmc_papers.config import problems
from dpmc_papers.data import uci, uci_network
from dpmc_papers.studies import mixture, networks
from tests.support import setups, tables

MIXTURE = {
    "name": "small",
    "data": {"name": "mixture_rows", "params": {"num_rows": 60, "source": "paper"}},
}


LARGER = {**MIXTURE, "data": {**MIXTURE["data"], "params": {"num_rows": 500, "source": "paper"}}}


def settings(study: str, problem, method: str, **changes):
    given = {
        "paper": "p",
        "study": study,
        "experiment": "e",
        "problem": problem,
        "label": f"{method}-as_published",
        "method": method,
        "variant": "as_published",
        "params": {"num_passes": 2},
        "outside": ["something"],
        "seed": 3,
        "points": [{"epsilon": 1.0}, {"epsilon": 5.0}],
    }
    return setups.study({**given, **changes})


@pytest.fixture(scope="module")
def rows():
    return problems.make_data(setups.problem(MIXTURE), 3)


@pytest.mark.parametrize("method", registry.names("mixture"))
def test_every_method_on_a_mixture_gives_a_row_per_point_and_replicate(method, rows):
    table = mixture.run(settings("mixture", MIXTURE, method), rows, range(2))
    assert list(table.columns) == list(mixture.COLUMNS)
    assert table["replicate"].tolist() == [0, 1, 0, 1]
    assert (table["status"] == "complete").all()
    assert np.isfinite(table[list(mixture.SCORES)]).all(axis=None)
    assert (table["kl_to_truth"] > 0).all()
    assert np.array(json.loads(table["posterior"].iloc[0])["covariances"]).shape == (4, 4, 4)
    private = table["guarantee_epsilon"] < math.inf
    assert private.all() == method.startswith("dp_sep")
    if method == "dp_sep":
        assert (table["guarantee_epsilon"] <= table["epsilon"]).all()
        assert table["outside"].eq(f"{COUNTERS}; something; a known seed").all()
    if method == "dp_sep_published":
        # Rows in turn amplify nothing, whatever the code counts on.
        assert (table["guarantee_epsilon"] > 1.5 * table["epsilon"]).all()
        assert table["outside"].str.contains("steps skipped").all()


def test_fresh_rows_are_another_draw_for_every_replicate(rows):
    points = [{}]
    shared = {"num_passes": 1}
    same = mixture.run(
        settings("mixture", MIXTURE, "ep", points=points, params=shared), rows, range(2)
    )
    fresh = mixture.run(
        settings("mixture", MIXTURE, "ep", points=points, params={**shared, "fresh_rows": True}),
        rows,
        range(2),
    )
    assert same["exact_sd"].nunique() == 1
    assert fresh["mean_error"].nunique() == 2
    first = json.loads(same["posterior"].iloc[0])
    assert first != json.loads(fresh["posterior"].iloc[1])


def test_rows_used_once_in_a_pass_are_private_too_and_take_more_noise():
    """Median errors of nine runs: nothing is amplified, and the noise of a step is larger."""
    points, shared = [{"epsilon": 5.0}], {"num_passes": 10, "order": "permutation"}
    rows = problems.make_data(setups.problem(LARGER), 3)
    one = settings("mixture", LARGER, "dp_sep", points=points, params={"num_passes": 10})
    table = mixture.run(one, rows, range(9))
    other = mixture.run(replace(one, params=shared), rows, range(9))
    assert set(other["guarantee_accountant"]) == {"gaussian"}
    assert (other["guarantee_epsilon"] <= 5.0).all()
    assert other["mean_error"].median() > table["mean_error"].median()


SIMULATED = {
    "name": "simulated",
    "data": {"name": "network_rows", "params": {"num_rows": 1000, "dim": 4}},
}


def test_simulated_rows_are_a_network_and_noise():
    dataset = problems.make_data(setups.problem(SIMULATED), 3)
    part = uci_network.split(dataset)
    assert part.x.shape == (1000, 4)
    assert part.x_test.shape == (200, 4)
    assert dataset.bounds_source == "public"
    # 1,200 rows: within four standard errors of variance one, and not a line.
    assert np.var(dataset.x[:, -1]) == pytest.approx(1, abs=4 * math.sqrt(2 / 1200))
    left = np.linalg.lstsq(np.c_[part.x, np.ones(1000)], part.y, rcond=None)[1][0] / 1000
    assert left > 0.25
    other = problems.make_data(setups.problem({**SIMULATED, "name": "simulated 2"}), 3)
    assert not np.allclose(dataset.x, other.x)


def network_problem(preprocess: str):
    params = {"dataset": "wine", "preprocess": preprocess}
    return {"name": "wine", "data": {"name": "uci_network", "params": params}}


SHARED = {
    "num_passes": 1,
    "hidden": {"wine": 5},
    "published_noise": {"wine": [550.9, 288.8]},
}


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """Put a small table in the format of the wine data where it is looked for."""
    name = uci.resolve("wine")
    table = tables.shrink(monkeypatch, name, 80)
    numbers = tables.some_numbers(table, 80)
    tables.write(tmp_path / name / table.file, table, numbers)
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path))


@pytest.mark.parametrize("method", registry.names("networks"))
def test_every_method_on_networks_gives_a_row_per_split(method, wine):
    problem = network_problem("authors")
    points = [{"epsilon": 1.0}] if "dp_sep" in method else [{}]
    given = settings("networks", problem, method, points=points, params=SHARED)
    table = networks.run(given, None, range(2))
    assert list(table.columns) == list(networks.COLUMNS)
    assert (table["status"] == "complete").all()
    assert np.isfinite(table[["rmse", "loglik", "noise_variance"]]).all(axis=None)
    assert table["rmse"].nunique() == 2  # another split, other test rows
    assert table["table_rows"].eq(80).all()
    assert table["num_rows"].eq(72).all()
    assert table["hidden"].eq(5).all()
    if method == "dp_sep":
        assert (table["guarantee_epsilon"] <= 1).all()
        assert table["outside"].str.contains(STANDARDISATION).all()
    else:
        # As published DP-SEP has no noise either.
        assert table["guarantee_epsilon"].eq(math.inf).all()


def test_noise_as_intended_is_worth_far_more_than_was_asked_for(wine):
    params = {**SHARED, "intended": True}
    given = settings(
        "networks",
        network_problem("authors"),
        "dp_sep_published",
        points=[{"epsilon": 1.0}],
        params=params,
    )
    table = networks.run(given, None, [0])
    assert table["guarantee_epsilon"].item() > 100


def test_public_ranges_leave_nothing_outside_but_the_score(wine):
    given = settings(
        "networks", network_problem("public_bounds"), "dp_sep", points=[{"epsilon": 1.0}],
        params={"num_passes": 1, "hidden": {"wine": 5}},
    )  # fmt: skip
    table = networks.run(given, None, [0])
    assert table["outside"].item() == f"{COUNTERS}; something; a known seed"


def test_a_table_that_cannot_be_had_says_so(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = settings("networks", network_problem("authors"), "sep", points=[{}], params=SHARED)
    with pytest.raises(UnavailableError, match="winequality"):
        networks.run(given, None, [0])
    table = networks.unavailable(given, range(2), "no file")
    assert (table["status"] == f"{UNAVAILABLE}: no file").all()
    assert table["rmse"].isna().all()


@pytest.mark.parametrize(
    ("study", "method", "change", "message"),
    [
        ("networks", "sep", {"params": {"hidden": {}}}, "`hidden` must have a number for wine"),
        (
            "networks",
            "dp_sep_published",
            {"params": {"hidden": {"wine": 2}}},
            "`published_noise` must be a shape and a rate for wine, got none",
        ),
        ("networks", "dp_sep", {"points": [{}]}, "`budget` must be an epsilon and a delta"),
        ("networks", "sep", {"params": {"hidden": {"wine": 0}}}, r"hidden.*\b0\b"),
        ("mixture", "dp_sep", {"points": [{}]}, "`budget` must be an epsilon and a delta"),
        ("mixture", "dp_sep", {"params": {"clip_bound": -1}}, r"clip_bound.*-1"),
        ("mixture", "sep", {"params": {"step": 2}}, r"`step` must be a number in \(0, 1\], got 2"),
    ],
)
def test_bad_settings_are_refused_in_one_line(study, method, change, message, rows, wine):
    problem = MIXTURE if study == "mixture" else network_problem("authors")
    budget = {"points": [{"epsilon": 1.0}]} if "dp_sep" in method else {"points": [{}]}
    given = settings(study, problem, method, **{**budget, "params": SHARED, **change})
    if study == "mixture" and "params" not in change:
        given = replace(given, params={"num_passes": 1})
    run = mixture.run if study == "mixture" else networks.run
    with pytest.raises(DpmcError, match=message) as caught:
        run(given, rows, [0])
    assert "\n" not in str(caught.value)
