"""What `dpmc.from_release` gives: the method that fits, a fit like others, and words on limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

import dpmc
from dpmc import mechanisms, priors
from dpmc.releases.records import Records
from dpmc.types import Guarantee

QUICK = {"seed": 1, "num_chains": 16, "num_draws": 20, "progress": False}


def log_share(p, row):
    return row[0] * math.log(p.share) + (1 - row[0]) * math.log1p(-p.share)


def log_rate(p, row):
    return row[0] * math.log(p.rate) - p.rate - math.lgamma(row[0] + 1)


SHARE = dpmc.model(log_share, {"share": priors.beta(1, 1)}, num_columns=1)
RATE = dpmc.model(log_rate, {"rate": priors.gamma(2, 1)}, num_columns=1)
COUNT = dpmc.Release(31, lambda x: x, mechanisms.geometric(2.0))


def fitted(**options):
    return dpmc.from_release(SHARE, COUNT, n=100, values=[0, 1], **QUICK, **options)


def test_a_seed_repeats_the_draws_and_no_seed_does_not() -> None:
    first, again = fitted(), fitted()
    np.testing.assert_array_equal(first.draws, again.draws)
    other = dpmc.from_release(SHARE, COUNT, n=100, values=[0, 1], **QUICK | {"seed": None})
    assert not np.array_equal(first.draws, other.draws)


def test_the_guarantee_is_that_of_the_publisher(tmp_path) -> None:
    fit = fitted()
    assert "that of the releases, as their publisher states it" in str(fit.summary())
    assert "No row was read" in str(fit.summary())
    assert not fit.guarantee.private
    fit.save(tmp_path / "fit.parquet")
    loaded = dpmc.Fit.load(tmp_path / "fit.parquet")
    assert loaded.guarantee == fit.guarantee
    np.testing.assert_array_equal(loaded.draws, fit.draws)
    stated = fitted(guarantee=Guarantee(1.0, 0.0, "add_remove", unit="household"))
    assert "(1, 0)-DP, addition or removal of one household" in str(stated.summary())


def test_a_fit_is_drawn_and_exported_as_others() -> None:
    pytest.importorskip("arviz", reason="the extra `arviz` is not installed")
    fit = fitted()
    exported = fit.to_arviz()
    np.testing.assert_array_equal(exported.posterior["theta"].values, fit.kept())
    assert fit.record()["plan"]["details"]["mechanisms"] == ["geometric"]


def told(value, *, mechanism, statistic=lambda x: x):
    return dpmc.Release(value, statistic, mechanism)


@pytest.mark.parametrize(
    ("n", "value", "statistic", "method"),
    [
        (100, 40, lambda x: x == 1, "enumeration"),
        (100, 140, lambda x: x, "augmentation"),  # the skewness of a sum is 0.08
        (2000, 2800, lambda x: x, "normal"),
    ],
)
def test_the_method_is_the_best_that_there_is(n, value, statistic, method) -> None:
    given = told(value, mechanism=mechanisms.geometric(3.0), statistic=statistic)
    fit = dpmc.from_release(RATE, given, n=n, values=range(20), **QUICK)
    assert fit.plan.method == method
    assert "skewness" not in " ".join(fit.remarks)


def test_what_a_method_takes_for_granted_is_remarked_on() -> None:
    given = told(14, mechanism=mechanisms.geometric(3.0))
    fit = dpmc.from_release(RATE, given, n=10, values=range(3), method="normal", **QUICK)
    said = " ".join(fit.remarks)
    assert "Sums over records have a skewness of about" in said
    assert "Records outside of `values` have a probability of up to" in said


def test_releases_that_contradict_the_model_are_remarked_on() -> None:
    """Of honest ones no draw is this far with a probability below 1e-5 for each release."""
    cases = {
        (40,): False,
        (10, 90): True,  # of the same sum
        (10**6,): True,
    }
    for values, said in cases.items():
        given = [told(value, mechanism=mechanisms.geometric(0.5)) for value in values]
        for method in ("normal", "augmentation"):
            fit = dpmc.from_release(RATE, given, n=100, values=range(20), method=method, **QUICK)
            assert ("standard deviations of sums and noise" in " ".join(fit.remarks)) == said


def test_a_value_within_its_rounding_or_clamp_contradicts_nothing() -> None:
    for mechanism, value in (
        (mechanisms.laplace(0.1, rounded=500), 0),
        (mechanisms.geometric(0.5, clamp=(300, math.inf)), 300),
    ):
        given = told(value, mechanism=mechanism)
        fit = dpmc.from_release(RATE, given, n=100, values=range(20), method="normal", **QUICK)
        assert "standard deviations of sums" not in " ".join(fit.remarks)


def test_moments_of_a_sample_are_those_of_its_law() -> None:
    """Rules of one, two and five uniforms; Sobol points have errors of about 1e-3."""

    def log_likelihood(p, row):
        return -math.log(p.sd) - 0.5 * ((row[0] - p.mean[0]) / p.sd) ** 2

    model = dpmc.model(
        log_likelihood,
        {"mean": priors.normal(0, 1, size=2), "sd": priors.half_normal(1)},
        num_columns=1,
    )
    theta = np.array([[0.3, -1.0, 0.2], [1.0, 0.5, -0.7]])
    sd = np.exp(theta[:, 2])
    samples = {
        1: lambda p, u: p.mean[0] + p.sd * ndtri(u),
        2: lambda p, u, v: p.mean[0] + p.sd * (ndtri(u) + ndtri(v)) / math.sqrt(2),
        5: lambda p, a, b, c, d, e: p.mean[0] + p.sd * sum(map(ndtri, (a, b, c, d, e))) / 5**0.5,
    }
    for number, sample in samples.items():
        one = Records(model, lambda x: np.stack([x, x * x], axis=-1), sample)
        assert one.num_uniforms == number
        mean, covariance, skewness = one.moments(theta, 1)
        near = {"rtol": 1e-6, "atol": 1e-6} if number < 5 else {"rtol": 0.02, "atol": 0.01}
        np.testing.assert_allclose(mean[:, 0], theta[:, 0], **near)
        np.testing.assert_allclose(mean[:, 1], theta[:, 0] ** 2 + sd**2, **near)
        np.testing.assert_allclose(covariance[:, 0, 0], sd**2, **near)
        np.testing.assert_allclose(covariance[:, 0, 1], 2 * theta[:, 0] * sd**2, **near)
        np.testing.assert_allclose(skewness[:, 0], 0, atol=1e-5 if number < 5 else 0.02)


def test_records_of_values_have_their_probabilities() -> None:
    """Shares of evenly spaced uniforms are exact but for one of them."""
    one = Records(RATE, lambda x: x, None, (np.arange(20.0),))
    theta = np.log([[0.4], [2.5]])
    uniforms = np.broadcast_to((np.arange(10_000) + 0.5) / 10_000, (1, 2, 10_000))
    (drawn,) = one.drawn_by(theta)(uniforms)
    for k in range(6):
        shares = (drawn == k).mean(axis=1)
        np.testing.assert_allclose(shares, one.probabilities(theta)[:, k], atol=2e-4)


def test_a_number_of_records_with_noise_is_drawn_too() -> None:
    """Without a word of others its posterior is the noise itself: error rate below 1e-6."""
    count = dpmc.Release(200, None, mechanisms.discrete_gaussian(5.0))
    wide = told(50, mechanism=mechanisms.geometric(500.0))
    options = QUICK | {"num_chains": 32, "num_draws": 200}
    fit = dpmc.from_release(SHARE, wide, n=count, values=[0, 1], method="normal", **options)
    assert fit.names == ("share", "n")
    drawn = fit.kept()[:, :, 1]
    assert (drawn == np.round(drawn)).all()
    assert abs(drawn.mean() - 200) < 2
    assert abs(drawn.std() - 5) < 1
