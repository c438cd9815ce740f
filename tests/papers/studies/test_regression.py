"""Studies of private regression: what their tables hold, from simulated rows and from none."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from msgspec.structs import replace

from dpmc import registry
from dpmc.linreg import profiles
from dpmc.rng import stream
from dpmc.types import UNAVAILABLE, UnavailableError
from dpmc_papers.config import problems
from dpmc_papers.data import uci
from dpmc_papers.pipeline import store
from dpmc_papers.studies import regression, regression_convergence, regression_time
from tests.support import setups

PROBLEM = {
    "name": "small",
    "data": {
        "name": "regression_rows",
        "params": {"num_rows": 2000, "dim": 2, "noise_variance": 1, "draw": 0},
    },
}


def settings(method: str, variant: str = "correct", **changes):
    given = {
        "paper": "p",
        "study": "regression",
        "experiment": "e",
        "problem": PROBLEM,
        "label": f"{method}-{variant}",
        "method": method,
        "variant": variant,
        "params": {"num_iterations": 200, "burn_in": 100, "num_draws": 200},
        "outside": ["something"],
        "seed": 3,
        "points": [{"num_nodes": 2, "epsilon": 1.0}, {"num_nodes": 4, "epsilon": 5.0}],
    }
    return setups.study({**given, **changes})


@pytest.fixture(scope="module")
def rows():
    return problems.make_data(setups.problem(PROBLEM), 3)


@pytest.mark.parametrize("method", registry.names("regression"))
def test_every_method_gives_a_row_per_point_and_replicate(method, rows):
    table = regression.run(settings(method), rows, range(2))
    assert list(table.columns) == list(regression.COLUMNS)
    assert table["point"].tolist() == ["J=2,eps=1"] * 2 + ["J=4,eps=5"] * 2
    assert table["replicate"].tolist() == [0, 1, 0, 1]
    assert (table["status"] == "complete").all()
    assert np.isfinite(table["estimation"]).all()
    private = method not in ("ols", "posterior")
    assert np.isfinite(table["guarantee_epsilon"]).all() == private
    if private:
        assert (table["guarantee_neighbours"] == "replace").all()
        assert table["outside"].str.contains("something").all()
        assert table["outside"].str.contains("bounds taken from the data").all()
        assert json.loads(table["diagnostics"].iloc[0]) is not None
        # What holds is at most what was asked for; adaSSP spends less than it could.
        assert (table["guarantee_epsilon"] <= table["epsilon"] * (1 + 1e-6)).all()


def test_a_replicate_is_the_same_in_any_company(rows):
    base = settings("mcmc_fixed_s")
    together = regression.run(base, rows, range(3))
    alone = regression.run(replace(base, points=base.points[1:]), rows, [2])
    wanted = together[(together["num_nodes"] == 4) & (together["replicate"] == 2)]
    np.testing.assert_array_equal(wanted["estimation"], alone["estimation"])


OF_S_AND_Z = ("mcmc_normal_x", "mcmc_fixed_s", "bayes_fixed_s_fast")


def noise_of(setup, rows, number=0, replicate=0):
    """Return the noise of one release of a study, in its standard deviations."""
    point = setup.each()[number]
    problem, exact, _ = regression.prepared(point, rows)
    noisy = regression.released(point, exact, problem.bounds, rows, replicate)
    s = np.stack([matrix[np.triu_indices(noisy.dim)] for matrix in noisy.s - exact.s])
    return np.concatenate([s.ravel() / noisy.s_sd, (noisy.z - exact.z).ravel() / noisy.z_sd])


def assert_methods_share_releases(rows, variant):
    """Check that methods of S and z get one noise, and that all other releases are apart."""
    for number, replicate in itertools.product(range(2), range(2)):
        made = [noise_of(settings(m, variant), rows, number, replicate) for m in OF_S_AND_Z]
        assert (made[0] == made[1]).all()
        assert (made[0] == made[2]).all()
    base = settings("mcmc_fixed_s", variant)
    points = [{"num_nodes": n, "epsilon": e} for n, e in ((2, 1.0), (2, 5.0), (4, 1.0))]
    different = {
        f"{point} replicate {k}": noise_of(replace(base, points=[point]), rows, 0, k)
        for point, k in itertools.product(points, range(2))
    }
    other = setups.problem({**PROBLEM, "name": "other"})
    different["problem"] = noise_of(replace(base, problem=other), rows)
    different["seed"] = noise_of(replace(base, seed=4), rows)
    for name in profiles.PROFILES:
        if name != variant:
            different[f"profile {name}"] = noise_of(settings("mcmc_fixed_s", name), rows)
    for method in ("mcmc_bs", "adassp"):
        different[method] = noise_of(settings(method, variant), rows)
    for first, second in itertools.combinations(different, 2):
        again = np.isclose(different[first][:10], different[second][:10], rtol=1e-9, atol=0)
        assert not again.any(), f"{first} and {second} have the same noise"


@pytest.mark.parametrize("variant", profiles.PROFILES)
def test_methods_of_one_replicate_see_one_release(variant, rows):
    assert_methods_share_releases(rows, variant)


def test_releases_that_the_label_or_too_little_names_are_found_out(rows, monkeypatch):
    def by_label(point, _module, _bound, replicate):
        key = point.label, *point.point.values(), replicate
        return stream(point.seed, "noise", *key)

    monkeypatch.setattr(regression, "_noise", by_label)
    with pytest.raises(AssertionError):
        assert_methods_share_releases(rows, "correct")

    def without_epsilon(point, module, _bound, replicate):
        key = point.problem.name, point.variant, module.STATISTICS, point.point["num_nodes"]
        return stream(point.seed, "noise", *key, replicate)

    monkeypatch.setattr(regression, "_noise", without_epsilon)
    with pytest.raises(AssertionError, match="have the same noise"):
        assert_methods_share_releases(rows, "correct")


def test_chains_on_one_release_have_randomness_of_their_own(rows):
    base = settings("mcmc_fixed_s", points=[{"num_nodes": 2, "epsilon": 1.0}])
    point, fits = base.each()[0], []
    problem, exact, prior = regression.prepared(point, rows)
    for label in ("a", "a", "b"):
        named = replace(point, label=label)
        fits.append(regression.estimate(named, exact, prior, problem.bounds, rows, 0)[0])
    np.testing.assert_array_equal(fits[0].draws, fits[1].draws)
    assert not np.isclose(fits[0].draws, fits[2].draws, rtol=1e-9, atol=0).any()


def test_fresh_rows_are_another_data_set_for_every_replicate(rows):
    base = settings("ols")
    fresh = replace(base, params={**base.params, "fresh_rows": True})
    table = regression.run(fresh, rows, range(2))
    first = table[table["num_nodes"] == 2]
    assert first["estimation"].nunique() == 2
    assert set(table["problem"]) == {"small"}
    same = regression.run(base, rows, range(2))
    assert same[same["num_nodes"] == 2]["estimation"].nunique() == 1


def test_the_public_code_has_less_privacy_than_it_asks_for(rows):
    table = regression.run(settings("bayes_fixed_s_fast", "authors"), rows, [0])
    assert (table["guarantee_epsilon"] > 1.5 * table["epsilon"]).iloc[0]
    assert (table["epsilon_replace"] > table["epsilon_add_remove"]).all()


def test_data_that_cannot_be_had_leave_a_table_that_says_so(tmp_path):
    path = tmp_path / "rows.parquet"
    store.write_absence(path, "no file rows.csv")
    with pytest.raises(UnavailableError, match=r"no file rows\.csv"):
        store.read_dataset(path)
    data = problems.make_data(setups.problem(PROBLEM), 3)
    store.write_dataset(tmp_path / "few.parquet", data)
    np.testing.assert_array_equal(store.read_dataset(tmp_path / "few.parquet").x, data.x)
    table = regression.unavailable(settings("adassp"), range(2), "no file rows.csv")
    assert len(table) == 4
    assert (table["status"] == f"{UNAVAILABLE}: no file rows.csv").all()
    assert table["mse"].isna().all()
    assert (table["guarantee_epsilon"] == math.inf).all()
    store.write_table(tmp_path / "table.parquet", table)
    assert len(store.read_tables([tmp_path / "table.parquet"])) == 4


def test_rows_are_here_where_their_file_is(tmp_path, monkeypatch):
    params = {"dataset": "power_plant", "preprocess": "authors"}
    data = {"name": "uci_regression", "params": params}
    spec = setups.problem({"name": "p", "data": data})
    monkeypatch.setenv("DPMC_UCI_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert problems.is_here(setups.problem(PROBLEM))
    assert not problems.is_here(spec)
    file = tmp_path / "power_plant" / uci.TABLES["power_plant"].file
    file.parent.mkdir()
    file.touch()
    assert problems.is_here(spec)


def test_times_are_taken_at_every_dimension():
    points = [{"num_nodes": 1, "epsilon": 1.0, "dim": d} for d in (1, 3)]
    short = {"num_iterations": 50, "burn_in": 25}
    table = regression_time.run(
        settings("mcmc_fixed_s", points=points, params=short), None, range(2)
    )
    assert table["dim"].tolist() == [1, 1, 3, 3]
    assert (table["microseconds"] > 0).all()
    assert table["num_iterations"].eq(50).all()


def test_chains_from_two_starts_are_compared(rows):
    points = [{"num_nodes": 2, "epsilon": 1.0}]
    chains = {"num_iterations": 4000, "burn_in": 2000}
    table = regression_convergence.run(
        settings("mcmc_normal_x", points=points, params=chains), rows, range(2)
    )
    assert list(table.columns) == list(regression_convergence.COLUMNS)
    assert (table["status"] == "complete").all()
    # Both reach one law: four standard errors of two means of 100 independent draws.
    assert (table["rhat"] < 1.05).all()
    assert (table["separation"] < 0.57).all()
    assert (table["ess_bulk"] > 100).all()
    assert (table["guarantee_epsilon"] <= 1 + 1e-6).all()
    assert (table[["rhat_node", "rhat_pooled"]] < 1.05).all(axis=None)
    for largest, texts in zip(table["iac"], table["iac_components"], strict=True):
        each = [[float(time) for time in chain.split()] for chain in texts.split("; ")]
        assert np.shape(each) == (2, table["dim"][0])
        assert np.max(each) == pytest.approx(largest, rel=1e-3)


def test_chains_that_stay_apart_are_found_out():
    rng = np.random.default_rng(0)
    node, pooled = rng.normal(0, 2, (1000, 3)), rng.normal(0, 2, (1000, 3))
    assert regression_convergence.compared({"node": node, "pooled": pooled})["iac"] < 1.5
    slow = np.repeat(node, 4, axis=0)[:1000]  # each draw four times: a time of four
    found = regression_convergence.compared({"node": slow, "pooled": pooled})
    assert found["iac"] == pytest.approx(4, abs=1.6)
    pooled[:, 1] += 10
    found = regression_convergence.compared({"node": node, "pooled": pooled})
    assert found["rhat"] > 1.5
    assert found["rhat_node"] < 1.05
    assert found["rhat_pooled"] < 1.05
    # Ten apart at a standard deviation of 2; four standard errors are 0.6.
    assert found["separation"] == pytest.approx(5, abs=0.6)
