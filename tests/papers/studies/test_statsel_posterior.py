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


def test_a_reference_has_its_monte_carlo_error_beside_it():
    points = [{"statistic": "median", "theta": 1, "epsilon": 5.0}]
    found = {
        mechanism: statsel_posterior.run(
            settings("quadrature", mechanism, points, delta=1e-4), None, [0]
        ).iloc[0]
        for mechanism in ("smooth_laplace", "laplace")
    }
    numbers = ("mean", "sd", "low", "high")
    for name in numbers:
        simulated = found["smooth_laplace"]
        relative = simulated[f"reference_{name}_error"] / simulated[f"reference_{name}"]
        assert 1e-4 < relative < 0.02
        assert found["laplace"][f"reference_{name}_error"] == 0  # by quadrature alone
    assert simulated["reference_low"] < simulated["reference_mean"] < simulated["reference_high"]


def test_records_released_one_by_one():
    given = settings(
        "sequential", "per_record_laplace", POINTS[1:], num_iterations=200, num_particles=3
    )
    table = statsel_posterior.run(given, None, [0])
    assert math.isfinite(table["estimate"].item())
    assert table["num_particles"].item() == 3


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
