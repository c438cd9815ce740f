"""Ten releases, six of them by OpenDP: the posterior is that of quadrature."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Their records are drawn one by one, for tens of seconds.
LONG = "visits", "regression", "mean_and_sd", "genotypes"
QUICK = "incomes", "answers", "scores", "families", "rounded_mean", "large_counts"
METHODS = {
    "genotypes": "enumeration",
    "incomes": "augmentation",
    "visits": "augmentation",
    "answers": "enumeration",
    "scores": "normal",
    "families": "enumeration",
    "regression": "augmentation",
    "rounded_mean": "normal",
    "mean_and_sd": "augmentation",
    "large_counts": "normal",
}


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import ten_releases

    yield ten_releases
    sys.modules.pop("ten_releases", None)


def test_all_ten_are_here(ten) -> None:
    assert [build.__name__ for build in ten.CASES] == list(METHODS)
    assert {*LONG, *QUICK} == {*METHODS}


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in LONG)])
def test_the_posterior_is_that_of_quadrature(ten, name: str) -> None:
    """The seed is fixed; draws are worth some 10,000, so that errors are a fifth of the limits."""
    found = getattr(ten, name)().compare(seed=3)
    assert found["method"] == METHODS[name]
    assert found["mean"] < 0.05
    assert found["width"] < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("method", ["normal", "augmentation"])
def test_methods_agree_where_more_than_one_is_right(ten, method: str) -> None:
    """A mean of normal records is normal, whatever it is computed by."""
    found = ten.rounded_mean().compare(seed=3, method=method)
    assert found["mean"] < 0.05
    assert found["width"] < 0.03
