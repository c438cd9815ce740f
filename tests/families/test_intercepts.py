"""Random intercepts: the exact posterior at little noise, levels that are declared, new rows.

Draws are compared with those of chains that know all rows and the same prior. All seeds are fixed.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.automatic.prior import Prior
from dpmc.families import general
from dpmc.families.intercepts import Intercepts
from dpmc.families.likelihoods import ALL, model_of
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.replay import Recording

LEVELS = ("a", "b", "c", "d", "e", "f")
SHARES = np.array([0.4, 0.25, 0.15, 0.12, 0.06, 0.02])
SLOPE_SD, INTERCEPT_SD, SCALE = 1.0, 5.0, 2.0
PRIOR = {"intercept": INTERCEPT_SD, "x1": SLOPE_SD, "sd[group]": SCALE}
GIVEN = {"delta": 1e-6, "seed": 1, "progress": False, "num_draws": 1000}


def simulated(name="linear", num_rows=4000):
    """Return a feature of few values, the place of each row's group, and responses."""
    rng = stream(0, "intercepts", name)
    x = rng.integers(-1, 2, size=num_rows) * 1.0
    group = rng.choice(len(LEVELS), num_rows, p=SHARES)
    eta = 0.4 + 0.5 * x + rng.normal(0, 0.7, len(LEVELS))[group]
    if name == "logistic":
        return x, group, (rng.random(num_rows) < 1 / (1 + np.exp(-eta))) * 1.0
    if name == "linear":
        return x, group, eta + 1.5 * rng.normal(size=num_rows)
    if name == "ordinal":
        return x, group, np.digitize(eta + rng.logistic(size=num_rows), [0.0, 1.5]) * 1.0
    return x, group, rng.poisson(np.exp(eta)) * 1.0


def fitted(x, group, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        named = np.array([*LEVELS, "?"])[group]
        given = {"epsilon": 1e4, **GIVEN, "group": named, "levels": LEVELS, **options}
        return dpmc.regression(x[:, None], y, **given)


def by_gibbs(x, group, y, rng, count=6000):
    """Return draws of intercept, slope, groups around it, log deviation and log sigma."""
    size = len(LEVELS)
    z = np.column_stack([np.ones_like(x), x, np.eye(size)[group]])
    square, cross, total = z.T @ z, z.T @ y, float(y @ y)
    sd, sigma, out = 1.0, 1.0, np.empty((count, size + 4))
    for k in range(count):
        prior = np.append([INTERCEPT_SD**-2, SLOPE_SD**-2], np.full(size, sd**-2))
        precision = square / sigma**2 + np.diag(prior)
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, cross / sigma**2)
        theta = mean + np.linalg.solve(root.T, rng.normal(size=size + 2))
        rest = total - 2 * cross @ theta + theta @ square @ theta
        sigma = math.sqrt(rest / rng.chisquare(len(y)))
        logs = np.linspace(math.log(1e-3), math.log(8), 800)
        height = (1 - size) * logs - 0.5 * np.exp(-2 * logs) * (theta[2:] @ theta[2:])
        height -= 0.5 * np.exp(2 * logs) / SCALE**2
        chance = np.exp(height - height.max())
        sd = math.exp(rng.choice(logs, p=chance / chance.sum()))
        out[k] = [*theta, math.log(sd), math.log(sigma)]
    return out[500:]


def by_metropolis(x, group, y, rng, proposal, count=80_000):
    """Return draws of intercept, slope, groups around it and log deviation."""
    size = len(LEVELS)
    cells = group * 3 + x.astype(int) + 1
    number, ones = np.bincount(cells, minlength=18), np.bincount(cells, y, minlength=18)
    values, places = np.tile([-1.0, 0.0, 1.0], size), np.repeat(np.arange(size), 3)

    def height(theta):
        eta = theta[0] + theta[1] * values + theta[2 + places]
        sd = math.exp(theta[-1])
        prior = (theta[0] / INTERCEPT_SD) ** 2 + (theta[1] / SLOPE_SD) ** 2 + (sd / SCALE) ** 2
        prior += theta[2:-1] @ theta[2:-1] / sd**2
        return ones @ eta - number @ np.logaddexp(0, eta) - prior / 2 + (1 - size) * theta[-1]

    return walk(height, rng, proposal, count)


def by_metropolis_of_classes(x, group, y, rng, proposal, count=60_000):
    """Return draws of slope, groups, log deviation and two thresholds; three classes."""
    size = len(LEVELS)
    cells = (group * 3 + x.astype(int) + 1) * 3 + y.astype(int)
    number = np.bincount(cells, minlength=9 * size).reshape(-1, 3)
    values, places = np.tile([-1.0, 0.0, 1.0], size), np.repeat(np.arange(size), 3)

    def height(theta):
        if theta[-2] >= theta[-1]:
            return -math.inf
        eta, sd, gap = (
            theta[0] * values + theta[1 + places],
            math.exp(theta[-3]),
            theta[-1] - theta[-2],
        )
        below = 1 / (1 + np.exp(eta[:, None] - theta[-2:]))
        chance = np.diff(below, axis=1, prepend=0.0, append=1.0)
        prior = (theta[0] / SLOPE_SD) ** 2 + (sd / SCALE) ** 2 + theta[1:-3] @ theta[1:-3] / sd**2
        # Thresholds: the first is normal, and so is the logarithm of the gap to the second.
        prior += (theta[-2] / 10) ** 2 + math.log(gap) ** 2 + 2 * math.log(gap)
        return np.sum(number * np.log(chance)) - prior / 2 + (1 - size) * theta[-3]

    return walk(height, rng, proposal, count)


def walk(height, rng, proposal, count):
    """Return draws of a random walk whose steps are as the draws of a proposal vary."""
    root = np.linalg.cholesky(np.cov(proposal.T)) * 2.0 / math.sqrt(proposal.shape[1])
    theta, out = proposal.mean(axis=0), np.empty((count, proposal.shape[1]))
    here = height(theta)
    for k in range(count):
        moved = theta + root @ rng.normal(size=len(theta))
        there = height(moved)
        if math.log(rng.random()) < there - here:
            theta, here = moved, there
        out[k] = theta
    return out[5000:]


@pytest.mark.parametrize("name", ["linear", "logistic", "ordinal"])
def test_little_noise_gives_the_exact_posterior(name):
    """Means within a fifth of a deviation: chains err by a twentieth, draws by a sixtieth."""
    x, group, y = simulated(name)
    classes = {"classes": 3} if name == "ordinal" else {}
    prior = {key: one for key, one in PRIOR.items() if not (classes and key == "intercept")}
    fit = fitted(x, group, y, likelihood=name, prior_sd=prior, **classes)
    draws = fit.draws.reshape(-1, len(fit.names))
    rng = stream(1, "intercepts", name)
    if name == "linear":
        exact = by_gibbs(x, group, y, rng)
    else:
        exact = (by_metropolis_of_classes if classes else by_metropolis)(x, group, y, rng, draws)
    first = () if classes else ("intercept",)
    assert fit.names[: 3 + len(first)] == (*first, "x1", "group[a]", "group[b]")
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean(axis=0)) < exact.std(axis=0) / 5)
    assert np.allclose(draws.std(axis=0), exact.std(axis=0), rtol=0.12)
    near = [np.quantile(one, [0.05, 0.95], axis=0) for one in (draws, exact)]
    assert np.all(np.abs(near[0] - near[1]) < exact.std(axis=0) / 3)


def test_without_rows_draws_are_those_of_the_prior():
    """At six standard errors: a right sampler fails with a probability below 1e-7."""
    prior = Prior.of(model_of("poisson", 1, groups=(5, 3.0)))
    nothing = NoiseAware.of_nothing(prior, np.zeros(6))
    intercepts = Intercepts(1, 5, scale=2.0, mean_sd=3.0, others=np.array([2.5]))
    draws, _ = intercepts.draws(nothing, 20_000, 1, np.random.default_rng(0))
    slope, levels, sd, mean = (
        draws[0, :, 0], draws[0, :, 1:6], np.exp(draws[0, :, 6]), draws[0, :, 7]
    )  # fmt: skip
    around = (levels - mean[:, None]) / sd[:, None]
    for values, expected in [
        (slope**2, 2.5**2), (mean**2, 9.0), (around[:, 0] ** 2, 1.0),
        (sd, 2 * math.sqrt(2 / math.pi)),
        (around[:, 0] * around[:, 1], 0.0), (sd**2, 4.0), (around[:, 2] * mean, 0.0),
    ]:  # fmt: skip
        error = values.std() / math.sqrt(len(values))
        # A grid's step is 0.0275, and changes of sizes within it are below 1e-3 of them.
        assert abs(values.mean() - expected) < 6 * error + 1e-3 * abs(expected)


def test_a_formula_declares_levels_and_other_rows_count_as_nothing():
    x, group, y = simulated("poisson", 2000)
    group[::20] = len(LEVELS)
    frame = pd.DataFrame({"dose": x, "y": y, "clinic": np.array([*LEVELS, "gone"])[group]})
    text = f"y ~ dose + (1 | C(clinic, levels={list(LEVELS)}))"
    given = {"likelihood": "poisson", "epsilon": 50.0, **GIVEN}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(text, frame, **given)
        y[::20] = np.nan
        arrays = fitted(x, group % 6, y, **given, invalid_rows="zero")
        frame["clinic"] = frame["clinic"].replace("gone", "a")
        other = dpmc.regression(text, frame, **given)
    assert fit.names == ("intercept", "dose", *(f"clinic[{k}]" for k in LEVELS), "log_sd[clinic]")
    assert np.array_equal(fit.draws, arrays.draws)
    assert not np.array_equal(fit.draws, other.draws)
    assert "group" not in fit.plan.likelihood


def test_new_rows_have_the_intercept_of_their_level(tmp_path):
    x, group, y = simulated("poisson", 2000)
    frame = pd.DataFrame({"dose": x, "y": y, "clinic": np.array(LEVELS)[group]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(
            f"y ~ (1 | C(clinic, levels={list(LEVELS)})) + dose",
            frame, likelihood="poisson", epsilon=50.0, **GIVEN,
        )  # fmt: skip
    fit.save(tmp_path / "fit.parquet")
    new = pd.DataFrame({"dose": [1.0, 0.0], "clinic": ["c", "a"]})
    draws = fit.draws.reshape(-1, len(fit.names))
    expected = np.column_stack([draws[:, 0] + draws[:, 1] + draws[:, 4], draws[:, 0] + draws[:, 2]])
    for one in (fit, dpmc.Fit.load(tmp_path / "fit.parquet")):
        assert np.allclose(one.predict(new, kind="linear"), expected)
        by_array = one.predict(np.array([[1.0], [0.0]]), group=["c", "a"], kind="linear")
        assert np.allclose(by_array, expected)
    for rows, more, told in [
        (new.assign(clinic="z"), {}, "a declared level, in all columns"),
        (new[["dose"]], {}, "must have a column 'clinic'"),
        (np.zeros((2, 1)), {}, "`group` must be given, as to the fit"),
        (np.zeros((2, 1)), {"group": ["a", "z"]}, "`group` must be one of the levels of the fit"),
    ]:
        with pytest.raises(DpmcError) as caught:
            fit.predict(rows, **more)
        assert told in str(caught.value)


def test_classes_of_new_rows_have_the_intercept_of_their_level():
    """Thresholds are below them, and an offset beside them."""
    x, group, y = simulated("ordinal", 2000)
    given = {"likelihood": "ordinal", "classes": 3, "epsilon": 50.0, "offset": np.full(2000, 2.0)}
    fit = fitted(x, group, y, **given)
    assert fit.names[-3:] == ("log_sd[group]", "threshold[1]", "threshold[2]")
    draws = fit.draws.reshape(-1, len(fit.names))
    eta = draws[:, 0] + draws[:, 3] - 1.0
    more = {"group": ["c"], "offset": [-1.0]}
    assert np.allclose(fit.predict([[1.0]], kind="linear", **more)[:, 0], eta)
    first = 1 / (1 + np.exp(eta - draws[:, -2]))
    assert np.allclose(fit.predict([[1.0]], kind="probability", **more)[:, 0, 0], first)
    assert any(one.what.startswith("responses from") for one in fit.check().checks)


def test_without_a_constant_groups_are_around_zero():
    x, group, y = simulated("linear")
    fit = fitted(x, group, y, intercept=False)
    assert fit.names[:2] == ("x1", "group[a]")
    with_one = fitted(x, group, y)
    sums = with_one.draws[..., [0]] + with_one.draws[..., 2:8]
    assert np.allclose(fit.draws[..., 1:7].mean(axis=(0, 1)), sums.mean(axis=(0, 1)), atol=0.05)


def transcript_of(rows, budget, answers, monkeypatch, **options):
    ledger = Recording(budget, answers)
    monkeypatch.setattr(general, "Ledger", lambda *given: ledger)
    fit = fitted(*rows, epsilon=1.0, invalid_rows="zero", **options)
    return fit, ledger.transcript


NAMES = [name for name, one in ALL.items() if one.offset and name not in ("binomial", "weibull")]
THREE = {"ordinal": {"classes": 3}}


@pytest.mark.parametrize("name", NAMES)
def test_one_row_costs_no_more_than_the_budget_whatever_its_group(name, monkeypatch):
    x, group, y = simulated("poisson", 1500)
    most = {"logistic": 1.0, "ordinal": 2.0}.get(name, math.inf)
    y = np.minimum(y, most) + (name == "gamma")
    given = {"likelihood": name, **THREE.get(name, {})}
    budget = GaussianBudget.of(1.0, 1e-6)
    first, here = transcript_of((x, group, y), budget, None, monkeypatch, **given)
    for place, feature, response in [(5, 1e9, 0.0), (6, 0.0, 1.0), (0, math.nan, 1.0)]:
        other = x.copy(), group.copy(), y.copy()
        other[0][3], other[1][3], other[2][3] = feature, place, response
        fit, there = transcript_of(other, budget, here, monkeypatch, **given)
        assert 0 < here.cost(there) <= budget.mu**2 * (1 + 1e-9)
        assert np.array_equal(fit.draws, first.draws)
