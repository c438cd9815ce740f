"""The automatic fit by its public door: what it promises, and what it refuses."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import dpmc
from dpmc import priors
from dpmc.automatic import run as automatic
from dpmc.models import linear, logistic
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.types import LOW_BITS, SEED, Dataset
from tests.support.posteriors import gaussian_model, rows

QUICK = {"epsilon": 2.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def data():
    return rows("automatic", 5000, 2).x


@pytest.fixture(scope="module")
def fitted(data):
    return dpmc.fit(gaussian_model(), data, **QUICK, seed=3)


def test_all_of_the_budget_is_spent_and_not_more(fitted):
    spent = sum(
        count / events.parse([(text, 1)]).popitem()[0].noise_multiplier ** 2
        for text, count in fitted.ledger
    )
    mu = GaussianBudget.of(**QUICK).mu
    assert spent == pytest.approx(mu**2, rel=1e-9)
    assert fitted.guarantee.epsilon == QUICK["epsilon"]
    assert fitted.plan.audit.epsilon == pytest.approx(QUICK["epsilon"], rel=1e-6)
    assert fitted.guarantee.outside == (SEED, LOW_BITS)


@pytest.mark.parametrize("unit", [None, "person"])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
def test_rows_most_of_which_are_invalid_are_fitted_by_the_others(share, unit):
    """Means are within 5 deviations, which chance exceeds once in 1e6; a prior has 30 of them."""
    rng = stream(0, "automatic", "invalid", round(100 * share))
    x = rng.normal(3.0, 1.0, (20_000, 2))
    x[rng.random(len(x)) < share] = np.nan
    whose = {} if unit is None else {"unit": rng.permutation(len(x))}
    fit = dpmc.fit(gaussian_model(), x, **QUICK, seed=3, invalid_rows="zero", **whose)
    draws = fit.draws.reshape(-1, 2)
    exact = 1 / math.sqrt(np.isfinite(x[:, 0]).sum())
    assert (draws.std(axis=0) < 2 * exact).all()
    assert (np.abs(draws.mean(axis=0) - 3.0) < 5 * draws.std(axis=0)).all()
    assert fit.plan.stages[0]["count"] == pytest.approx((1 - share) * len(x), abs=300)


def test_the_few_rows_that_are_valid_are_found_at_a_small_budget():
    """Fixed seeds: without a count of these rows the search finds nothing, and gives the prior."""
    widths = []
    for seed in range(5):
        rng = stream(0, "automatic", "few valid", seed)
        x = rng.normal(3.0, 1.0, (20_000, 2))
        x[rng.random(len(x)) < 0.97] = np.nan
        budget = {"epsilon": 0.5, "delta": 1e-6}
        fit = dpmc.fit(gaussian_model(), x, **budget, seed=seed, invalid_rows="zero")
        widths.append(fit.draws[..., 0].std() * math.sqrt(600))
    assert np.median(widths) < 15


def test_each_stage_tells_what_is_spent_and_changes_no_draw(data, fitted):
    told = []
    again = automatic.fit(
        gaussian_model(),
        Dataset(name="rows", x=data),
        QUICK["epsilon"],
        QUICK["delta"],
        seed=3,
        progress=lambda *said: told.append(said),
    )
    np.testing.assert_array_equal(again.draws, fitted.draws)
    assert len(told) == len(again.plan.stages)
    spent = [done for done, _, _ in told]
    assert spent == sorted(spent)
    assert spent[-1] == 100
    assert {total for _, total, _ in told} == {100}


def test_a_seed_repeats_a_fit_and_none_does_not(data, fitted):
    again = dpmc.fit(gaussian_model(), data, **QUICK, seed=3)
    np.testing.assert_array_equal(again.draws, fitted.draws)
    other = dpmc.fit(gaussian_model(), data, **QUICK)
    assert other.guarantee.outside == ()
    assert not np.array_equal(other.draws, fitted.draws)


def test_the_posterior_is_that_of_the_rows_and_the_noise(data, fitted):
    # A mean that privacy noise displaces by more than 5 of its standard deviations: 2e-6 for two.
    exact = gaussian_model().reference(dpmc.Dataset.of("x", data), 20_000, stream(0, "exact"))
    sd = exact.std(axis=0)
    displaced = (fitted.kept().mean(axis=(0, 1)) - exact.mean(axis=0)) / sd
    widening = fitted.kept().std(axis=(0, 1)) / sd
    assert (np.abs(displaced) < 5 * np.sqrt(widening**2 - 1) + 0.1).all()
    assert (widening > 0.97).all()
    assert (widening < 1.5).all()


def test_a_summary_tells_what_share_of_the_rows_is_clipped(data, fitted):
    share = fitted.plan.clipped_share
    assert 0 < share < 0.25  # of Gaussian rows few are far from all others
    assert f"clips: about {share:.2g}" in str(fitted.summary())
    everything = Dataset("constant", np.ones((5000, 2)))
    assert dpmc.fit(gaussian_model(), everything, **QUICK, seed=3).plan.clipped_share <= 1


def test_summary_names_its_components_and_what_was_bought(data):
    fitted = dpmc.fit(gaussian_model(), data, **QUICK, names=["height", "weight"])
    text = str(fitted.summary())
    assert "height" in text
    assert "Privacy displaces means by about" in text
    table = fitted.summary().to_dataframe()
    assert list(table.index) == ["height", "weight"]
    assert list(fitted.to_arviz().posterior.parameter.values) == ["height", "weight"]
    assert "<table>" in fitted._repr_html_()
    assert len(repr(fitted)) < 200


def test_a_budget_that_carries_no_posterior_is_said_to_be_too_small():
    x = stream(0, "few").standard_normal((60, 2))
    with pytest.warns(dpmc.PosteriorWarning, match="does not carry this posterior"):
        fitted = dpmc.fit(gaussian_model(), x, epsilon=0.05, delta=1e-6, seed=0)
    assert any("rows" in remark for remark in fitted.remarks)


@pytest.mark.parametrize(("step", "told"), [(8.0, False), (9.0, True)])
def test_a_last_step_over_which_curvature_changes_is_said_to_be_too_long(step, told):
    cost = SimpleNamespace(num_rows=5000, remarks=lambda causes, names: iter(()))
    near = SimpleNamespace(step=step, step_noise=1.0, dispersion=1.0)
    remarks = [*automatic._remarks(near, None, cost, ())]
    assert any("had not settled" in remark for remark in remarks) == told
    far = SimpleNamespace(step=step, step_noise=step / 3.9, dispersion=1.0)
    assert not [
        *automatic._remarks(far, None, cost, ())
    ]  # where noise may have moved its end by as much


def test_a_linear_regression_finds_its_noise():
    rng = stream(0, "linear")
    x = rng.uniform(-1, 1, (20_000, 2))
    y = 0.5 + x @ [1.0, -2.0] + 0.3 * rng.standard_normal(20_000)
    model = linear.build(linear.Params(2))
    fitted = dpmc.fit(model, np.column_stack([x, y]), epsilon=2, delta=1e-6, seed=0)
    means = fitted.kept().mean(axis=(0, 1))
    np.testing.assert_allclose(means, [0.5, 1.0, -2.0, np.log(0.3)], atol=0.05)


@pytest.mark.slow
def test_two_hundred_parameters_and_few_rows_end_with_a_warning_and_not_in_an_error():
    rng = stream(0, "wide")
    x = rng.standard_normal((1000, 200))
    y = x @ (0.3 * rng.standard_normal(200)) + rng.standard_normal(1000)
    model = linear.build(linear.Params(200))
    with pytest.warns(dpmc.PosteriorWarning, match="does not carry this posterior"):
        fitted = dpmc.fit(model, np.column_stack([x, y]), epsilon=1, delta=1e-6, seed=0)
    assert np.isfinite(fitted.kept()).all()


def test_a_method_of_ones_own_choice_says_when_it_is_no_use(data):
    with pytest.warns(dpmc.PosteriorWarning, match="too few for any sampler"):
        fitted = dpmc.fit(
            gaussian_model(),
            data,
            method="dp_penalty",
            epsilon=1,
            delta=1e-6,
            proposal_sd=0.05,
            ratio_noise_multiplier=10,
            ratio_clip_bound=3.0,
            progress=False,
        )
    assert fitted.remarks


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    """Of 120 data sets; beyond the limits with a probability of about 1e-4 for exact intervals."""
    model = logistic.build(logistic.Params(1, prior_sd=1.0))
    inside = []
    for seed in range(120):
        rng = stream(0, "coverage", seed)
        theta = rng.standard_normal(2)
        x = rng.uniform(-1, 1, 2000)
        y = rng.random(2000) < 1 / (1 + np.exp(-theta[0] - theta[1] * x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpmc.PosteriorWarning)
            fitted = dpmc.fit(
                model, np.column_stack([x, y]), epsilon=1, delta=1e-6, num_chains=1, seed=seed
            )
        low, high = np.quantile(fitted.draws[0], [0.25, 0.75], axis=0)
        inside.append((low < theta) & (theta < high))
    share = np.mean(inside)
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / 240)


def varied(shape):
    """Return dispersions of eight fits of exponential waiting times whose law is a gamma one."""
    found = []
    model = dpmc.model(
        lambda p, row: -p.a - row[0] * np.exp(-p.a), {"a": priors.normal(0, 2)}, num_columns=1
    )
    for seed in range(8):
        y = stream(seed, "waiting", shape).gamma(shape, 1 / shape, (10_000, 1))
        fit = dpmc.fit(model, y, epsilon=4, delta=1e-6, seed=seed, progress=False, num_draws=500)
        told = any("vary" in remark for remark in fit.remarks)
        assert told == (fit.plan.details["dispersion"] > 1)
        found.append((fit.plan.details["dispersion"], float(fit.draws.std())))
    return np.array(found)


def test_gradients_that_vary_more_than_the_model_says_widen_and_are_told():
    """Each right fit is widened by three deviations of noise: 1 time in 700, so 1 test in 90."""
    assert np.all(varied(1.0)[:, 0] == 1)
    dispersions, widths = varied(0.5).T
    told = dispersions > 1
    assert told.sum() >= 4
    assert np.all(dispersions[told] < 2.4)
    # The root of the variance over that of the model, and noise.
    assert np.all(widths[told] > np.sqrt(dispersions[told] / 10_000))


def test_a_bar_shows_how_much_of_the_budget_is_spent(data, capsys):
    dpmc.fit(gaussian_model(), data, **QUICK, seed=3, progress=False)
    assert capsys.readouterr().err == ""
    dpmc.fit(gaussian_model(), data, **QUICK, seed=3)
    said = capsys.readouterr().err
    assert "100/100" in said
    assert "% of the budget" in said


def test_discrete_noise_gives_a_posterior_too(data):
    fitted = dpmc.fit(gaussian_model(), data, **QUICK, noise="discrete", seed=1)
    assert fitted.guarantee.noise == "discrete"
    assert np.abs(fitted.kept().mean(axis=(0, 1)) - data.mean(axis=0)).max() < 0.2


def test_a_data_frame_and_integers_are_accepted(data):
    import pandas as pd

    whole = np.round(data).astype(int)
    frame = pd.DataFrame(whole, columns=["a", "b"])
    fits = [dpmc.fit(gaussian_model(), part, **QUICK, seed=1) for part in (frame, whole)]
    np.testing.assert_array_equal(fits[0].draws, fits[1].draws)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": "4"}, "`epsilon` must be positive and finite, got '4'"),
        ({"epsilon": None}, "`epsilon` must be"),
        ({"epsilon": True}, "`epsilon` must be"),
        ({"epsilon": [1, 4]}, "`epsilon` must be"),
        ({"delta": None}, "`delta` must be in .* the automatic method"),
        ({"delta": "1e-5"}, "`delta` must be"),
        ({"num_chains": 0}, "`num_chains` must be an integer of at least 1"),
        ({"num_draws": 1.5}, "`num_draws` must be an integer of at least 1"),
        ({"noise": "none"}, "`noise` must be"),
        ({"names": ["a"]}, "`names` must be 2 different names"),
        ({"names": ["a", "a"]}, "`names` must be 2 different names"),
        ({"ratio_clip_bound": 3.0}, "`ratio_clip_bound` must be left out for the automatic method"),
        ({"max_iterations": 3}, "`max_iterations` must be left out"),
        ({"start": np.zeros(3)}, "`start` must be finite, of shape"),
        ({"start": ["a", "b"]}, "`start` must"),
        ({"seed": "1"}, "`seed` must"),
        ({"seed": 1.5}, "`seed` must"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(data, arguments, message):
    with pytest.raises(dpmc.DpmcError, match=message) as caught:
        dpmc.fit(gaussian_model(), data, **(QUICK | arguments))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("positional", "message"),
    [
        (lambda model, x: (x, model), "`model` must be a dpmc.Model, got ndarray"),
        (lambda model, x: ("logistic", x), "`model` must be a dpmc.Model, got 'logistic'"),
        (lambda model, x: (model, None), "data 'data'"),
        (lambda model, x: (model, "data.csv"), "must be a folder of shards, and .* is not there"),
        (lambda model, x: (model, x + 1j), "real numbers"),
        (lambda model, x: (model, (x, x[:, 0])), "data 'data'"),
        (lambda model, x: (model, np.ma.masked_array(x, x > 3)), "masked"),
    ],
)
def test_bad_rows_and_models_are_refused_in_one_line(data, positional, message):
    with pytest.raises(dpmc.DpmcError, match=message) as caught:
        dpmc.fit(*positional(gaussian_model(), data), **QUICK)
    assert "\n" not in str(caught.value)


def test_method_may_stand_first_or_be_named(data):
    settings = {"proposal_sd": 0.02, "num_iterations": 200, "progress": False, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        first = dpmc.fit(gaussian_model(), data, method="rwmh", **settings)
        named = dpmc.fit(gaussian_model(), data, method="rwmh", **settings)
    np.testing.assert_array_equal(first.draws, named.draws)
