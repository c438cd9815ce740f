"""Rankings of statistics: order, crossovers, picture, and refusals in one line."""

from __future__ import annotations

import pytest

import dpmc.statsel
from dpmc.statsel import lookup
from dpmc.statsel.fisher import information

VARIANCE = lookup.population("normal_variance", bound=10.0)
MEAN = lookup.population("normal_mean", bound=10.0)
POWERS = [lookup.statistic("abs_1"), lookup.statistic("abs_2")]
GAUSSIAN, LAPLACE = lookup.mechanism("gaussian"), lookup.mechanism("laplace")
SMOOTH = lookup.mechanism("smooth_laplace")


def ranked(**changes):
    given = {
        "population": VARIANCE,
        "candidates": POWERS,
        "mechanism": LAPLACE,
        "epsilon": 5.0,
        "n": 100,
        "theta": 2.0,
    }
    return dpmc.statsel.rank(**{**given, **changes})


@pytest.mark.parametrize(("mechanism", "place"), [(GAUSSIAN, 8.080), (LAPLACE, 11.430)])
def test_square_and_absolute_value_change_places(mechanism, place):
    found = ranked(mechanism=mechanism)
    row = found.crossovers.iloc[0]
    assert len(found.crossovers) == 1
    assert row["epsilon"] == pytest.approx(place, abs=1e-3)
    assert (row["below"], row["above"], row["leads"]) == (POWERS[0].name, POWERS[1].name, True)
    both = [
        information.information(VARIANCE, s, mechanism, row["epsilon"], 100, 2.0) for s in POWERS
    ]
    assert both[0] == pytest.approx(both[1], rel=1e-8)
    below, above = (ranked(mechanism=mechanism, epsilon=place + d).best for d in (-0.05, 0.05))
    assert (below, above) == (POWERS[0].name, POWERS[1].name)


def test_x_and_its_cube_change_places_and_back():
    """At theta 5.7694 they meet at epsilon 1, as in Figure 4.1; below the cube is better."""
    candidates = [lookup.statistic("pow_1"), lookup.statistic("pow_3")]
    given = {"population": MEAN, "candidates": candidates, "mechanism": GAUSSIAN}
    found = ranked(**given, epsilon=0.5, theta=5.7694)
    row = found.crossovers.iloc[0]
    assert row["epsilon"] == pytest.approx(1.0, abs=1e-4)
    assert (row["below"], row["above"]) == ("x^3", "x")
    assert found.best == "x^3"
    assert ranked(**given, epsilon=1.0, theta=2.0).crossovers.empty


def test_a_table_has_the_best_first_and_what_it_is_worth():
    found = ranked(candidates=[*POWERS[::-1], lookup.statistic("abs_0.5")], mechanism=GAUSSIAN)
    table = found.table
    assert table["statistic"].tolist()[0] == found.best == POWERS[0].name
    assert table["information"].is_monotonic_decreasing
    assert table["relative"].iloc[0] == 1
    assert table["sd"].to_numpy() == pytest.approx(table["information"].to_numpy() ** -0.5)
    value = information.information(VARIANCE, POWERS[0], GAUSSIAN, 5.0, 100, 2.0)
    assert table["information"].iloc[0] == pytest.approx(value)
    # Of three crossovers, two change the best: |x|^.5 and x^2 meet below |x|.
    assert found.crossovers["leads"].tolist() == [True, False, True]
    assert found.guarantee.delta == pytest.approx(0.899, abs=1e-3)
    for text in ("theta = 2", "overtakes", "delta" if "delta" in str(found) else "DP"):
        assert text in str(found)


@pytest.mark.slow
def test_the_median_beats_the_maximum_above_a_point_below_one():
    order = [lookup.statistic("median"), lookup.statistic("max")]
    found = ranked(candidates=order, mechanism=SMOOTH, delta=1e-4, epsilons=(0.5, 4.0))
    assert found.best == "median"
    assert found.crossovers["above"].tolist() == ["median"]
    assert found.crossovers["epsilon"].iloc[0] == pytest.approx(0.96, abs=0.04)
    assert found.guarantee.delta < 1e-4
