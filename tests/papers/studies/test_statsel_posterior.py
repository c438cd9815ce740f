"""Studies of posteriors given a release: what their tables hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from dpmc.types import DpmcError
from dpmc_papers.studies import statsel_autocorrelation, statsel_posterior
from tests.support import setups

PROBLEM = {
    "name": "normal_variance",
    "data": {
        "name": "population_rows",
        "params": {"population": "normal_variance", "theta": 2.0, "num_rows": 100, "bound": 10.0},
    },
}


def settings(method: str, mechanism: str, points, variant="corrected", **params):
    given = {
        "paper": "p",
        "study": "statsel_posterior",
        "experiment": "e",
        "problem": PROBLEM,
        "label": f"{method}-{variant}",
        "method": method,
        "variant": variant,
        "params": {"mechanism": mechanism, "prior_high": 100, "burn_in": 0.1, **params},
        "outside": [],
        "seed": 3,
        "points": points,
    }
    return setups.study(given)


POINTS = [{"statistic": "abs_1", "theta": 2, "epsilon": e} for e in (1.0, 5.0)]


def test_a_row_has_the_chain_and_its_reference():
    given = settings("mh", "gaussian", POINTS, num_iterations=20_000)
    table = statsel_posterior.run(given, None, range(2))
    assert list(table.columns) == list(statsel_posterior.COLUMNS)
    assert table["replicate"].tolist() == [0, 1, 0, 1]
    assert (table["status"] == "complete").all()
    gap = (table["estimate"] - table["reference_mean"]) / table["reference_sd"]
    # 18,000 draws at an autocorrelation time of about 6: 5 standard errors.
    assert gap.abs().max() < 0.1
    np.testing.assert_allclose(table["squared_error"], (table["estimate"] - 2) ** 2)
    assert (table["guarantee_delta"] > 0).all()
    assert table["outside"].eq("a known seed").all()
    assert table["acceptance_rate"].between(0.2, 0.8).all()
    assert table["iac"].between(2, 15).all()


def test_methods_share_releases_and_statistics_share_records():
    first = statsel_posterior.run(settings("quadrature", "laplace", POINTS), None, [0, 1])
    again = statsel_posterior.run(
        settings("pmmh", "laplace", POINTS[:1], num_iterations=50, num_particles=2), None, [1]
    )
    assert again["released"].item() == first["released"][1]
    assert again["num_particles"].item() == 2
    assert first["released"].nunique() == 4
    assert first["estimate"].equals(first["reference_mean"])
    assert first["num_iterations"].eq(0).all()
    # Without noise to speak of, |x| and x^2 are told of the same records.
    points = [{"statistic": s, "theta": 2, "epsilon": 1e6} for s in ("abs_1", "abs_2", "median")]
    exact = settings("quadrature", "laplace", points[:2])
    one, two = statsel_posterior.run(exact, None, [0])["released"]
    from dpmc_papers.studies import _tables

    _, rows = _tables.drawn(exact.problem, exact.seed, 1)
    assert one == pytest.approx(np.abs(rows.x).mean(), abs=1e-5)
    assert two == pytest.approx((rows.x**2).mean(), abs=1e-4)


def test_theta_and_the_prior_may_be_of_the_point():
    points = [
        {"statistic": "max", "theta": t, "epsilon": 5.0, "prior_high": h}
        for t, h in ((0.5, 5), (0.5, 50), (2, 50))
    ]
    given = settings("quadrature", "smooth_laplace", points, delta=1e-4, num_data_sets=100)
    table = statsel_posterior.run(given, None, [0])
    assert table["theta"].tolist() == [0.5, 0.5, 2.0]
    assert table["released"][0] == table["released"][1]
    assert table["reference_mean"][0] < table["reference_mean"][1]
    assert table["delta"].eq(1e-4).all()
    assert (table["guarantee_delta"] <= 1e-4).all()


def test_records_released_one_by_one():
    given = settings(
        "sequential", "per_record_laplace", POINTS[1:], num_iterations=200, num_particles=3
    )
    table = statsel_posterior.run(given, None, [0])
    assert math.isfinite(table["estimate"].item())
    assert table["num_particles"].item() == 3


def test_times_of_more_particles_are_shorter():
    """Means of three chains of 20,000: 28 and 12 for 2 and 50 particles, told apart by 1.3."""
    points = [{**POINTS[1], "num_particles": n} for n in (2, 50)]
    given = settings("pmmh", "laplace", points, num_iterations=20_000, proposal_sd=4)
    table = statsel_autocorrelation.run(given, None, range(3))
    assert list(table.columns) == list(statsel_autocorrelation.COLUMNS)
    assert table["num_particles"].tolist() == [2] * 3 + [50] * 3
    few, many = table["iac_geyer"][:3].mean(), table["iac_geyer"][3:].mean()
    assert few > 1.3 * many
    assert table["lag"].isna().all()
    assert table["reliable"].eq(1).all()


def test_correlations_come_by_lag():
    given = settings(
        "exact", "smooth_laplace", [{"statistic": "max", "theta": 2, "epsilon": 5.0}],
        delta=1e-4, num_iterations=400, num_particles=4, num_lags=20, num_chains=2,
        num_data_sets=100,
    )  # fmt: skip
    table = statsel_autocorrelation.run(given, None, [0])
    assert table["lag"].tolist() == list(range(21))
    assert table["autocorrelation"][0] == 1
    assert table["autocorrelation"][1] > table["autocorrelation"][15]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "quadrature"}, "`method` must be a chain"),
        ({"points": [{"statistic": "abs_1"}]}, "`epsilon` must be given"),
        ({"points": [{"epsilon": 1.0}]}, "`statistic` must be given"),
        ({"variant": "as_told"}, "`variant` of mh must be .*got 'as_told'"),
        (
            {"points": [{**POINTS[0], "num_particles": 3}]},
            "`num_particles` must be a parameter of mh",
        ),
        ({"params": {"mechanism": "laplace", "prior_high": -1}}, "`prior_high` must be .*got -1"),
        (
            {"params": {"mechanism": "laplace", "num_lags": 90, "num_iterations": 100}},
            "`num_lags` must be below .*, got 90",
        ),
        ({"params": {}}, "`mechanism` must be .*got ''"),
    ],
)
def test_bad_settings_are_refused_in_one_line(change, message):
    given = replace(settings("mh", "laplace", POINTS[:1], num_iterations=10), **change)
    with pytest.raises(DpmcError, match=message) as caught:
        statsel_autocorrelation.run(given, None, [0])
    assert "\n" not in str(caught.value)
