"""The ways in of the families: posteriors by other means, guarantees, names and refusals."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpmc
import dpmc.privacy
from dpmc import statsel
from dpmc.ep.mixture import dp_sep as mixture_dp_sep
from dpmc.ep.mixture.model import MixtureModel
from dpmc.families.linear_regression import default_prior
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.rng import stream
from dpmc.types import LOW_BITS, SEED, Budget, DpmcError

BOUNDS = {"x_bound": 1.5, "y_bound": 4.0}
BUDGET = {"epsilon": 2.0, "delta": 1e-6}


def regression_rows(n=4000, seed=0):
    rng = stream(seed, "families", "rows")
    x = rng.uniform(-1, 1, (n, 2))
    return x, x @ [1.0, -2.0] + 0.5 * rng.standard_normal(n)


def mixture_rows(n=400):
    rng = stream(0, "families", "mixture")
    return np.where(rng.random((n, 1)) < 0.5, -3.0, 3.0) + rng.standard_normal((n, 1))


MIXTURE = MixtureModel.isotropic(1.0, [[-1.0], [1.0]], precision=0.1)


def fits():
    x, y = regression_rows(600)
    records = statsel.population("normal_variance", bound=10.0)
    candidates = [statsel.statistic(text) for text in ("abs_1", "abs_2")]
    yield dpmc.linear_regression(x, y, **BUDGET, **BOUNDS, num_draws=100)
    yield dpmc.regression(x, y, **BUDGET, num_draws=100)
    yield dpmc.mixture(
        mixture_rows(), MIXTURE, **BUDGET, num_passes=3, clip_bound=3.0, num_draws=100
    )
    yield dpmc.network(
        x, y, **BUDGET, x_range=(-1, 1), y_range=(-4, 4), hidden=3, num_passes=3, num_draws=100
    )
    yield dpmc.select_statistic(
        records.draw(2.0, np.random.default_rng(1), 100), records, candidates,
        statsel.mechanism("laplace"), epsilon=2.0, theta=2.0, prior=(0.0, 100.0), num_draws=500,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_every_family_returns_a_fit(tmp_path):
    for number, fit in enumerate(fits()):
        assert isinstance(fit, dpmc.Fit)
        assert fit.draws.shape[2] == len(fit.names) == len(set(fit.names))
        assert np.isfinite(fit.draws).all()
        assert fit.guarantee.epsilon <= 2.0 * (1 + 1e-9)
        continuous = fit.guarantee.noise == "continuous"  # of the network alone
        assert fit.guarantee.outside == ((LOW_BITS,) if continuous else ())
        # What was recorded comes to what is guaranteed, by another accountant or the same.
        if fit.ledger:
            assert dpmc.privacy.compose([fit], delta=1e-6).epsilon <= 2.0 * (1 + 1e-6)
        path = tmp_path / f"{number}.parquet"
        fit.save(path)
        again = dpmc.Fit.load(path)
        assert np.array_equal(again.draws, fit.draws)
        assert again.names == fit.names
        assert str(again.summary()) == str(fit.summary())


@pytest.mark.filterwarnings("ignore")
def test_a_seed_that_may_be_known_is_named():
    x, y = regression_rows(300)
    fit = dpmc.linear_regression(x, y, **BUDGET, **BOUNDS, num_draws=20, seed=1)
    assert fit.guarantee.outside == (SEED, LOW_BITS)
    again = dpmc.linear_regression(x, y, **BUDGET, **BOUNDS, num_draws=20, seed=1)
    assert np.array_equal(fit.draws, again.draws)


def test_little_noise_gives_the_posterior_without_privacy():
    """Means within six Monte Carlo errors and a tenth of a deviation: fails below 1e-6."""
    x, y = regression_rows()
    fit = dpmc.linear_regression(x, y, epsilon=1e6, delta=1e-6, **BOUNDS, num_draws=1000, seed=1)
    sums = node_statistics((x, y), 1, len(y), (1.5, 4.0))
    prior = default_prior(2, 10 * 4.0 / 1.5, 1.5, 4.0)
    # Noise of known size: the posterior is normal given sigma, which 4,000 rows settle.
    precision = sums.s[0] / 0.25 + np.linalg.inv(prior.covariance)
    exact = np.linalg.solve(precision, sums.z[0] / 0.25)
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    kept = fit.kept()[:, :, :2]
    tolerance = 0.1 * sd + 6 * sd / math.sqrt(200)
    assert (np.abs(kept.mean(axis=(0, 1)) - exact) < tolerance).all()
    assert np.allclose(kept.std(axis=(0, 1)), sd, rtol=0.2)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_draws_of_a_mixture_are_those_of_its_approximation():
    """Means at six standard errors, covariances within a tenth: fails below 1e-6."""
    x = mixture_rows()
    settings = {"num_passes": 3, "clip_bound": 3.0}
    fit = dpmc.mixture(x, MIXTURE, **BUDGET, **settings, num_draws=5000, seed=3)
    fitted, _ = mixture_dp_sep.fit(
        x,
        MIXTURE,
        mixture_dp_sep.Params(**settings),
        Budget(2.0, 1e-6, "subsampled"),
        stream(3, "noise", "mixture"),
    )
    flat = fit.draws.reshape(-1, 2)
    sd = np.sqrt(fitted.covariances[:, 0, 0])
    assert (np.abs(flat.mean(axis=0) - fitted.means[:, 0]) < 6 * sd / math.sqrt(len(flat))).all()
    assert np.allclose(flat.std(axis=0), sd, rtol=0.1)


def test_predictions_of_a_network_have_the_moments_of_its_weights():
    """The mean over draws against the closed form, at six standard errors: fails below 1e-6."""
    from dpmc.ep.network import dp_sep
    from dpmc.ep.network.task import Task
    from dpmc.fits.predictive import scaled_to_unit

    x, y = regression_rows(500)
    fit = dpmc.network(
        x, y, **BUDGET, x_range=(-1, 1), y_range=(-4, 4), hidden=3, num_passes=3, num_draws=4000,
        seed=2, noise_variance=0.1,
    )  # fmt: skip
    fitted = dp_sep.fit(
        scaled_to_unit(x, -1.0, 1.0),
        scaled_to_unit(np.clip(y, -4, 4), -4.0, 4.0),
        Task("rows", 3, standardised_by_rows=False),
        dp_sep.Params(num_passes=3, noise_variance=0.1),
        Budget(2.0, 1e-6, "subsampled"),
        stream(2, "noise", "network"),
    )
    new = np.array([[0.5, -0.5], [-1.0, 1.0], [0.0, 0.0]])
    mean, variance = fitted.predictor.predict(scaled_to_unit(new, -1.0, 1.0))
    unit = 8 / math.sqrt(12)
    drawn = fit.predict(new, seed=1)
    sd = unit * np.sqrt(variance + 0.1)
    assert (np.abs(drawn.mean(axis=0) - unit * mean) < 6 * sd / math.sqrt(len(drawn))).all()
    assert np.allclose(drawn.std(axis=0), sd, rtol=0.15)


def test_the_selected_statistic_has_the_posterior_of_quadrature():
    """The mean at six Monte Carlo errors: fails below 1e-6."""
    population = statsel.population("normal_variance", bound=10.0)
    mechanism = statsel.mechanism("laplace")
    candidates = [statsel.statistic(text) for text in ("abs_0.5", "abs_1", "abs_2")]
    x = population.draw(2.0, np.random.default_rng(1), 100)
    fit = dpmc.select_statistic(
        x, population, candidates, mechanism, epsilon=5.0, theta=2.0, prior=(0.0, 100.0),
        num_draws=20_000, seed=1,
    )  # fmt: skip
    assert fit.plan.details["statistic"] == fit.plan.details["ranking"]["statistic"][0] == "|x|"
    released = statsel.release(
        population, candidates[1], mechanism, x, 5.0, stream(1, "noise", "select_statistic")
    )
    assert released.y == fit.plan.details["released"]
    exact = statsel.reference(released, prior=(0.0, 100.0))
    ess = fit.summary().to_dataframe().loc["theta", "ess"]
    assert abs(fit.kept().mean() - exact.mean) < 6 * exact.sd / math.sqrt(ess)


def test_remarks_of_every_family_are_warnings():
    """As those of `fit` are."""
    x, y = regression_rows(100)
    with pytest.warns(dpmc.PosteriorWarning, match="no larger than the privacy noise"):
        fit = dpmc.linear_regression(1e-3 * x, y, **BUDGET, **BOUNDS, num_draws=50)
    with pytest.warns(dpmc.PosteriorWarning) as told:
        again = dpmc.linear_regression(1e-3 * x, y, **BUDGET, **BOUNDS, num_draws=50, seed=1)
    assert tuple(str(one.message) for one in told) == again.remarks
    assert told[0].filename == __file__
    assert len(fit.remarks) > 0


def selected(mechanism, **changes):
    population = statsel.population("normal_variance", bound=10.0)
    given = {"epsilon": 2.0, "theta": 2.0, "prior": (0.0, 100.0), "num_draws": 5000, "seed": 1}
    return dpmc.select_statistic(
        population.draw(2.0, np.random.default_rng(1), 100),
        population,
        [statsel.statistic("abs_1")],
        statsel.mechanism(mechanism),
        **{**given, **changes},
    )


@pytest.mark.filterwarnings("ignore")
def test_a_statistic_is_in_the_ledger_and_draws_are_as_many_as_asked_for():
    """Gaussian noise at epsilon e is e-GDP: one release with a multiplier of 1 / e."""
    fit = selected("gaussian", num_draws=200)
    assert fit.ledger == (("gaussian(0.5)", 1),)
    assert fit.draws.shape == fit.kept().shape == (4, 200, 1)
    assert selected("laplace", num_draws=200).ledger == ()


def test_a_delta_that_protects_nobody_is_warned_of():
    """Of Gaussian noise at epsilon 2 alone: a delta of a half."""
    with pytest.warns(dpmc.PosteriorWarning, match="publishes one row of 100 at random"):
        selected("gaussian")


def test_a_response_that_a_likelihood_does_not_have_counts_as_zero():
    """As a row that is not finite does; and it is refused where those are."""
    x, y = regression_rows(3000)
    labels = (y > 0) * 1.0
    settings = {**BUDGET, "likelihood": "logistic", "num_draws": 50, "seed": 1}
    labels[:7] = np.nan
    missing = dpmc.regression(x, labels, **settings, invalid_rows="zero")
    labels[:7] = [-1.0, 2.0, 0.5, 1e300, -0.5, 9.0, 1.0 + 1e-9]
    other = dpmc.regression(x, labels, **settings, invalid_rows="zero")
    np.testing.assert_array_equal(other.draws, missing.draws)
    with pytest.raises(DpmcError, match="`y` must be 0 or 1 with likelihood 'logistic'") as caught:
        dpmc.regression(x, labels, **settings)
    assert not any(character.isdigit() for character in str(caught.value).replace("0 or 1", ""))


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_columns_of_a_data_frame_are_names():
    x, y = regression_rows(2000)
    frame = pd.DataFrame(x, columns=["age", "dose"])
    fit = dpmc.regression(frame, pd.Series(y), **BUDGET, num_draws=50)
    assert fit.names == ("intercept", "age", "dose", "log_sigma")
    bounded = dpmc.linear_regression(frame, y, **BUDGET, **BOUNDS, num_draws=20, names=["a", "b"])
    assert bounded.names == ("a", "b", "log_sigma")


def test_a_fit_of_a_model_of_ones_own_predicts_by_functions_alone():
    from dpmc.models import gaussian_mean

    model = gaussian_mean.build(gaussian_mean.Params(1, [[1]], prior_variance=100))
    fit = dpmc.fit(model, np.zeros((500, 1)), **BUDGET, num_draws=20)
    with pytest.raises(DpmcError, match="`kind` must be a function of theta and rows"):
        fit.predict([[0.0]])


@pytest.mark.filterwarnings("ignore")
def test_a_comparison_has_a_table_a_figure_and_a_joint_guarantee(tmp_path):
    from dpmc.models import gaussian_mean

    model = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=100))
    rows = stream(0, "families", "compare").standard_normal((2000, 2))
    walk = {
        "proposal_sd": 0.02,
        "ratio_noise_multiplier": 30.0,
        "ratio_clip_bound": 3.0,
        "num_chains": 2,
    }
    both = dpmc.compare(
        model, rows, {"auto": {}, "dp_penalty": walk}, **BUDGET, names=["a", "b"], progress=False
    )
    table = both.table()
    assert list(table.index.get_level_values("component")) == ["a", "b", "a", "b"]
    assert both.guarantee.epsilon > max(fit.guarantee.epsilon for fit in both.fits.values())
    both.plot().savefig(tmp_path / "figure.png")
    assert str(both.guarantee) in str(both)
    with pytest.raises(DpmcError, match="`methods` must name at least one"):
        dpmc.compare(model, rows, [], **BUDGET)


def test_columns_of_several_types_are_numbers():
    x, y = regression_rows(2000)
    frame = pd.DataFrame({"flag": x[:, 0] > 0, "count": np.arange(2000) % 3, "dose": x[:, 1]})
    settings = {**BUDGET, "num_draws": 50, "seed": 1}
    mixed = dpmc.regression(frame, y > 0, likelihood="logistic", **settings)
    plain = dpmc.regression(frame.astype(float), (y > 0) * 1.0, likelihood="logistic", **settings)
    np.testing.assert_array_equal(mixed.draws, plain.draws)
    with pytest.raises(DpmcError, match="data 'x': column 'dose' must hold real numbers"):
        dpmc.regression(frame.assign(dose="4"), y, **settings)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_noise_that_hides_the_features_is_said():
    x, y = regression_rows(100)
    fit = dpmc.linear_regression(1e-3 * x, y, **BUDGET, **BOUNDS, num_draws=50)
    assert any("no larger than the privacy noise" in remark for remark in fit.remarks)
