"""The study of Fisher informations: what its tables hold, by every method.

Random parts allow four standard errors (probability of a chance failure below 1e-4 each).
"""

from __future__ import annotations

import math

import pytest

from dpmc.statsel import lookup
from dpmc.statsel.fisher import information
from dpmc.types import DpmcError
from dpmc_papers.studies import statsel_information
from tests.support import setups

NORMAL = {"population": "normal_variance", "theta": 2.0, "num_rows": 100, "bound": 10.0}
BITS = {"population": "bernoulli", "theta": 0.3, "num_rows": 100}
# A statistic that each method takes, and small sizes.
METHODS = {
    "gaussian_clt": ("abs_1", {}),
    "laplace_clt": ("abs_1", {}),
    "laplace_monte_carlo": ("abs_1", {"num_outer": 2000, "num_inner": 500}),
    "per_record": ("abs_1", {}),
    "per_record_monte_carlo": ("abs_1", {"num_outer": 2000, "num_inner": 500}),
    "smooth": ("median", {"num_draws": 1600}),
    "smooth_monte_carlo": ("median", {"num_outer": 50, "num_inner": 50}),
    "randomised_response": ("bit", {}),
    "noisy_bits": ("bit", {}),
    "noisy_mean": ("bit", {}),
    "binomial_mean": ("bit", {}),
}


def settings(method, data=None, points=None, **changes):
    statistic, params = METHODS[method]
    given = {
        "paper": "p",
        "study": "statsel_information",
        "experiment": "e",
        "problem": {
            "name": "p",
            "data": {
                "name": "population_rows",
                "params": data or (BITS if statistic == "bit" else NORMAL),
            },
        },
        "label": f"{method}-as_published",
        "method": method,
        "variant": "as_published",
        "params": {**params, "of_another_method": 1},
        "outside": [],
        "seed": 3,
        "points": points or [{"statistic": statistic, "epsilon": 5.0}],
    }
    return setups.study({**given, **changes})


def run(method, replicates=(0,), **changes):
    return statsel_information.run(settings(method, **changes), None, replicates)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_gives_a_row_per_point_and_replicate(method):
    table = run(method, range(2))
    assert list(table.columns) == list(statsel_information.COLUMNS)
    assert table["status"].tolist() == ["complete"] * 2
    assert (table["information"] > 0).all()
    assert table["theta"].tolist() == [0.3 if METHODS[method][0] == "bit" else 2.0] * 2
    assert table["guarantee_epsilon"].eq(math.inf).all()
    random = "num_outer" in METHODS[method][1] or "num_draws" in METHODS[method][1]
    assert table["information"].nunique() == (2 if random else 1)
    assert (table["information_se"] > 0).all() == random
    assert table["num_inner"].notna().all() == random
    assert table["num_outer"].notna().all() == ("num_outer" in METHODS[method][1])
    again = run(method, [1])
    assert again["information"].iloc[0] == table["information"].iloc[1]


def test_points_say_what_is_released_and_how():
    points = [
        {"statistic": "abs_2", "epsilon": 1.0, "theta": 3.0},
        {"statistic": "abs_2", "epsilon": 1.0, "theta": 3.0, "num_rows": 10, "bound": 5.0},
    ]
    table = run("gaussian_clt", points=points)
    for row in table.itertuples():
        population = lookup.population("normal_variance", bound=row.bound)
        expected = information.information(
            population, lookup.statistic("abs_2"), lookup.mechanism("gaussian"), 1.0,
            row.num_rows, 3.0,
        )  # fmt: skip
        assert row.information == pytest.approx(expected)
    assert table["num_rows"].tolist() == [100, 10]
    assert table["bound"].tolist() == [10.0, 5.0]


def test_printed_formulas_stand_beside_right_ones():
    table = run("noisy_mean", points=[{"statistic": "bit", "epsilon": 0.5, "theta": 0.1}])
    row = table.iloc[0]
    assert (row["information"], row["published_formula"]) == pytest.approx(
        (788.166, 807.101), rel=1e-6
    )
    printed = run("noisy_mean", params={"second_term": "published"}).iloc[0]
    assert printed["information"] == printed["published_formula"]
    assert math.isnan(run("randomised_response")["published_formula"].iloc[0])
    matched = run("noisy_bits", params={"matched": True})["information"].iloc[0]
    assert matched == pytest.approx(
        float(information.noisy_bits(0.3, 100, information.matched(5.0)))
    )


def test_simulations_agree_with_what_they_estimate():
    for quick, exact in (
        ("laplace_monte_carlo", "laplace_clt"),
        ("per_record_monte_carlo", "per_record"),
    ):
        params = {"num_outer": 2000, "num_inner": 1000, "estimator": "halves"}
        found = run(quick, params=params).iloc[0]
        truth = run(exact)["information"].iloc[0]
        assert abs(found["information"] - truth) < 4 * found["information_se"]


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("gaussian_clt", {"points": [{"epsilon": 1.0}]}, "`statistic` must be given"),
        ("gaussian_clt", {"points": [{"statistic": "abs_1"}]}, "`epsilon` must be given"),
        (
            "gaussian_clt",
            {"points": [{"statistic": "abs_1", "epsilon": -1.0}]},
            "epsilon.*-1.0",
        ),
        (
            "gaussian_clt",
            {"points": [{"statistic": "abs_1", "epsilon": 1.0, "theta": -1.0}]},
            "theta.*-1.0",
        ),
        (
            "gaussian_clt",
            {"points": [{"statistic": "abs_1", "epsilon": 1.0, "num_inner": 5}]},
            "`num_inner` must be a parameter of gaussian_clt .noiseless",
        ),
        (
            "noisy_bits",
            {"data": NORMAL},
            "`statistic` must be the mean of bits of bernoulli, got 'x' of normal_variance",
        ),
        (
            "noisy_bits",
            {"params": {"second_term": "third"}},
            "second_term.*third",
        ),
        ("per_record", {"params": {"noise": "none"}}, "noise.*none"),
        ("smooth", {"params": {"delta": 0.0}}, "delta.*0.0"),
        ("smooth", {"params": {"num_groups": 1}}, "num_groups.*1"),
        (
            "smooth",
            {"points": [{"statistic": "abs_1", "epsilon": 1.0}]},
            "`statistic` must be an order statistic",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_line(method, change, message):
    with pytest.raises(DpmcError, match=message) as caught:
        run(method, **change)
    assert "\n" not in str(caught.value)
